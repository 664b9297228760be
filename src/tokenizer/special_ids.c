/* Finds the tokens that begin and end texts. tokenizer_config.json and special_tokens_map.json name them by text,
 * generation_config.json and config.json by id. The first file that names a token counts, but every end token of any
 * file ends a model's answer. */
#include <string.h>
#include <unistd.h>

#include "tokenizer/subword.h"

const char *ah__special_text(const struct ah_json *json, const char *key)
{
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(json->node, key);
    if (cJSON_IsObject(node))
        node = cJSON_GetObjectItemCaseSensitive(node, "content");
    return cJSON_IsString(node) ? node->valuestring : NULL;
}

static int32_t text_id(const struct ah_subword *subword, const char *text)
{
    if (!text)
        return -1;
    int32_t id = ah__token_map_find(&subword->own, text, strlen(text));
    return id >= 0 ? id : ah__token_map_find(&subword->vocab, text, strlen(text));
}

static int stop_add(struct ah_subword *subword, int32_t id)
{
    for (size_t i = 0; i < subword->stops.count; i++)
        if (subword->stops.ids[i] == id)
            return AH_OK;
    return ah__ids_add(&subword->stops, &id, 1);
}

/* Takes an id as the token that begins or ends texts if none is known yet. -1 and ids without a token are ignored: a
 * config.json often has those of the model it was written for. */
static int id_take(struct ah_subword *subword, double value, bool end)
{
    struct ah_tokenizer *base = &subword->base;
    if (!(value >= 0 && value < base->vocab_size) || value != (double)(int32_t)value)
        return AH_OK;
    int32_t id = (int32_t)value;
    if (end && !base->has_eos)
        base->eos = id;
    if (!end && !base->has_bos)
        base->bos = id;
    base->has_eos = base->has_eos || end;
    base->has_bos = base->has_bos || !end;
    return end ? stop_add(subword, id) : AH_OK;
}

static int ids_take(struct ah_subword *subword, const struct ah_json *json, const char *key, bool end)
{
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(json->node, key);
    if (cJSON_IsNumber(node))
        return id_take(subword, node->valuedouble, end);
    for (const cJSON *child = cJSON_IsArray(node) ? node->child : NULL; child; child = child->next)
        if (cJSON_IsNumber(child))
            AH_TRY(id_take(subword, child->valuedouble, end));
    return AH_OK;
}

static int json_take(struct ah_subword *subword, const struct ah_json *json, bool texts)
{
    AH_TRY(texts ? id_take(subword, text_id(subword, ah__special_text(json, "bos_token")), false)
                 : ids_take(subword, json, "bos_token_id", false));
    return texts ? id_take(subword, text_id(subword, ah__special_text(json, "eos_token")), true)
                 : ids_take(subword, json, "eos_token_id", true);
}

static int text_take(struct ah_subword *subword, const char *text, const char *path, bool texts)
{
    struct ah_json json;
    AH_TRY(ah__json_parse(&json, text, strlen(text), path));
    int status = json_take(subword, &json, texts);
    ah__json_free(&json);
    return status;
}

static void stops_set(struct ah_subword *subword)
{
    subword->base.stops = subword->stops.ids;
    subword->base.stop_count = (int32_t)subword->stops.count;
}

int ah__special_id_set(struct ah_subword *subword, int32_t id, bool end)
{
    AH_TRY(id_take(subword, id, end));
    stops_set(subword);
    return AH_OK;
}

int ah__special_ids_add(struct ah_subword *subword, const char *config, const char *path)
{
    AH_TRY(text_take(subword, config, path, false));
    stops_set(subword);
    return AH_OK;
}

int ah__special_ids_read_texts(struct ah_subword *subword, const struct ah_subword_texts *texts)
{
    AH_TRY(text_take(subword, texts->config, texts->path, true));
    AH_TRY(text_take(subword, texts->generation, texts->path, false));
    stops_set(subword);
    return AH_OK;
}

int ah__special_ids_read(struct ah_subword *subword, const char *folder)
{
    static const struct {
        const char *name;
        bool texts;
    } files[] = {{"tokenizer_config.json", true},
                 {"special_tokens_map.json", true},
                 {"generation_config.json", false},
                 {"config.json", false}};
    for (size_t i = 0; i < AH_LENGTH(files); i++) {
        struct ah_json json;
        AH_TRY(ah__json_load_any(&json, folder, files[i].name));
        int status = json.node ? json_take(subword, &json, files[i].texts) : AH_OK;
        ah__json_free(&json);
        AH_TRY(status);
    }
    stops_set(subword);
    return AH_OK;
}
