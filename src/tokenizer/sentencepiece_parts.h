/* What the two ways of cutting share: sentencepiece.c makes it, splits texts where no piece reaches across, and asks
 * one of them for each section. */
#ifndef AH_TOKENIZER_SENTENCEPIECE_PARTS_H
#define AH_TOKENIZER_SENTENCEPIECE_PARTS_H

#include "tokenizer/bpe.h"
#include "tokenizer/sentencepiece_normal.h"

/* A character of a section, or a piece that is one wherever it stands. */
struct ah_piece_symbol {
    uint32_t at, length;  /* in the normalized text; length 0: joined to the one before */
    int32_t before, next; /* those beside it, -1: none */
    bool whole;           /* joins no other */
};

/* Two neighbours that make a piece. */
struct ah_piece_pair {
    float score;
    int32_t left, right; /* symbols */
    uint32_t length;     /* of both, to see that neither changed */
};

/* The best way to a place of the text. */
struct ah_piece_way {
    float score;
    int32_t id;     /* of its last piece */
    uint32_t start; /* where that one begins; UINT32_MAX: no way is known */
};

struct ah_sentencepiece {
    struct ah_sentencepiece_normalizer normalizer;
    struct ah_token_map map;     /* pieces that are text: normal, user-defined and unused ones */
    struct ah_piece_index index; /* the same; with BPE none */
    struct ah_piece_index whole; /* user-defined pieces */
    struct ah_char_pairs pairs;  /* characters side by side in a piece */
    float *scores;               /* [count] by id */
    enum ah_token_type *types;
    int32_t unknown, byte_ids[256];
    float lowest; /* score of a normal piece */
    bool unigram, byte_fallback;
    bool has_unused;      /* pieces that are taken apart again */
    uint32_t *first_part; /* BPE, [count]: bytes of the left half of an unused piece when it was last put together */
    /* while a text is encoded */
    const char *text; /* normalized */
    struct ah_ids *to;
    bool after_unknown;
    float till; /* unigram: the score up to the section */
    struct ah_piece_symbol *symbols;
    size_t symbol_count, symbol_room;
    struct ah_piece_pair *heap;
    size_t heap_count, heap_room;
    struct ah_piece_way *ways;
    size_t way_room;
};

/* Appends a piece: its id, its bytes' ids, or, of unknown pieces in a row, one. */
int ah__pieces_emit(struct ah_sentencepiece *pieces, int32_t id, size_t at, size_t length);
/* Of the section's symbols (sentencepiece_bpe.c), of its bytes (sentencepiece_unigram.c). */
int ah__pieces_merge(struct ah_sentencepiece *pieces);
int ah__pieces_best(struct ah_sentencepiece *pieces, size_t start, size_t end);

#endif
