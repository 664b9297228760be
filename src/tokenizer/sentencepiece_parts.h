/* Declarations that the two ways of cutting share. sentencepiece.c owns the struct, splits a text where no piece
 * reaches across, and calls one of the two for each section. */
#ifndef AH_TOKENIZER_SENTENCEPIECE_PARTS_H
#define AH_TOKENIZER_SENTENCEPIECE_PARTS_H

#include "tokenizer/bpe.h"
#include "tokenizer/sentencepiece_normal.h"

/* A character of a section, or a user-defined piece. */
struct ah_piece_symbol {
    uint32_t at, length;  /* place and bytes in the normalized text; length 0: joined to the symbol before */
    int32_t before, next; /* adjacent symbols, -1: none */
    bool whole;           /* a user-defined piece, which joins no other */
};

/* Two adjacent symbols that make a piece. */
struct ah_piece_pair {
    float score;
    int32_t left, right; /* indices of symbols */
    uint32_t length;     /* bytes of both, to notice that one has changed */
};

/* The best way to cut a text up to a place. */
struct ah_piece_way {
    float score;
    int32_t id;     /* id of its last piece */
    uint32_t start; /* start of that piece; UINT32_MAX: no way is known */
};

struct ah_sentencepiece {
    struct ah_sentencepiece_normalizer normalizer;
    struct ah_token_map map;     /* pieces that are text: normal, user-defined and unused */
    struct ah_piece_index index; /* the same pieces; empty for BPE */
    struct ah_piece_index whole; /* user-defined pieces */
    struct ah_char_pairs pairs;  /* adjacent characters in pieces */
    float *scores;               /* [count], by id */
    enum ah_token_type *types;
    int32_t unknown, byte_ids[256];
    float lowest; /* lowest score of a normal piece */
    bool unigram, byte_fallback;
    bool has_unused;      /* there are unused pieces, which are split again */
    uint32_t *first_part; /* BPE, [count]: bytes of the left half of an unused piece when it was last joined */
    /* while a text is encoded */
    const char *text; /* normalized */
    struct ah_ids *to;
    bool after_unknown;
    float till; /* unigram: the score of the text before the section */
    struct ah_piece_symbol *symbols;
    size_t symbol_count, symbol_room;
    struct ah_piece_pair *heap;
    size_t heap_count, heap_room;
    struct ah_piece_way *ways;
    size_t way_room;
};

/* Appends a piece: its id, or the ids of its bytes. Unknown pieces in a row are appended once. */
static inline int ah__pieces_emit(struct ah_sentencepiece *pieces, int32_t id, size_t at, size_t length)
{
    bool unknown = id == pieces->unknown, again = unknown && pieces->after_unknown;
    pieces->after_unknown = unknown;
    if (!unknown || !pieces->byte_fallback)
        return again ? AH_OK : ah__ids_add(pieces->to, &id, 1);
    for (size_t i = at; i < at + length; i++)
        AH_TRY(ah__ids_add(pieces->to, &pieces->byte_ids[(unsigned char)pieces->text[i]], 1));
    return AH_OK;
}
/* Encode a section: ah__pieces_merge its symbols (sentencepiece_bpe.c), ah__pieces_best the bytes [start, end)
 * (sentencepiece_unigram.c). */
int ah__pieces_merge(struct ah_sentencepiece *pieces);
int ah__pieces_best(struct ah_sentencepiece *pieces, size_t start, size_t end);

#endif
