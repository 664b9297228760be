/* autohete generate: writes text with a trained model. */
#include <string.h>

#include "cli/artefacts.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/terminal.h"

struct generate_args {
    struct ah_generate_options options;
    bool raw, json;
};
#define AT(field) offsetof(struct generate_args, field)

static const struct ah_arg options[] = {
    AH_ARG_CONFIG,
    {"model", AH_ARG_TEXT, AT(options.model_dir), "DIR",
     .help = "folder of a training, one with config.json and weights, or a GGUF file", .required = true},
    AH_ARG_ADAPTER(AT(options.adapter_dir)),
    {"prompt", AH_ARG_WORDS, AT(options.prompt), "TEXT", .help = "text to continue (default: a line break)"},
    {"chat", AH_ARG_FLAG, AT(options.chat), .help = "take the prompt as a user's message, by the chat template"},
    {"chat-template", AH_ARG_TEXT, AT(options.chat_template), "FILE",
     .help = "with --chat: the template (default: the model's)"},
    AH_ARGS_SAMPLING(AT(options), "200"),
    {"raw", AH_ARG_FLAG, AT(raw),
     .help = "print only the new text, byte for byte, without prompt and final line break"},
    {"json", AH_ARG_FLAG, AT(json), .help = "print one JSON object with the tokens instead of text"},
};

struct writer {
    const char *prompt;
    bool raw, json, chat;
    bool begun;
    int64_t count; /* tokens so far */
    struct ah_terminal terminal;
};

/* Prints the prompt or the head of the JSON object, at the first token: until then the call may still fail. */
static void begin(struct writer *writer)
{
    if (writer->raw)
        return;
    if (!writer->json && writer->chat)
        return; /* a chat prints the answer alone */
    if (!writer->json) {
        ah__terminal_write(&writer->terminal, writer->prompt, strlen(writer->prompt));
        return;
    }
    printf("{\"prompt\": ");
    ah__out_string(stdout, writer->prompt);
    printf(", \"tokens\": [");
}

static int on_token(int token, const char *text, size_t length, void *context)
{
    struct writer *writer = context;
    if (!writer->begun)
        begin(writer);
    writer->begun = true;
    writer->count += token >= 0;
    if (writer->json)
        return token >= 0 && printf("%s%d", writer->count > 1 ? ", " : "", token) < 0;
    if (writer->raw)
        return fwrite(text, 1, length, stdout) != length || fflush(stdout) != 0;
    return !ah__terminal_write(&writer->terminal, text, length) || fflush(stdout) != 0;
}

static int run(const void *given)
{
    const struct generate_args *args = given;
    struct ah_generate_options generate = args->options;
    struct writer writer = {.prompt = generate.prompt ? generate.prompt : "",
                            .raw = args->raw,
                            .json = args->json,
                            .chat = args->options.chat};
    if (args->raw && args->json)
        return ah__out_fail(ah__out_fault("--raw: found it beside --json, expected one of them"));
    if (generate.chat_template && !generate.chat)
        return ah__out_fail(ah__out_fault("--chat-template: found it without --chat"));
    ah__terminal_init(&writer.terminal, stdout);
    generate.on_token = on_token;
    generate.context = &writer;
    int status = ah__out_tokenizer_note(generate.model_dir, generate.adapter_dir);
    if (status == AH_OK)
        status = ah_generate(&generate);
    if (status != AH_OK)
        return ah__out_fail(status);
    ah__terminal_end(&writer.terminal);
    if (!args->raw)
        printf(args->json ? "]}\n" : "\n");
    if (generate.chat)
        ah__out_cut_note(writer.count, generate.tokens);
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
