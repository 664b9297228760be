#include "tokenizer/sentencepiece.h"

#include <float.h>
#include <string.h>

#include "base/alloc.h"
#include "tokenizer/sentencepiece_parts.h"
#include "tokenizer/utf8.h"

enum { TEXT_BYTES = 1 << 30 };

/* ---- making ------------------------------------------------------------------------------------------------------ */

static bool is_text(enum ah_token_type type)
{
    return type == AH_TOKEN_NORMAL || type == AH_TOKEN_USER || type == AH_TOKEN_UNUSED;
}

static int pairs_add(struct ah_sentencepiece *pieces, const struct ah_token_row *row)
{
    uint32_t before = 0;
    for (size_t at = 0, bytes; at < row->length; at += bytes) {
        bytes = ah__utf8_bytes(row->text[at]);
        uint32_t code = ah__utf8_code(row->text + at, bytes);
        if (at)
            AH_TRY(ah__char_pairs_add(&pieces->pairs, before, code));
        before = code;
    }
    return AH_OK;
}

static int row_add(struct ah_sentencepiece *pieces, const struct ah_token_row *row, int32_t id, const char *path)
{
    int byte = ah__sentencepiece_byte(row);
    pieces->scores[id] = row->score;
    pieces->types[id] = row->type;
    pieces->has_unused |= row->type == AH_TOKEN_UNUSED;
    if (byte >= 0)
        pieces->byte_ids[byte] = id;
    if (row->type == AH_TOKEN_NORMAL && row->score < pieces->lowest)
        pieces->lowest = row->score;
    if (!is_text(row->type))
        return AH_OK;
    if (ah__token_map_find(&pieces->map, row->text, row->length) >= 0)
        return ah__fail(AH_EINPUT, "%s: piece %d: found '%.*s' a second time, expected it once", path, id,
                        row->length < 40 ? (int)row->length : 40, row->text);
    if (pieces->unigram || row->type != AH_TOKEN_USER) /* BPE never joins user-defined pieces with their neighbours */
        AH_TRY(pairs_add(pieces, row));
    return ah__token_map_add(&pieces->map, id, row->text, row->length);
}

/* Fills the indexes. They point to the map's texts, so no text may be added after this. */
static int indexes_fill(struct ah_sentencepiece *pieces)
{
    for (int32_t id = 0; id < pieces->map.size; id++) {
        size_t length;
        const char *text = ah__token_map_text(&length, &pieces->map, id);
        if (!text)
            continue;
        if (pieces->unigram)
            AH_TRY(ah__piece_index_add(&pieces->index, text, length, id));
        if (pieces->types[id] == AH_TOKEN_USER)
            AH_TRY(ah__piece_index_add(&pieces->whole, text, length, id));
    }
    ah__piece_index_sort(&pieces->index);
    ah__piece_index_sort(&pieces->whole);
    return AH_OK;
}

static int pieces_init(struct ah_sentencepiece *pieces, const struct ah_sentencepiece_model *model, const char *path)
{
    pieces->unigram = model->unigram;
    pieces->byte_fallback = model->byte_fallback;
    pieces->unknown = model->unknown;
    pieces->lowest = FLT_MAX;
    AH_TRY(ah__new(&pieces->scores, model->count, sizeof *pieces->scores));
    AH_TRY(ah__new(&pieces->types, model->count, sizeof *pieces->types));
    AH_TRY(ah__new(&pieces->first_part, model->count, sizeof *pieces->first_part));
    for (size_t i = 0; i < model->count; i++)
        AH_TRY(row_add(pieces, &model->rows[i], (int32_t)i, path));
    AH_TRY(indexes_fill(pieces));
    return ah__sentencepiece_normalizer_init(&pieces->normalizer, model, &pieces->whole, path);
}

int ah__sentencepiece_new(struct ah_sentencepiece **out, const struct ah_sentencepiece_model *model, const char *path)
{
    struct ah_sentencepiece *pieces;
    AH_TRY(ah__new(&pieces, 1, sizeof *pieces));
    int status = pieces_init(pieces, model, path);
    if (status != AH_OK) {
        ah__sentencepiece_free(pieces);
        return status;
    }
    *out = pieces;
    return AH_OK;
}

void ah__sentencepiece_free(struct ah_sentencepiece *pieces)
{
    if (!pieces)
        return;
    ah__sentencepiece_normalizer_fini(&pieces->normalizer);
    ah__token_map_fini(&pieces->map);
    ah__piece_index_fini(&pieces->index);
    ah__piece_index_fini(&pieces->whole);
    ah__char_pairs_fini(&pieces->pairs);
    ah__free(pieces->scores);
    ah__free(pieces->types);
    ah__free(pieces->first_part);
    ah__free(pieces->symbols);
    ah__free(pieces->heap);
    ah__free(pieces->ways);
    ah__free(pieces);
}

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

static int section_encode(struct ah_sentencepiece *pieces, size_t start, size_t end)
{
    int status = pieces->unigram ? ah__pieces_best(pieces, start, end) : ah__pieces_merge(pieces);
    pieces->symbol_count = 0;
    return status;
}

static int symbol_add(struct ah_sentencepiece *pieces, const struct ah_piece_symbol *symbol)
{
    int32_t at = (int32_t)pieces->symbol_count;
    if (pieces->unigram)
        return AH_OK;
    AH_TRY(ah__grow(&pieces->symbols, &pieces->symbol_room, pieces->symbol_count + 1, sizeof *pieces->symbols));
    pieces->symbols[at] = *symbol;
    pieces->symbols[at].before = at - 1;
    pieces->symbols[at].next = -1;
    if (at)
        pieces->symbols[at - 1].next = at;
    pieces->symbol_count++;
    return AH_OK;
}

/* Encodes a text section by section. A section ends between two characters that are adjacent in no piece, and before
 * and after a user-defined piece, which joins nothing. */
static int sections_encode(struct ah_sentencepiece *pieces, size_t length)
{
    size_t start = 0;
    uint32_t before = 0;
    bool apart = false; /* the previous symbol joins nothing */
    for (size_t at = 0, bytes; at < length; at += bytes) {
        size_t whole = pieces->unigram ? 0 : ah__piece_longest(&pieces->whole, pieces->text + at, length - at);
        uint32_t code = ah__utf8_code(pieces->text + at, ah__utf8_bytes(pieces->text[at]));
        bytes = whole ? whole : ah__utf8_bytes(pieces->text[at]);
        bool joins = !apart && !whole && ah__char_pairs_has(&pieces->pairs, before, code);
        if (at > start && !joins && !(pieces->has_unused && !pieces->unigram)) {
            AH_TRY(section_encode(pieces, start, at));
            start = at;
        }
        const struct ah_piece_symbol symbol = {.at = (uint32_t)at, .length = (uint32_t)bytes, .whole = whole > 0};
        AH_TRY(symbol_add(pieces, &symbol));
        apart = whole > 0;
        before = code;
    }
    return start < length ? section_encode(pieces, start, length) : AH_OK;
}

int ah__sentencepiece_encode(struct ah_ids *to, struct ah_sentencepiece *pieces, const char *text, size_t length,
                             bool adds)
{
    struct ah_buf normal = {0};
    int status = length > TEXT_BYTES
                     ? ah__fail(AH_EINPUT, "found a text of %zu bytes, expected at most %d", length, TEXT_BYTES)
                     : ah__sentencepiece_normalize(&normal, &pieces->normalizer, text, length, adds);
    pieces->text = normal.text;
    pieces->to = to;
    pieces->after_unknown = false;
    pieces->till = 0;
    if (status == AH_OK && normal.length > TEXT_BYTES)
        status = ah__fail(AH_EINPUT, "found a text that is normalized to %zu bytes, expected at most %d", normal.length,
                          TEXT_BYTES);
    if (status == AH_OK)
        status = sections_encode(pieces, normal.length);
    ah__buf_free(&normal);
    return status;
}
