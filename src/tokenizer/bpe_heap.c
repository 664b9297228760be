#include "tokenizer/bpe_heap.h"

#include "base/alloc.h"

struct ah_bpe_link {
    int32_t before, after; /* places of the adjacent symbols; -1: no symbol */
};

static void sift_up(uint64_t *entries, size_t at)
{
    uint64_t entry = entries[at];
    for (; at > 0 && entries[(at - 1) / 2] > entry; at = (at - 1) / 2)
        entries[at] = entries[(at - 1) / 2];
    entries[at] = entry;
}

static void sift_down(uint64_t *entries, size_t count, size_t at)
{
    uint64_t entry = entries[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && entries[child + 1] < entries[child];
        if (entries[child] >= entry)
            break;
        entries[at] = entries[child];
    }
    entries[at] = entry;
}

static uint64_t entry_pop(struct ah_bpe_heap *heap)
{
    uint64_t entry = heap->entries[0];
    heap->entries[0] = heap->entries[--heap->count];
    if (heap->count)
        sift_down(heap->entries, heap->count, 0);
    return entry;
}

/* Appends the entry of a pair if the pair can be merged. Does not order the heap. */
static void entry_add(struct ah_bpe_heap *heap, const struct ah_bpe_table *table, const int32_t *ids, int32_t left,
                      int32_t right)
{
    const struct ah_bpe_slot *slot = ah__bpe_table_find(table, ids[left], ids[right]);
    if (slot)
        heap->entries[heap->count++] = (uint64_t)slot->rank << 32 | (uint32_t)left;
}

static void entry_push(struct ah_bpe_heap *heap, const struct ah_bpe_table *table, const int32_t *ids, int32_t left,
                       int32_t right)
{
    size_t before = heap->count;
    entry_add(heap, table, ids, left, right);
    if (heap->count > before)
        sift_up(heap->entries, before);
}

/* Fills the heap with all pairs. There are never more entries than the pairs at first plus two for each merge, which
 * removes an entry. */
static int heap_fill(struct ah_bpe_heap *heap, const struct ah_bpe_table *table, const int32_t *ids, size_t count)
{
    AH_TRY(ah__grow(&heap->links, &heap->link_room, count, sizeof *heap->links));
    AH_TRY(ah__grow(&heap->entries, &heap->room, 2 * count, sizeof *heap->entries));
    heap->count = 0;
    for (size_t i = 0; i < count; i++)
        heap->links[i] = (struct ah_bpe_link){(int32_t)i - 1, i + 1 < count ? (int32_t)i + 1 : -1};
    for (size_t i = 0; i + 1 < count; i++)
        entry_add(heap, table, ids, (int32_t)i, (int32_t)i + 1);
    for (size_t i = heap->count / 2; i-- > 0;)
        sift_down(heap->entries, heap->count, i);
    return AH_OK;
}

/* Merges the pair of an entry if the pair is still there. A symbol that was merged into another has id -1. */
static void entry_merge(struct ah_bpe_heap *heap, const struct ah_bpe_table *table, int32_t *ids, uint64_t entry)
{
    int32_t at = (int32_t)(uint32_t)entry;
    struct ah_bpe_link *link = &heap->links[at];
    if (ids[at] < 0 || link->after < 0)
        return;
    const struct ah_bpe_slot *slot = ah__bpe_table_find(table, ids[at], ids[link->after]);
    if (!slot || slot->rank != entry >> 32)
        return;
    ids[at] = slot->merged;
    ids[link->after] = -1;
    link->after = heap->links[link->after].after;
    if (link->after >= 0) {
        heap->links[link->after].before = at;
        entry_push(heap, table, ids, at, link->after);
    }
    if (link->before >= 0)
        entry_push(heap, table, ids, link->before, at);
}

int ah__bpe_heap_merge(struct ah_bpe_heap *heap, const struct ah_bpe_table *table, int32_t *ids, size_t *count)
{
    size_t left = 0;
    AH_TRY(heap_fill(heap, table, ids, *count));
    while (heap->count)
        entry_merge(heap, table, ids, entry_pop(heap));
    for (size_t i = 0; i < *count; i++)
        if (ids[i] >= 0)
            ids[left++] = ids[i];
    *count = left;
    return AH_OK;
}

void ah__bpe_heap_fini(struct ah_bpe_heap *heap)
{
    ah__free(heap->links);
    ah__free(heap->entries);
}
