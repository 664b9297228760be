/* Normal numbers for arrays: those of ah__random_normal, the same bits whatever computes them. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "dev/host/isa.h"
#include "dev/host/normal.h"

enum { COUNT = 300000 };

static void they_are_the_normal_numbers(void **state)
{
    float *values = malloc(COUNT * sizeof *values);
    double sum = 0, squares = 0;
    int differ = 0;
    assert_non_null(values);
    ah__normal_fill(values, COUNT, 7, 1000, 0.02);
    for (int i = 0; i < COUNT; i++) {
        double exact = ah__random_normal(7, (uint64_t)(1000 + i)) * 0.02;
        assert_true(fabs((double)values[i] - exact) <= 1e-7 * fabs(exact));
        differ += values[i] != (float)exact;
        sum += exact;
        squares += exact * exact;
    }
    assert_true(differ < 3); /* where a double beside a float's border fell on its other side */
    assert_true(fabs(sum / COUNT) < 1e-4 && fabs(sqrt(squares / COUNT) - 0.02) < 1e-4);
    free(values);
}

/* For every instruction set, and wherever the numbers are cut into pieces. */
static void the_bits_are_the_same_everywhere(void **state)
{
    static const char *const names[] = {"avx512", "avx2", "plain"};
    float *first = malloc(COUNT * sizeof *first), *other = malloc(COUNT * sizeof *other);
    assert_true(first && other);
    ah__normal_fill(first, COUNT, 3, 0, 1);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ah__host_isa_force(names[i]);
        memset(other, 0, COUNT * sizeof *other);
        for (int64_t at = 0, piece = 1; at < COUNT; at += piece, piece = 2 * piece + 1)
            ah__normal_fill(other + at, piece < COUNT - at ? piece : COUNT - at, 3, (uint64_t)at, 1);
        assert_memory_equal(first, other, COUNT * sizeof *first);
    }
    ah__host_isa_force(NULL);
    free(first);
    free(other);
}

AH_TEST_CASES("dev/host/normal", they_are_the_normal_numbers, the_bits_are_the_same_everywhere)
