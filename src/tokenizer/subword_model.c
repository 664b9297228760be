/* Reads from tokenizer.json the model (BPE) and the ids that the post-processor puts around a text. */
#include <string.h>

#include "tokenizer/subword_json.h"

/* ---- model ------------------------------------------------------------------------------------------------------- */

/* Reads a merge "left right". */
static int merge_text(struct ah_subword_recipe *recipe, const char *text, const char *where)
{
    const char *space = strchr(text, ' ');
    if (!space || strchr(space + 1, ' '))
        return ah__fail(AH_EINPUT, "%s: %s: found '%.40s', expected two texts with one space between them",
                        recipe->path, where, text);
    return ah__subword_add_merge(recipe, text, (size_t)(space - text), space + 1, strlen(space + 1), where);
}

/* Reads a merge ["left", "right"]. */
static int merge_pair(struct ah_subword_recipe *recipe, const cJSON *pair, const char *where)
{
    const cJSON *left = cJSON_IsArray(pair) ? pair->child : NULL, *right = left ? left->next : NULL;
    if (!cJSON_IsString(left) || !cJSON_IsString(right) || right->next)
        return ah__fail(AH_EINPUT, "%s: %s: found no pair of texts, expected one", recipe->path, where);
    return ah__subword_add_merge(recipe, left->valuestring, strlen(left->valuestring), right->valuestring,
                                 strlen(right->valuestring), where);
}

static int merges_read(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    const cJSON *merges = cJSON_GetObjectItemCaseSensitive(json->node, "merges");
    int index = 0;
    if (!cJSON_IsArray(merges))
        return ah__fail(AH_EINPUT, "%s: key '%s.merges': found no array, expected one", json->path, json->where);
    for (const cJSON *merge = merges->child; merge; merge = merge->next, index++) {
        char where[64];
        snprintf(where, sizeof where, "key 'model.merges[%d]'", index);
        AH_TRY(cJSON_IsString(merge) ? merge_text(recipe, merge->valuestring, where)
                                     : merge_pair(recipe, merge, where));
    }
    return AH_OK;
}

static int flag_read(bool *out, const struct ah_json *json, const char *key)
{
    return ah__json_has(json, key) ? ah__json_bool(out, json, key) : AH_OK;
}

/* Fails if parts at the end or inside of words have texts of their own: no supported tokenizer has this. */
static int affix_check(const struct ah_json *json, const char *key)
{
    const char *text = "";
    if (ah__json_has(json, key))
        AH_TRY(ah__json_string(&text, json, key));
    return *text ? ah__fail(AH_EINPUT, "%s: key '%s.%s': found '%.40s', expected none", json->path, json->where, key,
                            text)
                 : AH_OK;
}

static int dropout_check(const struct ah_json *json)
{
    double dropout;
    return ah__json_has(json, "dropout") ? ah__json_double(&dropout, json, "dropout", 0, 0) : AH_OK;
}

int ah__model_read(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    static const char *const keys[] = {"type",
                                       "dropout",
                                       "unk_token",
                                       "continuing_subword_prefix",
                                       "end_of_word_suffix",
                                       "fuse_unk",
                                       "byte_fallback",
                                       "ignore_merges",
                                       "vocab",
                                       "merges",
                                       NULL};
    struct ah_json vocab;
    const char *type = "BPE"; /* old files do not name it */
    if (ah__json_has(json, "type"))
        AH_TRY(ah__json_string(&type, json, "type"));
    if (strcmp(type, "BPE") != 0)
        return ah__fail(AH_EINPUT, "%s: key '%s.type': found '%.40s', expected BPE", json->path, json->where, type);
    AH_TRY(ah__json_only(json, keys));
    AH_TRY(dropout_check(json));
    AH_TRY(affix_check(json, "continuing_subword_prefix"));
    AH_TRY(affix_check(json, "end_of_word_suffix"));
    if (ah__json_has(json, "unk_token"))
        AH_TRY(ah__json_string(&recipe->unknown, json, "unk_token"));
    AH_TRY(flag_read(&recipe->fuse_unknown, json, "fuse_unk"));
    AH_TRY(flag_read(&recipe->byte_fallback, json, "byte_fallback"));
    AH_TRY(flag_read(&recipe->ignore_merges, json, "ignore_merges"));
    AH_TRY(ah__json_object(&vocab, json, "vocab"));
    AH_TRY(ah__subword_read_vocab(recipe, &vocab));
    return merges_read(recipe, json);
}

/* ---- template ---------------------------------------------------------------------------------------------------- */

static int ids_add(struct ah_subword_recipe *recipe, struct ah_ids *to, const struct ah_json *special)
{
    enum { IDS_MOST = 64 };
    int64_t ids[IDS_MOST];
    size_t count;
    AH_TRY(ah__json_ints(ids, &count, IDS_MOST, special, "ids", 0, AH_TOKEN_IDS_MOST - 1));
    for (size_t i = 0; i < count; i++) {
        size_t length;
        int32_t id = (int32_t)ids[i];
        bool known = ah__token_map_text(&length, &recipe->subword->vocab, id) != NULL;
        for (size_t k = 0; k < recipe->added_count; k++)
            known = known || recipe->added[k].id == id;
        if (!known)
            return ah__fail(AH_EINPUT, "%s: key '%s.ids': found %d, expected ids of tokens", special->path,
                            special->where, id);
        AH_TRY(ah__ids_add(to, &id, 1));
    }
    return AH_OK;
}

/* Reads one piece of "single": a special token, by its name in `specials`, or the text. */
static int piece_read(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    static const char *const keys[] = {"SpecialToken", "Sequence", NULL};
    struct ah_subword *subword = recipe->subword;
    struct ah_json piece, special;
    const char *id;
    AH_TRY(ah__json_only(json, keys));
    if (ah__json_has(json, "SpecialToken")) {
        AH_TRY(ah__json_object(&piece, json, "SpecialToken"));
        AH_TRY(ah__json_string(&id, &piece, "id"));
        AH_TRY(ah__json_object(&special, recipe->specials, id));
        return ids_add(recipe, recipe->template_has_text ? &subword->behind : &subword->before, &special);
    }
    AH_TRY(ah__json_object(&piece, json, "Sequence"));
    AH_TRY(ah__json_string(&id, &piece, "id"));
    if (strcmp(id, "A") != 0 || recipe->template_has_text)
        return ah__fail(AH_EINPUT, "%s: key '%s.Sequence.id': found '%.40s'%s, expected 'A' once", json->path,
                        json->where, id, recipe->template_has_text ? " behind another" : "");
    recipe->template_has_text = true;
    return AH_OK;
}

static int template_processing(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    struct ah_json specials;
    if (recipe->template_has_text)
        return ah__fail(AH_EINPUT, "%s: key '%s': found a second template, expected one", json->path, json->where);
    AH_TRY(ah__json_object(&specials, json, "special_tokens"));
    recipe->specials = &specials;
    int status = ah__json_each(recipe, json, "single", piece_read);
    recipe->specials = NULL;
    AH_TRY(status);
    return recipe->template_has_text
               ? AH_OK
               : ah__fail(AH_EINPUT, "%s: key '%s.single': found no Sequence A, expected it", json->path, json->where);
}

/* Does nothing: a ByteLevel post-processor moves offsets, which this library does not return. */
static int template_byte_level(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    (void)recipe;
    (void)json;
    return AH_OK;
}

static int template_sequence(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    return ah__json_each(recipe, json, "processors", ah__template_read);
}

int ah__template_read(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    static const char *const sequence[] = {"type", "processors", NULL},
                             *const single[] = {"type", "single", "pair", "special_tokens", NULL},
                             *const byte_level[] = {"type", "add_prefix_space", "trim_offsets", "use_regex", NULL};
    static const struct ah_part_kind kinds[] = {{"Sequence", sequence, template_sequence},
                                                {"TemplateProcessing", single, template_processing},
                                                {"ByteLevel", byte_level, template_byte_level}};
    return ah__part_read(recipe, json, kinds, AH_LENGTH(kinds));
}
