#include "train/sample.h"

#include <math.h>

#include "test.h"

enum { VOCAB = 5, DRAWS = 20000 };
/* Logs of 0.1, 0.4, 0, 0.4, 0.1. */
static const float logits[VOCAB] = {-2.30258509F, -0.916290732F, -INFINITY, -0.916290732F, -2.30258509F};

static void frequencies(double share[VOCAB], double temperature, int top_k, uint64_t seed)
{
    struct ah_sampler sampler;
    assert_ok(ah__sampler_init(&sampler, VOCAB, temperature, top_k, seed));
    for (int i = 0; i < VOCAB; i++)
        share[i] = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        int token;
        assert_ok(ah__sampler_draw(&token, &sampler, logits, i));
        share[token] += 1.0 / DRAWS;
    }
    ah__sampler_fini(&sampler);
}

/* Five standard deviations of a share of 0.4 in 20000 draws are 0.0173. */
static void expect_shares(const double share[VOCAB], const double expected[VOCAB])
{
    for (int i = 0; i < VOCAB; i++)
        assert_true(fabs(share[i] - expected[i]) < 0.018);
}

static void draws_follow_the_distribution(void **state)
{
    (void)state;
    double share[VOCAB];
    frequencies(share, 1, 0, 7);
    expect_shares(share, (const double[]){0.1, 0.4, 0, 0.4, 0.1});
    assert_true(share[2] == 0);
    frequencies(share, 0.5, 0, 7); /* squares: 1 16 0 16 1 of 34 */
    expect_shares(share, (const double[]){1 / 34.0, 16 / 34.0, 0, 16 / 34.0, 1 / 34.0});
    frequencies(share, 1, 3, 7); /* 1, 3, then 0 before 4 */
    expect_shares(share, (const double[]){1 / 9.0, 4 / 9.0, 0, 4 / 9.0, 0});
    assert_true(share[4] == 0);
}

static void zero_temperature_is_the_likeliest(void **state)
{
    (void)state;
    double share[VOCAB];
    frequencies(share, 0, 0, 7);
    assert_true(share[1] > 0.999);
    frequencies(share, 1, 1, 7);
    assert_true(share[1] > 0.999);
    frequencies(share, 1e-3, 0, 7); /* a tie stays one; the rest vanishes */
    assert_true(share[0] == 0 && share[4] == 0 && share[3] > 0.4);
}

static void seeds_and_positions(void **state)
{
    (void)state;
    struct ah_sampler a, b;
    assert_ok(ah__sampler_init(&a, VOCAB, 1, 0, 1));
    assert_ok(ah__sampler_init(&b, VOCAB, 1, 0, 2));
    int same = 0;
    for (uint64_t i = 0; i < 100; i++) {
        int first, again, other;
        assert_ok(ah__sampler_draw(&first, &a, logits, i));
        assert_ok(ah__sampler_draw(&again, &a, logits, i));
        assert_ok(ah__sampler_draw(&other, &b, logits, i));
        assert_int_equal(first, again);
        same += first == other;
    }
    assert_in_range(same, 10, 60);
    ah__sampler_fini(&a);
    ah__sampler_fini(&b);
}

static void bad_values(void **state)
{
    (void)state;
    struct ah_sampler sampler;
    assert_fails(ah__sampler_init(&sampler, VOCAB, -1, 0, 1), AH_EINPUT, "temperature: found -1");
    assert_fails(ah__sampler_init(&sampler, VOCAB, NAN, 0, 1), AH_EINPUT, "temperature: found nan");
    assert_fails(ah__sampler_init(&sampler, VOCAB, 1, -2, 1), AH_EINPUT, "top_k: found -2");
    assert_ok(ah__sampler_init(&sampler, VOCAB, 1, 0, 1));
    int token = -1;
    assert_fails(ah__sampler_draw(&token, &sampler, (const float[]){0, 1, NAN, 0, 0}, 0), AH_ENUMERIC, "token 2");
    const float none[] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY};
    assert_fails(ah__sampler_draw(&token, &sampler, none, 0),
                 AH_ENUMERIC, "all minus infinity");
    assert_int_equal(token, -1);
    ah__sampler_fini(&sampler);
}

AH_TEST_SUITE("train/sample", cmocka_unit_test(draws_follow_the_distribution),
              cmocka_unit_test(zero_temperature_is_the_likeliest), cmocka_unit_test(seeds_and_positions),
              cmocka_unit_test(bad_values))
