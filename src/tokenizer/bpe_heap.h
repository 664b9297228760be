/* Merges the symbols of a long word with a heap, in order of rank, then of place. Takes n log n steps for any word. */
#ifndef AH_TOKENIZER_BPE_HEAP_H
#define AH_TOKENIZER_BPE_HEAP_H

#include "tokenizer/bpe_table.h"

/* Scratch, kept for the next word; zero-initialised is fine. */
struct ah_bpe_heap {
    struct ah_bpe_link *links; /* neighbours of each symbol */
    size_t link_room;
    uint64_t *entries; /* rank and place of pairs that can be merged; some entries are outdated */
    size_t count, room;
};

/* Merges ids[*count] in place. *count is below 2^31. AH_ENOMEM. */
int ah__bpe_heap_merge(struct ah_bpe_heap *heap, const struct ah_bpe_table *table, int32_t *ids, size_t *count);
void ah__bpe_heap_fini(struct ah_bpe_heap *heap);

#endif
