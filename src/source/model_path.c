#include "source/model_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

/* Returns true for "owner/name" of letters, digits, dots, dashes and underscores that is not a file's name. */
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

/* Fails for a file of weights, with the folder that should be given instead. */
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

/* ---- folders ----------------------------------------------------------------------------------------------------- */

/* Takes the name from models--OWNER--NAME in a path of a cache. */
bool ah__model_cached_name(char out[AH_MODEL_NAME_SIZE], const char *path)
{
    const char *name = strstr(path, "/models--");
    if (!name)
        return false;
    name += strlen("/models--");
    const char *dashes = strstr(name, "--");
    size_t length = strcspn(name, "/");
    if (!dashes || dashes >= name + length)
        return false;
    snprintf(out, AH_MODEL_NAME_SIZE, "%.*s/%.*s", (int)(dashes - name), name, (int)(name + length - dashes - 2),
             dashes + 2);
    return true;
}

static int dangling(const char *path)
{
    char to[256], name[AH_MODEL_NAME_SIZE];
    ssize_t length = readlink(path, to, sizeof to);
    const char *lead = ah__model_cached_name(name, path) ? "'hf download " : "fetch or copy it again";
    bool cached = *lead == '\'';
    return ah__fail(AH_EINPUT,
                    "%s: found a link to '%.*s', which is not there, expected the file that it leads to: %s%s%s", path,
                    length > 0 ? (int)length : 0, to, lead, cached ? name : "", cached ? "' fetches it again" : "");
}

/* Returns true for a link of a training's folder, whose newest checkpoint may be gone while an older one is there:
 * source/folder.h. */
static bool is_of_training(const char *path)
{
    static const char start[] = "checkpoint/";
    char to[sizeof start] = "";
    return readlink(path, to, sizeof to - 1) >= 0 && strcmp(to, start) == 0;
}

/* Returns true for files that matter: other files that are missing in a cache were never downloaded. */
static bool is_wanted(const char *name)
{
    static const char *const ends[] = {".json", ".safetensors", ".model", ".jinja", ".txt"};
    for (size_t i = 0; i < AH_LENGTH(ends); i++)
        if (ends_with(name, ends[i]))
            return true;
    return false;
}

static int links_check(const char *folder)
{
    DIR *list = opendir(folder);
    int status = AH_OK;
    for (struct dirent *entry; list && status == AH_OK && (entry = readdir(list));) {
        struct stat link, found;
        char *path;
        if (!is_wanted(entry->d_name))
            continue;
        status = ah__sprintf(&path, "%s/%s", folder, entry->d_name);
        if (status != AH_OK)
            break;
        if (lstat(path, &link) == 0 && S_ISLNK(link.st_mode) && stat(path, &found) != 0 && errno == ENOENT &&
            !is_of_training(path))
            status = dangling(path);
        ah__free(path);
    }
    if (list)
        closedir(list);
    return status;
}

/* Refuses folders of models in another form. */
static int form_check(const char *folder)
{
    static const struct {
        const char *name, *what;
    } forms[] = {
        {"config.json", NULL},
        {"params.json", "a model as its makers published it, expected it in Hugging Face's form, with config.json: its "
                        "page on the hub has that, too, or a script that converts it"},
        {"model_index.json", "a pipeline of diffusers, expected a language model with config.json"},
    };
    for (size_t i = 0; i < AH_LENGTH(forms); i++) {
        if (ah__path_has(folder, forms[i].name))
            return forms[i].what ? ah__fail(AH_EINPUT, "%s/%s: found %s", folder, forms[i].name, forms[i].what) : AH_OK;
    }
    return AH_OK;
}

static int pointer_check(const char *path)
{
    static const char head[] = "version https://git-lfs.github.com/spec/v1";
    char bytes[sizeof head] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* does not wait for a pipe's writer */
    bool pointer = fd >= 0 && read(fd, bytes, sizeof head - 1) == sizeof head - 1 && strcmp(bytes, head) == 0;
    if (fd >= 0)
        close(fd);
    return pointer ? ah__fail(AH_EINPUT,
                              "%s: found a Git LFS pointer, expected the file that it stands for: 'git lfs pull' "
                              "fetches it",
                              path)
                   : AH_OK;
}

static int pointer_check_in(const char *folder, const char *name)
{
    char *path;
    AH_TRY(ah__sprintf(&path, "%s/%s", folder, name));
    int status = pointer_check(path);
    ah__free(path);
    return status;
}

/* Checks the first tokenizer that is there, which is the one that is read. */
static int tokenizer_check(const char *folder)
{
    static const char *const files[] = {"tokenizer.json", "tokenizer.model"};
    for (size_t i = 0; i < AH_LENGTH(files); i++) {
        if (ah__path_has(folder, files[i]))
            return pointer_check_in(folder, files[i]);
    }
    return AH_OK;
}

static int folder_check(const char *folder)
{
    AH_TRY(pointer_check_in(folder, "config.json"));
    AH_TRY(pointer_check_in(folder, "tokenizer_config.json"));
    AH_TRY(tokenizer_check(folder));
    AH_TRY(links_check(folder));
    return form_check(folder);
}

/* Returns the name of a model in the hub's address. */
static const char *without_address(const char *path)
{
    static const char address[] = "https://huggingface.co/";
    return strncmp(path, address, strlen(address)) == 0 ? path + strlen(address) : path;
}

int ah__model_path_check(const char *path)
{
    static const char *const weights[] = {".safetensors", ".bin", ".pt", ".pth", ".ckpt"};
    struct stat found;
    if (stat(path, &found) != 0)
        return errno == ENOENT && is_hub_name(without_address(path)) ? hub_name(without_address(path)) : AH_OK;
    if (S_ISDIR(found.st_mode))
        return folder_check(path);
    for (size_t i = 0; i < AH_LENGTH(weights) && S_ISREG(found.st_mode); i++)
        if (ends_with(path, weights[i]))
            return weights_file(path);
    return S_ISREG(found.st_mode) ? pointer_check(path) : AH_OK;
}
