#include "source/model_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "gguf/files.h"
#include "gguf/gguf.h"
#include "tokenizer/tokenizer.h"

enum { FILE_MOST = 64 << 20 };

static const char *const names[] = {
    AH_GENERATION_CONFIG,
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "chat_template.jinja",
    "chat_template.json",
};

bool ah__model_files_are(const char *name)
{
    for (size_t i = 0; i < AH_LENGTH(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

const struct ah_model_file *ah__model_files_find(const struct ah_model_files *files, const char *name)
{
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->file[i].name, name) == 0)
            return &files->file[i];
    return NULL;
}

/* Adds a text, which then belongs to the files, or is freed. */
static int take(struct ah_model_files *files, const char *name, char *text, size_t length)
{
    struct ah_model_file file = {.text = text, .length = length};
    int status = ah__strdup(&file.name, name);
    if (status == AH_OK)
        status = ah__grow(&files->file, &files->room, files->count + 1, sizeof *files->file);
    if (status == AH_OK) {
        files->file[files->count++] = file;
        return AH_OK;
    }
    ah__free(file.name);
    ah__free(text);
    return status;
}

int ah__model_files_add(struct ah_model_files *files, const char *name, const char *text, size_t length)
{
    char *copy;
    AH_TRY(ah__new(&copy, length + 1, 1));
    memcpy(copy, text, length);
    return take(files, name, copy, length);
}

/* Looks at a path. A path that cannot be examined is a failure: its file would be lost silently. */
static int look(bool *there, bool *is_folder, const char *path)
{
    struct stat info;
    *there = stat(path, &info) == 0;
    *is_folder = *there && S_ISDIR(info.st_mode);
    return *there || errno == ENOENT || errno == ENOTDIR
               ? AH_OK
               : ah__fail(errno == EACCES ? AH_EINPUT : AH_EIO, "%s: cannot open: %s", path, strerror(errno));
}

static bool lies_in(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || length == 1);
}

/* Gives the folder of blobs, for a folder in a Hugging Face cache, which has snapshots/REVISION/NAME ->
 * ../../blobs/HASH. */
static int blobs_of(char **out, const char *folder)
{
    const char *revision = strrchr(folder, '/');
    static const char above[] = "/snapshots";
    size_t length = revision ? (size_t)(revision - folder) : 0;
    if (length < sizeof above || strncmp(revision - strlen(above), above, strlen(above)) != 0)
        return AH_OK;
    return ah__sprintf(out, "%.*s/blobs", (int)(length - strlen(above)), folder);
}

static int is_inside(bool *inside, const char *folder, const char *path)
{
    char *real = NULL, *real_folder = NULL, *blobs = NULL;
    int status = ah__path_real(&real, path);
    if (status == AH_OK)
        status = ah__path_real(&real_folder, folder);
    if (status == AH_OK && real_folder)
        status = blobs_of(&blobs, real_folder);
    *inside = real && real_folder && (lies_in(real, real_folder) || (blobs && lies_in(real, blobs)));
    ah__free(blobs);
    ah__free(real_folder);
    ah__free(real);
    return status;
}

static int load_one(struct ah_model_files *files, const char *folder, const char *name)
{
    char *path, *text;
    size_t length;
    bool there = false, inside = true, is_folder;
    AH_TRY(ah__sprintf(&path, "%s/%s", folder, name));
    int status = look(&there, &is_folder, path);
    if (status == AH_OK && there)
        status = is_inside(&inside, folder, path);
    if (status == AH_OK && there && !inside) {
        ah__free(files->outside);
        files->outside = path;
        return AH_OK;
    }
    if (status == AH_OK && there) {
        status = ah__file_read(&text, &length, path, FILE_MOST);
        if (status == AH_OK)
            status = take(files, name, text, length);
    }
    ah__free(path);
    return status;
}

/* ---- generation -------------------------------------------------------------------------------------------------- */

static const char *const id_keys[] = {"bos_token_id", "eos_token_id", "pad_token_id"};

bool ah__model_files_is_id(const char *key)
{
    for (size_t i = 0; i < AH_LENGTH(id_keys); i++)
        if (strcmp(id_keys[i], key) == 0)
            return true;
    return false;
}

static int ids_copy(cJSON *to, const cJSON *config)
{
    for (size_t i = 0; i < AH_LENGTH(id_keys); i++) {
        const cJSON *from = cJSON_GetObjectItemCaseSensitive(config, id_keys[i]);
        if (!cJSON_IsNumber(from) && !cJSON_IsArray(from))
            continue;
        cJSON *copy = cJSON_Duplicate(from, true);
        if (!cJSON_AddItemToObject(to, id_keys[i], copy)) {
            cJSON_Delete(copy);
            return ah__fail(AH_ENOMEM, "out of host memory: " AH_GENERATION_CONFIG);
        }
    }
    return AH_OK;
}

static int generation_of(struct ah_model_files *files, const cJSON *config)
{
    cJSON *tree = cJSON_CreateObject();
    char *text;
    int status = tree ? ids_copy(tree, config) : ah__fail(AH_ENOMEM, "out of host memory: " AH_GENERATION_CONFIG);
    if (status == AH_OK && tree->child) {
        status = ah__json_text(&text, tree, false);
        if (status == AH_OK)
            status = take(files, AH_GENERATION_CONFIG, text, strlen(text));
    }
    cJSON_Delete(tree);
    return status;
}

static int generation_make(struct ah_model_files *files, const char *config_path)
{
    struct ah_json config = {0};
    bool there, is_folder;
    AH_TRY(look(&there, &is_folder, config_path));
    if (!there)
        return AH_OK;
    AH_TRY(ah__json_load(&config, config_path));
    int status = generation_of(files, config.node);
    ah__json_free(&config);
    return status;
}

static bool is_id(const cJSON *node, int64_t vocab_size)
{
    return cJSON_IsNumber(node) && node->valuedouble >= 0 && node->valuedouble < (double)vocab_size;
}

/* Returns true for one id, or for a list of ids of eos_token_id. */
static bool are_ids(const char *key, const cJSON *node, int64_t vocab_size)
{
    const cJSON *child = cJSON_IsArray(node) && strcmp(key, "eos_token_id") == 0 ? node->child : NULL;
    if (!child)
        return is_id(node, vocab_size);
    while (child && is_id(child, vocab_size))
        child = child->next;
    return !child;
}

/* Puts an id in place of null, or after the last key. The text was written by base/json.h. */
static int id_put(char **config, const char *key, const cJSON *id)
{
    static const char end[] = "\n}";
    char *value, *mark, *text;
    size_t length = strlen(*config), tail = sizeof end - 1;
    AH_TRY(ah__json_text(&value, id, true));
    int status = ah__sprintf(&mark, "\"%s\": null", key);
    char *at = status == AH_OK ? strstr(*config, mark) : NULL;
    if (at)
        status = ah__sprintf(&text, "%.*s\"%s\": %s%s", (int)(at - *config), *config, key, value, at + strlen(mark));
    else if (status == AH_OK && length > tail && strcmp(*config + length - tail, end) == 0)
        status = ah__sprintf(&text, "%.*s,\n  \"%s\": %s%s", (int)(length - tail), *config, key, value, end);
    else if (status == AH_OK)
        status = ah__strdup(&text, *config);
    ah__free(value);
    ah__free(mark);
    if (status != AH_OK)
        return status;
    ah__free(*config);
    *config = text;
    return AH_OK;
}

int ah__model_files_config(char **out, const struct ah_model_files *files, const char *config, int64_t vocab_size)
{
    struct ah_json generation = {0};
    char *text;
    AH_TRY(ah__strdup(&text, config));
    int status = AH_OK;
    const struct ah_model_file *file = files ? ah__model_files_find(files, AH_GENERATION_CONFIG) : NULL;
    if (file)
        status = ah__json_parse(&generation, file->text, file->length, file->name);
    if (status == AH_EINPUT) /* it is copied unchanged, whatever it holds */
        status = AH_OK;
    for (size_t i = 0; i < AH_LENGTH(id_keys) && status == AH_OK && generation.node; i++) {
        const cJSON *id = cJSON_GetObjectItemCaseSensitive(generation.node, id_keys[i]);
        if (are_ids(id_keys[i], id, vocab_size))
            status = id_put(&text, id_keys[i], id);
    }
    ah__json_free(&generation);
    if (status == AH_OK)
        *out = text;
    else
        ah__free(text);
    return status;
}

/* ---- templates beside the default -------------------------------------------------------------------------------- */

static int is_template(const struct dirent *entry)
{
    static const char end[] = ".jinja";
    size_t length = strlen(entry->d_name), tail = strlen(end);
    return entry->d_name[0] != '.' && length > tail && strcmp(entry->d_name + length - tail, end) == 0;
}

static int templates_load(struct ah_model_files *files, const char *folder)
{
    char *path, *name;
    struct dirent **list = NULL;
    AH_TRY(ah__sprintf(&path, "%s/" AH_MORE_TEMPLATES, folder));
    int count = scandir(path, &list, is_template, alphasort), status = AH_OK;
    if (count < 0 && errno != ENOENT && errno != ENOTDIR)
        status = ah__fail(AH_EIO, "%s: cannot open folder: %s", path, strerror(errno));
    ah__free(path);
    for (int i = 0; i < count; i++) {
        if (status == AH_OK)
            status = ah__sprintf(&name, AH_MORE_TEMPLATES "/%s", list[i]->d_name);
        if (status == AH_OK) {
            status = load_one(files, folder, name);
            ah__free(name);
        }
        free(list[i]);
    }
    free(list);
    return status;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static int folder_load(struct ah_model_files *files, const char *folder)
{
    char *config;
    for (size_t i = 0; i < AH_LENGTH(names); i++)
        AH_TRY(load_one(files, folder, names[i]));
    AH_TRY(templates_load(files, folder));
    if (ah__model_files_find(files, AH_GENERATION_CONFIG))
        return AH_OK;
    AH_TRY(ah__sprintf(&config, "%s/config.json", folder));
    int status = generation_make(files, config);
    ah__free(config);
    return status;
}

/* Takes all three texts, or frees them. */
static int gguf_load(struct ah_model_files *files, const char *path)
{
    struct ah_gguf_files made;
    AH_TRY(ah__gguf_files_load(&made, path));
    char **const texts[] = {&made.tokenizer, &made.config, &made.generation};
    static const char *const as[] = {"tokenizer.json", "tokenizer_config.json", AH_GENERATION_CONFIG};
    int status = AH_OK;
    for (size_t i = 0; i < AH_LENGTH(as) && status == AH_OK; i++) {
        char *text = *texts[i];
        *texts[i] = NULL;
        status = take(files, as[i], text, strlen(text));
    }
    ah__gguf_files_free(&made);
    return status;
}

int ah__model_files_load(struct ah_model_files *files, const char *path)
{
    struct ah_model_files loaded = {0};
    bool there, is_folder;
    char *folder;
    if (!path)
        return AH_OK;
    AH_TRY(look(&there, &is_folder, path));
    AH_TRY(ah__tokenizer_folder(&folder, path));
    int status = folder              ? folder_load(&loaded, folder)
                 : ah__gguf_is(path) ? gguf_load(&loaded, path)
                                     : generation_make(&loaded, path);
    ah__free(folder);
    if (status == AH_OK)
        *files = loaded;
    else
        ah__model_files_free(&loaded);
    return status;
}

int ah__model_files_set(struct ah_model_files *files, const char *name, const char *path)
{
    char *text;
    size_t length;
    AH_TRY(ah__file_read(&text, &length, path, FILE_MOST));
    for (size_t i = 0; i < files->count; i++) {
        struct ah_model_file *file = &files->file[i];
        if (strcmp(file->name, name) != 0)
            continue;
        ah__free(file->text);
        file->text = text;
        file->length = length;
        return AH_OK;
    }
    return take(files, name, text, length);
}

/* Makes the folder that a name may contain. */
static int parent_make(const char *folder, const char *name)
{
    char *path;
    if (!strchr(name, '/'))
        return AH_OK;
    AH_TRY(ah__sprintf(&path, "%s/" AH_MORE_TEMPLATES, folder));
    int status = ah__folder_make(path);
    ah__free(path);
    return status;
}

int ah__model_file_save(const struct ah_model_file *file, const char *folder)
{
    char *path;
    AH_TRY(ah__sprintf(&path, "%s/%s", folder, file->name));
    int status = parent_make(folder, file->name);
    if (status == AH_OK)
        status = ah__file_write(path, file->text, file->length);
    ah__free(path);
    return status;
}

void ah__model_files_free(struct ah_model_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        ah__free(files->file[i].name);
        ah__free(files->file[i].text);
    }
    ah__free(files->file);
    ah__free(files->outside);
    *files = (struct ah_model_files){0};
}
