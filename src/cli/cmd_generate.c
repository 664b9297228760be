/* autohete generate: let a trained model write. */
#include "cli/commands.h"
#include "cli/out.h"

struct generate_args {
    struct ah_generate_options options;
    bool json;
};
#define AT(field) offsetof(struct generate_args, field)

static const struct ah_arg options[] = {
    {"model", AH_ARG_TEXT, AT(options.model_dir), "DIR", NULL, "a folder written by 'autohete train'", 0, 0, true},
    {"prompt", AH_ARG_TEXT, AT(options.prompt), "TEXT", NULL, "what to continue (default: a line break)", 0, 0, false},
    {"tokens", AH_ARG_COUNT, AT(options.tokens), "N", "200", "tokens to write", 1, 1e9, false},
    {"temperature", AH_ARG_REAL, AT(options.temperature), "X", "0.8", "0: always the likeliest token", 0, 100, false},
    {"top-k", AH_ARG_INT, AT(options.top_k), "K", "0", "choose among the K likeliest; 0: among all", 0, 1e9, false},
    {"seed", AH_ARG_SEED, AT(options.seed), "S", "1", "seed of the choices", 0, 0, false},
    {"threads", AH_ARG_INT, AT(options.threads), "N", NULL, "threads (default: one per core)", 1, 4096, false},
    {"json", AH_ARG_FLAG, AT(json), NULL, NULL, "print one JSON object with the tokens instead of text", 0, 0, false},
};

static int write_byte(int token, void *context)
{
    (void)context;
    return putchar(token) == EOF || fflush(stdout) != 0;
}

static int write_number(int token, void *context)
{
    int64_t *count = context;
    return printf("%s%d", (*count)++ ? ", " : "", token) < 0;
}

static int run(const void *given)
{
    const struct generate_args *args = given;
    struct ah_generate_options generate = args->options;
    int64_t count = 0;
    generate.on_token = args->json ? write_number : write_byte;
    generate.context = &count;
    const char *prompt = generate.prompt ? generate.prompt : "";
    if (args->json) {
        printf("{\"prompt\": ");
        ah__out_string(stdout, prompt);
        printf(", \"tokens\": [");
    } else {
        fputs(prompt, stdout);
    }
    int status = ah_generate(&generate);
    if (status != AH_OK)
        return ah__out_fail(status);
    printf(args->json ? "]}\n" : "\n");
    return 0;
}

static struct generate_args args;
const struct ah_command ah__command_generate = {
    .name = "generate",
    .usage = "--model DIR [--prompt TEXT] [option ...]",
    .summary = "Write text with a trained model.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .args = &args,
    .run = run,
};
