/* Merging the symbols of a long word: in order of rank, then of place, by a heap; n log n whatever the word is. */
#ifndef AH_TOKENIZER_BPE_HEAP_H
#define AH_TOKENIZER_BPE_HEAP_H

#include "tokenizer/bpe_table.h"

/* Scratch that is kept for the next word; zero-initialised is fine. */
struct ah_bpe_heap {
    struct ah_bpe_link *links; /* which symbols stand beside which */
    size_t link_room;
    uint64_t *entries; /* rank and place of pairs that may merge; some no longer do */
    size_t count, room;
};

/* Merges ids[*count] in place. *count is below 2^31. AH_ENOMEM. */
int ah__bpe_heap_merge(struct ah_bpe_heap *heap, const struct ah_bpe_table *table, int32_t *ids, size_t *count);
void ah__bpe_heap_fini(struct ah_bpe_heap *heap);

#endif
