/* Trainings in micro-batches: their size is the training's, whatever the plan. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "train/tiny.h"

enum { BATCH = 4 };

static struct ah_train_options micro_options(const struct place *place)
{
    struct ah_train_options options = options_of(place);
    options.profile_path = NULL;
    options.batch = BATCH;
    options.micro_batch = 1;
    return options;
}

static int stop_early(const struct ah_step *step, void *context)
{
    return step->step >= STEPS / 2;
}

/* In one go, and taken up again under another plan that offloads and recomputes. */
static void resumes_to_the_same_bits(void **state)
{
    struct place whole, parts;
    struct ah_train_result result, again;
    place_init(&whole);
    place_init(&parts);
    struct ah_train_options options = micro_options(&whole);
    assert_ok(ah_train(&result, &options));
    assert_int_equal(result.micro_batch, 1);
    assert_int_equal(result.device_peak_bytes_used, result.device_peak_bytes_predicted);
    options = micro_options(&parts);
    assert_ok(train_watched(&again, &options, NULL, stop_early));
    assert_true(again.stopped);
    options = resume_of(&parts);
    options.profile_path = NULL;
    options.plan = "c=2,p=1,o=3";
    assert_ok(ah_train(&again, &options));
    assert_int_equal(again.micro_batch, 1);
    assert_int_equal(again.steps_done, STEPS);
    assert_int_equal(again.device_peak_bytes_used, again.device_peak_bytes_predicted);
    assert_true(again.final_loss == result.final_loss);
    assert_true(again.val_loss == result.val_loss);
    expect_same_file(whole.out, parts.out, "checkpoint/model.safetensors");
    expect_same_file(whole.out, parts.out, "checkpoint/optimizer.safetensors");
}

/* Half of it in one number of rounds, half in another. */
static void resumes_in_other_rounds(void **state)
{
    struct place whole, parts;
    struct ah_train_result result, again;
    place_init(&whole);
    place_init(&parts);
    struct ah_train_options options = micro_options(&whole);
    options.plan = "passes=1";
    assert_ok(ah_train(&result, &options));
    options = micro_options(&parts);
    options.plan = "passes=4";
    assert_ok(train_watched(&again, &options, NULL, stop_early));
    assert_int_equal(again.device_peak_bytes_used, again.device_peak_bytes_predicted);
    options = resume_of(&parts);
    options.profile_path = NULL;
    options.plan = "passes=2";
    assert_ok(ah_train(&again, &options));
    assert_int_equal(again.device_peak_bytes_used, again.device_peak_bytes_predicted);
    assert_true(again.final_loss == result.final_loss);
    assert_true(again.val_loss == result.val_loss);
    expect_same_file(whole.out, parts.out, "checkpoint/model.safetensors");
    expect_same_file(whole.out, parts.out, "checkpoint/optimizer.safetensors");
    options.plan = "passes=5";
    assert_fails(ah_train(&again, &options), AH_EINPUT,
                 "passes=5: found 5, expected at most 4, the micro-batches of a step");
    options.plan = "c=2,p=1,o=3,passes=5";
    assert_fails(ah_train(&again, &options), AH_EINPUT, "passes=5: found 5, expected at most 4");
}

/* The passes of the plan that a training wrote. */
static int passes_written(const struct place *place)
{
    char path[512], *text;
    size_t length;
    int passes = 0;
    snprintf(path, sizeof path, "%s/plan.json", place->out);
    assert_ok(ah__file_read(&text, &length, path, 1 << 20));
    const char *key = strstr(text, "\"passes\"");
    assert_non_null(key);
    assert_int_equal(sscanf(key + strlen("\"passes\""), " : %d", &passes), 1);
    ah__free(text);
    return passes;
}

/* What was asked for stays, unless something else is. */
static void resumes_in_as_many_rounds(void **state)
{
    struct place place;
    struct ah_train_result result;
    place_init(&place);
    struct ah_train_options options = micro_options(&place);
    options.plan = "passes=4";
    assert_ok(train_watched(&result, &options, NULL, stop_early));
    assert_int_equal(passes_written(&place), BATCH);
    options = resume_of(&place);
    options.profile_path = NULL;
    options.plan = NULL;
    assert_ok(train_watched(&result, &options, NULL, stop_early));
    assert_int_equal(passes_written(&place), BATCH);
    options.plan = "c=2,p=1,o=3";
    assert_ok(ah_train(&result, &options));
    assert_int_equal(passes_written(&place), 1);
}

static int take_summary(const struct ah_trainer *trainer, void *context)
{
    ah_trainer_summary(trainer, context);
    return AH_OK;
}

static void auto_chooses_once(void **state)
{
    struct place place;
    struct ah_train_result result;
    struct ah_train_summary summary;
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    options.micro_batch = AH_MICRO_BATCH_AUTO;
    assert_fails(ah_train(&result, &options), AH_EINPUT, "micro_batch: found auto beside a saved profile");
    assert_false(ah__path_exists(place.out));
    options = micro_options(&place);
    options.micro_batch = AH_MICRO_BATCH_AUTO;
    options.context = &summary;
    assert_ok(train_watched(&result, &options, take_summary, NULL));
    assert_int_equal(BATCH % result.micro_batch, 0);
    assert_int_equal(summary.micro_batch, result.micro_batch);
    assert_int_equal(summary.micro_batches, BATCH / result.micro_batch);
    assert_int_equal(result.device_peak_bytes_used, result.device_peak_bytes_predicted);
    int64_t chosen = result.micro_batch;
    options = resume_of(&place);
    options.profile_path = NULL;
    options.micro_batch = chosen == 1 ? 2 : 1;
    assert_fails(ah_train(&result, &options), AH_ESTALE, "as in the checkpoint");
    options.micro_batch = AH_MICRO_BATCH_AUTO;
    options.steps = STEPS + 1;
    assert_ok(ah_train(&result, &options));
    assert_int_equal(result.micro_batch, chosen);
}

/* A budget between what one sequence at a time needs and what the whole batch needs. */
static void a_refused_budget_names_what_would_do(void **state)
{
    struct place place;
    struct ah_train_result result, refused;
    place_init(&place);
    struct ah_train_options options = micro_options(&place);
    options.batch = 32;
    options.steps = 1;
    options.val_batches = 0;
    options.out_dir = NULL;
    assert_ok(ah_train(&result, &options));
    options.budget.device_bytes = result.device_peak_bytes_used;
    options.micro_batch = AH_MICRO_BATCH_WHOLE;
    assert_fails(ah_train(&refused, &options), AH_EBUDGET, "--micro-batch ");
    assert_int_equal(sscanf(strstr(ah_error(), "--micro-batch "), "--micro-batch %ld", &options.micro_batch), 1);
    assert_ok(ah_train(&result, &options));
    assert_true(result.device_peak_bytes_used <= options.budget.device_bytes);
}

AH_TEST_CASES("train/micro", resumes_to_the_same_bits, resumes_in_other_rounds, resumes_in_as_many_rounds,
              auto_chooses_once, a_refused_budget_names_what_would_do)
