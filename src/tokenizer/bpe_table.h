/* Tables of byte pair encoding: which two symbols merge, and which two characters are adjacent in a token. Takes
 * numbers, returns numbers. */
#ifndef AH_TOKENIZER_BPE_TABLE_H
#define AH_TOKENIZER_BPE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ah_bpe_merge {
    int32_t left, right, merged; /* ids */
};

struct ah_bpe_slot {
    uint64_t pair; /* left and right id; all ones: free slot */
    uint32_t rank; /* lower merges first */
    int32_t merged;
};
struct ah_bpe_table {
    struct ah_bpe_slot *slots; /* [mask + 1] */
    size_t mask;
    int shift; /* right shift of a hash that gives the slot */
};

/* Fills the table. A merge's rank is its position; of a pair that occurs twice the later counts. AH_ENOMEM. */
int ah__bpe_table_init(struct ah_bpe_table *table, const struct ah_bpe_merge *merges, size_t count);
void ah__bpe_table_fini(struct ah_bpe_table *table);

static inline size_t ah__bpe_table_slot(const struct ah_bpe_table *table, uint64_t pair)
{
    size_t slot = (size_t)(pair * UINT64_C(0x9e3779b97f4a7c15) >> table->shift);
    while (table->slots[slot].pair != pair && table->slots[slot].pair != UINT64_MAX)
        slot = (slot + 1) & table->mask;
    return slot;
}

/* Returns the merge of two ids, null: they do not merge. */
static inline const struct ah_bpe_slot *ah__bpe_table_find(const struct ah_bpe_table *table, int32_t left,
                                                           int32_t right)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    const struct ah_bpe_slot *slot = &table->slots[ah__bpe_table_slot(table, pair)];
    return slot->pair == pair ? slot : NULL;
}

/* A set of pairs of characters; zero-initialised it is empty. */
struct ah_char_pairs {
    uint64_t ascii[128][2]; /* bits by the second character */
    uint64_t *slots;        /* [slot_count], all ones: free slot */
    size_t slot_count, count;
};
int ah__char_pairs_add(struct ah_char_pairs *pairs, uint32_t left, uint32_t right);
bool ah__char_pairs_has(const struct ah_char_pairs *pairs, uint32_t left, uint32_t right);
void ah__char_pairs_fini(struct ah_char_pairs *pairs);

#endif
