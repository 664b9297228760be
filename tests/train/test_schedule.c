/* The learning rate against values computed apart from this code, and Adam's constants against 60-digit arithmetic. */
#include "train/schedule.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

static const struct ah_schedule base = {.lr = 3e-4, .min_lr_ratio = 0.1, .warmup_steps = 10, .steps = 200};

/* Python, float64; cos() may differ in its last bit between C libraries, hence a few units of rounding. */
static void golden_rates(void **state)
{
    static const struct {
        int64_t step;
        double cosine, linear;
    } rows[] = {
        {1, 3e-5, 3e-5},
        {5, 1.5e-4, 1.5e-4},
        {10, 3e-4, 3e-4},
        {11, 0.00029998154617398326, 0.00029857894736842104},
        {60, 0.00025643301216947504, 0.00022894736842105263},
        {105, 0.000165, 0.000165},
        {199, 3.0018453826016683e-05, 3.1421052631578955e-05},
        {200, 3e-5, 3e-5},
        {250, 3e-5, 3e-5},
    };
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        struct ah_schedule cosine = base, linear = base, constant = base;
        cosine.decay = AH_DECAY_COSINE;
        linear.decay = AH_DECAY_LINEAR;
        constant.decay = AH_DECAY_CONSTANT;
        assert_true(fabs(ah__schedule_lr(&cosine, rows[i].step) - rows[i].cosine) <= 4 * DBL_EPSILON * rows[i].cosine);
        assert_true(fabs(ah__schedule_lr(&linear, rows[i].step) - rows[i].linear) <= 4 * DBL_EPSILON * rows[i].linear);
        double flat = rows[i].step < 10 ? rows[i].cosine : 3e-4;
        assert_true(fabs(ah__schedule_lr(&constant, rows[i].step) - flat) <= 4 * DBL_EPSILON * flat);
    }
}

static void ends_are_exact(void **state)
{
    for (int decay = 0; decay < AH_DECAY_COUNT; decay++)
        for (int64_t warmup = 0; warmup < 30; warmup++) {
            struct ah_schedule s = {(enum ah_decay)decay, 0.1 + 1e-3 * (double)warmup, 0.3, warmup, 50};
            if (warmup)
                assert_true(ah__schedule_lr(&s, warmup) == s.lr);
            double last = decay == AH_DECAY_CONSTANT ? s.lr : s.lr * 0.3;
            assert_true(ah__schedule_lr(&s, 50) == last);
            assert_true(ah__schedule_lr(&s, 51) == last);
            for (int64_t step = warmup + 1; step <= 50; step++)
                assert_true(ah__schedule_lr(&s, step) <= s.lr && ah__schedule_lr(&s, step) >= s.lr * 0.3);
        }
}

static void warmup_may_outlast_training(void **state)
{
    struct ah_schedule s = {AH_DECAY_COSINE, 1.0, 0.1, 100, 10};
    assert_true(ah__schedule_lr(&s, 10) == 0.1);
    assert_true(ah__schedule_lr(&s, 101) == 0.1);
}

static void names(void **state)
{
    enum ah_decay decay = AH_DECAY_COUNT;
    assert_ok(ah__decay_find(&decay, "linear"));
    assert_int_equal(decay, AH_DECAY_LINEAR);
    assert_fails(ah__decay_find(&decay, "cos"), AH_EINPUT, "found \"cos\", expected cosine, linear or constant");
    assert_int_equal(decay, AH_DECAY_LINEAR);
}

static void golden_adam(void **state)
{
    static const struct {
        int64_t t;
        double lr;
        struct ah_adam adam;
    } rows[] = {
        {1,
         3e-5,
         {0x1.ccccccp-1F, 0x1.99999ap-4F, 0x1.e66666p-1F, 0x1.99999ap-5F, 0x1.5798eep-27F, 0x1.ffff9cp-1F,
          0x1.3a92a4p-12F, 0x1.1e377ap+2F, 0}},
        {10,
         3e-4,
         {0x1.ccccccp-1F, 0x1.99999ap-4F, 0x1.e66666p-1F, 0x1.99999ap-5F, 0x1.5798eep-27F, 0x1.fffc12p-1F,
          0x1.e2f9e8p-12F, 0x1.94224cp+0F, 0}},
        {1000,
         1e-4,
         {0x1.ccccccp-1F, 0x1.99999ap-4F, 0x1.e66666p-1F, 0x1.99999ap-5F, 0x1.5798eep-27F, 0x1.fffebp-1F,
          0x1.a36e2ep-14F, 1.0F, 0}},
    };
    static const struct ah_adamw hyper = {0.9, 0.95, 1e-8, 0.1};
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        struct ah_adam adam;
        ah__adam_init(&adam, &hyper, rows[i].lr, rows[i].t);
        assert_memory_equal(&adam, &rows[i].adam, sizeof adam);
    }
}

AH_TEST_CASES("train/schedule", golden_rates, ends_are_exact, warmup_may_outlast_training, names, golden_adam)
