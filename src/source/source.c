#include "source/source.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "gguf/config.h"
#include "gguf/files.h"
#include "io/shards.h"
#include "source/adapter_config.h"
#include "source/folder.h"
#include "source/model_path.h"
#include "tokenizer/tokenizer.h"

enum { CONFIG_BYTES = 1 << 20 };

enum ah_source_kind ah__source_kind(const char *path)
{
    struct stat found;
    char *folder = NULL;
    if (stat(path, &found) != 0 || !(S_ISREG(found.st_mode) || S_ISDIR(found.st_mode)))
        return AH_SOURCE_OTHER;
    if (S_ISREG(found.st_mode))
        return ah__gguf_is(path) ? AH_SOURCE_GGUF : AH_SOURCE_CONFIG;
    bool trained = ah__folder_find(&folder, path) == AH_OK;
    ah__free(folder);
    return trained ? AH_SOURCE_TRAINING : ah__path_has(path, "config.json") ? AH_SOURCE_FOLDER : AH_SOURCE_OTHER;
}

/* ---- configuration ----------------------------------------------------------------------------------------------- */

/* Sets *out if the path is a folder. A missing or unreadable path is no failure here: reading it fails with a
 * message. */
static int is_folder(bool *out, const char *path)
{
    struct stat info;
    bool seen = stat(path, &info) == 0;
    *out = seen && S_ISDIR(info.st_mode);
    bool argument = errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ENAMETOOLONG || errno == ELOOP;
    return seen || argument ? AH_OK : ah__fail(AH_EIO, "%s: cannot open: %s", path, strerror(errno));
}

static int gguf_config(struct ah_source_config *out, const char *path)
{
    struct ah_gguf *file;
    bool by_default;
    AH_TRY(ah__strdup(&out->path, path));
    AH_TRY(ah__gguf_open(&file, path));
    int status = ah__gguf_splits_by_default(&by_default, file);
    if (status == AH_OK)
        status = ah__gguf_config(&out->text, file);
    ah__gguf_close(file);
    AH_TRY(status);
    out->length = strlen(out->text);
    return by_default ? ah__sprintf(&out->note, "%s: %s", path, ah__gguf_splits_note) : AH_OK;
}

static int file_config(struct ah_source_config *out, const char *path, bool folder)
{
    AH_TRY(ah__sprintf(&out->path, folder ? "%s/config.json" : "%s", path));
    if (folder && !ah__path_exists(out->path) && ah__adapter_config_exists(path))
        return ah__fail(AH_EINPUT,
                        "%s: found an adapter, expected the model that it is of, and this folder as the adapter "
                        "(--adapter)",
                        path);
    return ah__file_read(&out->text, &out->length, out->path, CONFIG_BYTES);
}

int ah__source_config(struct ah_source_config *out, const char *path)
{
    bool folder;
    *out = (struct ah_source_config){0};
    AH_TRY(ah__model_path_check(path));
    AH_TRY(is_folder(&folder, path));
    int status = ah__gguf_is(path) ? gguf_config(out, path) : file_config(out, path, folder);
    if (status != AH_OK)
        ah__source_config_free(out);
    return status;
}

void ah__source_config_free(struct ah_source_config *config)
{
    ah__free(config->text);
    ah__free(config->path);
    ah__free(config->note);
    *config = (struct ah_source_config){0};
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

int ah__source_place(char **place, const char *path)
{
    AH_TRY(ah__tokenizer_folder(place, path));
    return *place ? AH_OK : ah__strdup(place, path);
}

int ah__source_place_of_weights(char **place, const char *path)
{
    AH_TRY(ah__model_path_check(path));
    AH_TRY(ah__source_place(place, path));
    if (ah__source_kind(*place) != AH_SOURCE_CONFIG)
        return AH_OK;
    ah__free(*place);
    *place = NULL;
    size_t length = strlen(path), tail = strlen(".json");
    bool json = length > tail && strcmp(path + length - tail, ".json") == 0;
    return ah__fail(AH_EINPUT, "%s: found %s, expected a folder with config.json and weights, or a GGUF file", path,
                    json ? "a configuration without weights" : "another file");
}

/* Weights in forms that are not read. A folder that has them is expected to use them, so random parameters must be
 * asked for. */
static const struct {
    const char *pattern, *what;
} other_forms[] = {
    {"pytorch_model*.bin*",
     "pickled weights, which are not read since a pickle may run any code; expected " AH_SHARDS_FILE
     ", as Python makes of it by AutoModelForCausalLM.from_pretrained(FOLDER)"
     ".save_pretrained(FOLDER)"},
    {AH_ADAPTER_FILE, "an adapter, expected the model that it is of, and this folder as the adapter (--adapter)"},
    {"*.safetensors", "weights under this name, expected " AH_SHARDS_FILE " or " AH_SHARDS_INDEX},
    {"tf_model*.h5*", "weights of TensorFlow, expected " AH_SHARDS_FILE},
    {"*.pt*", "pickled weights, which are not read since a pickle may run any code; expected " AH_SHARDS_FILE},
    {"*.ckpt*", "weights of another program, expected " AH_SHARDS_FILE},
    {"*.onnx*", "weights of ONNX, expected " AH_SHARDS_FILE},
    {"flax_model*.msgpack*", "weights of Flax, expected " AH_SHARDS_FILE},
    {"*.gguf", "weights in GGUF, expected the file itself as the model (--model FOLDER/NAME.gguf), " AH_SHARDS_FILE},
};

static const char *other_form(const char *name)
{
    for (size_t i = 0; i < AH_LENGTH(other_forms); i++)
        if (fnmatch(other_forms[i].pattern, name, 0) == 0)
            return other_forms[i].what;
    return NULL;
}

/* Fails if the folder has weights in another form. AH_OK also if it is not a folder. */
static int others_check(const char *folder)
{
    DIR *list = opendir(folder);
    int status = AH_OK;
    if (!list)
        return AH_OK;
    for (struct dirent *entry; status == AH_OK && (entry = readdir(list));) {
        const char *what = other_form(entry->d_name);
        if (what)
            status = ah__fail(AH_EINPUT, "%s/%s: found %s, or that random parameters are asked for", folder,
                              entry->d_name, what);
    }
    closedir(list);
    return status;
}

static int folder_weights(char **weights, const char *folder)
{
    static const char *const names[] = {AH_SHARDS_FILE, AH_SHARDS_INDEX};
    for (size_t i = 0; i < AH_LENGTH(names); i++) {
        AH_TRY(ah__sprintf(weights, "%s/%s", folder, names[i]));
        if (ah__path_exists(*weights))
            return AH_OK;
        ah__free(*weights);
        *weights = NULL;
    }
    return others_check(folder);
}

int ah__source_weights(char **weights, const char *path)
{
    char *place;
    *weights = NULL;
    AH_TRY(ah__source_place(&place, path));
    int status = ah__gguf_is(place) ? ah__strdup(weights, place) : folder_weights(weights, place);
    ah__free(place);
    return status;
}
