/* autohete plan: profile and plan, and say why. */
#include "cli/artefacts.h"
#include "cli/commands.h"
#include "cli/out.h"

struct plan_args {
    struct ah_artefact_inputs inputs;
    const char *out;
    bool explain, json;
};
#define AT(field) offsetof(struct plan_args, field)

static const struct ah_arg options[] = {
    AH_ARGS_MODEL(AT(inputs.model)),
    AH_ARGS_STEP(AT(inputs.batch), AT(inputs.seq), AT(inputs.clip), AT(inputs.pack)),
    AH_ARG_DTYPE(AT(inputs.dtype), "compute type: bf16 or fp32 (default fp32)"),
    AH_ARGS_MICRO_BATCH(AT(inputs.micro_batch), AH_ARG_AUTO, "; auto: the fastest"),
    AH_ARGS_BUDGET(AT(inputs.budget), AH_ARG_SIZE),
    AH_ARGS_DEVICE(AT(inputs.device), AT(inputs.dev), "auto", ""),
    AH_ARGS_PLAN(AT(inputs.plan), AT(inputs.policy), AT(inputs.profile), AT(inputs.renew), "auto", "autohete", "", ""),
    {"hardware", AH_ARG_TEXT, AT(inputs.hardware), "NAME", NULL,
     "plan for this machine: a100-40g, h200, ... or a file; its memories are the budget, bf16 the default type", 0, 0,
     false},
    {"out", AH_ARG_TEXT, AT(out), "FILE", NULL, "JSON file to save the plan into", 0, 0, false},
    {"explain", AH_ARG_FLAG, AT(explain), NULL, NULL,
     "compare it with the integer program's plan and with plans that differ in one switch", 0, 0, false},
    {"json", AH_ARG_FLAG, AT(json), NULL, NULL,
     "print the plan as one JSON object in the last line; text goes to standard error", 0, 0, false},
};

static int show(const struct ah_artefacts *artefacts, const struct plan_args *args)
{
    FILE *text = args->json ? stderr : stdout;
    if (args->inputs.hardware)
        fprintf(text, "machine: %s, which is not this one\n", args->inputs.hardware);
    ah__micro_batch_print(text, artefacts->micro_batch, artefacts->micro_batches,
                          args->inputs.micro_batch == AH_MICRO_BATCH_AUTO);
    int status = ah_plan_print(&artefacts->plan, &artefacts->budget, text);
    if (status == AH_OK && args->explain)
        status = ah_plan_explain(&artefacts->plan, artefacts->partition, artefacts->profile, &artefacts->budget, text);
    if (status == AH_OK && args->out && artefacts->ranks.rank == 0)
        status = ah_plan_save(&artefacts->plan, args->out);
    if (status == AH_OK && args->json) {
        status = ah__out_plan(stdout, &artefacts->plan);
        putchar('\n');
    }
    return status;
}

static int run(const void *given)
{
    const struct plan_args *args = given;
    struct ah_artefact_inputs inputs = args->inputs;
    struct ah_artefacts artefacts = {.text = args->json ? stderr : stdout};
    int status = ah__out_check("out", args->out);
    if (inputs.hardware && !inputs.dtype)
        inputs.dtype = "bf16";
    if (status == AH_OK)
        status = ah__artefacts_plan(&artefacts, &inputs);
    if (status == AH_OK)
        status = show(&artefacts, args);
    int exit_status = status == AH_OK ? 0 : ah__out_fail(status);
    ah__artefacts_free(&artefacts);
    return exit_status;
}

static struct plan_args args;
const struct ah_command ah__command_plan = {
    .name = "plan",
    .usage = "--model FILE --device-memory SIZE [option ...]",
    .summary = "Choose what is recomputed and what is offloaded, and predict time and memory.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .args = &args,
    .together = true,
    .run = run,
};
