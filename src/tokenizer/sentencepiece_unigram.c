/* Encodes one section by SentencePiece's unigrams: the pieces with the highest sum of scores, by Viterbi's algorithm
 * over the bytes. Sums are floats from the text's beginning on, as in the sentencepiece library, so that ties end
 * alike. */
#include "base/alloc.h"
#include "tokenizer/sentencepiece_parts.h"
#include "tokenizer/utf8.h"

static void way_try(struct ah_piece_way *way, float score, int32_t id, size_t start)
{
    if (way->start == UINT32_MAX || score > way->score)
        *way = (struct ah_piece_way){score, id, (uint32_t)start};
}

/* Returns the score of a piece. A user-defined piece has no penalty, so that it is always taken, the longest first. */
static float score_of(const struct ah_sentencepiece *pieces, int32_t id, size_t length)
{
    return pieces->types[id] == AH_TOKEN_USER ? (float)(0.1 * (double)(length - 1)) : pieces->scores[id];
}

/* Returns the sum up to `at`. In long texts it starts again at zero, since small scores would vanish in a large sum. */
static float sum_till(struct ah_sentencepiece *pieces, size_t at, size_t length)
{
    static const float most = 100000;
    float till = at ? pieces->ways[at].score : pieces->till;
    if (till >= -most && till <= most)
        return till;
    for (size_t i = at; i <= length && i - at <= AH_PIECE_BYTES; i++) /* no way ends beyond this yet */
        pieces->ways[i].score -= till;
    return 0;
}

/* Tries the pieces that begin at a character, and an unknown piece if the character alone is no piece. */
static void ways_from(struct ah_sentencepiece *pieces, size_t start, size_t at, size_t end)
{
    enum { UNKNOWN_PENALTY = 10 };
    const char *text = pieces->text;
    struct ah_piece_way *ways = pieces->ways;
    struct ah_piece_walk walk = ah__piece_walk(&pieces->index);
    float till = sum_till(pieces, at - start, end - start);
    size_t character = ah__utf8_bytes(text[at]);
    bool alone = false;
    int32_t id;
    for (size_t i = at; i < end && ah__piece_step(&id, &walk, text[i]); i++) {
        if (id < 0 || pieces->types[id] == AH_TOKEN_UNUSED)
            continue;
        way_try(&ways[i + 1 - start], score_of(pieces, id, i + 1 - at) + till, id, at - start);
        alone |= i + 1 - at == character;
    }
    if (!alone)
        way_try(&ways[at + character - start], pieces->lowest - UNKNOWN_PENALTY + till, pieces->unknown, at - start);
}

/* Appends the ids of the best way. The ways lead backwards; this turns them around, so that each start holds the end of
 * its piece. */
static int ways_emit(struct ah_sentencepiece *pieces, size_t start, size_t length)
{
    struct ah_piece_way *ways = pieces->ways;
    for (size_t end = length, behind = length; end > 0;) {
        size_t begin = ways[end].start;
        ways[end].start = (uint32_t)behind; /* end of the next piece */
        behind = end;
        end = begin;
        if (end == 0)
            ways[0].start = (uint32_t)behind;
    }
    for (size_t at = 0; at < length;) {
        size_t end = ways[at].start;
        AH_TRY(ah__pieces_emit(pieces, ways[end].id, start + at, end - at));
        at = end;
    }
    return AH_OK;
}

int ah__pieces_best(struct ah_sentencepiece *pieces, size_t start, size_t end)
{
    size_t length = end - start;
    AH_TRY(ah__grow(&pieces->ways, &pieces->way_room, length + 1, sizeof *pieces->ways));
    for (size_t i = 0; i <= length; i++)
        pieces->ways[i].start = UINT32_MAX;
    for (size_t at = start; at < end; at += ah__utf8_bytes(pieces->text[at]))
        ways_from(pieces, start, at, end);
    pieces->till = pieces->ways[length].score;
    return ways_emit(pieces, start, length);
}
