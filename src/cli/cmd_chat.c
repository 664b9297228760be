/* autohete chat: talks with a model by its chat template, or prints the template's text of a conversation. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/artefacts.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/render.h"
#include "cli/terminal.h"

struct chat_args {
    struct ah_talk_options talk;
    struct ah_render_args render;
};
#define AT(field) offsetof(struct chat_args, field)

static const struct ah_arg options[] = {
    AH_ARG_CONFIG,
    {"model", AH_ARG_TEXT, AT(talk.generate.model_dir), "DIR",
     .help = "folder of a training, one with config.json and weights, or a GGUF file"},
    AH_ARG_ADAPTER(AT(talk.generate.adapter_dir)),
    {"chat-template", AH_ARG_TEXT, AT(talk.generate.chat_template), "FILE",
     .help = "chat template to use instead of the model's (Jinja)"},
    {"system", AH_ARG_WORDS, AT(talk.system), "TEXT", .help = "what the model is told before"},
    {"context", AH_ARG_COUNT, AT(talk.context_tokens), "N",
     .help = "tokens of the whole conversation at most (default: the model's longest, at most 4096)", .min = 2,
     .max = 16777216},
    AH_ARGS_SAMPLING(AT(talk.generate), "512"),
    {"render", AH_ARG_TEXT, AT(render.conversation), "FILE",
     .help = "print the text of a conversation instead (JSON: a list of messages, or a record of training data; -: "
             "standard input)"},
    {"generation-prompt", AH_ARG_FLAG, AT(render.generation),
     .help = "with --render: end the text where the model is to write"},
    {"train-on", AH_ARG_TEXT, AT(render.train_on), "WHAT", .words = "assistant all last",
     .help = "with --render: print JSON with the texts and their parts (bytes) that count for the loss: assistant, all "
             "or last"},
    {"date", AH_ARG_TEXT, AT(render.date), "YYYY-MM-DD",
     .help = "with --render: date that templates take as today (default: today)"},
};

struct answer {
    struct ah_terminal terminal;
    int64_t count; /* tokens of the last answer so far */
};

static int on_token(int token, const char *text, size_t length, void *context)
{
    struct answer *answer = context;
    answer->count += token >= 0;
    return !ah__terminal_write(&answer->terminal, text, length) || fflush(stdout) != 0;
}

/* Reads a line of standard input without its line break into *line, of *room bytes (free). False: the input has
 * ended. */
static bool line_read(char **line, size_t *room, bool asks)
{
    if (asks) {
        fputs("> ", stdout);
        fflush(stdout);
    }
    ssize_t length = getline(line, room, stdin);
    if (length > 0 && (*line)[length - 1] == '\n')
        (*line)[length - 1] = 0;
    return length >= 0;
}

/* Answers each line of standard input until it ends. */
static int talk_on(struct ah_talk *talk, struct answer *answer, int64_t most)
{
    const bool asks = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    char *line = NULL;
    size_t room = 0;
    int status = AH_OK;
    while (status == AH_OK && line_read(&line, &room, asks)) {
        if (!line[strspn(line, " \t\r")])
            continue;
        answer->count = 0;
        status = ah_talk_say(talk, line);
        if (status == AH_OK && (!ah__terminal_end(&answer->terminal) || putchar('\n') == EOF || fflush(stdout) != 0))
            break;
        if (status == AH_OK)
            ah__out_cut_note(answer->count, most);
    }
    if (asks && status == AH_OK)
        putchar('\n');
    free(line);
    return status;
}

static int run(const void *given)
{
    const struct chat_args *args = given;
    struct ah_talk_options talk = args->talk;
    struct ah_render_args render = args->render;
    struct answer answer = {.count = 0};
    struct ah_talk *opened = NULL;
    render.model = talk.generate.model_dir;
    render.adapter = talk.generate.adapter_dir;
    render.template_path = talk.generate.chat_template;
    if (render.conversation)
        return ah__render(&render);
    if (render.generation || render.train_on || render.date)
        return ah__out_fail(ah__out_fault("--generation-prompt, --train-on, --date: found without --render"));
    if (!talk.generate.model_dir)
        return ah__out_fail(ah__out_fault("--model: found none, expected a folder with a model"));
    ah__terminal_init(&answer.terminal, stdout);
    talk.generate.on_token = on_token;
    talk.generate.context = &answer;
    int status = ah__out_tokenizer_note(talk.generate.model_dir, talk.generate.adapter_dir);
    if (status == AH_OK)
        status = ah_talk_open(&opened, &talk);
    if (status == AH_OK)
        status = talk_on(opened, &answer, talk.generate.tokens);
    ah_talk_close(opened);
    return status == AH_OK ? 0 : ah__out_fail(status);
}

static struct chat_args args;
const struct ah_command ah__command_chat = {
    .name = "chat",
    .usage = "--model DIR [option ...]",
    .summary = "Talk with a model, or show what its chat template makes of a conversation.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .args = &args,
    .run = run,
};
