#include "gguf/scores.h"

#include <string.h>

#include "base/alloc.h"
#include "tokenizer/sentencepiece_model.h"
#include "tokenizer/token_map.h"

/* State while the merges are read in order. */
struct scoring {
    struct ah_gguf_token *tokens;
    int32_t rows;
    const char *path;
    struct ah_token_map map; /* ids of pieces */
    int32_t last;            /* token of the last merge, -1: none yet */
    int64_t count;           /* number of merges of pieces */
    float score;
};

static bool is_piece(enum ah_token_type type)
{
    return type == AH_TOKEN_NORMAL || type == AH_TOKEN_USER || type == AH_TOKEN_UNUSED;
}

/* Splits a merge into halves: two texts, or one text with a space between them; false for another form. */
static bool merge_halves(struct ah_sentencepiece_text halves[2], const cJSON *merge)
{
    const cJSON *left = cJSON_IsArray(merge) ? merge->child : NULL, *right = left ? left->next : NULL;
    const char *both = cJSON_GetStringValue(merge), *space = both ? strchr(both, ' ') : NULL;
    if (space) {
        halves[0] = (struct ah_sentencepiece_text){both, (size_t)(space - both)};
        halves[1] = (struct ah_sentencepiece_text){space + 1, strlen(space + 1)};
    } else if (cJSON_IsString(left) && cJSON_IsString(right)) {
        halves[0] = (struct ah_sentencepiece_text){left->valuestring, strlen(left->valuestring)};
        halves[1] = (struct ah_sentencepiece_text){right->valuestring, strlen(right->valuestring)};
    }
    return space || (cJSON_IsString(left) && cJSON_IsString(right));
}

static int32_t piece_find(const struct scoring *s, const struct ah_sentencepiece_text *text)
{
    return ah__token_map_find(&s->map, text->text, text->length);
}

/* Scores the next merge. All merges that make a token must be consecutive, so that one score can order them. */
static int merge_score(struct scoring *s, const struct ah_sentencepiece_text halves[2])
{
    char joined[2 * AH_PIECE_BYTES];
    size_t length = halves[0].length + halves[1].length;
    if (length > sizeof joined)
        return ah__fail(AH_EINPUT, "%s: key 'model.merges': found a token of %zu bytes, expected at most %zu", s->path,
                        length, sizeof joined);
    memcpy(joined, halves[0].text, halves[0].length);
    memcpy(joined + halves[0].length, halves[1].text, halves[1].length);
    int32_t id = ah__token_map_find(&s->map, joined, length);
    if (id < 0 || piece_find(s, &halves[0]) < 0 || piece_find(s, &halves[1]) < 0)
        return AH_OK;
    s->count++;
    if (id == s->last)
        return AH_OK;
    if (s->tokens[id].score < 0)
        return ah__fail(AH_EINPUT,
                        "%s: key 'model.merges': found token '%.*s' made in two places, expected one: llama.cpp has a "
                        "score for each token",
                        s->path, (int)length, joined);
    s->last = id;
    s->tokens[id].score = s->score -= 1;
    return AH_OK;
}

static int pieces_map(struct scoring *s)
{
    for (int64_t i = 0; i < s->rows; i++)
        if (is_piece(s->tokens[i].type))
            AH_TRY(ah__token_map_add(&s->map, (int32_t)i, s->tokens[i].text, strlen(s->tokens[i].text)));
    return AH_OK;
}

static int merges_walk(struct scoring *s, const cJSON *merges)
{
    struct ah_sentencepiece_text halves[2];
    const cJSON *merge;
    AH_TRY(pieces_map(s));
    cJSON_ArrayForEach(merge, merges)
    {
        if (!merge_halves(halves, merge))
            return ah__fail(AH_EINPUT, "%s: key 'model.merges': found no pair of texts", s->path);
        AH_TRY(merge_score(s, halves));
    }
    return AH_OK;
}

/* Checks that the tokenizer has every merge that llama.cpp does: any two pieces that make a token. */
static int merges_compare(const struct scoring *s)
{
    struct ah_token_tables tables = {.path = s->path, .count = s->rows};
    struct ah_token_row *rows;
    int64_t expected = 0;
    AH_TRY(ah__new(&rows, (size_t)tables.count, sizeof *rows));
    for (int32_t i = 0; i < tables.count; i++)
        rows[i] = (struct ah_token_row){.text = s->tokens[i].text,
                                        .length = strlen(s->tokens[i].text),
                                        .score = s->tokens[i].score,
                                        .type = s->tokens[i].type};
    tables.rows = rows;
    int status = ah__token_tables_merges(&expected, &tables);
    ah__free(rows);
    if (status == AH_OK && s->count != expected)
        status = ah__fail(AH_EINPUT,
                          "%s: key 'model.merges': found %lld, expected %lld, all that make a token of two: llama.cpp "
                          "does those",
                          s->path, (long long)s->count, (long long)expected);
    return status;
}

int ah__gguf_scores_find(struct ah_gguf_token *tokens, int32_t rows, const cJSON *merges, const char *path)
{
    struct scoring scoring = {.tokens = tokens, .rows = rows, .path = path, .last = -1};
    int status = merges_walk(&scoring, merges);
    ah__token_map_fini(&scoring.map);
    return status == AH_OK ? merges_compare(&scoring) : status;
}
