/* A whole training of a tiny model: what a training leaves behind, what resuming it gives, and what no fault can take
 * away. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "train/tiny.h"

/* All but the times, which differ from run to run. */
static void expect_same_metrics(const char *a, const char *b, int64_t lines)
{
    size_t length;
    char *left = read_text(a, "metrics.jsonl", &length), *right = read_text(b, "metrics.jsonl", &length);
    char *x = left, *y = right;
    for (int64_t i = 1; i <= lines; i++) {
        char start[32];
        size_t same = (size_t)(strstr(x, "\"tokens_per_s\"") - x);
        snprintf(start, sizeof start, "{\"step\":%" PRId64 ",", i);
        assert_memory_equal(x, start, strlen(start));
        assert_memory_equal(x, y, same);
        x = strchr(x, '\n') + 1;
        y = strchr(y, '\n') + 1;
    }
    assert_int_equal(*x, 0);
    assert_int_equal(*y, 0);
    ah__free(left);
    ah__free(right);
}

static void expect_same_training(const char *a, const char *b)
{
    char left[PATH_SIZE], right[PATH_SIZE];
    at(left, a, "checkpoint");
    at(right, b, "checkpoint");
    expect_same_file(left, right, "model.safetensors");
    expect_same_file(left, right, "optimizer.safetensors");
    expect_same_file(left, right, "config.json");
    expect_same_metrics(a, b, STEPS);
    expect_same_file(a, b, "val.jsonl");
}

static void train_whole(struct place *place, struct ah_train_result *result)
{
    struct ah_train_options options = options_of(place);
    assert_ok(ah_train(result, &options));
    assert_int_equal(result->steps_done, STEPS);
    assert_false(result->stopped);
}

/* ---- what a training leaves -------------------------------------------------------------------------------------- */

static void leaves_everything(void **state)
{
    static const char *const names[] = {
        "metrics.jsonl",
        "val.jsonl",
        "plan.json",
        "profile.json",
        "timeline.json",
        "timeline.svg",
        "model.safetensors",
        "config.json",
        "checkpoint/model.safetensors",
        "checkpoint/optimizer.safetensors",
        "checkpoint/state.json",
        "step-00000008/config.json",
    };
    struct place place;
    struct ah_train_result result;
    char path[PATH_SIZE];
    place_init(&place);
    train_whole(&place, &result);
    for (size_t i = 0; i < AH_LENGTH(names); i++)
        if (!ah__path_exists(at(path, place.out, names[i])))
            fail_msg("%s is missing", names[i]);
    assert_true(isfinite(result.final_loss) && isfinite(result.val_loss));
    assert_true(result.tokens_per_s > 0 && result.step_ns_median > 0 && result.step_ns_predicted > 0);
    assert_int_equal(result.device_peak_bytes_used, result.device_peak_bytes_predicted);
    assert_int_equal(result.host_peak_bytes_used, result.host_peak_bytes_predicted);
}

struct watch {
    int64_t steps, vals, allocations, last_val_step;
    double first_loss, last_loss, val_loss, compute_busy;
};

static int watch_step(const struct ah_step *step, void *context)
{
    struct watch *watch = context;
    assert_int_equal(step->step, ++watch->steps);
    assert_int_equal(step->steps, STEPS);
    if (step->step == 1) {
        watch->first_loss = step->loss;
        watch->allocations = (int64_t)ah__alloc_count();
    }
    watch->last_loss = step->loss;
    for (int lane = 0; lane < AH_LANE_COUNT; lane++)
        assert_true(step->lane_busy[lane] >= 0 && step->lane_busy[lane] <= 1);
    /* Of one step it may be 0: compute may have run ahead of a late result. */
    watch->compute_busy += step->lane_busy[0];
    assert_true(step->tokens_per_s > 0 && step->eta_s >= 0 && (step->eta_s > 0) == (step->step < STEPS));
    assert_int_equal(ah__alloc_count(), watch->allocations);
    if (!isnan(step->val_loss)) {
        watch->vals++;
        watch->last_val_step = step->step;
        watch->val_loss = step->val_loss;
    }
    return 0;
}

static void every_step_and_no_allocation(void **state)
{
    struct place place;
    struct ah_train_result result;
    struct watch watch = {0};
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    options.out_dir = NULL;
    options.val_every = 3;
    options.context = &watch;
    assert_ok(train_watched(&result, &options, NULL, watch_step));
    assert_int_equal(watch.steps, STEPS);
    assert_int_equal(watch.vals, 3);
    assert_int_equal(watch.last_val_step, STEPS);
    assert_true(watch.val_loss == result.val_loss && watch.last_loss == result.final_loss);
    assert_true(watch.compute_busy > 0);
    assert_true(fabs(watch.first_loss - log(128)) < 0.1); /* an untrained model knows nothing */
    assert_true(watch.last_loss < watch.first_loss - 0.5);
    assert_false(ah__path_exists(place.out));
}

/* ---- resuming ---------------------------------------------------------------------------------------------------- */

static void resume_under_any_plan_gives_the_same_bits(void **state)
{
    static const struct {
        const char *plan, *policy;
        int threads;
        int64_t link;
    } rows[] = {
        {"resident", "resident", 1, 0},
        {"c=3,p=2,o=3,buffers=3", "autohete", 2, 100 << 20},
        {"c=1,p=0,o=2,embedding=host,head=host", "autohete-fifo", 1, 0},
        {"auto", NULL, 1, 0},
    };
    struct place whole;
    struct ah_train_result expected, result;
    place_init(&whole);
    train_whole(&whole, &expected);
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        struct place part;
        place_init(&part);
        train_part(&part, 3);
        struct ah_train_options options = resume_of(&part);
        options.plan = rows[i].plan;
        options.policy = rows[i].policy;
        options.dev.threads = rows[i].threads;
        options.dev.link_bytes_per_s = rows[i].link;
        if (rows[i].link)
            options.profile_path = NULL;
        assert_ok(ah_train(&result, &options));
        assert_int_equal(result.steps_done, STEPS);
        assert_true(result.final_loss == expected.final_loss && result.val_loss == expected.val_loss);
        expect_same_training(whole.out, part.out);
    }
}

static void stop_flag_saves_and_later_steps_change_nothing(void **state)
{
    volatile int stop = 1;
    struct place place;
    struct ah_train_result result;
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    options.stop = &stop; /* before the first step: nothing to save */
    assert_ok(ah_train(&result, &options));
    assert_true(result.stopped && result.steps_done == 0 && isnan(result.final_loss));
    int64_t done = train_part((place_init(&place), &place), 2);
    options = resume_of(&place);
    options.steps = done;
    assert_ok(ah_train(&result, &options)); /* nothing left to do */
    assert_int_equal(result.steps_done, done);
    assert_true(isfinite(result.final_loss) && isnan(result.val_loss) && result.step_ns_median == 0);
    assert_true(result.device_peak_bytes_predicted == 0 && result.device_peak_bytes_used == 0);
    options.steps = 1;
    assert_fails(ah_train(&result, &options), AH_EINPUT, "steps: found 1, expected at least");
}

/* What a crash may leave: a checkpoint half written, metrics of steps that were never saved, a line cut short. */
static void resume_after_a_crash(void **state)
{
    struct place whole, part;
    struct ah_train_result result;
    char path[PATH_SIZE], junk[PATH_SIZE];
    place_init(&whole);
    train_whole(&whole, &result);
    place_init(&part);
    train_part(&part, 3);
    assert_ok(ah__folder_make(at(path, part.out, "step-00000007.tmp")));
    write_text(at(junk, path, "model.safetensors"), "half");
    FILE *metrics = fopen(at(path, part.out, "metrics.jsonl"), "a");
    assert_non_null(metrics);
    fputs("{\"step\":7,\"loss\":1,\"grad_norm\":1,\"lr\":1,\"tokens_per_s\":1}\n{\"step\":8,\"lo", metrics);
    fclose(metrics);
    struct ah_train_options options = resume_of(&part);
    assert_ok(ah_train(&result, &options));
    expect_same_training(whole.out, part.out);
    assert_false(ah__path_exists(at(path, part.out, "step-00000007.tmp")));
}

static void resume_into_another_folder(void **state)
{
    struct place place;
    struct ah_train_result result;
    char checkpoint[PATH_SIZE], elsewhere[PATH_SIZE], path[PATH_SIZE], name[32];
    place_init(&place);
    int64_t done = train_part(&place, 3);
    struct ah_train_options options = resume_of(&place);
    options.resume_dir = at(checkpoint, place.out, "checkpoint");
    options.out_dir = at(elsewhere, ah_test_folder(), "new");
    assert_ok(ah_train(&result, &options));
    size_t length;
    char *text = read_text(elsewhere, "metrics.jsonl", &length), start[32];
    snprintf(start, sizeof start, "{\"step\":%" PRId64 ",", done + 1);
    assert_memory_equal(text, start, strlen(start));
    ah__free(text);
    snprintf(name, sizeof name, "step-%08" PRId64, done);
    assert_true(ah__path_exists(at(path, place.out, name))); /* the old training is as it was */
}

/* ---- nothing is lost --------------------------------------------------------------------------------------------- */

/* Every step multiplies the matrices by a million, so that infinity is near. */
static struct ah_train_options diverging(const struct place *place)
{
    struct ah_train_options options = options_of(place);
    options.lr = 1e3;
    options.weight_decay = 1e3;
    options.warmup_steps = 0;
    options.steps = 100;
    return options;
}

static void divergence_ends_the_training(void **state)
{
    struct place place;
    struct ah_train_result result;
    char path[PATH_SIZE];
    size_t length;
    place_init(&place);
    struct ah_train_options options = diverging(&place);
    assert_fails(ah_train(&result, &options), AH_ENUMERIC, ": the loss is ");
    assert_memory_equal(ah_error(), "step ", 5);
    assert_false(ah__path_exists(at(path, place.out, "checkpoint")));
    char *metrics = read_text(place.out, "metrics.jsonl", &length);
    assert_null(strstr(metrics, "nan"));
    assert_null(strstr(metrics, "inf"));
    ah__free(metrics);
}

static void divergence_keeps_the_last_checkpoint(void **state)
{
    struct place place;
    struct ah_train_result result;
    place_init(&place);
    struct ah_train_options options = diverging(&place);
    options.save_every = 1;
    assert_int_equal(ah_train(&result, &options), AH_ENUMERIC);
    options = resume_of(&place);
    assert_int_equal(ah_train(&result, &options), AH_ENUMERIC); /* it loads, and goes where it went before */
}

static int small_files_from_step_5(const struct ah_step *step, void *context)
{
    struct rlimit limit = *(const struct rlimit *)context;
    limit.rlim_cur = 4096;
    return step->step == 5 ? setrlimit(RLIMIT_FSIZE, &limit) : 0;
}

static void full_disk_keeps_the_last_checkpoint(void **state)
{
    struct place whole, part;
    struct ah_train_result result;
    struct rlimit before;
    place_init(&whole);
    train_whole(&whole, &result);
    place_init(&part);
    struct ah_train_options options = options_of(&part);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    options.save_every = 4;
    options.context = &before;
    int status = train_watched(&result, &options, NULL, small_files_from_step_5);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_fails(status, AH_EIO, "safetensors");
    options = resume_of(&part);
    assert_ok(ah_train(&result, &options));
    expect_same_training(whole.out, part.out);
}

/* Trains one step once for each allocation from first_but_one + 1 on and lets it fail; returns how many a whole
 * training makes. Only what comes after the checkpoint is in place may fail unheard. */
static uint64_t fail_allocations_after(uint64_t first_but_one, const struct ah_train_options *options)
{
    struct ah_train_result result;
    char path[PATH_SIZE];
    uint64_t before = ah__alloc_count();
    assert_ok(ah_train(&result, options));
    uint64_t count = ah__alloc_count() - before;
    uint64_t step = (uint64_t)ah_test_rounds(7, 1, 1);
    for (uint64_t n = first_but_one + 1; n <= count; n += step) {
        if (options->out_dir)
            assert_ok(ah__folder_remove(options->out_dir));
        ah__alloc_fail_at(n);
        int status = ah_train(&result, options);
        ah__alloc_fail_at(0);
        bool saved = options->out_dir && ah__path_exists(at(path, options->out_dir, "checkpoint/state.json"));
        if (status != AH_ENOMEM && !(status == AH_OK && saved))
            fail_msg("allocation %d of %d: %s: %s", (int)n, (int)count, ah_status_name(status), ah_error());
    }
    return count;
}

static void out_of_memory_anywhere(void **state)
{
    struct place place;
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    options.steps = 1;
    options.out_dir = NULL;
    uint64_t count = fail_allocations_after(0, &options);
    assert_in_range(count, 100, 5000);
    char in_memory[] = "/dev/shm/autohete-test-XXXXXX"; /* hundreds of trainings sync their files */
    options.out_dir = mkdtemp(in_memory) ? in_memory : place.out;
    assert_true(fail_allocations_after(count - 20, &options) > count + 20);
    assert_ok(ah__folder_remove(options.out_dir));
}

AH_TEST_CASES("train/train", leaves_everything, every_step_and_no_allocation, resume_under_any_plan_gives_the_same_bits,
              stop_flag_saves_and_later_steps_change_nothing, resume_after_a_crash, resume_into_another_folder,
              divergence_ends_the_training, divergence_keeps_the_last_checkpoint, full_disk_keeps_the_last_checkpoint,
              out_of_memory_anywhere)
