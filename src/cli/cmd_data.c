/* autohete data: writes documents as a token file. */
#include <signal.h>

#include "cli/commands.h"
#include "cli/out.h"
#include "cli/summary.h"

struct data_args {
    struct ah_data_options options;
    struct ah_words inputs;
    int64_t steps, batch, seq;
    bool json;
};
#define AT(field) offsetof(struct data_args, field)

static const struct ah_arg options[] = {
    AH_ARG_CONFIG,
    {"model", AH_ARG_TEXT, AT(options.model_path), "FILE",
     .help = "model whose tokenizer is used: a config.json, its folder, or a GGUF file", .required = true},
    {"out", AH_ARG_OUT, AT(options.out), "FILE", .help = "token file to write", .required = true},
    {"data-format", AH_ARG_TEXT, AT(options.format), "NAME", .words = "auto text bytes jsonl documents",
     .help = "format of the inputs: auto, text, bytes (text whose bytes are its tokens), jsonl or documents (default "
             "auto)"},
    {"eos", AH_ARG_TEXT, AT(options.eos), "TOKEN",
     .help = "token, or its id, that ends a text (default: as the tokenizer's files say)"},
    {"seed", AH_ARG_SEED, AT(options.seed), "S", .help = "seed of the order of documents (default 1)"},
    {"val-share", AH_ARG_REAL, AT(options.val_share), "X",
     .help = "share of the tokens for validation, from 0 to 0.5 (default 0.1)", .max = 0.5},
    {"steps", AH_ARG_COUNT, AT(steps), "N", .help = "print how many epochs a training of N steps is", .min = 1,
     .max = 1e12},
    {"batch", AH_ARG_COUNT, AT(batch), "B", .help = "sequences in a step of that training", .initial = "8", .min = 1,
     .max = 1048576},
    {"seq", AH_ARG_COUNT, AT(seq), "T", .help = "tokens in a sequence", .initial = "256", .min = 1, .max = 16777216},
    {"json", AH_ARG_FLAG, AT(json),
     .help = "print the result as one JSON object in the last line; text goes to standard error"},
};

static void init(void *given)
{
    struct data_args *args = given;
    *args = (struct data_args){0};
    ah_data_options_init(&args->options);
}

static volatile int stop;

/* Asks for a stop; a second such signal ends the program at once. */
static void on_signal(int number)
{
    stop = 1;
    signal(number, SIG_DFL);
}

/* Returns how many epochs --steps takes over the training part, cut into windows as a training cuts it. */
static double epochs_of(const struct data_args *args, const struct ah_data_result *result)
{
    int64_t windows = (result->tokens - result->val_tokens - 1) / args->seq;
    return windows > 0 ? (double)args->steps * (double)args->batch / (double)windows : 0;
}

static void print_text(FILE *to, const struct data_args *args, const struct ah_data_result *result)
{
    char count[32], other[32], read[32], written[32];
    fprintf(to, "documents: %s, %s of them for validation\n", ah_count_format(count, sizeof count, result->documents),
            ah_count_format(other, sizeof other, result->val_documents));
    fprintf(to, "tokens: %s (%s), %s of them for validation\n", ah_count_format(count, sizeof count, result->tokens),
            result->tokenizer, ah_count_format(other, sizeof other, result->val_tokens));
    fprintf(to, "model: %s parameters, %.3g tokens for each\n", ah_count_format(count, sizeof count, result->params),
            (double)result->tokens / (double)result->params);
    if (args->steps)
        fprintf(to, "steps: %lld of %lld x %lld tokens are %.3g epochs\n", (long long)args->steps,
                (long long)args->batch, (long long)args->seq, epochs_of(args, result));
    fprintf(to, "file: %s, %s read, %s written in %d bits each\n", args->options.out,
            ah_size_format(read, sizeof read, result->bytes_read),
            ah_size_format(written, sizeof written, result->bytes_written), result->token_bits);
}

static void print_json(const struct data_args *args, const struct ah_data_result *result)
{
    printf("{\"out\": ");
    ah__out_string(stdout, args->options.out);
    printf(", \"documents\": %lld, \"val_documents\": %lld, \"tokens\": %lld, \"val_tokens\": %lld, \"parameters\": "
           "%lld, \"tokens_per_parameter\": ",
           (long long)result->documents, (long long)result->val_documents, (long long)result->tokens,
           (long long)result->val_tokens, (long long)result->params);
    ah__out_number(stdout, (double)result->tokens / (double)result->params);
    if (args->steps) {
        printf(", \"epochs\": ");
        ah__out_number(stdout, epochs_of(args, result));
    }
    printf(", \"bytes_read\": %lld, \"bytes_written\": %lld, \"token_bits\": %d}\n", (long long)result->bytes_read,
           (long long)result->bytes_written, result->token_bits);
}

static int run(const void *given)
{
    const struct data_args *args = given;
    struct ah_data_options data = args->options;
    struct ah_data_result result;
    data.inputs = (const char *const *)args->inputs.word;
    data.input_count = args->inputs.count;
    data.stop = &stop;
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    int status = ah__out_tokenizer_note(data.model_path, NULL);
    if (status == AH_OK)
        status = ah_data_prepare(&result, &data);
    if (status != AH_OK)
        return ah__out_fail(status);
    print_text(args->json ? stderr : stdout, args, &result);
    if (args->json)
        print_json(args, &result);
    return 0;
}

static struct data_args args;
const struct ah_command ah__command_data = {
    .name = "data",
    .usage = "--model FILE --out FILE INPUT ... [option ...]",
    .summary = "Turn text, JSON or folders of them into a token file.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .args = &args,
    .word = AT(inputs),
    .word_meta = "INPUT",
    .many = true,
    .init = init,
    .run = run,
};
