/* Each kind of place that a model's path may name: its configuration and the file of its weights. */
#include "source/source.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "source/folder.h"
#include "test.h"

enum { PATH_SIZE = 512 };

static char path[PATH_SIZE];

static const char *in(const char *folder, const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write(const char *folder, const char *name, const char *text)
{
    assert_ok(ah__file_write(in(folder, name), text, strlen(text)));
}

static const char *gguf(void)
{
    return in(ah_test_source(), "golden/gguf/llama.gguf");
}

static void assert_weights(const char *of, const char *expected)
{
    char *weights;
    assert_ok(ah__source_weights(&weights, of));
    if (expected)
        assert_string_equal(weights, expected);
    else
        assert_null(weights);
    ah__free(weights);
}

static void a_path_is_one_of_these(void **state)
{
    const char *folder = ah_test_folder();
    char out[PATH_SIZE / 2];
    struct ah_folder *training;
    snprintf(out, sizeof out, "%s/out", folder);
    assert_int_equal(ah__source_kind(in(folder, "none")), AH_SOURCE_OTHER);
    assert_int_equal(ah__source_kind("/dev/null"), AH_SOURCE_OTHER);
    assert_int_equal(ah__source_kind(folder), AH_SOURCE_OTHER);
    assert_int_equal(ah__source_kind(gguf()), AH_SOURCE_GGUF);
    write(folder, "config.json", "{}");
    assert_int_equal(ah__source_kind(folder), AH_SOURCE_FOLDER);
    assert_int_equal(ah__source_kind(in(folder, "config.json")), AH_SOURCE_CONFIG);
    assert_ok(ah__folder_begin(&training, out, 1));
    assert_ok(ah__folder_commit(training, 1));
    ah__folder_free(training);
    assert_int_equal(ah__source_kind(out), AH_SOURCE_TRAINING);
    assert_int_equal(ah__source_kind(in(out, "checkpoint")), AH_SOURCE_TRAINING);
}

static void configurations_are_text_of_a_file(void **state)
{
    const char *folder = ah_test_folder();
    struct ah_source_config config;
    write(folder, "config.json", "{\"vocab_size\": 7}");
    assert_ok(ah__source_config(&config, folder));
    assert_string_equal(config.text, "{\"vocab_size\": 7}");
    assert_string_equal(config.path, in(folder, "config.json"));
    assert_null(config.note);
    ah__source_config_free(&config);
    assert_ok(ah__source_config(&config, gguf()));
    assert_int_equal(config.length, strlen(config.text));
    assert_non_null(strstr(config.text, "\"model_type\""));
    ah__source_config_free(&config);
    assert_fails(ah__source_config(&config, in(folder, "none")), AH_EINPUT, "none: cannot open");
}

static void weights_lie_beside_it(void **state)
{
    char folder[PATH_SIZE / 2], config[PATH_SIZE], *place;
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    snprintf(config, sizeof config, "%s/config.json", folder);
    write(folder, "config.json", "{}");
    write(folder, "other.json", "{}");
    assert_weights(config, NULL);
    write(folder, "model.safetensors", "");
    assert_weights(folder, in(folder, "model.safetensors"));
    assert_weights(config, in(folder, "model.safetensors"));
    assert_weights(in(folder, "other.json"), NULL);
    assert_ok(ah__source_place_of_weights(&place, config));
    assert_string_equal(place, folder);
    ah__free(place);
    assert_fails(ah__source_place_of_weights(&place, in(folder, "other.json")), AH_EINPUT,
                 "found a configuration without weights, expected a folder");
    snprintf(config, sizeof config, "%s", gguf());
    assert_weights(config, config);
}

AH_TEST_CASES("source/source", a_path_is_one_of_these, configurations_are_text_of_a_file, weights_lie_beside_it)
