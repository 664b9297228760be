/* Encodes one section by SentencePiece's BPE. */
#include "base/alloc.h"
#include "tokenizer/sentencepiece_parts.h"

/* ---- pairs, the best one on top ---------------------------------------------------------------------------------- */

static bool better(const struct ah_piece_pair *a, const struct ah_piece_pair *b)
{
    return a->score > b->score || (!(a->score < b->score) && a->left < b->left);
}

static int heap_push(struct ah_sentencepiece *pieces, struct ah_piece_pair pair)
{
    AH_TRY(ah__grow(&pieces->heap, &pieces->heap_room, pieces->heap_count + 1, sizeof *pieces->heap));
    struct ah_piece_pair *heap = pieces->heap;
    size_t at = pieces->heap_count++;
    for (; at > 0 && better(&pair, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = pair;
    return AH_OK;
}

static struct ah_piece_pair heap_pop(struct ah_sentencepiece *pieces)
{
    struct ah_piece_pair *heap = pieces->heap, top = heap[0], last = heap[--pieces->heap_count];
    size_t at = 0;
    for (size_t child = 1; child < pieces->heap_count; child = 2 * at + 1) {
        child += child + 1 < pieces->heap_count && better(&heap[child + 1], &heap[child]);
        if (!better(&heap[child], &last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

static int pair_try(struct ah_sentencepiece *pieces, int32_t left, int32_t right)
{
    const struct ah_piece_symbol *symbols = pieces->symbols;
    if (left < 0 || right < 0 || symbols[left].whole || symbols[right].whole)
        return AH_OK;
    uint32_t length = symbols[left].length + symbols[right].length;
    int32_t id = ah__token_map_find(&pieces->map, pieces->text + symbols[left].at, length);
    if (id < 0)
        return AH_OK;
    if (pieces->types[id] == AH_TOKEN_UNUSED)
        pieces->first_part[id] = symbols[left].length;
    return heap_push(pieces, (struct ah_piece_pair){pieces->scores[id], left, right, length});
}

static int pair_join(struct ah_sentencepiece *pieces, const struct ah_piece_pair *pair)
{
    struct ah_piece_symbol *left = &pieces->symbols[pair->left], *right = &pieces->symbols[pair->right];
    if (!left->length || !right->length || left->length + right->length != pair->length)
        return AH_OK; /* one of the symbols has joined another meanwhile */
    left->length = pair->length;
    left->next = right->next;
    if (right->next >= 0)
        pieces->symbols[right->next].before = pair->left;
    right->length = 0;
    AH_TRY(pair_try(pieces, left->before, pair->left));
    return pair_try(pieces, pair->left, left->next);
}

/* Appends a symbol's ids. An unused piece is split into the two pieces that it was joined from, which may be unused,
 * too. */
static int symbol_emit(struct ah_sentencepiece *pieces, size_t at, size_t length)
{
    size_t ends[AH_PIECE_BYTES], depth = 0;
    ends[depth++] = at + length;
    while (depth) {
        size_t part = ends[depth - 1] - at;
        int32_t id = ah__token_map_find(&pieces->map, pieces->text + at, part);
        uint32_t first = id >= 0 && pieces->types[id] == AH_TOKEN_UNUSED ? pieces->first_part[id] : 0;
        if (first && first < part && depth < AH_PIECE_BYTES) {
            ends[depth++] = at + first;
            continue;
        }
        AH_TRY(ah__pieces_emit(pieces, id < 0 ? pieces->unknown : id, at, part));
        at = ends[--depth];
    }
    return AH_OK;
}

int ah__pieces_merge(struct ah_sentencepiece *pieces)
{
    pieces->heap_count = 0;
    for (size_t i = 1; i < pieces->symbol_count; i++)
        AH_TRY(pair_try(pieces, (int32_t)i - 1, (int32_t)i));
    while (pieces->heap_count) {
        struct ah_piece_pair pair = heap_pop(pieces);
        AH_TRY(pair_join(pieces, &pair));
    }
    for (int32_t i = 0; i >= 0 && pieces->symbol_count; i = pieces->symbols[i].next)
        AH_TRY(symbol_emit(pieces, pieces->symbols[i].at, pieces->symbols[i].length));
    return AH_OK;
}
