/* Trainings on several files of data with weights: stopped and resumed, what is told, what is refused. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "train/tiny.h"

static char a[PATH_SIZE], b[PATH_SIZE];

static void write_pairs(const char *path, int count)
{
    char text[8192];
    size_t length = 0;
    for (int i = 0; i < count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "{\"prompt\": \"%d=\", \"completion\": \"%d\"}\n", i, i % 7);
    assert_ok(ah__file_write(path, text, length));
}

/* A text and examples, which are sniffed each for itself. */
static void place_mixture(struct place *place)
{
    place_init(place);
    snprintf(a, sizeof a, "%s-a.txt", place->data);
    snprintf(b, sizeof b, "%s-b.jsonl", place->data);
    write_data(a, 5);
    write_pairs(b, 40);
}

static const char *mixed(const char *weight_a, const char *weight_b)
{
    static char text[4 * PATH_SIZE];
    snprintf(text, sizeof text, "%s%s,%s%s", a, weight_a, b, weight_b);
    return text;
}

static void expect_said(const char *words)
{
    if (!strstr(tiny_notes, words))
        fail_msg("no \"%s\" in:\n%s", words, tiny_notes);
}

static int look_at_sources(const struct ah_trainer *trainer, void *context)
{
    struct ah_train_source source;
    assert_ok(ah_trainer_source(trainer, 0, &source));
    assert_string_equal(source.path, a);
    assert_string_equal(source.format, "text");
    assert_true(source.weight == 0.7 && source.share == 717. / 1024 && source.samples == 0);
    assert_ok(ah_trainer_source(trainer, 1, &source));
    assert_string_equal(source.format, "pairs");
    assert_int_equal(source.epoch_samples, 36);
    assert_int_equal(ah_trainer_source(trainer, 2, &source), AH_EEND);
    assert_int_equal(ah_trainer_source(trainer, -1, &source), AH_EEND);
    return AH_OK;
}

/* Stopped in the middle and taken up again gives the bits of the training that was not stopped, whatever micro-batch a
 * step has; run.json names the sources. */
static void resumed_in_the_middle(void **state)
{
    struct place place;
    struct ah_train_result result;
    char whole[PATH_SIZE], part[PATH_SIZE];
    size_t length;
    place_mixture(&place);
    struct ah_train_options options = options_on(&place, mixed(":0.7", ":0.3"), whole, "whole");
    assert_ok(train_watched(&result, &options, look_at_sources, NULL));
    expect_said("a.txt: 70.02% of the samples; text, 3.00 K tokens, 337 samples an epoch");
    expect_said("b.jsonl: 29.98% of the samples; pairs, ");
    expect_said("b.jsonl: 40 examples (pairs), one in each sequence; the loss is of the completions");
    options = options_on(&place, mixed(":7", ":3"), part, "part");
    assert_ok(train_watched(&result, &options, NULL, stop_at_3));
    assert_true(result.stopped);
    struct ah_train_options resume = resume_of(&place);
    resume.resume_dir = part;
    assert_ok(ah_train(&result, &resume));
    expect_same_file(whole, part, "checkpoint/model.safetensors");
    char *text = read_text(part, "run.json", &length);
    assert_non_null(strstr(text, "\"sources\""));
    assert_non_null(strstr(text, "\"weight\": 7"));
    assert_non_null(strstr(text, "\"format\": \"pairs\""));
    ah__free(text);
}

/* What changed is named: a file's content, weights, the number of files. The same weights in another unit are none. */
static void another_mixture_is_refused(void **state)
{
    struct place place;
    struct ah_train_result result;
    char out[PATH_SIZE];
    place_mixture(&place);
    struct ah_train_options options = options_on(&place, mixed(":0.7", ":0.3"), out, "out");
    assert_ok(train_watched(&result, &options, NULL, stop_at_3));
    struct ah_train_options resume = resume_of(&place);
    resume.resume_dir = out;
    resume.data_path = mixed(":0.5", ":0.5");
    assert_fails(ah_train(&result, &resume), AH_ESTALE,
                 "a.txt: weight: found 512 of 1024 samples, expected 717 of 1024 as in the checkpoint's data");
    resume.data_path = mixed("", "");
    assert_fails(ah_train(&result, &resume), AH_ESTALE,
                 "a.txt: weight: found 337 of 373 samples, expected 717 of 1024 as in the checkpoint's data");
    resume.data_path = a;
    assert_fails(ah_train(&result, &resume), AH_ESTALE, "data: found 1 file, expected 2 as in the checkpoint's data");
    write_pairs(b, 41);
    resume.data_path = NULL;
    assert_fails(ah_train(&result, &resume), AH_ESTALE, "b.jsonl: found ");
    write_pairs(b, 40);
    write_data(a, 4);
    assert_fails(ah_train(&result, &resume), AH_ESTALE, "a.txt: found content ");
    write_data(a, 5);
    resume.data_path = mixed(":70", ":30");
    assert_ok(ah_train(&result, &resume));
}

/* One file's training goes on with one. */
static void one_file_is_not_two(void **state)
{
    struct place place;
    struct ah_train_result result;
    char out[PATH_SIZE];
    place_mixture(&place);
    struct ah_train_options options = options_on(&place, a, out, "out");
    assert_ok(train_watched(&result, &options, NULL, stop_at_3));
    assert_null(strstr(tiny_notes, "of the samples"));
    struct ah_train_options resume = resume_of(&place);
    resume.resume_dir = out;
    resume.data_path = mixed("", "");
    assert_fails(ah_train(&result, &resume), AH_ESTALE, "data: found 2 files, expected 1 as in the checkpoint's data");
}

/* An epoch without weights is every sample of all files once. */
static void epochs_are_of_all_files(void **state)
{
    struct place place;
    struct ah_train_result result;
    char out[PATH_SIZE];
    place_mixture(&place);
    struct ah_train_options options = options_on(&place, mixed("", ""), out, "out");
    options.steps = AH_UNSET;
    options.epochs = 0.1;
    assert_ok(ah_train(&result, &options));
    assert_int_equal(result.steps_done, 19); /* of 373 samples, two a step */
}

AH_TEST_CASES("train/mixture", resumed_in_the_middle, another_mixture_is_refused, one_file_is_not_two,
              epochs_are_of_all_files)
