#include "train/tiny.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

void write_text(const char *path, const char *text)
{
    assert_ok(ah__file_write(path, text, strlen(text)));
}

char *at(char path[PATH_SIZE], const char *folder, const char *name)
{
    assert_in_range(snprintf(path, PATH_SIZE, "%s/%s", folder, name), 1, PATH_SIZE - 1);
    return path;
}

void write_model(const char *path, int embd)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"model_type\": \"gpt2\", \"vocab_size\": 128, \"n_positions\": 16, \"n_embd\": %d, \"n_layer\": 3, "
             "\"n_head\": 2}",
             embd);
    write_text(path, text);
}

void write_data(const char *path, unsigned salt)
{
    char text[3000];
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = (char)('a' + (i * i / 7 + i * salt) % 26);
    text[sizeof text - 1] = 0;
    write_text(path, text);
}

void place_init(struct place *place)
{
    char folder[PATH_SIZE];
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    at(place->model, folder, "model.json");
    at(place->data, folder, "data.txt");
    at(place->out, folder, "out");
    write_model(place->model, 16);
    write_data(place->data, 3);
}

/* Measured once, for one thread and the fastest link: what these tests are about does not depend on times. */
static const char *profile_of(const struct place *place)
{
    static char path[PATH_SIZE];
    struct ah_dev_options options = {.threads = 1};
    struct ah_model *model;
    struct ah_graph *graph;
    struct ah_partition *partition;
    struct ah_dev *dev;
    struct ah_profile *profile;
    if (path[0])
        return path;
    assert_ok(ah_model_load(&model, place->model));
    assert_ok(ah_model_record(&graph, model, &(struct ah_record_options){.batch = 2, .seq = 8, .compute = AH_F32}));
    assert_ok(ah_partition_new(&partition, graph, &(struct ah_step_options){.clips = true}));
    assert_ok(ah_dev_open(&dev, "cpu", &options));
    assert_ok(ah_profile_measure(&profile, NULL, partition, dev, NULL));
    assert_ok(ah_profile_save(profile, at(path, ah_test_folder(), "profile.json")));
    ah_profile_free(profile);
    ah_dev_close(dev);
    ah_partition_free(partition);
    ah_graph_free(graph);
    ah_model_free(model);
    return path;
}

struct ah_train_options options_of(const struct place *place)
{
    struct ah_train_options options;
    ah_train_options_init(&options, sizeof options);
    options.model_path = place->model;
    options.data_path = place->data;
    options.out_dir = place->out;
    options.profile_path = profile_of(place);
    options.plan = "resident";
    options.dev.threads = 1;
    options.batch = 2;
    options.seq = 8;
    options.steps = STEPS;
    options.warmup_steps = 2;
    options.lr = 1e-2;
    options.val_batches = 2;
    return options;
}

char tiny_notes[4096];

static void keep_note(const char *line, void *context)
{
    size_t length = strlen(tiny_notes);
    snprintf(tiny_notes + length, sizeof tiny_notes - length, "%s\n", line);
}

struct ah_train_options options_on(const struct place *place, const char *data, char out[PATH_SIZE], const char *name)
{
    struct ah_train_options options = options_of(place);
    snprintf(out, PATH_SIZE, "%s-%s", place->out, name);
    options.data_path = data;
    options.out_dir = out;
    options.on_note = keep_note;
    tiny_notes[0] = 0;
    return options;
}

int stop_at_3(const struct ah_step *step, void *context)
{
    return step->step >= 3;
}

struct ah_train_options resume_of(const struct place *place)
{
    struct ah_train_options options;
    ah_train_options_init(&options, sizeof options);
    options.resume_dir = place->out;
    options.profile_path = profile_of(place);
    options.plan = "resident";
    options.dev.threads = 1;
    return options;
}

char *read_text(const char *folder, const char *name, size_t *length)
{
    char path[PATH_SIZE], *text;
    assert_ok(ah__file_read(&text, length, at(path, folder, name), 1 << 24));
    return text;
}

void expect_same_file(const char *a, const char *b, const char *name)
{
    size_t left_length, right_length;
    char *left = read_text(a, name, &left_length), *right = read_text(b, name, &right_length);
    assert_int_equal(left_length, right_length);
    assert_memory_equal(left, right, left_length);
    ah__free(left);
    ah__free(right);
}

int train_watched(struct ah_train_result *result, const struct ah_train_options *options,
                  int (*opened)(const struct ah_trainer *trainer, void *context),
                  int (*stepped)(const struct ah_step *step, void *context))
{
    struct ah_train_options watched = *options;
    struct ah_trainer *trainer;
    struct ah_step step;
    int stop = 0;
    watched.stop = &stop;
    int status = ah_trainer_open(&trainer, &watched);
    if (status != AH_OK)
        return status;
    if (opened)
        status = opened(trainer, options->context);
    while (status == AH_OK && (status = ah_trainer_step(trainer, &step)) == AH_OK)
        stop |= stepped && stepped(&step, options->context);
    ah_trainer_result(trainer, result);
    ah_trainer_close(trainer);
    return status == AH_EEND ? AH_OK : status;
}

static int stop_at(const struct ah_step *step, void *context)
{
    return step->step >= *(const int64_t *)context;
}

/* Trains until shortly after step `stop`. */
int64_t train_part(const struct place *place, int64_t stop)
{
    struct ah_train_options options = options_of(place);
    struct ah_train_result result;
    options.context = &stop;
    assert_ok(train_watched(&result, &options, NULL, stop_at));
    assert_true(result.stopped);
    assert_true(result.steps_done >= stop && result.steps_done < STEPS);
    return result.steps_done;
}
