/* Pieces of text by what they begin with: which of them stand at a place. Takes texts, gives ids. */
#ifndef AH_TOKENIZER_PIECE_INDEX_H
#define AH_TOKENIZER_PIECE_INDEX_H

#include "base/status.h"

struct ah_piece_entry {
    const char *text; /* not empty; outlives the index */
    size_t length;
    int32_t id;
};

/* Zero-initialised is empty. */
struct ah_piece_index {
    struct ah_piece_entry *entries; /* in order of their bytes, once sorted */
    size_t count, room;
    size_t firsts[257]; /* where entries begin with a byte, or a higher one */
};

/* A place in a text: entries that have the bytes so far. Start with ah__piece_walk. */
struct ah_piece_walk {
    const struct ah_piece_index *index;
    size_t low, high, depth;
};

int ah__piece_index_add(struct ah_piece_index *index, const char *text, size_t length, int32_t id);
/* After the last one was added. Null, or the second of two that are the same. */
const struct ah_piece_entry *ah__piece_index_sort(struct ah_piece_index *index);
void ah__piece_index_fini(struct ah_piece_index *index);

static inline struct ah_piece_walk ah__piece_walk(const struct ah_piece_index *index)
{
    return (struct ah_piece_walk){index, 0, index->count, 0};
}
/* One byte further: false when no piece has it. *id: the piece that ends there, or -1. */
bool ah__piece_step(int32_t *id, struct ah_piece_walk *walk, char byte);
/* Bytes of the longest piece that the text begins with; 0: none. */
size_t ah__piece_longest(const struct ah_piece_index *index, const char *text, size_t length);

#endif
