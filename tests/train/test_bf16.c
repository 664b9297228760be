/* Trainings in bf16: what they save, and that they go on from it bit for bit. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "dev/cpu/gemm_bf16.h"
#include "dev/planes.h"
#include "io/safetensors.h"
#include "train/tiny.h"

static const double CLIP = 1.4; /* between the steps' gradient norms, so that some are clipped and some are not */

static struct ah_train_options bf16_options(const struct place *place)
{
    struct ah_train_options options = options_of(place);
    options.dtype = "bf16";
    options.profile_path = NULL; /* that is one in fp32 */
    options.dev.threads = 1;
    return options;
}

static char *out_of(char path[PATH_SIZE], const struct place *place, const char *name)
{
    snprintf(path, PATH_SIZE, "%s-%s", place->out, name);
    return path;
}

static int stop_at_4(const struct ah_step *step, void *context)
{
    return step->step >= 4;
}

/* Stopped in the middle and gone on with under another plan: from the fp32 masters, which the saved model rounds; also
 * in micro-batches, and with a limit that clips some steps. */
static void resumes_from_the_masters(void **state)
{
    static const struct {
        const char *name, *saved;
        int64_t micro_batch;
        const char *master, *moments;
    } cases[] = {{"rounded", "bf16", AH_MICRO_BATCH_WHOLE, NULL, NULL},
                 {"whole", "fp32", AH_MICRO_BATCH_WHOLE, NULL, "bf16"},
                 {"short", "bf16", AH_MICRO_BATCH_WHOLE, "bf16", "bf16"},
                 {"coded", "bf16", AH_MICRO_BATCH_WHOLE, NULL, "int8"},
                 {"micro", "bf16", 1, "bf16", NULL}};
    struct place place;
    struct ah_train_result result;
    char whole[PATH_SIZE], parts[PATH_SIZE];
    place_init(&place);
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        struct ah_train_options options = bf16_options(&place);
        options.save_dtype = cases[i].saved;
        options.micro_batch = cases[i].micro_batch;
        options.master = cases[i].master;
        options.moments = cases[i].moments;
        options.clip = CLIP;
        options.out_dir = out_of(whole, &place, cases[i].name);
        assert_ok(ah_train(&result, &options));
        assert_string_equal(result.dtype, "bf16");
        assert_true(result.clipped_steps > 0 && result.clipped_steps < STEPS);
        assert_int_equal(result.device_peak_bytes_used, result.device_peak_bytes_predicted);
        assert_int_equal(result.host_peak_bytes_used, result.host_peak_bytes_predicted);
        strncat(out_of(parts, &place, cases[i].name), "-parts", 8);
        options.out_dir = parts;
        assert_ok(train_watched(&result, &options, NULL, stop_at_4));
        assert_true(result.steps_done < STEPS);
        struct ah_train_options resume = resume_of(&place);
        resume.resume_dir = parts;
        resume.profile_path = NULL;
        resume.plan = "c=3,p=2,o=3,embedding=host";
        assert_ok(ah_train(&result, &resume));
        assert_int_equal(result.steps_done, STEPS);
        expect_same_file(whole, parts, "checkpoint/model.safetensors");
        expect_same_file(whole, parts, "checkpoint/optimizer.safetensors");
    }
}

static void note_of_types(const char *line, void *context)
{
    if (strstr(line, "moments of the checkpoint are "))
        snprintf(context, PATH_SIZE, "%s", line);
}

/* Refused unless asked for; said; and the checkpoint then has the other types. What has been widened is narrowed to the
 * same again. */
static void states_are_converted_when_asked(void **state)
{
    static const struct {
        const char *moments;
        enum ah_dtype dtype;
        int tensors;
    } turns[] = {{"int8", AH_U8, 5}, {"bf16", AH_BF16, 3}, {"fp32", AH_F32, 3}};
    struct place place;
    struct ah_train_result result;
    struct ah_safetensors *optimizer, *model;
    char out[PATH_SIZE], path[PATH_SIZE];
    place_init(&place);
    struct ah_train_options options = bf16_options(&place);
    options.out_dir = out_of(out, &place, "turns");
    options.steps = 2;
    options.lr_steps = 20;
    assert_ok(ah_train(&result, &options));
    for (int i = 0; i < (int)AH_LENGTH(turns); i++) {
        char note[PATH_SIZE] = "";
        struct ah_train_options resume = resume_of(&place);
        resume.resume_dir = out;
        resume.profile_path = NULL;
        resume.steps = 4 + i;
        resume.moments = turns[i].moments;
        assert_fails(ah_train(&result, &resume), AH_ESTALE, "as in the checkpoint, or convert_states");
        resume.convert_states = true;
        resume.on_note = note_of_types;
        resume.context = note;
        assert_ok(ah_train(&result, &resume));
        assert_non_null(strstr(note, turns[i].moments));
        assert_int_equal(result.steps_done, 4 + i);
        strncat(out_of(path, &place, "turns"), "/checkpoint/optimizer.safetensors", 40);
        assert_ok(ah__safetensors_open(&optimizer, path));
        strncat(out_of(path, &place, "turns"), "/checkpoint/model.safetensors", 40);
        assert_ok(ah__safetensors_open(&model, path));
        size_t params = ah__safetensors_count(model);
        assert_int_equal(ah__safetensors_count(optimizer), (size_t)turns[i].tensors * params);
        for (size_t k = 0; k < ah__safetensors_count(optimizer); k++) {
            const struct ah_safetensors_tensor *tensor = ah__safetensors_at(optimizer, k);
            bool moment = strstr(tensor->name, ".exp_avg") && !strstr(tensor->name, ".scale");
            assert_int_equal(tensor->dtype, moment ? turns[i].dtype : AH_F32);
        }
        ah__safetensors_close(optimizer);
        ah__safetensors_close(model);
    }
}

/* The same masters in both files, rounded in one. */
static void saves_rounded_or_whole(void **state)
{
    struct place place;
    struct ah_train_result result;
    struct ah_safetensors *rounded, *whole, *optimizer;
    char path[PATH_SIZE];
    place_init(&place);
    struct ah_train_options options = bf16_options(&place);
    options.out_dir = out_of(path, &place, "rounded");
    assert_ok(ah_train(&result, &options));
    options.save_dtype = "fp32";
    options.out_dir = out_of(path, &place, "whole");
    assert_ok(ah_train(&result, &options));
    strncat(out_of(path, &place, "rounded"), "/checkpoint/model.safetensors", 40);
    assert_ok(ah__safetensors_open(&rounded, path));
    strncat(out_of(path, &place, "rounded"), "/checkpoint/optimizer.safetensors", 40);
    assert_ok(ah__safetensors_open(&optimizer, path));
    strncat(out_of(path, &place, "whole"), "/checkpoint/model.safetensors", 40);
    assert_ok(ah__safetensors_open(&whole, path));
    assert_int_equal(ah__safetensors_count(rounded), ah__safetensors_count(whole));
    assert_int_equal(ah__safetensors_count(optimizer), 3 * ah__safetensors_count(whole));
    for (size_t i = 0; i < ah__safetensors_count(whole); i++) {
        const struct ah_safetensors_tensor *r = ah__safetensors_at(rounded, i), *w = ah__safetensors_at(whole, i);
        char name[PATH_SIZE];
        snprintf(name, sizeof name, "%s.master", w->name);
        const struct ah_safetensors_tensor *master = ah__safetensors_find(optimizer, name);
        assert_string_equal(r->name, w->name);
        assert_true(r->dtype == AH_BF16 && w->dtype == AH_F32 && master && master->bytes == w->bytes);
        assert_memory_equal(master->data, w->data, w->bytes);
        for (size_t j = 0; j < w->bytes / 4; j++) {
            uint32_t bits;
            uint16_t narrow;
            memcpy(&bits, w->data + 4 * j, sizeof bits);
            memcpy(&narrow, r->data + 2 * j, sizeof narrow);
            assert_int_equal(narrow, ah__plane_upper(bits));
        }
    }
    ah__safetensors_close(rounded);
    ah__safetensors_close(whole);
    ah__safetensors_close(optimizer);
}

static void note_count(const char *line, void *context)
{
    assert_non_null(strstr(line, "the bits may differ"));
    ++*(int *)context;
}

/* Another dtype is another training; another way to multiply is said. */
static void what_changes_bits_is_kept_or_told(void **state)
{
    struct place place;
    struct ah_train_result result;
    char path[PATH_SIZE];
    int notes = 0;
    place_init(&place);
    struct ah_train_options options = bf16_options(&place);
    options.out_dir = out_of(path, &place, "kept");
    assert_ok(ah_train(&result, &options));
    struct ah_train_options resume = resume_of(&place);
    resume.resume_dir = path;
    resume.profile_path = NULL;
    resume.dtype = "fp32";
    assert_fails(ah_train(&result, &resume), AH_ESTALE, "dtype: found fp32, expected bf16 as in the checkpoint");
    resume.dtype = NULL;
    resume.on_note = note_count;
    resume.context = &notes;
    assert_ok(ah_train(&result, &resume));
    assert_int_equal(notes, 0);
    if (!ah__cpu_has_amx())
        return;
    ah__cpu_amx_forbid(true);
    int status = ah_train(&result, &resume);
    ah__cpu_amx_forbid(false);
    assert_ok(status);
    assert_int_equal(notes, 1);
}

AH_TEST_CASES("train/bf16", resumes_from_the_masters, states_are_converted_when_asked, saves_rounded_or_whole,
              what_changes_bits_is_kept_or_told)
