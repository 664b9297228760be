/* The trainer as a caller drives it: step by step, on data or batches of its own, saved in between; callers that were
 * compiled with another header. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "train/tiny.h"

enum { TOKENS = 2 * 8 };

static struct ah_trainer *opened(const struct ah_train_options *options)
{
    struct ah_trainer *trainer;
    assert_ok(ah_trainer_open(&trainer, options));
    return trainer;
}

/* Counting sequences, other ones in each step. */
static void batch_fill(const struct ah_batch *batch, int64_t number)
{
    for (int i = 0; i < TOKENS; i++) {
        batch->ids[i] = (int32_t)((number * 31 + i * (1 + number % 3)) % 128);
        batch->targets[i] = (int32_t)((number * 31 + (i + 1) * (1 + number % 3)) % 128);
    }
}

static void a_loop_of_steps_is_a_training(void **state)
{
    struct place whole, place;
    struct ah_train_result result, again;
    struct ah_train_summary summary;
    struct ah_plan plan;
    struct ah_budget budget;
    struct ah_device device;
    struct ah_step step;
    place_init(&whole);
    place_init(&place);
    struct ah_train_options options = options_of(&whole);
    options.val_every = 3;
    assert_ok(ah_train(&result, &options));
    options.out_dir = place.out;
    struct ah_trainer *trainer = opened(&options);
    assert_false(ah__path_exists(place.out)); /* nothing is written before the first step */
    ah_trainer_summary(trainer, &summary);
    assert_int_equal(summary.batch * summary.seq, TOKENS);
    assert_int_equal(summary.first_step, 1);
    assert_int_equal(summary.micro_batch, 2);
    assert_true(summary.profile_given);
    ah_trainer_device(trainer, &device);
    assert_string_equal(device.name, "cpu");
    ah_trainer_plan(trainer, &plan, &budget);
    assert_int_equal(plan.switches.layers, 3);
    assert_non_null(ah_trainer_timeline(trainer, false));
    assert_null(ah_trainer_timeline(trainer, true));
    for (int64_t number = 1; number <= STEPS; number++) {
        assert_ok(ah_trainer_step(trainer, &step));
        assert_int_equal(step.step, number);
        assert_int_equal(!isnan(step.val_loss), number % 3 == 0 || number == STEPS);
    }
    for (int i = 0; i < 2; i++)
        assert_fails(ah_trainer_step(trainer, &step), AH_EEND, "step 8: there is none behind it");
    assert_non_null(ah_trainer_timeline(trainer, true));
    ah_trainer_result(trainer, &again);
    assert_true(again.saved && !again.stopped);
    assert_true(again.final_loss == result.final_loss && again.val_loss == result.val_loss);
    ah_trainer_close(trainer);
    ah_trainer_close(NULL);
    expect_same_file(whole.out, place.out, "checkpoint/model.safetensors");
    expect_same_file(whole.out, place.out, "checkpoint/optimizer.safetensors");
}

/* What is in flight ends first, and its steps are still given; both folders lead to the same end. */
static void saving_in_between_loses_no_step(void **state)
{
    struct place whole, place, elsewhere;
    struct ah_train_result result;
    struct ah_step step;
    place_init(&whole);
    place_init(&place);
    place_init(&elsewhere);
    struct ah_train_options options = options_of(&whole);
    assert_ok(ah_train(&result, &options));
    options.out_dir = place.out;
    struct ah_trainer *trainer = opened(&options);
    assert_ok(ah_trainer_save(trainer, NULL)); /* nothing is trained yet */
    assert_fails(ah_trainer_save(trainer, elsewhere.out), AH_EINPUT, "step: found none taken");
    assert_ok(ah_trainer_step(trainer, &step));
    assert_ok(ah_trainer_step(trainer, &step));
    assert_ok(ah_trainer_save(trainer, elsewhere.out));
    ah_trainer_result(trainer, &result);
    assert_int_equal(result.steps_done, 3);
    assert_false(result.saved);
    assert_ok(ah_trainer_save(trainer, NULL));
    ah_trainer_result(trainer, &result);
    assert_true(result.saved);
    assert_ok(ah_trainer_step(trainer, &step));
    assert_int_equal(step.step, 3);
    assert_ok(ah_trainer_step(trainer, &step));
    assert_int_equal(step.step, 4);
    ah_trainer_result(trainer, &result);
    assert_false(result.saved); /* not what came since */
    ah_trainer_close(trainer);
    struct ah_train_options resume = resume_of(&place);
    assert_ok(ah_train(&result, &resume));
    expect_same_file(whole.out, place.out, "checkpoint/optimizer.safetensors");
    resume = resume_of(&elsewhere);
    resume.out_dir = NULL;
    assert_ok(ah_train(&result, &resume));
    assert_int_equal(result.steps_done, STEPS);
}

/* A save for which there was no memory, at each of its first allocations, and one that has it. */
static void a_save_begins_again_after_one_without_memory(void **state)
{
    enum { ALLOCATIONS = 24 };
    struct place place, first;
    struct ah_step step;
    int refused = 0;
    place_init(&first);
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    options.out_dir = NULL;
    for (uint64_t n = ALLOCATIONS; n > 0; n--) {
        struct ah_trainer *trainer = opened(&options);
        assert_ok(ah_trainer_step(trainer, &step));
        ah__alloc_fail_at(n);
        refused += ah_trainer_save(trainer, place.out) == AH_ENOMEM;
        ah__alloc_fail_at(0);
        assert_ok(ah_trainer_save(trainer, n == ALLOCATIONS ? first.out : place.out));
        ah_trainer_close(trainer);
        if (n < ALLOCATIONS)
            expect_same_file(first.out, place.out, "checkpoint/model.safetensors");
        assert_ok(ah__folder_remove(place.out));
    }
    assert_int_equal(refused, ALLOCATIONS);
}

static void no_folder_no_checkpoint(void **state)
{
    struct place place;
    struct ah_step step;
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    options.out_dir = NULL;
    struct ah_trainer *trainer = opened(&options);
    assert_ok(ah_trainer_step(trainer, &step));
    assert_fails(ah_trainer_save(trainer, NULL), AH_EINPUT, "out: found no folder for this training");
    ah_trainer_close(trainer);
}

/* ---- batches of one's own ---------------------------------------------------------------------------------------- */

static struct ah_train_options own_of(const struct place *place)
{
    struct ah_train_options options = options_of(place);
    options.data_path = NULL;
    options.own_batches = true;
    options.save_every = 3;
    return options;
}

/* Waited for one by one, or with two in flight across a checkpoint that is due; and resumed. */
static void own_batches_in_any_pace(void **state)
{
    struct place slow, ahead, parts;
    struct ah_step step;
    int32_t ids[TOKENS], targets[TOKENS];
    const struct ah_batch batch = {ids, targets, NULL};
    place_init(&slow);
    place_init(&ahead);
    place_init(&parts);
    struct ah_train_options options = own_of(&slow);
    struct ah_trainer *trainer = opened(&options);
    for (int64_t number = 0; number < STEPS; number++) {
        batch_fill(&batch, number);
        assert_ok(ah_trainer_step_on(trainer, &batch, &step));
        assert_int_equal(step.step, number + 1);
    }
    assert_fails(ah_trainer_step_on(trainer, &batch, &step), AH_EEND, "there is none behind it");
    assert_true(step.loss < log(128));
    ah_trainer_close(trainer);

    options = own_of(&ahead);
    trainer = opened(&options);
    for (int64_t number = 0; number < STEPS; number++) {
        batch_fill(&batch, number);
        assert_ok(ah_trainer_begin(trainer, &batch));
        if (number > 0)
            assert_ok(ah_trainer_wait(trainer, &step));
    }
    assert_ok(ah_trainer_wait(trainer, &step));
    assert_int_equal(step.step, STEPS);
    assert_fails(ah_trainer_begin(trainer, &batch), AH_EEND, "there is none behind it");
    ah_trainer_close(trainer);
    expect_same_file(slow.out, ahead.out, "checkpoint/optimizer.safetensors");

    options = own_of(&parts);
    trainer = opened(&options);
    for (int64_t number = 0; number < 5; number++) {
        batch_fill(&batch, number);
        assert_ok(ah_trainer_step_on(trainer, &batch, &step));
    }
    assert_ok(ah_trainer_save(trainer, NULL));
    ah_trainer_close(trainer);
    options = resume_of(&parts);
    options.own_batches = true;
    trainer = opened(&options);
    for (int64_t number = 5; number < STEPS; number++) {
        batch_fill(&batch, number);
        assert_ok(ah_trainer_step_on(trainer, &batch, &step));
    }
    assert_fails(ah_trainer_begin(trainer, &batch), AH_EEND, "there is none behind it");
    ah_trainer_close(trainer);
    expect_same_file(slow.out, parts.out, "checkpoint/optimizer.safetensors");
}

static void wrong_batches_are_refused(void **state)
{
    struct place place;
    struct ah_step step;
    int32_t ids[TOKENS], targets[TOKENS];
    struct ah_batch batch = {ids, targets, NULL};
    place_init(&place);
    struct ah_train_options options = own_of(&place);
    options.out_dir = NULL;
    struct ah_trainer *trainer = opened(&options);
    assert_fails(ah_trainer_step(trainer, &step), AH_EINPUT, "found batches of the caller's (own_batches)");
    assert_fails(ah_trainer_wait(trainer, &step), AH_EINPUT, "step: found none begun");
    batch_fill(&batch, 1);
    ids[3] = 128;
    assert_fails(ah_trainer_begin(trainer, &batch), AH_EINPUT, "batch: found id 128 at 3, expected one below 128");
    ids[3] = 5;
    targets[4] = -1;
    assert_fails(ah_trainer_begin(trainer, &batch), AH_EINPUT, "batch: found target -1 at 4");
    targets[4] = AH_TARGET_IGNORED;
    batch.positions = ids;
    assert_fails(ah_trainer_begin(trainer, &batch), AH_EINPUT, "batch: expected ids, targets and, if");
    batch.positions = NULL;
    assert_ok(ah_trainer_begin(trainer, &batch));
    assert_fails(ah_trainer_step_on(trainer, &batch, &step), AH_EINPUT, "step: found one begun and not waited for");
    assert_ok(ah_trainer_begin(trainer, &batch));
    assert_fails(ah_trainer_begin(trainer, &batch), AH_EINPUT, "step: found 2 begun and not waited for");
    assert_ok(ah_trainer_wait(trainer, &step));
    assert_ok(ah_trainer_wait(trainer, &step));
    ah_trainer_close(trainer);
}

/* ---- versions ---------------------------------------------------------------------------------------------------- */

/* A program of before there was own_batches: its struct ends there, and nothing is read or written behind it. */
static void an_older_caller_trains(void **state)
{
    static volatile size_t end = offsetof(struct ah_train_options, own_batches); /* which no compiler looks through */
    const size_t size = end;
    struct place place;
    struct ah_train_result result, old_result;
    place_init(&place);
    struct ah_train_options now = options_of(&place);
    struct ah_train_options *old = malloc(size);
    assert_non_null(old);
    now.out_dir = NULL;
    assert_ok(ah_train(&result, &now));
    ah_train_options_init(old, size);
    assert_int_equal(old->size, size);
    assert_true(isnan(old->lr) && old->steps == AH_UNSET && old->seed == (uint64_t)AH_UNSET);
    memcpy(old, &now, size);
    old->size = size;
    assert_ok(ah_train(&old_result, old));
    assert_true(old_result.final_loss == result.final_loss);
    free(old);
}

static void a_newer_caller_is_refused(void **state)
{
    struct place place;
    struct ah_train_result result;
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    options.size = sizeof options + 8;
    assert_fails(ah_train(&result, &options), AH_EINPUT, "options: found a size of ");
    options.size = 0;
    assert_fails(ah_train(&result, &options), AH_EINPUT, "options: found a size of 0, expected ");
}

AH_TEST_CASES("train/trainer", a_loop_of_steps_is_a_training, saving_in_between_loses_no_step,
              a_save_begins_again_after_one_without_memory, no_folder_no_checkpoint, own_batches_in_any_pace,
              wrong_batches_are_refused, an_older_caller_trains, a_newer_caller_is_refused)
