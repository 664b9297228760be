/* An index of pieces of text by their beginning, to find the pieces at a place. Takes texts, returns ids. */
#ifndef AH_TOKENIZER_PIECE_INDEX_H
#define AH_TOKENIZER_PIECE_INDEX_H

#include "base/status.h"

struct ah_piece_entry {
    const char *text; /* not empty; must outlive the index */
    size_t length;
    int32_t id;
};

/* Zero-initialised it is empty. */
struct ah_piece_index {
    struct ah_piece_entry *entries; /* in the order of their bytes, once sorted */
    size_t count, room;
    size_t firsts[257]; /* first entry that begins with a byte, or a higher byte */
};

/* A place in a text, with the entries that match the bytes so far. Start with ah__piece_walk. */
struct ah_piece_walk {
    const struct ah_piece_index *index;
    size_t low, high, depth;
};

int ah__piece_index_add(struct ah_piece_index *index, const char *text, size_t length, int32_t id);
/* Sorts the index, after the last piece was added. Returns null, or the second of two equal pieces. */
const struct ah_piece_entry *ah__piece_index_sort(struct ah_piece_index *index);
void ah__piece_index_fini(struct ah_piece_index *index);

static inline struct ah_piece_walk ah__piece_walk(const struct ah_piece_index *index)
{
    return (struct ah_piece_walk){index, 0, index->count, 0};
}
/* Goes one byte further. Returns false if no piece matches. *id: the piece that ends here, or -1. */
bool ah__piece_step(int32_t *id, struct ah_piece_walk *walk, char byte);
/* Returns the bytes of the longest piece with which the text begins; 0: no piece. */
size_t ah__piece_longest(const struct ah_piece_index *index, const char *text, size_t length);

#endif
