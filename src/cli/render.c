#include "cli/render.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/out.h"

/* Reads on until the end; the buffer grows by doubling. */
static int read_all(char **text, size_t *length, FILE *from, const char *path)
{
    size_t room = 1 << 16, done = 0, got;
    char *bytes = malloc(room);
    while (bytes && (got = fread(bytes + done, 1, room - 1 - done, from)) > 0) {
        done += got;
        if (done + 1 < room)
            continue;
        char *more = realloc(bytes, room *= 2);
        if (!more)
            free(bytes);
        bytes = more;
    }
    if (!bytes || ferror(from)) {
        fprintf(stderr, "autohete: %s: %s\n", path, bytes ? strerror(errno) : "out of host memory");
        free(bytes);
        return 1;
    }
    bytes[done] = 0;
    *text = bytes;
    *length = done;
    return 0;
}

static int conversation_read(char **text, size_t *length, const char *path)
{
    if (strcmp(path, "-") == 0)
        return read_all(text, length, stdin, "standard input");
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "autohete: %s: %s\n", path, strerror(errno));
        return 2;
    }
    int status = read_all(text, length, file, path);
    fclose(file);
    return status;
}

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
    int exit_status = conversation_read(&conversation, &length, args->conversation);
    if (exit_status != 0)
        return exit_status;
    struct ah_chat_options options = {
        .conversation = conversation,
        .length = length,
        .name = strcmp(args->conversation, "-") == 0 ? "standard input" : args->conversation,
        .add_generation_prompt = args->generation,
        .date = args->date,
    };
    int status = ah_chat_open(&chat, args->model, args->template_path);
    if (status == AH_OK)
        status = print(chat, &options, args->train_on);
    ah_chat_close(chat);
    free(conversation);
    return status == AH_OK ? 0 : ah__out_fail(status);
}
