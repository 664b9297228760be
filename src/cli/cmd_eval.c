/* autohete eval: measures how well a model predicts a text, or writes its logits of given tokens. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/artefacts.h"
#include "cli/commands.h"
#include "cli/out.h"

struct eval_args {
    struct ah_eval_options options;
    const char *ids, *logits;
    bool json;
};
#define AT(field) offsetof(struct eval_args, field)

static const struct ah_arg options[] = {
    AH_ARG_CONFIG,
    {"model", AH_ARG_TEXT, AT(options.model_dir), "DIR",
     .help = "folder of a training, one with config.json and weights, or a GGUF file", .required = true},
    AH_ARG_ADAPTER(AT(options.adapter_dir)),
    {"data", AH_ARG_TEXT, AT(options.data_path), "FILE",
     .help = "data to predict, as for train: FILE or FILE,FILE,..., of which every token counts alike"},
    {"batch", AH_ARG_COUNT, AT(options.batch), "B", .help = "windows at a time (default 8)", .min = 1, .max = 1048576},
    {"seq", AH_ARG_COUNT, AT(options.seq), "T",
     .help = "tokens in a window (default: the training's --seq, else the model's longest up to 1024)", .min = 1,
     .max = 16777216},
    {"eos", AH_ARG_TEXT, AT(options.eos), "TOKEN",
     .help = "token, or its id, that ends a text (default: as the tokenizer's files say)"},
    {"chat-template", AH_ARG_TEXT, AT(options.chat_template), "FILE",
     .help = "chat template for conversations (default: the model's)"},
    {"train-on", AH_ARG_TEXT, AT(options.train_on), "WHAT", .words = "assistant all last",
     .help = "what of a conversation is predicted: assistant (default), all or last"},
    {"ids", AH_ARG_TEXT, AT(ids), "LIST", .help = "token ids like 1,5,9, instead of data"},
    {"logits", AH_ARG_OUT, AT(logits), "FILE", .help = "safetensors file to write the logits after each id into"},
    AH_ARG_DEVICE(AT(options.device)),
    AH_ARG_THREADS(AT(options.threads)),
    {"json", AH_ARG_FLAG, AT(json),
     .help = "print the result as one JSON object in the last line; text goes to standard error"},
};

/* Parses numbers separated by commas into *out, which the caller frees. Returns AH_OK or as ah__out_fault. */
static int parse_ids(int32_t **out, int64_t *count, const char *text)
{
    int32_t *ids = malloc((strlen(text) / 2 + 1) * sizeof *ids);
    const char *at = text;
    char *end;
    *count = 0;
    while (ids) {
        errno = 0;
        long value = strtol(at, &end, 10);
        if (end == at || errno || value < 0 || value > INT32_MAX || (*end && *end != ','))
            break;
        ids[(*count)++] = (int32_t)value;
        if (!*end) {
            *out = ids;
            return AH_OK;
        }
        at = end + 1;
    }
    bool memory = ids == NULL;
    free(ids);
    return memory ? ah__out_fault("no memory for ids")
                  : ah__out_fault("--ids: found '%.40s', expected numbers like 1,5,9", at);
}

static int write_logits(const struct eval_args *args)
{
    int32_t *ids;
    int64_t count;
    if (!args->ids || !args->logits || args->options.data_path)
        return ah__out_fault("--ids and --logits go together, and without --data");
    int status = parse_ids(&ids, &count, args->ids);
    if (status != AH_OK)
        return status;
    status = ah_eval_logits(args->logits, ids, count, &args->options);
    free(ids);
    if (status != AH_OK)
        return status;
    fprintf(args->json ? stderr : stdout, "logits of %lld tokens: %s\n", (long long)count, args->logits);
    if (args->json) {
        printf("{\"logits\": ");
        ah__out_string(stdout, args->logits);
        printf(", \"tokens\": %lld}\n", (long long)count);
    }
    return AH_OK;
}

static void print_json(const struct ah_eval_result *result)
{
    printf("{\"loss\": %.17g, \"perplexity\": ", result->loss);
    printf(isfinite(result->perplexity) ? "%.17g" : "null", result->perplexity);
    printf(", \"bits_per_byte\": ");
    printf(isnan(result->bits_per_byte) ? "null" : "%.17g", result->bits_per_byte);
    printf(", \"tokens\": %lld, \"bos\": %s}\n", (long long)result->tokens, result->bos ? "true" : "false");
}

static int evaluate(const struct eval_args *args)
{
    struct ah_eval_result result;
    FILE *to = args->json ? stderr : stdout;
    if (!args->options.data_path)
        return ah__out_fault("--data is missing (or --ids with --logits)");
    int status = ah__out_tokenizer_note(args->options.model_dir, args->options.adapter_dir);
    if (status == AH_OK)
        status = ah_eval(&result, &args->options);
    if (status != AH_OK)
        return status;
    fprintf(to, "loss %.4f, perplexity %.4g", result.loss, result.perplexity);
    if (!isnan(result.bits_per_byte))
        fprintf(to, ", %.4f bits per byte", result.bits_per_byte);
    fprintf(to, ", over %lld token%s%s\n", (long long)result.tokens, result.tokens == 1 ? "" : "s",
            result.bos ? ", each window behind BOS" : "");
    if (args->json)
        print_json(&result);
    return AH_OK;
}

static int run(const void *given)
{
    const struct eval_args *args = given;
    int status = args->ids || args->logits ? write_logits(args) : evaluate(args);
    return status == AH_OK ? 0 : ah__out_fail(status);
}

static struct eval_args args;
const struct ah_command ah__command_eval = {
    .name = "eval",
    .usage = "--model DIR (--data FILE | --ids LIST --logits FILE) [option ...]",
    .summary = "Measure how well a model predicts a text, or write its logits.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .args = &args,
    .run = run,
};
