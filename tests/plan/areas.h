/* Areas of memory that a layout places: apart from each other, and nothing between them. */
#ifndef AH_TESTS_PLAN_AREAS_H
#define AH_TESTS_PLAN_AREAS_H

#include "test.h"

#include <stdlib.h>

#include "plan/fixture.h"

enum { MOST_AREAS = 64 * (FIXTURE_LAYERS + 2) + 32 };

struct area {
    int64_t from, bytes;
};

struct areas {
    struct area area[MOST_AREAS];
    int count;
};

static inline void area_add(struct areas *areas, int64_t from, int64_t bytes)
{
    assert_true(areas->count < MOST_AREAS);
    assert_true(from >= 0);
    assert_int_equal(from % AH_LAYOUT_ALIGN, 0);
    if (bytes > 0)
        areas->area[areas->count++] = (struct area){from, bytes};
}

static inline int area_order(const void *a, const void *b)
{
    int64_t x = ((const struct area *)a)->from, y = ((const struct area *)b)->from;
    return (x > y) - (x < y);
}

/* No two share a byte, gaps are alignment only, and the last one ends the memory. */
static inline void areas_check(struct areas *areas, int64_t total, int64_t tail)
{
    int64_t end = 0;
    qsort(areas->area, (size_t)areas->count, sizeof areas->area[0], area_order);
    for (int i = 0; i < areas->count; i++) {
        assert_true(areas->area[i].from >= end);
        assert_true(areas->area[i].from - end < AH_LAYOUT_ALIGN);
        end = areas->area[i].from + areas->area[i].bytes;
    }
    assert_true(end <= total && total - end < tail);
}

#endif
