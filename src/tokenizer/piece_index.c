#include "tokenizer/piece_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

int ah__piece_index_add(struct ah_piece_index *index, const char *text, size_t length, int32_t id)
{
    AH_TRY(ah__grow(&index->entries, &index->room, index->count + 1, sizeof *index->entries));
    index->entries[index->count++] = (struct ah_piece_entry){text, length, id};
    return AH_OK;
}

static int compare(const void *a, const void *b)
{
    const struct ah_piece_entry *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->length < y->length ? x->length : y->length);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

const struct ah_piece_entry *ah__piece_index_sort(struct ah_piece_index *index)
{
    if (index->count)
        qsort(index->entries, index->count, sizeof *index->entries, compare);
    size_t at = 0;
    for (int byte = 0; byte <= 256; byte++) {
        while (at < index->count && (unsigned char)index->entries[at].text[0] < byte)
            at++;
        index->firsts[byte] = at;
    }
    for (size_t i = 1; i < index->count; i++)
        if (compare(&index->entries[i - 1], &index->entries[i]) == 0)
            return &index->entries[i];
    return NULL;
}

void ah__piece_index_fini(struct ah_piece_index *index)
{
    ah__free(index->entries);
}

/* Returns the first of the walk's entries whose next byte is `byte` or higher. */
static size_t bound(const struct ah_piece_walk *walk, int byte)
{
    const struct ah_piece_entry *entries = walk->index->entries;
    size_t low = walk->low, high = walk->high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        bool below = entries[middle].length <= walk->depth || (unsigned char)entries[middle].text[walk->depth] < byte;
        low = below ? middle + 1 : low;
        high = below ? high : middle;
    }
    return low;
}

bool ah__piece_step(int32_t *id, struct ah_piece_walk *walk, char byte)
{
    int value = (unsigned char)byte;
    size_t low = walk->depth ? bound(walk, value) : walk->index->firsts[value];
    size_t high = walk->depth ? bound(walk, value + 1) : walk->index->firsts[value + 1];
    walk->low = low;
    walk->high = high;
    walk->depth++;
    *id = low < high && walk->index->entries[low].length == walk->depth ? walk->index->entries[low].id : -1;
    return low < high;
}

size_t ah__piece_longest(const struct ah_piece_index *index, const char *text, size_t length)
{
    struct ah_piece_walk walk = ah__piece_walk(index);
    size_t longest = 0;
    int32_t id;
    for (size_t i = 0; i < length && ah__piece_step(&id, &walk, text[i]); i++)
        if (id >= 0)
            longest = i + 1;
    return longest;
}
