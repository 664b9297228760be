/* autohete chat: talk with a model by its chat template, or see what the template makes of a conversation. */
#include "cli/commands.h"
#include "cli/render.h"

struct chat_args {
    struct ah_render_args render;
};
#define AT(field) offsetof(struct chat_args, field)

static const struct ah_arg options[] = {
    {"model", AH_ARG_TEXT, AT(render.model), "DIR", NULL, "folder of a model with a chat template", 0, 0, false},
    {"chat-template", AH_ARG_TEXT, AT(render.template_path), "FILE", NULL,
     "chat template to use instead of the model's (Jinja)", 0, 0, false},
    {"date", AH_ARG_TEXT, AT(render.date), "YYYY-MM-DD", NULL, "date that templates take as today (default: today)", 0,
     0, false},
    {"render", AH_ARG_TEXT, AT(render.conversation), "FILE", NULL,
     "print the text of a conversation (JSON: a list of messages, or an object with messages, tools, ...; -: standard "
     "input)",
     0, 0, true},
    {"generation-prompt", AH_ARG_FLAG, AT(render.generation), NULL, NULL,
     "with --render: end the text where the model is to write", 0, 0, false},
    {"train-on", AH_ARG_TEXT, AT(render.train_on), "WHAT", NULL,
     "with --render: print JSON with the text and its parts (bytes) that count for the loss: assistant, all or last", 0,
     0, false},
};

static int run(const void *given)
{
    const struct chat_args *args = given;
    return ah__render(&args->render);
}

static struct chat_args args;
const struct ah_command ah__command_chat = {
    .name = "chat",
    .usage = "--model DIR [option ...]",
    .summary = "Show what a chat template makes of a conversation.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .args = &args,
    .run = run,
};
