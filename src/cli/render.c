#include "cli/render.h"

#include <stdlib.h>
#include <string.h>

#include "cli/input.h"
#include "cli/out.h"

enum { CONVERSATION_MOST = 64 << 20 }; /* bytes */

static int print(const struct ah_chat *chat, const struct ah_chat_options *options, const char *train_on)
{
    char *text;
    size_t length;
    int status = train_on ? ah_chat_mask(&text, &length, chat, options, train_on)
                          : ah_chat_render(&text, &length, chat, options);
    if (status != AH_OK)
        return status;
    fwrite(text, 1, length, stdout);
    free(text);
    return AH_OK;
}

int ah__render(const struct ah_render_args *args)
{
    const struct ah_chat *chat = NULL;
    char *conversation = NULL;
    size_t length;
    char error[320];
    if (!ah__input_read(&conversation, &length, args->conversation, CONVERSATION_MOST, error, sizeof error))
        return ah__out_fail(ah__out_fault("%s", error));
    struct ah_chat_options options = {
        .conversation = conversation,
        .length = length,
        .name = strcmp(args->conversation, "-") == 0 ? "standard input" : args->conversation,
        .add_generation_prompt = args->generation,
        .date = args->date,
    };
    int status = ah_chat_open_adapted(&chat, args->model, args->adapter, args->template_path);
    if (status == AH_OK)
        status = print(chat, &options, args->train_on);
    ah_chat_close(chat);
    free(conversation);
    return status == AH_OK ? 0 : ah__out_fail(status);
}
