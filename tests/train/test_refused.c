/* What a training refuses: damaged checkpoints, another model or data, folders that are taken, wrong options. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "train/tiny.h"

static void change_byte(const char *path)
{
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, -20, SEEK_END), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, -20, SEEK_END), 0);
    fputc(byte ^ 4, file);
    fclose(file);
}

static void cut_short(const char *path)
{
    assert_int_equal(truncate(path, 100), 0);
}

static void take_away(const char *path)
{
    assert_int_equal(unlink(path), 0);
}

static void damaged_checkpoints(void **state)
{
    static const struct {
        const char *file;
        void (*damage)(const char *path);
    } rows[] = {
        {"model.safetensors", change_byte}, {"optimizer.safetensors", cut_short},
        {"state.json", change_byte},        {"model.safetensors", take_away},
        {"state.json", cut_short},          {"config.json", change_byte},
    };
    struct ah_train_result result;
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        struct place place;
        char folder[PATH_SIZE], path[PATH_SIZE], elsewhere[PATH_SIZE];
        place_init(&place);
        train_part(&place, 1);
        rows[i].damage(at(path, at(folder, place.out, "checkpoint"), rows[i].file));
        struct ah_train_options options = resume_of(&place);
        options.out_dir = at(elsewhere, ah_test_folder(), "new");
        assert_fails(ah_train(&result, &options), AH_ECORRUPT, rows[i].file);
        assert_false(ah__path_exists(elsewhere));
    }
}

static void other_model_data_batch(void **state)
{
    struct place place, other;
    struct ah_train_result result;
    place_init(&place);
    place_init(&other);
    write_model(other.model, 32);
    write_data(other.data, 5);
    train_part(&place, 1);
    struct ah_train_options options = resume_of(&place);
    options.model_path = other.model;
    assert_fails(ah_train(&result, &options), AH_ESTALE, "key 'n_embd': found 32, expected 16");
    options = resume_of(&place);
    options.data_path = other.data;
    assert_fails(ah_train(&result, &options), AH_ESTALE, "data.txt: found content");
    write_text(other.data, "a text that is long enough for a window or two, no more than that");
    assert_fails(ah_train(&result, &options), AH_ESTALE, "data.txt: found 65 tokens, expected 2999");
    options = resume_of(&place);
    options.batch = 4;
    assert_fails(ah_train(&result, &options), AH_ESTALE, "batch: found 4, expected 2");
    options = resume_of(&place);
    options.model_path = place.model; /* the same model in other words */
    options.data_path = place.data;
    assert_ok(ah_train(&result, &options));
}

static void out_dirs(void **state)
{
    struct place place;
    struct ah_train_result result;
    char path[PATH_SIZE];
    place_init(&place);
    train_part(&place, 1);
    struct ah_train_options options = options_of(&place);
    assert_fails(ah_train(&result, &options), AH_EINPUT, "out: found a training there, expected another folder");
    options.out_dir = at(path, place.data, "out");
    assert_fails(ah_train(&result, &options), AH_EINPUT, "data.txt");
    struct place second;
    place_init(&second);
    train_part(&second, 1);
    options = resume_of(&place);
    options.out_dir = second.out;
    assert_fails(ah_train(&result, &options), AH_EINPUT, "found a training there");
}

/* Two trainings into one folder: whoever is second is refused, whether the folder was there or not. */
static int train_again(const struct ah_trainer *trainer, void *context)
{
    struct ah_train_result result;
    assert_ok(ah_train(&result, context));
    return AH_OK;
}

static int refuse_again(const struct ah_step *step, void *context)
{
    struct ah_train_result result;
    assert_fails(ah_train(&result, context), AH_EINPUT, "found another training at work there");
    return 0;
}

static void two_trainings_in_one_folder(void **state)
{
    struct place place;
    struct ah_train_result result;
    place_init(&place);
    struct ah_train_options first = options_of(&place), second = first;
    first.context = &second;
    assert_fails(train_watched(&result, &first, train_again, NULL), AH_EINPUT,
                 "found a training there that began meanwhile");
    first = second = resume_of(&place);
    first.steps = second.steps = 2 * STEPS;
    first.context = &second;
    assert_ok(train_watched(&result, &first, NULL, refuse_again));
    assert_int_equal(result.steps_done, 2 * STEPS);
}

static void bad_input_leaves_nothing(void **state)
{
    struct place place;
    struct ah_train_result result;
    char path[PATH_SIZE];
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    options.plan = "auto";
    options.budget.device_bytes = 1000;
    assert_fails(ah_train(&result, &options), AH_EBUDGET, "device memory: found 1000 B, expected at least");
    assert_memory_equal(ah_error(), "device memory", 13);
    options = options_of(&place);
    options.plan = "c=4,p=0,o=0";
    assert_int_equal(ah_train(&result, &options), AH_EINPUT);
    options = options_of(&place);
    options.policy = "best";
    options.profile_path = "none"; /* is not reached */
    assert_fails(ah_train(&result, &options), AH_EINPUT, "policy: found 'best', expected autohete, ");
    options = options_of(&place);
    options.beta1 = 1;
    assert_fails(ah_train(&result, &options), AH_EINPUT, "beta1: found 1, expected 0 to 0.999999999");
    options = options_of(&place);
    options.seq = 17;
    assert_fails(ah_train(&result, &options), AH_EINPUT, "seq: found 17, expected at most 16");
    options = options_of(&place);
    options.data_path = NULL;
    assert_fails(ah_train(&result, &options), AH_EINPUT, "data: found none");
    options = options_of(&place);
    options.model_path = NULL;
    assert_fails(ah_train(&result, &options), AH_EINPUT, "model: found none");
    options = options_of(&place);
    options = options_of(&place);
    options.dev.threads = 2;
    assert_fails(ah_train(&result, &options), AH_ESTALE, "key 'device_signature'");
    options.resume_dir = at(path, ah_test_folder(), "none");
    assert_int_equal(ah_train(&result, &options), AH_EINPUT);
    assert_false(ah__path_exists(place.out));
}

AH_TEST_CASES("train/refused", damaged_checkpoints, other_model_data_batch, out_dirs, two_trainings_in_one_folder,
              bad_input_leaves_nothing)
