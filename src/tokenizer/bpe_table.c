#include "tokenizer/bpe_table.h"

#include <string.h>

#include "base/alloc.h"

enum { FIRST_SHIFT = 58 }; /* 64 slots */

int ah__bpe_table_init(struct ah_bpe_table *table, const struct ah_bpe_merge *merges, size_t count)
{
    int shift = FIRST_SHIFT;
    while (UINT64_C(1) << (64 - shift) < 2 * (uint64_t)count)
        shift--;
    size_t slots = (size_t)1 << (64 - shift);
    AH_TRY(ah__new(&table->slots, slots, sizeof *table->slots));
    table->shift = shift;
    table->mask = slots - 1;
    for (size_t i = 0; i < slots; i++)
        table->slots[i].pair = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        uint64_t pair = (uint64_t)(uint32_t)merges[i].left << 32 | (uint32_t)merges[i].right;
        table->slots[ah__bpe_table_slot(table, pair)] = (struct ah_bpe_slot){pair, (uint32_t)i, merges[i].merged};
    }
    return AH_OK;
}

void ah__bpe_table_fini(struct ah_bpe_table *table)
{
    ah__free(table->slots);
}

/* ---- pairs of characters ----------------------------------------------------------------------------------------- */

static uint64_t pair_of(uint32_t left, uint32_t right)
{
    return (uint64_t)left << 32 | right;
}

static size_t pair_slot(const struct ah_char_pairs *pairs, uint64_t pair)
{
    size_t mask = pairs->slot_count - 1, slot = (size_t)(pair * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
    while (pairs->slots[slot] != pair && pairs->slots[slot] != UINT64_MAX)
        slot = (slot + 1) & mask;
    return slot;
}

static int pairs_grow(struct ah_char_pairs *pairs)
{
    enum { FIRST_SLOTS = 64 };
    if (2 * (pairs->count + 1) <= pairs->slot_count)
        return AH_OK;
    size_t before_count = pairs->slot_count, count = before_count ? 2 * before_count : FIRST_SLOTS;
    uint64_t *slots, *before = pairs->slots;
    AH_TRY(ah__new(&slots, count, sizeof *slots));
    memset(slots, 0xff, count * sizeof *slots);
    pairs->slots = slots;
    pairs->slot_count = count;
    for (size_t i = 0; i < before_count; i++)
        if (before[i] != UINT64_MAX)
            slots[pair_slot(pairs, before[i])] = before[i];
    ah__free(before);
    return AH_OK;
}

int ah__char_pairs_add(struct ah_char_pairs *pairs, uint32_t left, uint32_t right)
{
    if (left < 128 && right < 128) {
        pairs->ascii[left][right / 64] |= UINT64_C(1) << right % 64;
        return AH_OK;
    }
    AH_TRY(pairs_grow(pairs));
    size_t slot = pair_slot(pairs, pair_of(left, right));
    pairs->count += pairs->slots[slot] == UINT64_MAX;
    pairs->slots[slot] = pair_of(left, right);
    return AH_OK;
}

bool ah__char_pairs_has(const struct ah_char_pairs *pairs, uint32_t left, uint32_t right)
{
    if (left < 128 && right < 128)
        return pairs->ascii[left][right / 64] >> right % 64 & 1;
    return pairs->slot_count && pairs->slots[pair_slot(pairs, pair_of(left, right))] != UINT64_MAX;
}

void ah__char_pairs_fini(struct ah_char_pairs *pairs)
{
    ah__free(pairs->slots);
}
