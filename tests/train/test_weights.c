/* Trainings that start from the weights in their model's folder. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/safetensors.h"
#include "op/op.h"
#include "train/tiny.h"

/* A training whose checkpoint is a model's folder with weights. */
static char *trained(char path[PATH_SIZE], struct place *place)
{
    struct ah_train_result result;
    place_init(place);
    struct ah_train_options options = options_of(place);
    assert_ok(ah_train(&result, &options));
    return at(path, place->out, "checkpoint");
}

static struct ah_train_options from(const char *model, const struct place *place, char out[PATH_SIZE], const char *name)
{
    struct ah_train_options options = options_of(place);
    snprintf(out, PATH_SIZE, "%s-%s", place->out, name);
    options.model_path = model;
    options.out_dir = out;
    return options;
}

/* Without a learning rate the weights come out as they went in. */
static void weights_are_where_it_starts(void **state)
{
    (void)state;
    struct place place;
    struct ah_train_result result;
    char model[PATH_SIZE], out[PATH_SIZE];
    trained(model, &place);
    struct ah_train_options options = from(model, &place, out, "again");
    options.lr = 0;
    options.steps = 1;
    assert_ok(ah_train(&result, &options));
    expect_same_file(place.out, out, "checkpoint/model.safetensors");
    options = from(model, &place, out, "wanted");
    options.init = "weights";
    assert_ok(ah_train(&result, &options));
    char straight[PATH_SIZE];
    options = from(model, &place, straight, "straight");
    assert_ok(ah_train(&result, &options));
    expect_same_file(out, straight, "checkpoint/model.safetensors");
}

static void random_is_as_without_weights(void **state)
{
    (void)state;
    struct place place;
    struct ah_train_result result;
    char model[PATH_SIZE], out[PATH_SIZE];
    trained(model, &place);
    struct ah_train_options options = from(model, &place, out, "random");
    options.init = "random";
    assert_ok(ah_train(&result, &options));
    expect_same_file(place.out, out, "checkpoint/model.safetensors");
}

static void wrong_words_are_refused(void **state)
{
    (void)state;
    struct place place;
    struct ah_train_result result;
    char model[PATH_SIZE], out[PATH_SIZE];
    trained(model, &place);
    struct ah_train_options options = from(place.model, &place, out, "none");
    options.init = "weights";
    assert_fails(ah_train(&result, &options), AH_EINPUT, "init: found no weights beside the model");
    options.init = "zeros";
    assert_fails(ah_train(&result, &options), AH_EINPUT, "init: found 'zeros', expected weights or random");
    options = resume_of(&place);
    options.init = "random";
    assert_fails(ah_train(&result, &options), AH_EINPUT, "init: found random beside a training to resume");
    assert_int_equal(access(out, F_OK), -1);
}

/* Writes FOLDER/model.safetensors with the tensors of `file`, the one at `change` left out (name null) or under another
 * name, dtype or shape. */
static void rewrite(const char *folder, const struct ah_safetensors *file, size_t change, const char *name,
                    enum ah_dtype dtype, bool flat)
{
    struct ah_safetensors_decl tensors[64];
    const unsigned char *data[64];
    size_t bytes[64], count = 0;
    struct ah_safetensors_writer *writer;
    char path[PATH_SIZE];
    for (size_t i = 0; i < ah__safetensors_count(file); i++) {
        const struct ah_safetensors_tensor *tensor = ah__safetensors_at(file, i);
        struct ah_shape shape = {.rank = tensor->rank};
        memcpy(shape.dim, tensor->dim, (size_t)tensor->rank * sizeof shape.dim[0]);
        if (i == change && flat)
            shape = ah_shape1(ah__shape_count(&shape));
        if (i == change && !name)
            continue;
        tensors[count] = (struct ah_safetensors_decl){i == change ? name : tensor->name,
                                                      i == change ? dtype : tensor->dtype, shape};
        data[count] = tensor->data;
        bytes[count++] = tensor->bytes;
    }
    assert_ok(ah__safetensors_writer_open(&writer, at(path, folder, "model.safetensors"), tensors, count));
    for (size_t i = 0; i < count; i++)
        assert_ok(ah__safetensors_writer_append(writer, data[i], bytes[i]));
    assert_ok(ah__safetensors_writer_close(writer, NULL, NULL));
    ah__safetensors_writer_free(writer);
}

/* What does not fit is named; nothing is left out without a word. */
static void every_tensor_is_accounted_for(void **state)
{
    (void)state;
    struct place place;
    struct ah_train_result result;
    struct ah_safetensors *file;
    char model[PATH_SIZE], other[PATH_SIZE], path[PATH_SIZE], out[PATH_SIZE], *config;
    size_t length, matrix = 0;
    trained(model, &place);
    assert_ok(ah__safetensors_open(&file, at(path, model, "model.safetensors")));
    while (ah__safetensors_at(file, matrix)->rank < 2)
        matrix++;
    const struct ah_safetensors_tensor *tensor = ah__safetensors_at(file, matrix);
    const struct {
        const char *name, *words;
        enum ah_dtype dtype;
        bool flat;
    } cases[] = {
        {NULL, "found no tensor", AH_F32, false},
        {"zzz", "found no tensor", AH_F32, false},
        {tensor->name, "is I32, expected F32 or BF16", AH_I32, false},
        {tensor->name, "expected F32 [", AH_F32, true},
    };
    snprintf(other, sizeof other, "%s/other", ah_test_folder());
    assert_int_equal(mkdir(other, 0777), 0);
    config = read_text(model, "config.json", &length);
    write_text(at(path, other, "config.json"), config);
    struct ah_train_options options = from(other, &place, out, "other");
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        rewrite(other, file, matrix, cases[i].name, cases[i].dtype, cases[i].flat);
        assert_int_not_equal(ah_train(&result, &options), AH_OK);
        if (!strstr(ah_error(), cases[i].words) || !strstr(ah_error(), tensor->name))
            fail_msg("%s: does not say \"%s\" of %s", ah_error(), cases[i].words, tensor->name);
    }
    assert_int_equal(unlink(at(path, other, "model.safetensors")), 0);
    write_text(at(path, other, "pytorch_model.bin"), "x");
    assert_fails(ah_train(&result, &options), AH_EINPUT, "pytorch_model.bin: found pickled weights");
    options.init = "random";
    assert_ok(ah_train(&result, &options));
    ah__safetensors_close(file);
    ah__free(config);
}

AH_TEST_SUITE("train/weights", cmocka_unit_test(weights_are_where_it_starts),
              cmocka_unit_test(random_is_as_without_weights), cmocka_unit_test(wrong_words_are_refused),
              cmocka_unit_test(every_tensor_is_accounted_for))
