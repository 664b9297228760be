#include "cli/model_name.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/nearest.h"
#include "cli/out.h"

void ah__model_name(char *name, size_t size, const char *path)
{
    char text[4096];
    snprintf(text, sizeof text, "%s", path);
    size_t length = strlen(text);
    while (length > 1 && text[length - 1] == '/')
        text[--length] = 0;
    char *slash = strrchr(text, '/');
    if (slash && slash > text && strcmp(slash, "/config.json") == 0) {
        *slash = 0;
        slash = strrchr(text, '/');
    }
    char *last = slash && slash[1] ? slash + 1 : text;
    char *dot = strrchr(last, '.');
    if (dot && dot > last && strcmp(dot, ".json") == 0)
        *dot = 0;
    snprintf(name, size, "%.60s", last);
}

static int no_memory(void)
{
    ah__out_fault("out of host memory: the path of a model");
    return AH_ENOMEM;
}

int ah__model_named(char **path, const char *name)
{
    char **paths, own[64];
    int count, status = AH_OK;
    *path = NULL;
    if (ah_bundled_models(&paths, &count) != AH_OK)
        return AH_OK; /* no models came with this program */
    for (int i = 0; i < count && !*path && status == AH_OK; i++) {
        ah__model_name(own, sizeof own, paths[i]);
        if (strcmp(own, name) != 0)
            continue;
        *path = strdup(paths[i]);
        status = *path ? AH_OK : no_memory();
    }
    ah_bundled_models_free(paths, count);
    return status;
}

/* Writes the bundled names that begin with `name`, else the nearest one; "": there is none. */
static void near_names(char *text, size_t size, const char *name)
{
    enum { NAMES_MOST = 256, SHOWN = 8 };
    static char own[NAMES_MOST][64];
    const char *names[NAMES_MOST];
    char **paths;
    int count, shown = 0;
    size_t used = 0;
    *text = 0;
    if (ah_bundled_models(&paths, &count) != AH_OK)
        return;
    int known = count < NAMES_MOST ? count : NAMES_MOST;
    for (int i = 0; i < known; i++) {
        ah__model_name(own[i], sizeof own[i], paths[i]);
        names[i] = own[i];
        if (strncmp(own[i], name, strlen(name)) == 0 && shown < SHOWN)
            used += (size_t)snprintf(text + used, size - used, "%s%s", shown++ ? ", " : "", own[i]);
    }
    const char *nearest = shown ? NULL : ah__name_nearest(name, names, (size_t)known);
    if (nearest)
        snprintf(text, size, "%s", nearest);
    ah_bundled_models_free(paths, count);
}

/* Returns true if the text can be a name. A path exists, has a slash, or ends as a kind of file does. */
static bool may_be_name(const char *text)
{
    static const char *const ends[] = {".json", ".gguf", ".safetensors", ".bin", ".pt", ".pth"};
    size_t length = strlen(text);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (length > strlen(ends[i]) && strcmp(text + length - strlen(ends[i]), ends[i]) == 0)
            return false;
    return !strchr(text, '/') && access(text, F_OK) != 0;
}

/* Puts a model's path in place of its name in *text. The path lives as long as the program. */
static int resolve(const char **text)
{
    char near[512], *path;
    if (!*text || !may_be_name(*text))
        return AH_OK;
    int status = ah__model_named(&path, *text);
    if (status != AH_OK)
        return status;
    if (path) {
        *text = path;
        return AH_OK;
    }
    near_names(near, sizeof near, *text);
    return *near ? ah__out_fault("--model: found '%.60s', expected a file, a folder or a model that comes with "
                                 "autohete, as %s",
                                 *text, near)
                 : AH_OK; /* opening it fails with a message */
}

int ah__model_names_resolve(const struct ah_command *command)
{
    int status = AH_OK;
    for (size_t i = 0; i < command->count; i++) {
        const struct ah_arg *option = &command->options[i];
        void *at = (char *)command->args + option->at;
        if (strcmp(option->name, "model") != 0)
            continue;
        struct ah_texts *texts = at;
        if (option->kind == AH_ARG_TEXT)
            status = resolve(at);
        for (int k = 0; option->kind == AH_ARG_LIST && k < texts->count && status == AH_OK; k++)
            status = resolve(&texts->text[k]);
    }
    return status;
}
