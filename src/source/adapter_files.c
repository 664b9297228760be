#include "source/adapter_files.h"

#include <dirent.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "source/adapter_config.h"
#include "source/folder.h"
#include "source/model_tokenizer.h"

/* ---- the folder -------------------------------------------------------------------------------------------------- */

/* Finds the only folder inside that has an adapter; null into *out if there is none. */
static int within_find(char **out, const char *path)
{
    DIR *list = opendir(path);
    int status = AH_OK;
    *out = NULL;
    for (struct dirent *entry; list && status == AH_OK && (entry = readdir(list));) {
        char *folder;
        if (entry->d_name[0] == '.')
            continue;
        status = ah__sprintf(&folder, "%s/%s", path, entry->d_name);
        if (status == AH_OK && !ah__adapter_config_exists(folder)) {
            ah__free(folder);
        } else if (status == AH_OK && *out) {
            status = ah__fail(AH_EINPUT,
                              "%s: found no " AH_ADAPTER_CONFIG " but some in folders within, expected one "
                              "of those: %s or %s",
                              path, *out, folder);
            ah__free(folder);
        } else if (status == AH_OK) {
            *out = folder;
        }
    }
    if (list)
        closedir(list);
    if (status != AH_OK) {
        ah__free(*out);
        *out = NULL;
    }
    return status;
}

int ah__adapter_find(char **folder, const char *path)
{
    int status = ah__folder_find(folder, path);
    if (status != AH_EINPUT)
        return status;
    *folder = NULL;
    if (!ah__adapter_config_exists(path) && !ah__path_has(path, "config.json"))
        AH_TRY(within_find(folder, path));
    return *folder ? AH_OK : ah__strdup(folder, path);
}

/* Gets the path in `key` of a JSON file, if that path exists here. */
static int path_of(char **out, const char *folder, const char *name, const char *key)
{
    struct ah_json json;
    if (*out)
        return AH_OK;
    AH_TRY(ah__json_load_any(&json, folder, name));
    const char *found = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json.node, key));
    int status = found && found[0] && ah__path_exists(found) ? ah__strdup(out, found) : AH_OK;
    ah__json_free(&json);
    return status;
}

int ah__adapter_base(char **base, const char *folder)
{
    *base = NULL;
    AH_TRY(path_of(base, folder, AH_ADAPTER_CONFIG, "base_model_name_or_path"));
    return path_of(base, folder, "state.json", "base");
}

bool ah__adapter_has_tokenizer(const char *folder)
{
    return ah__path_has(folder, "tokenizer.json") || ah__path_has(folder, "tokenizer.model") ||
           ah__path_has(folder, "spiece.model") ||
           (ah__path_has(folder, "vocab.json") && ah__path_has(folder, "merges.txt"));
}

/* ---- the tokenizer ----------------------------------------------------------------------------------------------- */

/* Returns the text of a token, or null if the vocabulary has no such id. */
static const char *token_of(const struct ah_tokenizer *tokenizer, int32_t id)
{
    return id < tokenizer->vocab_size && !tokenizer->text_is_ids ? tokenizer->token(tokenizer, id) : NULL;
}

static bool is_added(const struct ah_tokenizer *tokenizer, int32_t id)
{
    return id < tokenizer->vocab_size && tokenizer->is_added(tokenizer, id);
}

/* Returns the first id whose token differs, or is missing in one of the two; -1 if they are equal. */
static int32_t differs_at(const struct ah_tokenizer *a, const struct ah_tokenizer *b)
{
    int32_t most = a->vocab_size > b->vocab_size ? a->vocab_size : b->vocab_size;
    if (a->signature == b->signature)
        return -1;
    if (a->text_is_ids || b->text_is_ids)
        return 0;
    for (int32_t id = 0; id < most; id++) {
        const char *left = token_of(a, id), *right = token_of(b, id);
        if (!left != !right || (left && strcmp(left, right) != 0) || is_added(a, id) != is_added(b, id))
            return id;
    }
    return -1;
}

static const char *token_at(const struct ah_tokenizer *tokenizer, int32_t id)
{
    const char *token = token_of(tokenizer, id);
    return token ? token : "nothing";
}

/* Also takes the ids that end a text from the model's generation_config.json, which generation follows. */
static int ends_take(const struct ah_tokenizer *tokenizer, const char *model)
{
    struct ah_model_files files = {0};
    AH_TRY(ah__model_files_load(&files, model));
    const struct ah_model_file *file = ah__model_files_find(&files, AH_GENERATION_CONFIG);
    int status = file ? ah__tokenizer_ids_take(tokenizer, file->text, model) : AH_OK;
    ah__model_files_free(&files);
    return status;
}

/* Returns true if both folders have the same tokenizer.json, as after a training here, which copies it. */
static bool same_file(const char *model, const char *adapter)
{
    enum { MOST = 64 << 20 };
    const char *folders[] = {model, adapter};
    char *path, *text[2] = {NULL, NULL};
    size_t length[2] = {0, 0};
    int status = AH_OK;
    for (int i = 0; i < 2 && status == AH_OK; i++) {
        status = ah__sprintf(&path, "%s/tokenizer.json", folders[i]);
        if (status != AH_OK)
            break;
        status = ah__file_read(&text[i], &length[i], path, MOST);
        ah__free(path);
    }
    bool same = status == AH_OK && length[0] == length[1] && memcmp(text[0], text[1], length[0]) == 0;
    ah__free(text[0]);
    ah__free(text[1]);
    return same;
}

/* Opens the model's tokenizer; bytes if it cannot be read, since it is no longer needed. */
static const struct ah_tokenizer *base_open(const char *model)
{
    const struct ah_tokenizer *base;
    return ah__model_tokenizer_open(&base, model) == AH_OK ? base : &ah__tokenizer_bytes;
}

/* Checks that the adapter's tokens have rows in the model's embedding. Tokenizers of some models have more tokens than
 * rows; the adapter's may have as many as the model's. */
static int rows_check(const struct ah_tokenizer *own, const char *model, const char *adapter, int64_t rows)
{
    int32_t last = own->vocab_size - 1;
    if (own->vocab_size <= rows)
        return AH_OK;
    const struct ah_tokenizer *base = base_open(model);
    bool known = !base->text_is_ids && own->vocab_size <= base->vocab_size;
    ah__tokenizer_close(base);
    return known ? AH_OK
                 : ah__fail(AH_EINPUT,
                            "%s: the adapter's tokenizer has token %d, '%.60s', expected ids below %lld, the rows of "
                            "the model's embedding: the adapter is of a model whose embedding was made larger, and "
                            "does not have that embedding",
                            adapter, last, token_at(own, last), (long long)rows);
}

static int own_open(const struct ah_tokenizer **out, const char *model, const char *adapter, int64_t rows)
{
    AH_TRY(ah__model_tokenizer_open(out, adapter));
    int status = ends_take(*out, model);
    if (status == AH_OK)
        status = rows_check(*out, model, adapter, rows);
    if (status != AH_OK) {
        ah__tokenizer_close(*out);
        *out = NULL;
    }
    return status;
}

int ah__adapter_tokenizer_open(const struct ah_tokenizer **out, const char *model, const char *adapter, int64_t rows,
                               bool bytes)
{
    if (adapter && !bytes)
        AH_TRY(ah__trained_on_bytes(&bytes, adapter));
    return adapter && !bytes && ah__adapter_has_tokenizer(adapter) ? own_open(out, model, adapter, rows)
                                                                   : ah__text_tokenizer_open(out, model, rows, bytes);
}

static int note_make(char **note, const struct ah_tokenizer *own, const struct ah_tokenizer *base, const char *adapter)
{
    int32_t at = differs_at(own, base);
    if (at < 0)
        return AH_OK;
    if (base->text_is_ids)
        return ah__sprintf(note, "%s: the adapter's tokenizer is used; the model has none", adapter);
    return ah__sprintf(note,
                       "%s: the adapter's tokenizer is used, which is not the model's: token %d is '%.60s' in it and "
                       "'%.60s' in the model's",
                       adapter, at, token_at(own, at), token_at(base, at));
}

int ah__adapter_tokenizer_note(char **note, const char *model, const char *adapter)
{
    const struct ah_tokenizer *own;
    *note = NULL;
    if (!adapter || !ah__adapter_has_tokenizer(adapter) || same_file(model, adapter))
        return AH_OK;
    AH_TRY(ah__model_tokenizer_open(&own, adapter));
    const struct ah_tokenizer *base = base_open(model);
    int status = note_make(note, own, base, adapter);
    ah__tokenizer_close(base);
    ah__tokenizer_close(own);
    return status;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static bool is_template(const char *name)
{
    return strncmp(name, AH_MORE_TEMPLATES "/", sizeof AH_MORE_TEMPLATES) == 0 ||
           strncmp(name, "chat_template.", strlen("chat_template.")) == 0;
}

/* Returns the text of `chat_template` in tokenizer_config.json, or of its list's "default", or null. */
static const char *template_of(const struct ah_json *config)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(config->node, "chat_template"), *each;
    const cJSON *list = cJSON_IsArray(found) ? found : NULL;
    cJSON_ArrayForEach(each, list)
    {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(each, "name"));
        if (name && strcmp(name, "default") == 0)
            return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(each, "template"));
    }
    return cJSON_GetStringValue(found);
}

/* Adds the template as a separate file, if only tokenizer_config.json has it. */
static int template_take(struct ah_model_files *to, const struct ah_model_files *from, const char *path)
{
    const struct ah_model_file *config = ah__model_files_find(from, "tokenizer_config.json");
    struct ah_json json = {0};
    if (!config || ah__model_files_find(from, "chat_template.jinja") || ah__model_files_find(to, "chat_template.jinja"))
        return AH_OK;
    AH_TRY(ah__json_parse(&json, config->text, config->length, path));
    const char *text = template_of(&json);
    int status = text ? ah__model_files_add(to, "chat_template.jinja", text, strlen(text)) : AH_OK;
    ah__json_free(&json);
    return status;
}

static bool has_template(const struct ah_model_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        if (is_template(files->file[i].name))
            return true;
    return false;
}

/* Joins the model's files that stay and the adapter's files that replace others. */
static int join(struct ah_model_files *out, const struct ah_model_files *base, const struct ah_model_files *own,
                bool tokenizer, const char *folder)
{
    struct ah_model_files templates = {0};
    int status = template_take(&templates, own, folder);
    const bool template = templates.count || has_template(own);
    for (size_t i = 0; i < base->count && status == AH_OK; i++) {
        const struct ah_model_file *file = &base->file[i];
        bool generates = strcmp(file->name, AH_GENERATION_CONFIG) == 0;
        if (generates || !(is_template(file->name) ? template : tokenizer))
            status = ah__model_files_add(out, file->name, file->text, file->length);
    }
    for (size_t i = 0; i < own->count && status == AH_OK; i++) {
        const struct ah_model_file *file = &own->file[i];
        if (strcmp(file->name, AH_GENERATION_CONFIG) != 0 && (tokenizer || is_template(file->name)))
            status = ah__model_files_add(out, file->name, file->text, file->length);
    }
    if (status == AH_OK && tokenizer && !template)
        status = template_take(out, base, folder); /* it was in a file that the adapter's replaced */
    if (status == AH_OK && !tokenizer && templates.count && !ah__model_files_find(out, templates.file->name))
        status = ah__model_files_add(out, templates.file->name, templates.file->text, templates.file->length);
    ah__model_files_free(&templates);
    return status;
}

int ah__adapter_files_over(struct ah_model_files *files, const char *folder)
{
    struct ah_model_files own = {0}, joined = {0};
    AH_TRY(ah__model_files_load(&own, folder));
    int status = join(&joined, files, &own, ah__adapter_has_tokenizer(folder), folder);
    if (status == AH_OK) {
        joined.outside = own.outside ? own.outside : files->outside;
        *(own.outside ? &own.outside : &files->outside) = NULL;
        ah__model_files_free(files);
        *files = joined;
    } else {
        ah__model_files_free(&joined);
    }
    ah__model_files_free(&own);
    return status;
}
