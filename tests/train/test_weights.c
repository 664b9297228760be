/* Trainings that start from the weights in their model's folder. */
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "dev/host/pool.h"
#include "io/safetensors.h"
#include "op/f16.h"
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

static char last_note[512];

static void keep_note(const char *line, void *context)
{
    if (strstr(line, "left out") || strstr(line, "as asked"))
        snprintf(last_note, sizeof last_note, "%s", line);
}

static void random_is_as_without_weights(void **state)
{
    struct place place;
    struct ah_train_result result;
    char model[PATH_SIZE], out[PATH_SIZE];
    trained(model, &place);
    struct ah_train_options options = from(model, &place, out, "random");
    options.init = "random";
    options.on_note = keep_note;
    assert_ok(ah_train(&result, &options));
    expect_same_file(place.out, out, "checkpoint/model.safetensors");
    assert_non_null(strstr(last_note, "starting from random parameters, as asked, and not from the weights in"));
}

static void wrong_words_are_refused(void **state)
{
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
        tensors[count] =
            (struct ah_safetensors_decl){i == change ? name : tensor->name, i == change ? dtype : tensor->dtype, shape};
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
        {tensor->name, "is I32, expected F32, BF16 or F16", AH_I32, false},
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
    assert_non_null(strstr(ah_error(), "AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(FOLDER)"));
    assert_int_equal(unlink(path), 0);
    write_text(at(path, other, "adapter_model.safetensors"), "x");
    assert_fails(ah_train(&result, &options), AH_EINPUT, "adapter_model.safetensors: found an adapter, expected the");
    assert_int_equal(unlink(path), 0);
    write_text(at(path, other, "consolidated.safetensors"), "x");
    assert_fails(ah_train(&result, &options), AH_EINPUT, "consolidated.safetensors: found weights under this name");
    options.init = "random";
    assert_ok(ah_train(&result, &options));
    ah__safetensors_close(file);
    ah__free(config);
}

/* ---- other shapes of the same weights ---------------------------------------------------------------------------- */

struct copy {
    char name[128];
    enum ah_dtype dtype;
    struct ah_shape shape;
    const void *data;
    size_t bytes;
};

/* Writes FOLDER/NAME with copies [first, end). */
static void write_copies(const char *folder, const char *name, const struct copy *copies, size_t first, size_t end)
{
    struct ah_safetensors_decl tensors[64];
    struct ah_safetensors_writer *writer;
    char path[PATH_SIZE];
    for (size_t i = first; i < end; i++)
        tensors[i - first] = (struct ah_safetensors_decl){copies[i].name, copies[i].dtype, copies[i].shape};
    assert_ok(ah__safetensors_writer_open(&writer, at(path, folder, name), tensors, end - first));
    for (size_t i = first; i < end; i++)
        assert_ok(ah__safetensors_writer_append(writer, copies[i].data, copies[i].bytes));
    assert_ok(ah__safetensors_writer_close(writer, NULL, NULL));
    ah__safetensors_writer_free(writer);
}

static size_t copies_of(struct copy *copies, const struct ah_safetensors *file)
{
    size_t count = ah__safetensors_count(file);
    for (size_t i = 0; i < count; i++) {
        const struct ah_safetensors_tensor *tensor = ah__safetensors_at(file, i);
        copies[i] = (struct copy){
            .dtype = tensor->dtype, .shape.rank = tensor->rank, .data = tensor->data, .bytes = tensor->bytes};
        snprintf(copies[i].name, sizeof copies[i].name, "%s", tensor->name);
        memcpy(copies[i].shape.dim, tensor->dim, (size_t)tensor->rank * sizeof tensor->dim[0]);
    }
    return count;
}

/* A folder with the configuration alone. */
static char *folder_like(char folder[PATH_SIZE], const char *model, const char *name)
{
    char path[PATH_SIZE];
    size_t length;
    assert_int_equal(mkdir(at(folder, ah_test_folder(), name), 0777), 0);
    char *config = read_text(model, "config.json", &length);
    write_text(at(path, folder, "config.json"), config);
    ah__free(config);
    return folder;
}

/* Trains a step without a learning rate from `folder`; what comes out is what lies in `model`. */
static void expect_same_weights(const char *folder, const char *model, const struct place *place)
{
    struct ah_train_result result;
    char out[PATH_SIZE], checkpoint[PATH_SIZE];
    static int number;
    char name[32];
    snprintf(name, sizeof name, "same-%d", number++);
    struct ah_train_options options = from(folder, place, out, name);
    options.lr = 0;
    options.steps = 1;
    options.on_note = keep_note;
    last_note[0] = 0;
    assert_ok(ah_train(&result, &options));
    expect_same_file(model, at(checkpoint, out, "checkpoint"), "model.safetensors");
}

static void several_files_are_one_model(void **state)
{
    struct place place;
    struct copy copies[64];
    struct ah_safetensors *file;
    char model[PATH_SIZE], folder[PATH_SIZE], path[PATH_SIZE], index[8192];
    trained(model, &place);
    assert_ok(ah__safetensors_open(&file, at(path, model, "model.safetensors")));
    size_t count = copies_of(copies, file), cut = count / 3;
    folder_like(folder, model, "sharded");
    write_copies(folder, "model-00001-of-00002.safetensors", copies, 0, cut);
    write_copies(folder, "model-00002-of-00002.safetensors", copies, cut, count);
    int length = snprintf(index, sizeof index, "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {");
    for (size_t i = 0; i < count; i++)
        length +=
            snprintf(index + length, sizeof index - (size_t)length, "%s\"%s\": \"model-0000%d-of-00002.safetensors\"",
                     i ? ", " : "", copies[i].name, i < cut ? 1 : 2);
    snprintf(index + length, sizeof index - (size_t)length, "}}");
    write_text(at(path, folder, "model.safetensors.index.json"), index);
    expect_same_weights(folder, model, &place);
    ah__safetensors_close(file);
}

/* As GPT-2 lies on the hub: without the body's name, with masks, some with the tied head once more. */
static void names_of_other_programs(void **state)
{
    struct place place;
    struct ah_train_result result;
    struct copy copies[64];
    struct ah_safetensors *file;
    char model[PATH_SIZE], folder[PATH_SIZE], path[PATH_SIZE], out[PATH_SIZE];
    static const char body[] = "transformer.";
    float mask[4] = {1, 0, 1, 1}, *other;
    trained(model, &place);
    assert_ok(ah__safetensors_open(&file, at(path, model, "model.safetensors")));
    size_t count = copies_of(copies, file);
    folder_like(folder, model, "hub");
    for (size_t i = 0; i < count; i++)
        memmove(copies[i].name, copies[i].name + strlen(body), strlen(copies[i].name + strlen(body)) + 1);
    copies[count] = (struct copy){"h.0.attn.bias", AH_F32, ah_shape2(2, 2), mask, sizeof mask};
    copies[count + 1] = (struct copy){"h.1.attn.masked_bias", AH_F32, {.rank = 0}, mask, sizeof mask[0]};
    size_t wte = 0;
    while (strcmp(copies[wte].name, "wte.weight") != 0)
        wte++;
    copies[count + 2] = copies[wte];
    snprintf(copies[count + 2].name, sizeof copies[0].name, "lm_head.weight");
    write_copies(folder, "model.safetensors", copies, 0, count + 3);
    expect_same_weights(folder, model, &place);
    assert_non_null(strstr(last_note, "'h.1.attn.masked_bias' and 1 more constants"));
    assert_non_null(strstr(last_note, "'lm_head.weight', which is the embedding once more"));
    assert_ok(ah__new(&other, copies[wte].bytes, 1));
    copies[count + 2].data = other;
    write_copies(folder, "model.safetensors", copies, 0, count + 3);
    struct ah_train_options options = from(folder, &place, out, "head");
    assert_fails(ah_train(&result, &options), AH_EINPUT,
                 "tensor 'lm_head.weight': found other values than the embedding's");
    snprintf(copies[count].name, sizeof copies[0].name, "score.weight");
    write_copies(folder, "model.safetensors", copies, 0, count + 2);
    assert_fails(ah_train(&result, &options), AH_EINPUT, "found tensor 'score.weight', which the model does not have");
    ah__free(other);
    ah__safetensors_close(file);
}

/* What wrappers of PyTorch put before names, alone and one behind the other; a prefix that only some tensors have is
 * none, and one that nobody knows is told by the names that are there. */
static void prefixes_of_wrappers(void **state)
{
    static const char *const prefixes[] = {"module.", "_orig_mod.", "base_model.model.", "module._orig_mod.",
                                           "_orig_mod.module.base_model.model."};
    struct place place;
    struct ah_train_result result;
    struct copy copies[64], plain[64];
    struct ah_safetensors *file;
    char model[PATH_SIZE], folder[PATH_SIZE], path[PATH_SIZE], out[PATH_SIZE];
    trained(model, &place);
    assert_ok(ah__safetensors_open(&file, at(path, model, "model.safetensors")));
    size_t count = copies_of(plain, file);
    folder_like(folder, model, "wrapped");
    for (size_t i = 0; i < AH_LENGTH(prefixes); i++) {
        copies_of(copies, file);
        for (size_t k = 0; k < count; k++)
            snprintf(copies[k].name, sizeof copies[k].name, "%s%.64s", prefixes[i], plain[k].name);
        write_copies(folder, "model.safetensors", copies, 0, count);
        expect_same_weights(folder, model, &place);
    }
    struct ah_train_options options = from(folder, &place, out, "other");
    snprintf(copies[0].name, sizeof copies[0].name, "%.64s", plain[0].name);
    write_copies(folder, "model.safetensors", copies, 0, count);
    assert_fails(ah_train(&result, &options), AH_EINPUT, "which the model has; it has ");
    for (size_t k = 0; k < count; k++)
        snprintf(copies[k].name, sizeof copies[k].name, "wrapper.%.64s", plain[k].name);
    write_copies(folder, "model.safetensors", copies, 0, count);
    assert_fails(ah_train(&result, &options), AH_EINPUT, ", from 'wrapper.transformer.h.0.");
    assert_non_null(strstr(ah_error(), "' to 'wrapper.transformer.wte.weight'"));
    ah__safetensors_close(file);
}

/* A tied model whose embedding lies there by its head's name alone. */
static void a_head_alone_is_the_embedding(void **state)
{
    struct place place;
    struct copy copies[64];
    struct ah_safetensors *file;
    char model[PATH_SIZE], folder[PATH_SIZE], path[PATH_SIZE];
    trained(model, &place);
    assert_ok(ah__safetensors_open(&file, at(path, model, "model.safetensors")));
    size_t count = copies_of(copies, file), wte = 0;
    while (strcmp(copies[wte].name, "transformer.wte.weight") != 0)
        wte++;
    snprintf(copies[wte].name, sizeof copies[wte].name, "lm_head.weight");
    folder_like(folder, model, "head-alone");
    write_copies(folder, "model.safetensors", copies, 0, count);
    expect_same_weights(folder, model, &place);
    assert_string_equal(last_note, "");
    ah__safetensors_close(file);
}

/* A model saved in half precision starts from just those values. */
static void half_floats_widen_exactly(void **state)
{
    struct place place;
    struct ah_train_result result;
    struct copy copies[64];
    struct ah_safetensors *file;
    char model[PATH_SIZE], folder[PATH_SIZE], wide[PATH_SIZE], path[PATH_SIZE], out[PATH_SIZE];
    uint16_t *halves;
    float *floats;
    trained(model, &place);
    assert_ok(ah__safetensors_open(&file, at(path, model, "model.safetensors")));
    size_t count = copies_of(copies, file);
    assert_ok(ah__new(&halves, copies[0].bytes / 4, sizeof *halves));
    assert_ok(ah__new(&floats, copies[0].bytes / 4, sizeof *floats));
    for (size_t i = 0; i < copies[0].bytes / 4; i++) {
        halves[i] = (uint16_t)(i * 37 % 0x3C00 | (i % 2 ? 0x8000 : 0));
        floats[i] = ah__f16_value(halves[i]);
    }
    copies[0].data = floats;
    write_copies(folder_like(wide, model, "wide"), "model.safetensors", copies, 0, count);
    copies[0].data = halves;
    copies[0].dtype = AH_F16;
    copies[0].bytes /= 2;
    write_copies(folder_like(folder, model, "half"), "model.safetensors", copies, 0, count);
    struct ah_train_options options = from(wide, &place, out, "wide");
    options.lr = 0;
    options.steps = 1;
    assert_ok(ah_train(&result, &options));
    expect_same_weights(folder, at(path, out, "checkpoint"), &place);
    ah__free(halves);
    ah__free(floats);
    ah__safetensors_close(file);
}

static void expect_half_floats(void)
{
    for (uint32_t half = 0; half < 1U << 16; half++) {
        int exponent = (int)(half >> 10 & 31), fraction = (int)(half & 1023);
        float value = ah__f16_value((uint16_t)half);
        double expected = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
        assert_int_equal(signbit(value) != 0, half >> 15);
        if (exponent == 31)
            assert_true(fraction ? isnan(value) : isinf(value));
        else
            assert_true((double)fabsf(value) == expected);
    }
}

/* What a half float is by its definition: sign, 2^(e - 15), fraction of 1024. On threads that compute, too, which take
 * subnormal floats for zero. */
static void every_half_float_is_its_value(void **state)
{
    fenv_t before;
    expect_half_floats();
    assert_int_equal(fegetenv(&before), 0);
    ah__host_denormals_off();
    expect_half_floats();
    assert_int_equal(fesetenv(&before), 0);
}

AH_TEST_CASES("train/weights", prefixes_of_wrappers, a_head_alone_is_the_embedding, weights_are_where_it_starts,
              random_is_as_without_weights, wrong_words_are_refused, every_tensor_is_accounted_for,
              several_files_are_one_model, names_of_other_programs, half_floats_widen_exactly,
              every_half_float_is_its_value)
