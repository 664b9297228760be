/* autohete inspect: shows the operators that a model records, its partitions and their sizes. */
#include "cli/artefacts.h"
#include "cli/commands.h"
#include "cli/out.h"

struct inspect_args {
    struct ah_session_options inputs;
    const char *checkpoint;
    bool graph, partition, json;
};
#define AT(field) offsetof(struct inspect_args, field)

static const struct ah_arg options[] = {
    AH_ARG_CONFIG,
#define AH_OF(train, plan, profile, simulate, fit, inspect) inspect
#define AH_AT(field) AT(inputs.field)
#include "cli/rows.h"
    {"checkpoint", AH_ARG_TEXT, AT(checkpoint), "DIR", .group = "model",
     .help = "folder of a training, instead of --model"},
    {"graph", AH_ARG_FLAG, AT(graph), .group = "output", .help = "print only the recorded operators"},
    {"partition", AH_ARG_FLAG, AT(partition), .group = "output", .help = "print only the partitions and their sizes"},
    {"json", AH_ARG_FLAG, AT(json), .group = "output",
     .help = "print configuration and partitions as one JSON object in the last line"},
};

static int save(const void *partition, const char *path)
{
    return ah_partition_save(partition, path);
}

static int show_json(const struct ah_session *session)
{
    const struct ah_model_def *def = ah_model_get(ah_session_model(session));
    printf("{\"name\": ");
    ah__out_string(stdout, def->name);
    printf(", \"layers\": %d, \"vocab_size\": %lld, \"max_seq\": %lld, \"config\": ", def->layers,
           (long long)def->vocab_size, (long long)def->max_seq);
    ah__out_line(stdout, def->config ? def->config : "{}");
    printf(", \"partition\": ");
    int status = ah__out_saved(stdout, save, ah_session_partition(session));
    printf("}\n");
    return status;
}

static int show(const struct ah_session *session, const struct inspect_args *args)
{
    FILE *text = args->json ? stderr : stdout;
    const struct ah_model_def *def = ah_model_get(ah_session_model(session));
    bool all = !args->graph && !args->partition;
    int status = AH_OK;
    if (all)
        fprintf(text, "model %s: %d blocks, %lld tokens, sequences up to %lld\n%s\n\n", def->name, def->layers,
                (long long)def->vocab_size, (long long)def->max_seq, def->config ? def->config : "{}");
    if (args->graph || all)
        status = ah_graph_print(ah_session_graph(session), text);
    if (status == AH_OK && all)
        fputc('\n', text);
    if (status == AH_OK && (args->partition || all))
        status = ah_partition_print(ah_session_partition(session), text);
    return status == AH_OK && args->json ? show_json(session) : status;
}

static int run(const void *given)
{
    struct inspect_args args = *(const struct inspect_args *)given;
    struct ah_session *session = NULL;
    struct ah_model *model = NULL;
    if (!args.inputs.model_path == !args.checkpoint) {
        fprintf(stderr, "autohete: %s\n",
                args.checkpoint ? "--checkpoint: found it beside --model, expected one of them"
                                : "--model is missing: 'autohete inspect' needs it, or --checkpoint");
        return 2;
    }
    int status = args.checkpoint ? ah_checkpoint_model(&model, args.checkpoint) : AH_OK;
    args.inputs.model = model;
    if (status == AH_OK)
        status = ah__session_start(&session, &args.inputs, AH_SESSION_PARTITION, NULL);
    if (status == AH_OK)
        status = show(session, &args);
    int exit_status = status == AH_OK ? 0 : ah__out_fail(status);
    ah_session_close(session);
    ah_model_free(model);
    return exit_status;
}

static struct inspect_args args;
const struct ah_command ah__command_inspect = {
    .name = "inspect",
    .usage = "--model FILE | --checkpoint DIR [option ...]",
    .summary = "Show a model's operators, partitions and their sizes.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .args = &args,
    .run = run,
};
