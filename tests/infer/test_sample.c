#include "infer/sample.h"

#include <math.h>

#include "test.h"

enum { VOCAB = 5, DRAWS = 20000 };
/* Logs of 0.1, 0.4, 0, 0.4, 0.1. */
static const float logits[VOCAB] = {-2.30258509F, -0.916290732F, -INFINITY, -0.916290732F, -2.30258509F};

static void frequencies_of(double share[VOCAB], const struct ah_sampling *sampling, const int32_t *context,
                           int64_t count)
{
    struct ah_sampler sampler;
    assert_ok(ah__sampler_init(&sampler, VOCAB, sampling));
    for (int i = 0; i < VOCAB; i++)
        share[i] = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        int token;
        assert_ok(ah__sampler_draw(&token, &sampler, logits, context, count, i));
        share[token] += 1.0 / DRAWS;
    }
    ah__sampler_fini(&sampler);
}

static void frequencies(double share[VOCAB], double temperature, int top_k, uint64_t seed)
{
    const struct ah_sampling sampling = {.temperature = temperature, .top_k = top_k, .seed = seed};
    frequencies_of(share, &sampling, NULL, 0);
}

/* Five standard deviations of a share of 0.4 in 20000 draws are 0.0173. */
static void expect_shares(const double share[VOCAB], const double expected[VOCAB])
{
    for (int i = 0; i < VOCAB; i++)
        assert_true(fabs(share[i] - expected[i]) < 0.018);
}

static void draws_follow_the_distribution(void **state)
{
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
    double share[VOCAB];
    frequencies(share, 0, 0, 7);
    assert_true(share[1] > 0.999);
    frequencies(share, 1, 1, 7);
    assert_true(share[1] > 0.999);
    frequencies(share, 1e-3, 0, 7); /* a tie stays one; the rest vanishes */
    assert_true(share[0] == 0 && share[4] == 0 && share[3] > 0.4);
}

/* Of 0.1, 0.4, 0, 0.4, 0.1: which are left. */
static void the_likeliest_by_probability(void **state)
{
    static const struct {
        struct ah_sampling sampling;
        double expected[VOCAB];
    } rows[] = {
        {{.temperature = 1, .top_p = 0.3}, {0, 1, 0, 0, 0}},
        {{.temperature = 1, .top_p = 0.41}, {0, 0.5, 0, 0.5, 0}},
        {{.temperature = 1, .top_p = 0.85}, {1 / 9.0, 4 / 9.0, 0, 4 / 9.0, 0}},
        {{.temperature = 1, .top_p = 1e-9}, {0, 1, 0, 0, 0}},
        {{.temperature = 1, .top_k = 3, .top_p = 0.8}, {0, 0.5, 0, 0.5, 0}}, /* of 0.4 0.4 0.1 together */
        {{.temperature = 1, .min_p = 0.26}, {0, 0.5, 0, 0.5, 0}},
        {{.temperature = 1, .min_p = 0.24}, {0.1, 0.4, 0, 0.4, 0.1}},
        {{.temperature = 1, .min_p = 1}, {0, 0.5, 0, 0.5, 0}},
    };
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        double share[VOCAB];
        struct ah_sampling sampling = rows[i].sampling;
        sampling.seed = 7;
        frequencies_of(share, &sampling, NULL, 0);
        expect_shares(share, rows[i].expected);
        for (int token = 0; token < VOCAB; token++)
            assert_true((share[token] > 0) == (rows[i].expected[token] > 0));
    }
}

/* These logits are negative: twice as negative is the square of the probability, however often a token was said. */
static void what_was_said_is_less_likely(void **state)
{
    const struct ah_sampling sampling = {.temperature = 1, .repetition_penalty = 2, .seed = 7};
    const int32_t context[] = {1, 1, 1};
    double share[VOCAB], total = 0.1 + 0.16 + 0.4 + 0.1;
    frequencies_of(share, &sampling, context, 3);
    expect_shares(share, (const double[]){0.1 / total, 0.16 / total, 0, 0.4 / total, 0.1 / total});
    struct ah_sampler sampler;
    int token;
    assert_ok(ah__sampler_init(&sampler, 2, &(struct ah_sampling){.repetition_penalty = 2}));
    assert_ok(ah__sampler_draw(&token, &sampler, (const float[]){3, 2}, context, 0, 0));
    assert_int_equal(token, 0);
    assert_ok(ah__sampler_draw(&token, &sampler, (const float[]){3, 2}, (const int32_t[]){0}, 1, 0));
    assert_int_equal(token, 1);
    ah__sampler_fini(&sampler);
}

static void seeds_and_positions(void **state)
{
    struct ah_sampler a, b;
    assert_ok(ah__sampler_init(&a, VOCAB, &(struct ah_sampling){.temperature = 1, .seed = 1}));
    assert_ok(ah__sampler_init(&b, VOCAB, &(struct ah_sampling){.temperature = 1, .seed = 2}));
    int same = 0;
    for (uint64_t i = 0; i < 100; i++) {
        int first, again, other;
        assert_ok(ah__sampler_draw(&first, &a, logits, NULL, 0, i));
        assert_ok(ah__sampler_draw(&again, &a, logits, NULL, 0, i));
        assert_ok(ah__sampler_draw(&other, &b, logits, NULL, 0, i));
        assert_int_equal(first, again);
        same += first == other;
    }
    assert_in_range(same, 10, 60);
    ah__sampler_fini(&a);
    ah__sampler_fini(&b);
}

static void bad_values(void **state)
{
    struct ah_sampler sampler;
    static const struct {
        struct ah_sampling sampling;
        const char *words;
    } wrong[] = {
        {{.temperature = -1}, "temperature: found -1"},
        {{.temperature = NAN}, "temperature: found nan"},
        {{.top_k = -2}, "top_k: found -2"},
        {{.top_p = 1.5}, "top_p: found 1.5, expected 0 to 1"},
        {{.min_p = -1}, "min_p: found -1"},
        {{.repetition_penalty = -2}, "repetition_penalty: found -2"},
    };
    for (size_t i = 0; i < AH_LENGTH(wrong); i++)
        assert_fails(ah__sampler_init(&sampler, VOCAB, &wrong[i].sampling), AH_EINPUT, wrong[i].words);
    assert_ok(ah__sampler_init(&sampler, VOCAB, &(struct ah_sampling){.temperature = 1, .seed = 1}));
    int token = -1;
    const float nan[] = {0, 1, NAN, 0, 0};
    assert_fails(ah__sampler_draw(&token, &sampler, nan, NULL, 0, 0), AH_ENUMERIC, "token 2");
    const float none[] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY};
    assert_fails(ah__sampler_draw(&token, &sampler, none, NULL, 0, 0), AH_ENUMERIC, "all minus infinity");
    assert_int_equal(token, -1);
    ah__sampler_fini(&sampler);
}

AH_TEST_CASES("infer/sample", draws_follow_the_distribution, zero_temperature_is_the_likeliest,
              the_likeliest_by_probability, what_was_said_is_less_likely, seeds_and_positions, bad_values)
