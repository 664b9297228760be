/* No run is lost: checkpoints by time and in the background, the one before when the newest is damaged, starting over,
 * and everything a run was started with. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "source/folder.h"
#include "train/tiny.h"

struct watch {
    char notes[4096], faults[4096];
    void (*at_step)(struct watch *watch, int64_t step);
    struct place *place;
    struct ah_budget budget;
    char plan[64];
    struct rlimit limit;
};

static void on_note(const char *line, void *context)
{
    struct watch *watch = context;
    size_t length = strlen(watch->notes);
    snprintf(watch->notes + length, sizeof watch->notes - length, "%s\n", line);
}

static void on_fault(const char *line, void *context)
{
    struct watch *watch = context;
    size_t length = strlen(watch->faults);
    snprintf(watch->faults + length, sizeof watch->faults - length, "%s\n", line);
}

static int on_step(const struct ah_step *step, void *context)
{
    struct watch *watch = context;
    if (watch->at_step)
        watch->at_step(watch, step->step);
    return 0;
}

static int on_open(const struct ah_trainer *trainer, void *context)
{
    struct watch *watch = context;
    struct ah_plan plan;
    ah_trainer_plan(trainer, &plan, &watch->budget);
    snprintf(watch->plan, sizeof watch->plan, "c=%d", plan.switches.checkpoint);
    return AH_OK;
}

static void watched(struct ah_train_options *options, struct watch *watch, struct place *place)
{
    *watch = (struct watch){.place = place};
    options->on_note = on_note;
    options->on_fault = on_fault;
    options->context = watch;
}

static void train_ok(const struct ah_train_options *options, struct ah_train_result *result)
{
    int status = options->context ? train_watched(result, options, on_open, on_step) : ah_train(result, options);
    if (status != AH_OK)
        fail_msg("%s: %s", ah_status_name(status), ah_error());
}

/* What an undisturbed training of the same options ends with. */
static void whole(struct place *place)
{
    struct ah_train_result result;
    place_init(place);
    struct ah_train_options options = options_of(place);
    train_ok(&options, &result);
    assert_true(result.saved && !result.stopped);
}

static void expect_same_end(const struct place *a, const struct place *b)
{
    char left[PATH_SIZE], right[PATH_SIZE];
    at(left, a->out, "checkpoint");
    at(right, b->out, "checkpoint");
    expect_same_file(left, right, "model.safetensors");
    expect_same_file(left, right, "optimizer.safetensors");
}

static int count_folders(const struct place *place)
{
    int count = 0;
    for (int step = 1; step <= STEPS; step++) {
        char path[PATH_SIZE], name[32];
        snprintf(name, sizeof name, "step-%08d", step);
        count += ah__path_exists(at(path, place->out, name));
    }
    return count;
}

/* ---- when and how many ------------------------------------------------------------------------------------------- */

static void by_time_in_the_background(void **state)
{
    static const int64_t host_bytes[] = {0, 1 << 20}; /* with a copy, and without room for one */
    struct place undisturbed;
    struct ah_train_result result;
    whole(&undisturbed);
    assert_int_equal(count_folders(&undisturbed), 1);
    for (size_t i = 0; i < AH_LENGTH(host_bytes); i++) {
        struct place place;
        place_init(&place);
        struct ah_train_options options = options_of(&place);
        options.save_seconds = 1e-9;
        options.keep = STEPS;
        options.budget.host_bytes = host_bytes[i];
        train_ok(&options, &result);
        assert_true(result.saved);
        assert_in_range(count_folders(&place), 2, STEPS);
        expect_same_end(&undisturbed, &place);
    }
}

static void keeps_the_newest(void **state)
{
    for (int keep = 1; keep <= 3; keep++) {
        struct place place;
        struct ah_train_result result;
        char path[PATH_SIZE];
        place_init(&place);
        struct ah_train_options options = options_of(&place);
        options.save_every = 1;
        options.keep = keep;
        train_ok(&options, &result);
        assert_int_equal(count_folders(&place), keep);
        assert_true(ah__path_exists(at(path, place.out, "step-00000008")));
    }
}

static void small_files_for_a_while(struct watch *watch, int64_t step)
{
    struct rlimit limit = watch->limit;
    limit.rlim_cur = 4096;
    if (step == 3 || step == 6)
        assert_int_equal(setrlimit(RLIMIT_FSIZE, step == 3 ? &limit : &watch->limit), 0);
}

/* A full disk on the way is told, and does no harm when there is room again in the end. */
static void a_failure_on_the_way_is_told(void **state)
{
    struct place undisturbed, place;
    struct ah_train_result result;
    struct watch watch;
    whole(&undisturbed);
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    watched(&options, &watch, &place);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &watch.limit), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    watch.at_step = small_files_for_a_while;
    options.save_every = 1;
    int status = train_watched(&result, &options, on_open, on_step);
    setrlimit(RLIMIT_FSIZE, &watch.limit);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, AH_OK);
    assert_non_null(strstr(watch.faults, "a checkpoint could not be written, the training goes on: "));
    assert_non_null(strstr(watch.faults, "File too large"));
    assert_null(strstr(watch.notes, "could not"));
    expect_same_end(&undisturbed, &place);
}

static void remove_folder(struct watch *watch, int64_t step)
{
    if (step == 3)
        assert_ok(ah__folder_remove(watch->place->out));
}

static void rename_folder(struct watch *watch, int64_t step)
{
    char away[PATH_SIZE];
    if (step == 3)
        assert_int_equal(rename(watch->place->out, at(away, ah_test_folder(), "away")), 0);
}

static void a_folder_that_goes_is_made_again(void **state)
{
    void (*const ways[])(struct watch *, int64_t) = {remove_folder, rename_folder};
    for (size_t i = 0; i < AH_LENGTH(ways); i++) {
        struct place undisturbed, place;
        struct ah_train_result result;
        struct watch watch;
        char path[PATH_SIZE];
        whole(&undisturbed);
        place_init(&place);
        struct ah_train_options options = options_of(&place);
        watched(&options, &watch, &place);
        watch.at_step = ways[i];
        options.save_every = 5;
        train_ok(&options, &result);
        assert_non_null(strstr(watch.notes, "was removed or renamed: made it again"));
        expect_same_end(&undisturbed, &place);
        assert_true(ah__path_exists(at(path, place.out, "run.json")));
        assert_true(ah__path_exists(at(path, place.out, "metrics.jsonl")));
    }
}

/* ---- data that change -------------------------------------------------------------------------------------------- */

static void cut_data(struct watch *watch, int64_t step)
{
    if (step == 3)
        assert_int_equal(truncate(watch->place->data, 10), 0);
}

static void data_cut_short_end_with_a_checkpoint(void **state)
{
    struct place undisturbed, place;
    struct ah_train_result result;
    struct watch watch;
    whole(&undisturbed);
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    watched(&options, &watch, &place);
    watch.at_step = cut_data;
    assert_fails(train_watched(&result, &options, on_open, on_step), AH_EIO, "it was cut short since it was opened");
    options = resume_of(&place);
    assert_fails(ah_train(&result, &options), AH_ESTALE, "data.txt: found 10 tokens, expected 2999");
    write_data(place.data, 3);
    train_ok(&options, &result);
    expect_same_end(&undisturbed, &place);
}

/* ---- going on ---------------------------------------------------------------------------------------------------- */

static void the_one_before_when_the_newest_is_damaged(void **state)
{
    struct place undisturbed, place;
    struct ah_train_result result;
    struct watch watch;
    char path[PATH_SIZE];
    whole(&undisturbed);
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    options.save_every = 3;
    train_ok(&options, &result);
    write_text(at(path, place.out, "step-00000008/model.safetensors"), "damaged");
    options = resume_of(&place);
    watched(&options, &watch, &place);
    train_ok(&options, &result);
    assert_non_null(strstr(watch.notes, "step-00000008/model.safetensors: found 7 bytes"));
    assert_non_null(strstr(watch.notes, "; going on from step 6 instead"));
    expect_same_end(&undisturbed, &place);
}

/* As if the power had gone before the first checkpoint. */
static void lose_checkpoints(const struct place *place)
{
    char path[PATH_SIZE];
    assert_ok(ah__folder_remove(at(path, place->out, "step-00000008")));
    assert_int_equal(unlink(at(path, place->out, "checkpoint")), 0);
    assert_int_equal(unlink(at(path, place->out, "model.safetensors")), 0);
    assert_int_equal(unlink(at(path, place->out, "config.json")), 0);
}

static void without_a_checkpoint_it_starts_over(void **state)
{
    struct place undisturbed, place;
    struct ah_train_result result;
    struct watch watch;
    char path[PATH_SIZE];
    whole(&undisturbed);
    whole(&place);
    lose_checkpoints(&place);
    struct ah_train_options options = resume_of(&place);
    watched(&options, &watch, &place);
    train_ok(&options, &result);
    assert_non_null(strstr(watch.notes, "out holds no complete checkpoint yet: starting from the beginning"));
    assert_true(ah__path_exists(at(path, place.out, "metrics.jsonl.1")));
    expect_same_end(&undisturbed, &place);
    lose_checkpoints(&place);
    options = options_of(&place); /* or the same command once more */
    train_ok(&options, &result);
    assert_true(ah__path_exists(at(path, place.out, "metrics.jsonl.2")));
    expect_same_end(&undisturbed, &place);
    lose_checkpoints(&place);
    assert_int_equal(unlink(at(path, place.out, "run.json")), 0);
    options = resume_of(&place);
    assert_fails(ah_train(&result, &options), AH_EINPUT,
                 "found no complete checkpoint, expected a step folder "
                 "or a folder that holds some; with model and data given, and the same folder as out, one is started "
                 "there");
}

static int stop_at_5(const struct ah_step *step, void *context)
{
    return step->step == 5;
}

static int stop_at_2(const struct ah_step *step, void *context)
{
    return step->step % 3 == 2;
}

/* A training that was stopped knows which of its steps the last validation was of. */
static void a_validation_keeps_its_step(void **state)
{
    struct place place;
    struct ah_train_result result;
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    options.val_every = 4;
    options.val_batches = 1;
    assert_ok(train_watched(&result, &options, NULL, stop_at_5));
    assert_true(result.stopped && result.steps_done >= 5 && result.steps_done < 8);
    assert_int_equal(result.val_step, 4);
    options.resume_dir = options.out_dir;
    assert_ok(ah_train(&result, &options));
    assert_true(result.steps_done == STEPS && result.val_step == STEPS);
}

/* One command that starts a training and goes on with it, until it is done. */
static void the_same_command_starts_and_resumes(void **state)
{
    struct place undisturbed, place;
    struct ah_train_result result;
    whole(&undisturbed);
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    options.resume_dir = options.out_dir;
    for (int starts = 1; starts <= 5; starts++) {
        assert_ok(train_watched(&result, &options, NULL, stop_at_2));
        if (!result.stopped)
            break;
        assert_true(result.saved);
    }
    assert_int_equal(result.steps_done, STEPS);
    expect_same_end(&undisturbed, &place);
    options.resume_dir = "elsewhere"; /* but only when both are one */
    assert_fails(ah_train(&result, &options), AH_EINPUT, "elsewhere: cannot open folder");
}

static void a_resume_knows_plan_and_budget(void **state)
{
    struct place place;
    struct ah_train_result result;
    struct watch watch;
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    options.plan = "c=2,p=0,o=3";
    options.budget.device_bytes = 1 << 22;
    options.budget.host_bytes = 1 << 23;
    options.steps = 4;
    train_ok(&options, &result);
    options = resume_of(&place);
    watched(&options, &watch, &place);
    options.steps = 5;
    options.plan = NULL;
    train_ok(&options, &result);
    assert_true(watch.budget.device_bytes == 1 << 22 && watch.budget.host_bytes == 1 << 23);
    assert_string_equal(watch.plan, "c=2");
    options.steps = 6;
    options.budget.device_bytes = AH_NO_LIMIT;
    options.plan = "resident";
    train_ok(&options, &result);
    assert_true(watch.budget.device_bytes == 0 && watch.budget.host_bytes == 1 << 23);
    assert_string_equal(watch.plan, "c=0");
}

/* The plan before is a warm start. */
static void a_resume_is_no_slower_than_before(void **state)
{
    struct place place;
    struct ah_train_result before, result;
    char path[PATH_SIZE];
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    options.budget.device_bytes = 1 << 22;
    options.plan = "auto";
    options.steps = 2;
    train_ok(&options, &before);
    at(path, place.out, "plan.json");
    options = resume_of(&place);
    options.plan = "auto";
    options.steps = 3;
    options.budget.device_bytes = 1 << 23;
    train_ok(&options, &result);
    assert_true(result.plan.step_ns <= before.plan.step_ns);
    assert_int_equal(unlink(path), 0); /* a plan that is gone is no fault */
    options.steps = 4;
    train_ok(&options, &result);
}

static void like_another(void **state)
{
    struct place first, second;
    struct ah_train_result result, other;
    char here[PATH_SIZE];
    whole(&first);
    place_init(&second);
    struct ah_train_options options;
    ah_train_options_init(&options, sizeof options);
    options.like_dir = first.out;
    options.out_dir = second.out;
    options.profile_path = options_of(&first).profile_path;
    train_ok(&options, &result);
    assert_int_equal(result.steps_done, STEPS);
    expect_same_end(&first, &second);
    options.out_dir = at(here, ah_test_folder(), "third");
    options.seed = 2;
    train_ok(&options, &other);
    assert_true(other.final_loss != result.final_loss);
    options.resume_dir = first.out;
    assert_fails(ah_train(&result, &options), AH_EINPUT, "beside a training to resume");
    options.resume_dir = NULL;
    options.like_dir = second.data;
    assert_int_equal(ah_train(&result, &options), AH_EINPUT);
}

/* Six steps, then nine, are nine straight when the schedule's length is fixed. */
static void a_fixed_schedule_can_be_trained_in_parts(void **state)
{
    struct place straight, parts;
    struct ah_train_result result;
    for (int i = 0; i < 2; i++) {
        struct place *place = i ? &parts : &straight;
        place_init(place);
        struct ah_train_options options = options_of(place);
        options.lr_steps = 20;
        options.steps = i ? 6 : 9;
        train_ok(&options, &result);
    }
    struct ah_train_options options = resume_of(&parts);
    options.steps = 9;
    train_ok(&options, &result);
    expect_same_end(&straight, &parts);
}

/* ---- nothing to do ----------------------------------------------------------------------------------------------- */

static void nothing_left_rewrites_nothing(void **state)
{
    static const char *const names[] = {"run.json", "plan.json", "profile.json", "metrics.jsonl", "step-00000008"};
    struct place place;
    struct ah_train_result result;
    struct stat before[AH_LENGTH(names)], after;
    char path[PATH_SIZE];
    whole(&place);
    for (size_t i = 0; i < AH_LENGTH(names); i++)
        assert_int_equal(stat(at(path, place.out, names[i]), &before[i]), 0);
    struct ah_train_options options = resume_of(&place);
    train_ok(&options, &result);
    assert_true(isnan(result.val_loss) && !result.saved);
    for (size_t i = 0; i < AH_LENGTH(names); i++) {
        assert_int_equal(stat(at(path, place.out, names[i]), &after), 0);
        assert_true(after.st_ino == before[i].st_ino && after.st_mtim.tv_nsec == before[i].st_mtim.tv_nsec);
    }
}

static void stopped_before_the_first_step_writes_nothing(void **state)
{
    volatile int stop = 1;
    struct place place;
    struct ah_train_result result;
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    options.stop = &stop;
    train_ok(&options, &result);
    assert_true(result.stopped && !result.saved && result.steps_done == 0);
    assert_false(ah__path_exists(place.out));
}

static void without_a_folder_it_says_so(void **state)
{
    struct place place;
    struct ah_train_result result;
    struct watch watch;
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    watched(&options, &watch, &place);
    options.out_dir = NULL;
    train_ok(&options, &result);
    assert_string_equal(watch.notes, "nothing of this training will be saved: no folder was given for it\n");
    assert_false(result.saved);
}

AH_TEST_CASES("train/saving", by_time_in_the_background, keeps_the_newest, a_failure_on_the_way_is_told,
              a_folder_that_goes_is_made_again, data_cut_short_end_with_a_checkpoint,
              the_one_before_when_the_newest_is_damaged, without_a_checkpoint_it_starts_over,
              the_same_command_starts_and_resumes, a_validation_keeps_its_step, a_resume_knows_plan_and_budget,
              a_resume_is_no_slower_than_before, like_another, a_fixed_schedule_can_be_trained_in_parts,
              nothing_left_rewrites_nothing, stopped_before_the_first_step_writes_nothing, without_a_folder_it_says_so)
