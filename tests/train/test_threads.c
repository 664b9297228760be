/* Trainings that choose how the cores are shared: the bits are those of any other threads. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "train/tiny.h"

static struct {
    int threads, host_threads, tried, device_units;
} told;

static void on_threads(int threads, int host_threads, int tried, void *context)
{
    (void)context;
    told.threads = threads;
    told.host_threads = host_threads;
    told.tried = tried;
}

static void on_device(const struct ah_device *device, void *context)
{
    (void)context;
    told.device_units = device->units;
}

static struct ah_train_options auto_of(struct ah_train_options options)
{
    options.profile_path = NULL;
    options.dev.threads = AH_THREADS_AUTO;
    options.on_threads = on_threads;
    options.on_device = on_device;
    memset(&told, 0, sizeof told);
    return options;
}

/* What was chosen is what the training was started with. */
static void expect_recipe(const struct place *place)
{
    char words[64];
    size_t length;
    char *text = read_text(place->out, "run.json", &length);
    snprintf(words, sizeof words, "\"threads\": %d,\n  \"host_threads\": %d,", told.threads, told.host_threads);
    assert_non_null(strstr(text, words));
    ah__free(text);
}

/* After the first step; some more are on their way. */
static int stop_early(const struct ah_step *step, void *context)
{
    (void)step, (void)context;
    return 1;
}

/* In one go with one thread; and with threads that are chosen, taken up again with the same, without choosing, and once
 * more with what is chosen then. */
static void chosen_threads_give_the_same_bits(void **state)
{
    (void)state;
    struct place whole, parts;
    struct ah_train_result result, again;
    place_init(&whole);
    place_init(&parts);
    struct ah_train_options options = options_of(&whole);
    assert_ok(ah_train(&result, &options));
    options = auto_of(options_of(&parts));
    options.on_step = stop_early;
    assert_ok(ah_train(&again, &options));
    int64_t done = again.steps_done;
    assert_in_range(done, 1, STEPS - 1);
    assert_true(told.tried >= 1 && told.host_threads >= 1 && told.threads >= 1);
    assert_int_equal(told.device_units, told.threads);
    assert_int_equal(again.device_peak_bytes_used, again.device_peak_bytes_predicted);
    expect_recipe(&parts);
    int chosen = told.threads;
    options = auto_of(resume_of(&parts));
    options.dev.threads = 0;
    options.plan = "c=2,p=1,o=3";
    options.on_step = stop_early;
    assert_ok(ah_train(&again, &options));
    assert_in_range(again.steps_done, done + 1, STEPS);
    assert_int_equal(told.tried, 0);
    assert_int_equal(told.device_units, chosen);
    options = auto_of(resume_of(&parts));
    assert_ok(ah_train(&again, &options));
    assert_int_equal(again.steps_done, STEPS);
    assert_true(told.tried >= 1);
    expect_recipe(&parts);
    assert_true(again.final_loss == result.final_loss);
    assert_true(again.val_loss == result.val_loss);
    expect_same_file(whole.out, parts.out, "checkpoint/model.safetensors");
    expect_same_file(whole.out, parts.out, "checkpoint/optimizer.safetensors");
}

static void what_is_given_is_kept(void **state)
{
    (void)state;
    struct place place;
    struct ah_train_result result;
    place_init(&place);
    struct ah_train_options options = auto_of(options_of(&place));
    options.dev.host_threads = 3;
    options.steps = 1;
    options.out_dir = NULL;
    assert_ok(ah_train(&result, &options));
    assert_int_equal(told.host_threads, 3);
    assert_string_equal(result.device, "cpu"); /* which alone computes with threads */
}

static int stop_was_set;

static void refused_before_anything_is_written(void **state)
{
    (void)state;
    struct place place;
    struct ah_train_result result;
    place_init(&place);
    struct ah_train_options options = auto_of(options_of(&place));
    options.profile_path = options_of(&place).profile_path;
    assert_fails(ah_train(&result, &options), AH_EINPUT, "threads: found auto beside a saved profile, expected");
    options = auto_of(options_of(&place));
    options.micro_batch = AH_MICRO_BATCH_AUTO;
    assert_fails(ah_train(&result, &options), AH_EINPUT, "threads: found auto beside micro_batch auto, expected");
    options.micro_batch = AH_MICRO_BATCH_WHOLE;
    options.budget.device_bytes = 1000;
    assert_fails(ah_train(&result, &options), AH_EBUDGET, "device memory: found 1000 B, expected at least ");
    options = auto_of(options_of(&place));
    options.device = "cpu:1";
    assert_fails(ah_train(&result, &options), AH_EINPUT, "there is one cpu device");
    options.device = NULL;
    stop_was_set = 1;
    options.stop = &stop_was_set;
    assert_ok(ah_train(&result, &options));
    assert_true(result.stopped && !result.saved && result.plan.switches.layers == 0);
    assert_false(ah__path_exists(place.out));
}

/* As with threads that are given. */
static void a_refused_budget_names_what_would_do(void **state)
{
    (void)state;
    struct place place;
    struct ah_train_result result;
    place_init(&place);
    struct ah_train_options options = auto_of(options_of(&place));
    options.batch = 32;
    options.steps = 1;
    options.val_batches = 0;
    options.out_dir = NULL;
    options.micro_batch = 1;
    assert_ok(ah_train(&result, &options));
    options.budget.device_bytes = result.device_peak_bytes_used;
    options.micro_batch = AH_MICRO_BATCH_WHOLE;
    assert_fails(ah_train(&result, &options), AH_EBUDGET, "micro-batches of ");
}

AH_TEST_SUITE("train/threads", cmocka_unit_test(chosen_threads_give_the_same_bits),
              cmocka_unit_test(what_is_given_is_kept), cmocka_unit_test(refused_before_anything_is_written),
              cmocka_unit_test(a_refused_budget_names_what_would_do))
