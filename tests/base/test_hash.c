#include "test.h"

#include <math.h>

#include "base/hash.h"

static void known_values(void **state)
{
    assert_true(ah__hash("", 0, 0) == 0x2d06800538d394c2u); /* XXH3's published value of the empty input */
    assert_true(ah__hash_text("abc", 0) == ah__hash("abc", 3, 0));
    assert_true(ah__hash_text("abc", 0) != ah__hash_text("abc", 1));
    assert_true(ah__hash_int(1, 0) == ah__hash("\1\0\0\0\0\0\0\0", 8, 0));
}

static void streams_differ_and_repeat(void **state)
{
    /* Plain splitmix64 would make position 1 of seed s equal to position 0 of seed s + golden. */
    assert_true(ah__random_bits(5, 1) != ah__random_bits(5 + 0x9e3779b97f4a7c15u, 0));
    assert_true(ah__random_bits(5, 1) == ah__random_bits(5, 1));
    assert_true(ah__random_bits(5, 1) != ah__random_bits(5, 2));
    assert_true(ah__random_bits(5, 1) != ah__random_bits(6, 1));
}

/* Mean and variance of 100000 draws; five standard errors. */
static void moments(void **state)
{
    enum { COUNT = 100000 };
    double uniform = 0, normal = 0, square = 0, fourth = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        double u = ah__random_uniform(1, i), z = ah__random_normal(2, i);
        assert_true(u >= 0 && u < 1);
        assert_true(isfinite(z));
        uniform += u / COUNT;
        normal += z / COUNT;
        square += z * z / COUNT;
        fourth += z * z * z * z / COUNT;
    }
    assert_true(fabs(uniform - 0.5) < 5 * sqrt(1.0 / 12 / COUNT));
    assert_true(fabs(normal) < 5 * sqrt(1.0 / COUNT));
    assert_true(fabs(square - 1) < 5 * sqrt(2.0 / COUNT));
    assert_true(fabs(fourth - 3) < 5 * sqrt(96.0 / COUNT));
}

AH_TEST_CASES("base/hash", known_values, streams_differ_and_repeat, moments)
