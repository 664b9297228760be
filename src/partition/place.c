#include <stdlib.h>

#include "partition/compile.h"

static int by_size(const void *a, const void *b)
{
    const struct ah_interval *x = *(struct ah_interval *const *)a, *y = *(struct ah_interval *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return (x > y) - (x < y);
}

static int by_offset(const void *a, const void *b)
{
    const struct ah_interval *x = *(struct ah_interval *const *)a, *y = *(struct ah_interval *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Returns the offset of the smallest gap between the neighbours (sorted by offset) that is large enough for `bytes`,
 * else the end of the last. */
static int64_t best_gap(struct ah_interval *const *neighbours, int count, int64_t bytes)
{
    int64_t end = 0, best = -1, best_gap_bytes = INT64_MAX;
    for (int i = 0; i < count; i++) {
        int64_t gap = neighbours[i]->offset - end, next = neighbours[i]->offset + neighbours[i]->bytes;
        if (gap >= bytes && gap < best_gap_bytes) {
            best = end;
            best_gap_bytes = gap;
        }
        end = next > end ? next : end;
    }
    return best >= 0 ? best : end;
}

static void place_one(struct ah_interval *const *placed, int count, struct ah_interval *next,
                      struct ah_interval **neighbours)
{
    int found = 0;
    for (int i = 0; i < count; i++)
        if (placed[i]->first <= next->last && next->first <= placed[i]->last)
            neighbours[found++] = placed[i];
    if (found > 1)
        qsort(neighbours, (size_t)found, sizeof *neighbours, by_offset);
    next->offset = best_gap(neighbours, found, next->bytes);
}

int ah__intervals_place(struct ah_interval *intervals, int count, int64_t *total)
{
    struct ah_interval **order;
    AH_TRY(ah__new(&order, 2 * (size_t)count, sizeof *order));
    *total = 0;
    for (int i = 0; i < count; i++)
        order[i] = &intervals[i];
    if (count > 1)
        qsort(order, (size_t)count, sizeof *order, by_size);
    for (int i = 0; i < count; i++) {
        place_one(order, i, order[i], order + count);
        int64_t end = order[i]->offset + order[i]->bytes;
        *total = end > *total ? end : *total;
    }
    ah__free(order);
    return AH_OK;
}
