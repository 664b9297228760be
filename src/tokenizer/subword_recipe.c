/* Readers add the parts of a tokenizer to its recipe. */
#include <string.h>

#include "tokenizer/subword.h"

int ah__subword_add_merge(struct ah_subword_recipe *recipe, const char *left, size_t left_length, const char *right,
                          size_t right_length, const char *where)
{
    const struct ah_token_map *vocab = &recipe->subword->vocab;
    struct ah_bpe_merge merge = {ah__token_map_find(vocab, left, left_length),
                                 ah__token_map_find(vocab, right, right_length), -1};
    struct ah_buf text = {0};
    ah__buf_add(&text, left, left_length);
    ah__buf_add(&text, right, right_length);
    int status = text.status;
    if (status == AH_OK)
        merge.merged = ah__token_map_find(vocab, text.text, text.length);
    if (status == AH_OK && (merge.left < 0 || merge.right < 0 || merge.merged < 0))
        status = ah__fail(AH_EINPUT,
                          "%s: %s: found '%.*s' and '%.40s', expected both and what they make together in "
                          "the vocabulary",
                          recipe->path, where, left_length < 40 ? (int)left_length : 40, left, right);
    ah__buf_free(&text);
    AH_TRY(status);
    AH_TRY(ah__grow(&recipe->merges, &recipe->merge_room, recipe->merge_count + 1, sizeof *recipe->merges));
    recipe->merges[recipe->merge_count++] = merge;
    return AH_OK;
}

int ah__subword_read_vocab(struct ah_subword_recipe *recipe, const struct ah_json *vocab)
{
    struct ah_token_map *map = &recipe->subword->vocab;
    for (const cJSON *child = vocab->node->child; child; child = child->next) {
        double value = cJSON_IsNumber(child) ? child->valuedouble : -1;
        if (!(value >= 0 && value < AH_TOKEN_IDS_MOST) || value != (double)(int32_t)value)
            return ah__fail(AH_EINPUT, "%s: the vocabulary's '%.40s': found no id from 0 to %d", recipe->path,
                            child->string, AH_TOKEN_IDS_MOST - 1);
        size_t length;
        const char *before = ah__token_map_text(&length, map, (int32_t)value);
        if (before)
            return ah__fail(AH_EINPUT, "%s: found id %d for '%.40s' and '%.40s', expected one token of an id",
                            recipe->path, (int)value, before, child->string);
        AH_TRY(ah__token_map_add(map, (int32_t)value, child->string, strlen(child->string)));
    }
    return AH_OK;
}

int ah__subword_add_token(struct ah_subword_recipe *recipe, struct ah_added_token token, const char *where)
{
    size_t length = strlen(token.content), other_length;
    const struct ah_token_map *vocab = &recipe->subword->vocab;
    int32_t known = ah__token_map_find(vocab, token.content, length);
    const char *other = ah__token_map_text(&other_length, vocab, token.id);
    if (known >= 0 ? known != token.id : other != NULL)
        return ah__fail(AH_EINPUT, "%s: %s: found '%.40s' with id %d, expected %s%.40s%s", recipe->path, where,
                        token.content, token.id, known >= 0 ? "the vocabulary's id" : "'", known >= 0 ? "" : other,
                        known >= 0 ? "" : "', the vocabulary's");
    if (length == 0 || ah__token_map_find(&recipe->added_map, token.content, length) >= 0)
        return AH_OK;
    other = ah__token_map_text(&other_length, &recipe->added_map, token.id);
    if (other)
        return ah__fail(AH_EINPUT, "%s: %s: found id %d for '%.40s' and '%.40s', expected one token of an id",
                        recipe->path, where, token.id, other, token.content);
    AH_TRY(ah__token_map_add(&recipe->added_map, token.id, token.content, length));
    AH_TRY(ah__arena_strdup(&recipe->subword->arena, &token.content, token.content));
    AH_TRY(ah__grow(&recipe->added, &recipe->added_room, recipe->added_count + 1, sizeof *recipe->added));
    recipe->added[recipe->added_count++] = token;
    return AH_OK;
}

int ah__subword_add_step(struct ah_subword_recipe *recipe, const struct ah_pre_step *step, const char *where)
{
    struct ah_pretokenizer *pre = &recipe->subword->pre;
    if (recipe->byte_level)
        return ah__fail(AH_EINPUT, "%s: %s: found it behind ByteLevel, expected ByteLevel last", recipe->path, where);
    if (pre->count == AH_PRE_STEPS)
        return ah__fail(AH_EINPUT, "%s: %s: found more than %d steps, expected fewer", recipe->path, where,
                        AH_PRE_STEPS);
    pre->steps[pre->count++] = *step;
    return AH_OK;
}

int ah__subword_add_split(struct ah_subword_recipe *recipe, const char *pattern, bool literal,
                          enum ah_split_behavior behavior, bool invert, const char *where)
{
    struct ah_pre_step step = {.kind = AH_PRE_SPLIT, .behavior = behavior, .invert = invert};
    int status = ah__regex_new(&step.regex, pattern, literal);
    if (status != AH_OK)
        return ah__fail_prefix(status, "%s: %s", recipe->path, where);
    status = ah__subword_add_step(recipe, &step, where);
    if (status != AH_OK)
        ah__regex_free(step.regex);
    return status;
}

int ah__subword_add_byte_level(struct ah_subword_recipe *recipe, bool prefix_space, bool splits, const char *where)
{
    static const char words[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    if (recipe->byte_level)
        return ah__fail(AH_EINPUT, "%s: %s: found ByteLevel twice, expected it once", recipe->path, where);
    if (prefix_space)
        AH_TRY(ah__subword_add_step(recipe, &(struct ah_pre_step){.kind = AH_PRE_SPACE}, where));
    if (splits)
        AH_TRY(ah__subword_add_split(recipe, words, false, AH_SPLIT_ISOLATED, false, where));
    recipe->byte_level = true;
    return AH_OK;
}

int ah__subword_add_normal(struct ah_subword_recipe *recipe, enum ah_normal_kind kind, const char *from, const char *to,
                           const char *where)
{
    struct ah_normalizer *normalizer = &recipe->subword->normalizer;
    struct ah_normal_step step = {.kind = kind};
    if (normalizer->count == AH_NORMAL_STEPS)
        return ah__fail(AH_EINPUT, "%s: %s: found more than %d steps, expected fewer", recipe->path, where,
                        AH_NORMAL_STEPS);
    if (from)
        AH_TRY(ah__arena_strdup(&recipe->subword->arena, &step.from, from));
    if (to)
        AH_TRY(ah__arena_strdup(&recipe->subword->arena, &step.to, to));
    normalizer->steps[normalizer->count++] = step;
    return AH_OK;
}
