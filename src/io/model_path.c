#include "io/model_path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

/* "owner/name" of letters, digits, dots, dashes and underscores, and no file's name. */
static bool is_hub_name(const char *path)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t owner = strspn(path, letters), name = path[owner] == '/' ? strspn(path + owner + 1, letters) : 0;
    return owner && name && !path[owner + 1 + name] && path[0] != '.' && path[owner + 1] != '.' &&
           !ends_with(path, ".json") && !ends_with(path, ".gguf") && !ends_with(path, ".safetensors");
}

static int hub_name(const char *path)
{
    const char *name = strchr(path, '/') + 1;
    return ah__fail(
        AH_EINPUT,
        "%s: found no such folder; if it is a model of the Hugging Face hub, 'hf download %.80s --local-dir "
        "%.60s' fetches it, and then --model %.60s reads it",
        path, path, name, name);
}

/* Where the file is not, the folder that it is in. */
static int weights_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) : 1;
    char *config;
    AH_TRY(ah__sprintf(&config, "%.*s/config.json", length, slash ? path : "."));
    bool beside = ah__path_exists(config);
    ah__free(config);
    return beside ? ah__fail(AH_EINPUT,
                             "%s: found a file of weights, expected the folder that it is in, with its config.json: "
                             "--model %.*s",
                             path, length, slash ? path : ".")
                  : ah__fail(AH_EINPUT,
                             "%s: found a file of weights without a config.json beside it, expected a "
                             "folder with both",
                             path);
}

static int pointer_check(const char *folder, const char *name)
{
    static const char head[] = "version https://git-lfs.github.com/spec/v1";
    char *path, bytes[sizeof head] = "";
    AH_TRY(ah__sprintf(&path, "%s/%s", folder, name));
    FILE *file = fopen(path, "rb");
    bool pointer = file && fread(bytes, 1, sizeof head - 1, file) == sizeof head - 1 && strcmp(bytes, head) == 0;
    if (file)
        fclose(file);
    int status = pointer ? ah__fail(AH_EINPUT,
                                    "%s: found a Git LFS pointer, expected the file that it stands for: 'git lfs pull' "
                                    "fetches it",
                                    path)
                         : AH_OK;
    ah__free(path);
    return status;
}

int ah__model_path_check(const char *path)
{
    static const char *const weights[] = {".safetensors", ".bin", ".pt", ".pth", ".ckpt"};
    static const char *const files[] = {"config.json", "tokenizer.json", "tokenizer.model", "tokenizer_config.json"};
    struct stat found;
    if (stat(path, &found) != 0)
        return errno == ENOENT && is_hub_name(path) ? hub_name(path) : AH_OK;
    for (size_t i = 0; i < AH_LENGTH(weights) && S_ISREG(found.st_mode); i++)
        if (ends_with(path, weights[i]))
            return weights_file(path);
    for (size_t i = 0; i < AH_LENGTH(files) && S_ISDIR(found.st_mode); i++)
        AH_TRY(pointer_check(path, files[i]));
    return AH_OK;
}
