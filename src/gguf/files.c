#include "gguf/files.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json.h"
#include "gguf/by_name.h"
#include "gguf/gguf.h"
#include "tokenizer/tables.h"
#include "tokenizer/token_map.h"

#define KEY(name) "tokenizer.ggml." name

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static int fail_count(const struct ah_gguf_array *array, int64_t expected)
{
    return ah__fail(AH_EINPUT, "%s: key '%s': found %lld, expected as many as there are tokens, %lld",
                    ah__gguf_path(array->file), array->key, (long long)array->count, (long long)expected);
}

static int row_take(struct ah_token_row *row, struct ah_gguf_array *texts, const char *name)
{
    char text[64]; /* no rule concerns longer texts */
    row->text = ah__gguf_next_text(&row->length, texts);
    snprintf(text, sizeof text, "%.*s", (int)(row->length < 64 ? row->length : 63), row->text);
    row->edges = ah__gguf_edges_named(name, text);
    row->type = ah__gguf_control_named(text) ? AH_TOKEN_CONTROL : AH_TOKEN_NORMAL; /* whatever type the file has */
    if (memchr(row->text, 0, row->length))
        return ah__fail(AH_EINPUT, "%s: key '%s': found a zero byte in token %lld, expected none",
                        ah__gguf_path(texts->file), texts->key, (long long)texts->next - 1);
    return AH_OK;
}

/* Makes an array of tokens, freed with ah__free; null if the file has no tokens. */
static int rows_read(struct ah_token_row **rows, int32_t *count, const struct ah_gguf *file)
{
    struct ah_gguf_array texts, scores, types;
    const char *name = NULL;
    *rows = NULL;
    AH_TRY(ah__gguf_text(&name, file, "general.name"));
    AH_TRY(ah__gguf_texts(&texts, file, KEY("tokens")));
    AH_TRY(ah__gguf_doubles(&scores, file, KEY("scores")));
    AH_TRY(ah__gguf_ints(&types, file, KEY("token_type")));
    if (texts.count > AH_TOKEN_IDS_MOST)
        return ah__fail(AH_EINPUT, "%s: key '%s': found %lld, expected at most %d", ah__gguf_path(file), texts.key,
                        (long long)texts.count, AH_TOKEN_IDS_MOST);
    if (scores.count && scores.count != texts.count)
        return fail_count(&scores, texts.count);
    if (types.count && types.count != texts.count)
        return fail_count(&types, texts.count);
    AH_TRY(ah__new(rows, (size_t)texts.count, sizeof **rows));
    *count = (int32_t)texts.count;
    int status = AH_OK;
    for (int32_t i = 0; i < *count && status == AH_OK; i++) {
        status = row_take(&(*rows)[i], &texts, name);
        (*rows)[i].score = scores.count ? (float)ah__gguf_next_double(&scores) : 0;
        int64_t type = types.count ? ah__gguf_next_int(&types) : AH_TOKEN_NORMAL;
        if (type >= AH_TOKEN_NORMAL && type <= AH_TOKEN_BYTE && (*rows)[i].type != AH_TOKEN_CONTROL)
            (*rows)[i].type = (enum ah_token_type)type;
    }
    if (status != AH_OK)
        ah__free(*rows);
    return status;
}

/* Writes the merges as "\"a b\",\"c d\"". */
static int merges_read(struct ah_buf *to, const struct ah_gguf *file)
{
    struct ah_gguf_array merges;
    struct ah_buf one = {0};
    AH_TRY(ah__gguf_texts(&merges, file, KEY("merges")));
    for (int64_t i = 0; i < merges.count; i++) {
        size_t length;
        const char *text = ah__gguf_next_text(&length, &merges);
        one.length = 0;
        ah__buf_add(&one, text, length);
        ah__buf_printf(to, i ? ",\"" : "\"");
        ah__buf_json(to, one.text ? one.text : "");
        ah__buf_printf(to, "\"");
    }
    ah__buf_add(to, "", 0);
    int status = one.status != AH_OK ? one.status : to->status;
    ah__buf_free(&one);
    return status;
}

/* Reads an id; -1 if it is missing or beyond the vocabulary: files write 4294967295 for no token, and llama.cpp ignores
 * other ids out of range. */
static int id_read(int32_t *id, const struct ah_gguf *file, const char *key, int32_t count)
{
    int64_t value = -1;
    AH_TRY(ah__gguf_int(&value, file, key, -1, UINT32_MAX));
    *id = value < count ? (int32_t)value : -1;
    return AH_OK;
}

static int ids_read(struct ah_token_tables *tables, const struct ah_gguf *file)
{
    AH_TRY(id_read(&tables->bos, file, KEY("bos_token_id"), tables->count));
    AH_TRY(id_read(&tables->eos, file, KEY("eos_token_id"), tables->count));
    AH_TRY(ah__gguf_bool(&tables->add_bos, file, KEY("add_bos_token")));
    return ah__gguf_bool(&tables->add_eos, file, KEY("add_eos_token"));
}

/* Reads the tokenizer's kind, which decides defaults for missing keys. */
static int kind_read(struct ah_token_tables *tables, const struct ah_gguf *file)
{
    const char *model = NULL, *pre = NULL;
    AH_TRY(ah__gguf_text(&model, file, KEY("model")));
    AH_TRY(ah__gguf_text(&pre, file, KEY("pre")));
    tables->prefix = tables->add_bos = model && strcmp(model, "llama") == 0;
    AH_TRY(ah__gguf_bool(&tables->prefix, file, KEY("add_space_prefix")));
    if (model && strcmp(model, "llama") == 0)
        return AH_OK;
    if (!model || strcmp(model, "gpt2") != 0)
        return ah__fail(AH_EINPUT, "%s: key '" KEY("model") "': found %s%.40s%s, expected 'gpt2' or 'llama'",
                        ah__gguf_path(file), model ? "'" : "nothing", model ? model : "", model ? "'" : "");
    tables->pre = pre && *pre ? pre : "default"; /* llama.cpp's default, with a warning: ah__gguf_splits_by_default */
    if (ah__token_tables_pre(&tables->add_bos, tables->pre))
        return AH_OK;
    return ah__fail(AH_EINPUT,
                    "%s: key '" KEY("pre") "': found '%.40s', expected how its text is split: gpt-2, llama-bpe, "
                                           "qwen2, smollm or another of docs/models.md",
                    ah__gguf_path(file), pre);
}

const char ah__gguf_splits_note[] =
    "key 'tokenizer.ggml.pre': found nothing; text is split by llama.cpp's default, which may not be the model's own";

int ah__gguf_splits_by_default(bool *out, const struct ah_gguf *file)
{
    const char *model = "", *pre = "";
    AH_TRY(ah__gguf_text(&model, file, KEY("model")));
    AH_TRY(ah__gguf_text(&pre, file, KEY("pre")));
    *out = strcmp(model, "gpt2") == 0 && !*pre;
    return AH_OK;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static int tokenizer_json(char **text, const struct ah_gguf *file, struct ah_token_tables *tables)
{
    struct ah_buf merges = {0};
    AH_TRY(kind_read(tables, file));
    AH_TRY(ids_read(tables, file));
    int status = merges_read(&merges, file);
    tables->merges = merges.text;
    if (status == AH_OK)
        status = ah__token_tables_json(text, tables);
    ah__buf_free(&merges);
    return status;
}

static int add_token(cJSON *tree, const char *key, const struct ah_token_tables *tables, int32_t id)
{
    char *text;
    if (id < 0)
        return AH_OK;
    AH_TRY(ah__sprintf(&text, "%.*s", (int)tables->rows[id].length, tables->rows[id].text));
    int status = ah__json_add_string(tree, key, text);
    ah__free(text);
    return status;
}

static int config_fill(cJSON *tree, const struct ah_gguf *file, const struct ah_token_tables *tables)
{
    const char *template = NULL;
    int32_t unknown, padding;
    AH_TRY(id_read(&unknown, file, KEY("unknown_token_id"), tables->count));
    AH_TRY(id_read(&padding, file, KEY("padding_token_id"), tables->count));
    AH_TRY(ah__gguf_text(&template, file, "tokenizer.chat_template"));
    AH_TRY(add_token(tree, "bos_token", tables, tables->bos));
    AH_TRY(add_token(tree, "eos_token", tables, tables->eos));
    AH_TRY(add_token(tree, "unk_token", tables, unknown));
    AH_TRY(add_token(tree, "pad_token", tables, padding));
    AH_TRY(ah__json_add_bool(tree, "add_bos_token", tables->add_bos));
    AH_TRY(ah__json_add_bool(tree, "clean_up_tokenization_spaces", false));
    if (template)
        AH_TRY(ah__json_add_string(tree, "chat_template", template));
    return ah__json_add_string(tree, "tokenizer_class", "PreTrainedTokenizerFast");
}

/* Adds the ids that end generated text: of a text, a turn, a message. */
static int generation_fill(cJSON *tree, const struct ah_gguf *file, const struct ah_token_tables *tables)
{
    static const char *const keys[] = {KEY("eos_token_id"), KEY("eot_token_id"), KEY("eom_token_id")};
    cJSON *ends = NULL;
    int32_t seen[AH_LENGTH(keys)];
    if (tables->bos >= 0)
        AH_TRY(ah__json_add_int(tree, "bos_token_id", tables->bos));
    for (size_t i = 0; i < AH_LENGTH(keys); i++) {
        bool new = true;
        AH_TRY(id_read(&seen[i], file, keys[i], tables->count));
        for (size_t k = 0; k < i; k++)
            new = new &&seen[k] != seen[i];
        if (seen[i] < 0 || !new)
            continue;
        ends = ends ? ends : cJSON_AddArrayToObject(tree, "eos_token_id");
        if (!cJSON_AddItemToArray(ends, cJSON_CreateNumber(seen[i])))
            return ah__fail(AH_ENOMEM, "out of host memory: generation_config.json");
    }
    return AH_OK;
}

static int json_file(char **text, const struct ah_gguf *file, const struct ah_token_tables *tables,
                     int (*fill)(cJSON *tree, const struct ah_gguf *file, const struct ah_token_tables *tables))
{
    cJSON *tree = cJSON_CreateObject();
    int status = tree ? fill(tree, file, tables) : ah__fail(AH_ENOMEM, "out of host memory: tokenizer_config.json");
    if (status == AH_OK)
        status = ah__json_text(text, tree, false);
    cJSON_Delete(tree);
    return status;
}

static int files_make(struct ah_gguf_files *files, const struct ah_gguf *file)
{
    struct ah_token_tables tables = {.path = ah__gguf_path(file), .bos = -1, .eos = -1};
    struct ah_token_row *rows;
    AH_TRY(rows_read(&rows, &tables.count, file));
    tables.rows = rows;
    int status = tables.count ? tokenizer_json(&files->tokenizer, file, &tables)
                              : ah__fail(AH_EINPUT, "%s: key '" KEY("tokens") "': found nothing, expected a vocabulary",
                                         ah__gguf_path(file));
    if (status == AH_OK)
        status = json_file(&files->config, file, &tables, config_fill);
    if (status == AH_OK)
        status = json_file(&files->generation, file, &tables, generation_fill);
    ah__free(rows);
    return status;
}

int ah__gguf_files_load(struct ah_gguf_files *files, const char *path)
{
    struct ah_gguf_files loaded = {0};
    struct ah_gguf *file;
    AH_TRY(ah__gguf_open(&file, path));
    int status = files_make(&loaded, file);
    ah__gguf_close(file);
    if (status == AH_OK)
        *files = loaded;
    else
        ah__gguf_files_free(&loaded);
    return status;
}

void ah__gguf_files_free(struct ah_gguf_files *files)
{
    ah__free(files->tokenizer);
    ah__free(files->config);
    ah__free(files->generation);
    *files = (struct ah_gguf_files){0};
}
