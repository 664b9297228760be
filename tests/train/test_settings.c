#include "train/settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "train/metrics.h"

static const struct ah_settings defaults = {
    .batch = 8,
    .micro_batch = 8,
    .seq = 256,
    .seed = 1,
    .steps = 200,
    .decay = AH_DECAY_COSINE,
    .lr = 3e-4,
    .min_lr_ratio = 0.1,
    .warmup_steps = 10,
    .beta1 = 0.9,
    .beta2 = 0.95,
    .eps = 1e-8,
    .weight_decay = 0.1,
    .clip = 1,
    .save_seconds = 600,
    .keep = 2,
    .shard_bytes = 5000000000,
    .val_batches = 8,
};

static const struct ah_settings saved = {
    .batch = 3,
    .micro_batch = 1,
    .seq = 17,
    .pack = true,
    .seed = 0xfedcba9876543210,
    .steps = 33,
    .decay = AH_DECAY_LINEAR,
    .lr = 0.1 + 0.2,
    .beta2 = 0.5,
    .eps = 1e-3,
    .clip = 1e30 / 3,
    .skip_nonfinite = true,
    .logs = AH_LOG_CSV,
    .save_every = 5,
    .keep = 3,
    .val_every = 7,
    .val_batches = 0,
};

static void expect_equal(const struct ah_settings *a, const struct ah_settings *b)
{
    cJSON *left = cJSON_CreateObject(), *right = cJSON_CreateObject();
    char *left_text, *right_text;
    assert_ok(ah__settings_save(left, a));
    assert_ok(ah__settings_save(right, b));
    assert_ok(ah__json_text(&left_text, left, true));
    assert_ok(ah__json_text(&right_text, right, true));
    assert_string_equal(left_text, right_text);
    free(left_text);
    free(right_text);
    cJSON_Delete(left);
    cJSON_Delete(right);
}

/* Masters are what the device computes with, or fp32; a resumed training keeps what it has. */
static void states_have_formats(void **state)
{
    struct ah_train_options options;
    struct ah_settings settings;
    ah_train_options_init(&options, sizeof options);
    options.master = "bf16";
    assert_fails(ah__settings_resolve(&settings, &options, NULL, false, 1024), AH_EINPUT,
                 "master: found bf16 with dtype fp32, expected fp32");
    options.dtype = options.moments = "bf16";
    assert_ok(ah__settings_resolve(&settings, &options, NULL, false, 1024));
    assert_true(settings.master == AH_BF16 && settings.moments == AH_BF16);
    struct ah_settings kept = settings;
    options.moments = "fp32";
    assert_fails(ah__settings_resolve(&settings, &options, &kept, true, 1024), AH_ESTALE,
                 "moments: found fp32, expected bf16 as in the checkpoint");
    options.moments = NULL;
    options.master = "fp32";
    assert_fails(ah__settings_resolve(&settings, &options, &kept, true, 1024), AH_ESTALE,
                 "master: found fp32, expected bf16 as in the checkpoint");
    options.master = NULL;
    assert_ok(ah__settings_resolve(&settings, &options, &kept, true, 1024));
    assert_true(settings.master == AH_BF16 && settings.moments == AH_BF16);
    options.moments = "int8";
    assert_ok(ah__settings_resolve(&settings, &options, NULL, false, 1024));
    assert_true(settings.moments == AH_U8);
    options.moments = "int4";
    assert_fails(ah__settings_resolve(&settings, &options, NULL, false, 1024), AH_EINPUT,
                 "moments: found 'int4', expected bf16, fp32 or int8");
    options.master = "int8";
    assert_fails(ah__settings_resolve(&settings, &options, NULL, false, 1024), AH_EINPUT, "moments: ");
    options.moments = NULL;
    assert_fails(ah__settings_resolve(&settings, &options, NULL, false, 1024), AH_EINPUT,
                 "master: dtype: found 'int8', expected bf16 or fp32");
}

static void unset_means_default(void **state)
{
    struct ah_train_options options;
    struct ah_settings settings;
    ah_train_options_init(&options, sizeof options);
    assert_ok(ah__settings_resolve(&settings, &options, NULL, false, 1024));
    expect_equal(&settings, &defaults);
    assert_ok(ah__settings_resolve(&settings, &options, NULL, false, 100));
    assert_int_equal(settings.seq, 100);
    options.steps = 1000;
    assert_ok(ah__settings_resolve(&settings, &options, NULL, false, 100));
    assert_int_equal(settings.warmup_steps, 50);
    assert_int_equal(settings.steps, 1000);
}

static void unset_means_as_saved(void **state)
{
    struct ah_train_options options;
    struct ah_settings settings;
    ah_train_options_init(&options, sizeof options);
    assert_ok(ah__settings_resolve(&settings, &options, &saved, true, 1024));
    expect_equal(&settings, &saved);
    options.steps = 99;
    options.lr = 0.5;
    options.val_batches = 2;
    options.schedule = "constant";
    options.batch = saved.batch;
    options.seed = saved.seed;
    assert_ok(ah__settings_resolve(&settings, &options, &saved, true, 1024));
    struct ah_settings expected = saved;
    expected.steps = 99;
    expected.decay = AH_DECAY_CONSTANT;
    expected.lr = 0.5;
    expected.val_batches = 2;
    expect_equal(&settings, &expected);
}

/* Sequences that were not packed stay so: their order is the checkpoint's. */
static void packing_stays(void **state)
{
    struct ah_train_options options;
    struct ah_settings settings, plain = saved;
    ah_train_options_init(&options, sizeof options);
    plain.pack = false;
    assert_ok(ah__settings_resolve(&settings, &options, &plain, true, 1024));
    assert_false(settings.pack);
    options.pack = true;
    assert_ok(ah__settings_resolve(&settings, &options, &saved, true, 1024));
    assert_true(settings.pack);
    assert_fails(ah__settings_resolve(&settings, &options, &plain, true, 1024), AH_ESTALE,
                 "pack: found true, expected false as in the checkpoint");
}

/* The schedule ends with the training, unless it is said where. */
static void the_schedule_may_end_elsewhere(void **state)
{
    struct ah_train_options options;
    struct ah_settings settings, later;
    ah_train_options_init(&options, sizeof options);
    options.steps = 40;
    options.lr_steps = 400;
    assert_ok(ah__settings_resolve(&settings, &options, NULL, false, 64));
    assert_int_equal(ah__settings_schedule(&settings).steps, 400);
    assert_int_equal(settings.warmup_steps, 20);
    ah_train_options_init(&options, sizeof options);
    options.steps = 100;
    assert_ok(ah__settings_resolve(&later, &options, &settings, true, 64));
    assert_int_equal(ah__settings_schedule(&later).steps, 400);
    options.lr_steps = 0;
    assert_ok(ah__settings_resolve(&later, &options, &settings, true, 64));
    assert_int_equal(ah__settings_schedule(&later).steps, 100);
}

/* One kind of interval, once asked for, replaces the other. */
static void saving_by_steps_or_by_time(void **state)
{
    struct ah_train_options options;
    struct ah_settings first, second;
    ah_train_options_init(&options, sizeof options);
    options.save_every = 50;
    assert_ok(ah__settings_resolve(&first, &options, NULL, false, 64));
    assert_true(first.save_every == 50 && first.save_seconds == 0);
    ah_train_options_init(&options, sizeof options);
    options.save_seconds = 30;
    assert_ok(ah__settings_resolve(&second, &options, &first, true, 64));
    assert_true(second.save_every == 0 && second.save_seconds == 30);
    ah_train_options_init(&options, sizeof options);
    options.save_every = 5;
    options.save_seconds = 60;
    assert_ok(ah__settings_resolve(&second, &options, NULL, false, 64));
    assert_true(second.save_every == 5 && second.save_seconds == 60);
}

/* A training like another may differ from it where a resume may not. */
static void like_another_keeps_nothing_by_force(void **state)
{
    struct ah_train_options options;
    struct ah_settings settings;
    ah_train_options_init(&options, sizeof options);
    options.batch = 4;
    options.seed = 5;
    assert_ok(ah__settings_resolve(&settings, &options, &saved, false, 1024));
    assert_true(settings.batch == 4 && settings.seed == 5 && settings.seq == saved.seq && settings.micro_batch == 1);
    struct ah_settings twos = saved;
    twos.batch = 6;
    twos.micro_batch = 3;
    assert_ok(ah__settings_resolve(&settings, &options, &twos, false, 1024));
    assert_int_equal(settings.micro_batch, 4); /* 3 does not go into 4 */
}

static void a_resume_keeps_batch_seq_and_seed(void **state)
{
    struct ah_train_options options;
    struct ah_settings settings;
    ah_train_options_init(&options, sizeof options);
    options.batch = 4;
    assert_fails(ah__settings_resolve(&settings, &options, &saved, true, 1024), AH_ESTALE,
                 "batch: found 4, expected 3");
    ah_train_options_init(&options, sizeof options);
    options.seq = 18;
    assert_fails(ah__settings_resolve(&settings, &options, &saved, true, 1024), AH_ESTALE,
                 "seq: found 18, expected 17");
    ah_train_options_init(&options, sizeof options);
    options.seed = 5;
    assert_fails(ah__settings_resolve(&settings, &options, &saved, true, 1024), AH_ESTALE,
                 "seed: found 5, expected 18364758544493064720");
}

static void micro_batches_go_into_the_batch(void **state)
{
    static const struct {
        int64_t asked, found; /* found 0: refused */
    } rows[] = {{AH_UNSET, 8},
                {AH_MICRO_BATCH_WHOLE, 8},
                {AH_MICRO_BATCH_AUTO, AH_MICRO_BATCH_AUTO},
                {1, 1},
                {4, 4},
                {8, 8},
                {3, 0},
                {16, 0},
                {-2, 0}};
    struct ah_train_options options;
    struct ah_settings settings;
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        ah_train_options_init(&options, sizeof options);
        options.micro_batch = rows[i].asked;
        int status = ah__settings_resolve(&settings, &options, NULL, false, 64);
        assert_int_equal(status, rows[i].found ? AH_OK : AH_EINPUT);
        if (rows[i].found)
            assert_int_equal(settings.micro_batch, rows[i].found);
        else
            assert_non_null(strstr(ah_error(), "expected a divisor of the batch of 8"));
    }
    ah_train_options_init(&options, sizeof options);
    options.micro_batch = AH_MICRO_BATCH_AUTO; /* was decided when the training began */
    assert_ok(ah__settings_resolve(&settings, &options, &saved, true, 64));
    assert_int_equal(settings.micro_batch, 1);
    options.micro_batch = AH_MICRO_BATCH_WHOLE;
    assert_fails(ah__settings_resolve(&settings, &options, &saved, true, 64), AH_ESTALE,
                 "micro_batch: found 3, expected 1 as in the checkpoint");
}

static void bad_numbers(void **state)
{
    static const struct {
        size_t at;
        int64_t value;
        const char *words;
    } counts[] = {
        {offsetof(struct ah_train_options, batch), 0, "batch: found 0, expected 1 to"},
        {offsetof(struct ah_train_options, seq), -1, "seq: found -1, expected 1 to"},
        {offsetof(struct ah_train_options, seq), 65, "seq: found 65, expected at most 64"},
        {offsetof(struct ah_train_options, steps), 0, "steps: found 0"},
        {offsetof(struct ah_train_options, warmup_steps), -1, "warmup_steps: found -1"},
        {offsetof(struct ah_train_options, val_batches), INT64_MAX, "val_batches: found 9223372036854775807"},
    };
    static const struct {
        size_t at;
        double value;
        const char *words;
    } reals[] = {
        {offsetof(struct ah_train_options, lr), -1e-9, "lr: found -1e-09, expected 0 to 1000"},
        {offsetof(struct ah_train_options, lr), INFINITY, "lr: found inf"},
        {offsetof(struct ah_train_options, min_lr_ratio), 1.5, "min_lr_ratio: found 1.5, expected 0 to 1"},
        {offsetof(struct ah_train_options, beta2), 1, "beta2: found 1"},
        {offsetof(struct ah_train_options, eps), 0, "eps: found 0"},
    };
    struct ah_train_options options;
    struct ah_settings settings = defaults;
    for (size_t i = 0; i < AH_LENGTH(counts); i++) {
        ah_train_options_init(&options, sizeof options);
        *(int64_t *)((char *)&options + counts[i].at) = counts[i].value;
        assert_fails(ah__settings_resolve(&settings, &options, NULL, false, 64), AH_EINPUT, counts[i].words);
    }
    for (size_t i = 0; i < AH_LENGTH(reals); i++) {
        ah_train_options_init(&options, sizeof options);
        *(double *)((char *)&options + reals[i].at) = reals[i].value;
        assert_fails(ah__settings_resolve(&settings, &options, NULL, false, 64), AH_EINPUT, reals[i].words);
    }
    ah_train_options_init(&options, sizeof options);
    options.schedule = "cosinus";
    assert_fails(ah__settings_resolve(&settings, &options, NULL, false, 64), AH_EINPUT, "schedule: found \"cosinus\"");
    expect_equal(&settings, &defaults);
}

static void json_round_trip(void **state)
{
    cJSON *tree = cJSON_CreateObject();
    struct ah_json json = {.node = tree, .path = "state.json", .where = ""};
    struct ah_settings loaded = defaults;
    assert_ok(ah__settings_save(tree, &saved));
    assert_ok(ah__settings_load(&loaded, &json));
    expect_equal(&loaded, &saved);
    cJSON_ReplaceItemInObject(tree, "batch", cJSON_CreateNumber(0));
    assert_fails(ah__settings_load(&loaded, &json), AH_EINPUT, "batch");
    cJSON_ReplaceItemInObject(tree, "batch", cJSON_CreateNumber(3));
    cJSON_ReplaceItemInObject(tree, "micro_batch", cJSON_CreateNumber(2));
    assert_fails(ah__settings_load(&loaded, &json), AH_EINPUT, "state.json: micro_batch: found 2, expected a divisor");
    cJSON_ReplaceItemInObject(tree, "batch", cJSON_CreateNumber(1));
    cJSON_ReplaceItemInObject(tree, "micro_batch", cJSON_CreateNumber(1));
    cJSON_ReplaceItemInObject(tree, "schedule", cJSON_CreateString("steep"));
    assert_fails(ah__settings_load(&loaded, &json), AH_EINPUT, "state.json: schedule: found \"steep\"");
    cJSON_DeleteItemFromObject(tree, "beta1");
    assert_fails(ah__settings_load(&loaded, &json), AH_EINPUT, "beta1");
    expect_equal(&loaded, &saved);
    cJSON_Delete(tree);
}

AH_TEST_CASES("train/settings", unset_means_default, states_have_formats, unset_means_as_saved, packing_stays,
              the_schedule_may_end_elsewhere, saving_by_steps_or_by_time, like_another_keeps_nothing_by_force,
              a_resume_keeps_batch_seq_and_seed, bad_numbers, micro_batches_go_into_the_batch, json_round_trip)
