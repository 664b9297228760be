#include "source/model_tokenizer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "gguf/files.h"
#include "gguf/gguf.h"
#include "source/folder.h"
#include "source/model_path.h"
#include "tokenizer/subword.h"

bool ah__data_as_bytes(const char *data_format)
{
    return data_format && strcmp(data_format, AH_DATA_AS_BYTES) == 0;
}

static int gguf_open(const struct ah_tokenizer **out, const char *model)
{
    struct ah_gguf_files files;
    AH_TRY(ah__gguf_files_load(&files, model));
    const struct ah_subword_texts texts = {model, files.tokenizer, files.config, files.generation};
    int status = ah__subword_open_texts(out, &texts);
    ah__gguf_files_free(&files);
    return status;
}

/* Opens a tokenizer that fails with an explanation. vocab_size 0: unknown. */
static int none_open(const struct ah_tokenizer **out, const char *model, int64_t vocab_size)
{
    char *folder, *why;
    AH_TRY(ah__tokenizer_folder(&folder, model));
    int status =
        vocab_size
            ? ah__sprintf(&why,
                          "%s: found no tokenizer, expected tokenizer.json, vocab.json with merges.txt, "
                          "tokenizer.model or spiece.model in %s: vocab_size is %" PRId64
                          ", and bytes are the tokens of up to %d alone; --data-format " AH_DATA_AS_BYTES
                          " (data_format) trains on bytes all the same",
                          model ? model : "model", folder ? "its folder" : "a folder with config.json", vocab_size,
                          ah__tokenizer_bytes.vocab_size)
            : ah__sprintf(&why, "%s: found no tokenizer and no config.json with a vocab_size, expected one of them",
                          model);
    ah__free(folder);
    if (status != AH_OK)
        return status;
    status = ah__tokenizer_none(out, why);
    ah__free(why);
    return status;
}

int ah__model_tokenizer_open(const struct ah_tokenizer **out, const char *model)
{
    return model && ah__gguf_is(model) ? gguf_open(out, model) : ah__tokenizer_open(out, model);
}

static int bytes_read(bool *out, const char *checkpoint)
{
    struct ah_json json;
    int status = ah__json_load_any(&json, checkpoint, "state.json");
    *out = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json.node, "bytes"));
    ah__json_free(&json);
    return status == AH_EINPUT ? AH_OK : status; /* the checkpoint's loader reports the fault */
}

int ah__trained_on_bytes(bool *out, const char *model)
{
    char *folder, *checkpoint = NULL;
    *out = false;
    AH_TRY(ah__tokenizer_folder(&folder, model));
    if (!folder)
        return AH_OK;
    int status = ah__folder_find(&checkpoint, folder);
    if (status == AH_OK)
        status = bytes_read(out, checkpoint);
    ah__free(checkpoint);
    ah__free(folder);
    return status == AH_EINPUT ? AH_OK : status; /* not a training's folder */
}

int ah__text_tokenizer_open(const struct ah_tokenizer **out, const char *model, int64_t vocab_size, bool bytes)
{
    *out = &ah__tokenizer_bytes;
    if (!bytes)
        AH_TRY(ah__trained_on_bytes(&bytes, model));
    if (bytes || (!model && !vocab_size))
        return AH_OK;
    AH_TRY(ah__model_tokenizer_open(out, model));
    bool of_bytes = vocab_size > 0 && vocab_size <= ah__tokenizer_bytes.vocab_size;
    return (*out)->text_is_ids && !of_bytes ? none_open(out, model, vocab_size) : AH_OK;
}

int ah_tokenizer_note(char **note, const char *model_path)
{
    struct ah_gguf *file;
    bool by_default = false;
    *note = NULL;
    if (!model_path || !ah__gguf_is(model_path))
        return AH_OK;
    AH_TRY(ah__gguf_open(&file, model_path));
    int status = ah__gguf_splits_by_default(&by_default, file);
    ah__gguf_close(file);
    return status == AH_OK && by_default ? ah__sprintf(note, "%s: %s", model_path, ah__gguf_splits_note) : status;
}

/* Reads vocab_size of a model's config.json; 0 if it has none. */
static int vocab_read(int64_t *out, const char *model)
{
    struct ah_json json = {0};
    char *path;
    struct stat found;
    *out = 0;
    if (stat(model, &found) != 0)
        return ah__fail(errno == ENOENT || errno == ENOTDIR ? AH_EINPUT : AH_EIO, "%s: cannot open: %s", model,
                        strerror(errno));
    AH_TRY(ah__sprintf(&path, S_ISDIR(found.st_mode) ? "%s/config.json" : "%s", model));
    int status = ah__path_exists(path) ? ah__json_load(&json, path) : AH_OK;
    if (status == AH_OK && json.node)
        (void)ah__json_int(out, &json, "vocab_size", 1, INT32_MAX);
    ah__json_free(&json);
    ah__free(path);
    return status;
}

int ah_tokenizer_open(const struct ah_tokenizer **tokenizer, const char *model_path)
{
    const struct ah_tokenizer *opened;
    int64_t vocab_size = 0;
    if (model_path)
        AH_TRY(ah__model_path_check(model_path));
    if (model_path && !ah__gguf_is(model_path))
        AH_TRY(vocab_read(&vocab_size, model_path));
    AH_TRY(ah__text_tokenizer_open(&opened, model_path, vocab_size, false));
    int status = ah__tokenizer_check(opened);
    if (status == AH_OK)
        *tokenizer = opened;
    else
        ah__tokenizer_close(opened);
    return status;
}
