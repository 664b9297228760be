/* Trainings with blocks on disk: they go on with and without a disk to the same files, which saving and loading read
 * from the drive once; a drive that fails ends them in one line and takes nothing that was saved. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "dev/host/disk_file.h"
#include "source/folder.h"
#include "train/tiny.h"

static const char *const placements[] = {"resident", "c=2,p=1,o=3,disk=3,disk_ahead=14,chunks=16,buffers=8",
                                         "c=0,p=3,o=3,disk=3,chunks=1", "c=1,p=2,o=3,disk=1,chunks=3"};
enum { RESIDENT, ON_DISK };

static struct place place_named(const char *name)
{
    struct place place;
    place_init(&place);
    at(place.out, ah_test_folder(), name);
    return place;
}

static struct ah_train_options options_with(const struct place *place, const char *plan)
{
    static char disk[PATH_SIZE];
    if (!disk[0])
        snprintf(disk, sizeof disk, "%s", ah_test_folder());
    struct ah_train_options options = options_of(place);
    options.plan = plan;
    options.dev.disk = disk;
    return options;
}

static struct ah_train_options resume_with(const struct place *place, const char *plan)
{
    struct ah_train_options options = resume_of(place);
    options.plan = plan;
    return options; /* the folder is that of the training before */
}

static void trains(const struct ah_train_options *options)
{
    struct ah_train_result result;
    int status = ah_train(&result, options);
    if (status != AH_OK)
        fail_msg("%s: %s", ah_status_name(status), ah_error());
    assert_int_equal(result.steps_done, STEPS);
}

static void expect_same_end(const struct place *a, const struct place *b)
{
    char left[PATH_SIZE], right[PATH_SIZE];
    at(left, a->out, "checkpoint");
    at(right, b->out, "checkpoint");
    expect_same_file(left, right, "model.safetensors");
    expect_same_file(left, right, "optimizer.safetensors");
}

/* ---- with and without a disk ------------------------------------------------------------------------------------- */

struct format {
    const char *dtype, *master, *moments;
    double clip; /* 0: the default */
};

static void format_set(struct ah_train_options *options, const struct format *format)
{
    options->dtype = format->dtype;
    options->master = format->master;
    options->moments = format->moments;
    options->clip = format->clip > 0 ? format->clip : options->clip;
}

/* The first training of a format, all of it on the device, which measures a profile for the others. */
static void train_whole(struct place *whole, const struct format *format, char profile[PATH_SIZE])
{
    *whole = place_named("whole");
    struct ah_train_options options = options_of(whole);
    format_set(&options, format);
    if (format->dtype)
        options.profile_path = NULL; /* that is one in fp32 */
    trains(&options);
    at(profile, whole->out, "profile.json");
}

static void train_in_two_parts(const struct place *whole, const struct format *format, const char *profile,
                               const char *from, const char *to)
{
    struct ah_train_result result;
    struct place part = place_named("part");
    struct ah_train_options options = options_with(&part, from);
    format_set(&options, format);
    options.profile_path = profile;
    options.save_every = 2;
    assert_ok(train_watched(&result, &options, NULL, stop_at_3));
    assert_true(result.stopped && result.saved && result.steps_done < STEPS);
    options = resume_with(&part, to);
    options.profile_path = profile;
    trains(&options);
    expect_same_end(whole, &part);
    assert_ok(ah__folder_remove(part.out));
}

static void a_training_moves_to_and_from_disk(void **state)
{
    static const struct format formats[] = {
        {NULL, NULL, NULL, 0}, {"bf16", NULL, "int8", 1e-4}, {"bf16", "bf16", "bf16", 0}};
    for (size_t f = 0; f < AH_LENGTH(formats); f++) {
        char profile[PATH_SIZE];
        struct place whole;
        train_whole(&whole, &formats[f], profile);
        for (size_t from = 0; from < (f ? 2 : AH_LENGTH(placements)); from++) {
            size_t to = from == RESIDENT ? 1 + f : from == ON_DISK ? RESIDENT : 5 - from;
            train_in_two_parts(&whole, &formats[f], profile, placements[from], placements[to]);
        }
        assert_ok(ah__folder_remove(whole.out));
    }
}

/* ---- a drive that fails ------------------------------------------------------------------------------------------ */

enum fault { FAULT_NONE, FAULT_ERROR, FAULT_SHORT, FAULT_NOTHING, FAULT_INTERRUPTED };

/* The calls from `from` on, and for so many of them. */
static struct {
    enum fault fault;
    bool reads, writes;
    int64_t from, count;
} hurt;
static atomic_llong calls, bytes_read;

static bool is_hurt(bool writes)
{
    if (hurt.fault == FAULT_NONE || !(writes ? hurt.writes : hurt.reads))
        return false;
    int64_t number = ++calls;
    return number >= hurt.from && number < hurt.from + hurt.count;
}

/* Returns true if the call is to go on, with so many bytes; else what it returns is in *got. */
static bool goes_on(size_t *bytes, ssize_t *got, bool writes)
{
    if (!is_hurt(writes))
        return true;
    *got = hurt.fault == FAULT_NOTHING ? 0 : -1;
    errno = hurt.fault == FAULT_INTERRUPTED ? EINTR : EIO;
    if (hurt.fault == FAULT_SHORT && *bytes > AH_DISK_ALIGN)
        *bytes = AH_DISK_ALIGN;
    return hurt.fault == FAULT_SHORT;
}

static ssize_t hurt_read(int fd, void *to, size_t bytes, off_t from)
{
    ssize_t got;
    if (goes_on(&bytes, &got, false))
        got = pread(fd, to, bytes, from);
    bytes_read += got > 0 ? got : 0;
    return got;
}

static ssize_t hurt_write(int fd, const void *from, size_t bytes, off_t to)
{
    ssize_t got;
    return goes_on(&bytes, &got, true) ? pwrite(fd, from, bytes, to) : got;
}

static void hurt_begins(enum fault fault, bool reads, bool writes, int64_t from, int64_t count)
{
    static const struct ah_disk_calls hooks = {.read = hurt_read, .write = hurt_write};
    ah__disk_calls(&hooks);
    calls = 0;
    hurt.fault = fault;
    hurt.reads = reads;
    hurt.writes = writes;
    hurt.from = from;
    hurt.count = count;
}

static void hurt_ends(void)
{
    hurt.fault = FAULT_NONE;
}

/* The command that begins a training and goes on with it. */
static struct ah_train_options hurt_options(const struct place *place)
{
    struct ah_train_options options = options_with(place, placements[ON_DISK]);
    options.save_every = 2;
    options.keep = STEPS;
    options.resume_dir = options.out_dir;
    return options;
}

/* Calls of a training that nothing happens to. */
static int64_t calls_of(struct place *whole, bool reads, bool writes)
{
    *whole = place_named("whole");
    struct ah_train_options options = hurt_options(whole);
    hurt_begins(FAULT_ERROR, reads, writes, INT64_MAX, 0);
    trains(&options);
    hurt_ends();
    return calls;
}

/* One call fails, or all from it on do. The message has file, offset and the system's error; the same command goes on
 * from what was saved, or begins again. */
static void each_failure_ends_the_training(bool writes, enum fault fault, const char *words)
{
    struct place whole, place;
    int64_t all = calls_of(&whole, !writes, writes), ended = 0, tries = ah_test_rounds(4, 8, 40);
    assert_true(all > 2 * tries);
    for (int64_t i = 0; i < tries; i++) {
        struct ah_train_result result;
        place = place_named("hurt");
        struct ah_train_options options = hurt_options(&place);
        hurt_begins(fault, !writes, writes, 2 + i * (all - 2) / tries,
                    fault == FAULT_ERROR && i % 2 ? 1 : INT64_MAX / 2);
        int status = ah_train(&result, &options);
        hurt_ends();
        ended += status != AH_OK;
        if (status != AH_OK) {
            assert_int_equal(status, AH_EIO);
            assert_non_null(strstr(ah_error(), "scratch file in "));
            assert_non_null(strstr(ah_error(), " at offset "));
            assert_non_null(strstr(ah_error(), words));
            assert_null(strchr(ah_error(), '\n'));
        }
        trains(&options);
        expect_same_end(&whole, &place);
        assert_ok(ah__folder_remove(place.out));
    }
    assert_true(ended >= tries - 2); /* a training needs fewer calls now and then */
}

static void a_failed_read_ends_the_training(void **state)
{
    each_failure_ends_the_training(false, FAULT_ERROR, strerror(EIO));
    each_failure_ends_the_training(false, FAULT_NOTHING, "found 0 bytes, expected ");
}

static void a_failed_write_ends_the_training(void **state)
{
    each_failure_ends_the_training(true, FAULT_ERROR, strerror(EIO));
    each_failure_ends_the_training(true, FAULT_NOTHING, "found 0 bytes, expected ");
}

/* What is done by halves is done in the end. */
static void short_calls_change_nothing(void **state)
{
    static const enum fault faults[] = {FAULT_SHORT, FAULT_INTERRUPTED};
    struct place whole;
    int64_t all = calls_of(&whole, true, true);
    for (size_t i = 0; i < AH_LENGTH(faults); i++) {
        struct place place = place_named("hurt");
        struct ah_train_options options = hurt_options(&place);
        hurt_begins(faults[i], true, true, 1, faults[i] == FAULT_SHORT ? INT64_MAX / 2 : all / 2);
        trains(&options);
        hurt_ends();
        expect_same_end(&whole, &place);
        assert_ok(ah__folder_remove(place.out));
    }
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

static struct ah_trainer *trainer_after_a_step(const struct ah_train_options *options)
{
    struct ah_trainer *trainer;
    struct ah_step step;
    assert_ok(ah_trainer_open(&trainer, options));
    assert_ok(ah_trainer_step(trainer, &step));
    return trainer;
}

/* Bytes of the states in one of their two places: a step writes them and the gradients, of which there is one place. */
static int64_t states_bytes(const struct ah_trainer *trainer)
{
    struct ah_plan plan;
    ah_trainer_plan(trainer, &plan, NULL);
    return plan.disk_peak_bytes - plan.disk_written_bytes;
}

/* Saves twice without a step in between, so that the second save begins with nothing in flight. */
static void expect_saving_reads_once(struct ah_trainer *trainer, const char *folder)
{
    char first[PATH_SIZE], second[PATH_SIZE];
    assert_ok(ah_trainer_save(trainer, at(first, folder, "first")));
    bytes_read = 0;
    assert_ok(ah_trainer_save(trainer, at(second, folder, "second")));
    assert_int_equal(bytes_read, states_bytes(trainer));
}

/* Loading changes parts of chunks, so that each is read, once. The step that the trainer asks for is none of the
 * checkpoint's: it fails behind loading. */
static void expect_loading_reads_once(struct ah_train_options options, const char *folder)
{
    char from[PATH_SIZE], to[PATH_SIZE];
    struct ah_trainer *trainer;
    options.resume_dir = at(from, folder, "second");
    options.out_dir = NULL;
    bytes_read = 0;
    assert_ok(ah_trainer_open(&trainer, &options));
    assert_int_equal(ah_trainer_save(trainer, at(to, folder, "nothing")), AH_EINPUT);
    assert_int_equal(bytes_read, states_bytes(trainer));
    ah_trainer_close(trainer);
}

/* Trains with a profile that the first plan measures. */
static void expect_one_read(const struct format *format, const char *plan, char profile[PATH_SIZE])
{
    enum { WIDTH = 64 }; /* of a model whose blocks fill 13 chunks */
    char folder[PATH_SIZE];
    struct place place = place_named("trained");
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    write_model(place.model, WIDTH);
    struct ah_train_options options = options_with(&place, plan);
    format_set(&options, format);
    options.profile_path = *profile ? profile : NULL;
    struct ah_trainer *trainer = trainer_after_a_step(&options);
    expect_saving_reads_once(trainer, folder);
    ah_trainer_close(trainer);
    options.profile_path = *profile ? profile : at(profile, place.out, "profile.json");
    expect_loading_reads_once(options, folder);
}

static void a_checkpoint_takes_one_read(void **state)
{
    static const char *const plans[] = {"c=2,p=1,o=3,disk=3,disk_ahead=2,chunks=13,buffers=8",
                                        "c=1,p=2,o=3,disk=1,chunks=3", "c=0,p=3,o=3,disk=3,chunks=1"};
    static const struct format formats[] = {
        {NULL, NULL, NULL, 0}, {NULL, NULL, "int8", 0}, {"bf16", "bf16", "bf16", 0}};
    hurt_begins(FAULT_NONE, false, false, 0, 0);
    for (size_t f = 0; f < AH_LENGTH(formats); f++) {
        char profile[PATH_SIZE] = "";
        for (size_t i = 0; i < AH_LENGTH(plans); i++)
            expect_one_read(&formats[f], plans[i], profile);
    }
}

AH_TEST_CASES("train/disk", a_training_moves_to_and_from_disk, a_failed_read_ends_the_training,
              a_failed_write_ends_the_training, short_calls_change_nothing, a_checkpoint_takes_one_read)
