/* What is no model, and the line that says what it is. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "source/model_path.h"
#include "test.h"

enum { PATH_SIZE = 400 };

static char folder[PATH_SIZE / 2]; /* of the test at hand */

static const char *file_of(const char *name, const char *text)
{
    static char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(ah__file_write(path, text, strlen(text)));
    return path;
}

static void names_of_the_hub(void **state)
{
    static const char *const others[] = {
        "models/none.json", "./owner/name", "/owner/name", "a/b/c", "name", "a/", "../b",
        "owner/name.gguf",  "own er/name"};
    assert_fails(ah__model_path_check("Nobody/SomeModel-1.5B"), AH_EINPUT,
                 "found no such folder; if it is a model of the Hugging Face hub, 'hf download Nobody/SomeModel-1.5B "
                 "--local-dir SomeModel-1.5B' fetches it, and then --model SomeModel-1.5B reads it");
    assert_fails(ah__model_path_check("https://huggingface.co/Nobody/SomeModel-1.5B"), AH_EINPUT,
                 "'hf download Nobody/SomeModel-1.5B --local-dir SomeModel-1.5B' fetches it");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_ok(ah__model_path_check(others[i]));
}

static void files_of_weights(void **state)
{
    char expected[PATH_SIZE + 32];
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    assert_fails(ah__model_path_check(file_of("model.safetensors", "x")), AH_EINPUT,
                 "found a file of weights without a config.json beside it, expected a folder with both");
    file_of("config.json", "{}");
    snprintf(expected, sizeof expected, "with its config.json: --model %s", folder);
    assert_fails(ah__model_path_check(file_of("model.safetensors", "x")), AH_EINPUT, expected);
    assert_fails(ah__model_path_check(file_of("pytorch_model.bin", "x")), AH_EINPUT, expected);
    assert_ok(ah__model_path_check(folder));
}

static void pointers(void **state)
{
    static const char *const names[] = {"config.json", "tokenizer.model", "tokenizer.json"};
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char expected[100];
        snprintf(expected, sizeof expected, "/%s: found a Git LFS pointer, expected the file", names[i]);
        file_of(names[i], "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 9\n");
        assert_fails(ah__model_path_check(folder), AH_EINPUT, expected);
        file_of(names[i], "{}");
        assert_ok(ah__model_path_check(folder));
    }
    file_of("tokenizer.model", "version https://git-lfs.github.com/spec/v1\noid sha256:ab\n"); /* beside the other */
    assert_ok(ah__model_path_check(folder));
    assert_fails(ah__model_path_check(file_of("a.gguf", "version https://git-lfs.github.com/spec/v1\noid sha256:ab\n")),
                 AH_EINPUT, "/a.gguf: found a Git LFS pointer, expected the file");
}

/* A link of a cache whose file is gone says which model is to be fetched; one that nobody reads does not matter. */
static void dangling_links(void **state)
{
    static const char *const names[] = {"config.json", "model.safetensors", "tokenizer.model", "vocab.txt"};
    char path[PATH_SIZE + 64];
    snprintf(folder, sizeof folder, "%s/models--Nobody--Some--Model", ah_test_folder());
    assert_ok(ah__folder_make(folder));
    snprintf(folder + strlen(folder), sizeof folder - strlen(folder), "/snapshots");
    assert_ok(ah__folder_make(folder));
    snprintf(path, sizeof path, "%s/README.md", folder);
    assert_int_equal(symlink("../blobs/none", path), 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char expected[200];
        assert_ok(ah__model_path_check(folder));
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        snprintf(expected, sizeof expected,
                 "/%s: found a link to '../blobs/5ac4', which is not there, expected the file that it leads to: 'hf "
                 "download Nobody/Some--Model' fetches it again",
                 names[i]);
        assert_int_equal(symlink("../blobs/5ac4", path), 0);
        assert_fails(ah__model_path_check(folder), AH_EINPUT, expected);
        assert_int_equal(remove(path), 0);
    }
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    snprintf(path, sizeof path, "%s/config.json", folder);
    assert_int_equal(symlink("gone", path), 0);
    assert_fails(ah__model_path_check(folder), AH_EINPUT,
                 "found a link to 'gone', which is not there, expected the file that it leads to: fetch or copy it");
    assert_int_equal(remove(path), 0);
    assert_int_equal(symlink("checkpoint/config.json", path), 0); /* a training's, of which the newest step is gone */
    assert_ok(ah__model_path_check(folder));
    assert_int_equal(remove(path), 0);
    assert_int_equal(symlink("gone", path), 0);
    char *text;
    size_t length;
    assert_fails(ah__file_read(&text, &length, path, 9), AH_EINPUT,
                 "config.json: found a link to 'gone', which is not there, expected what it leads to");
}

/* Nobody waits for what a pipe has to say. */
static void pipes(void **state)
{
    static const char *const names[] = {"config.json", "tokenizer.json", "tokenizer.model", "tokenizer_config.json"};
    char path[PATH_SIZE];
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    file_of("config.json", "{}");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)remove(path);
        assert_int_equal(mkfifo(path, 0600), 0);
        alarm(10);
        assert_ok(ah__model_path_check(folder));
        alarm(0);
        assert_int_equal(remove(path), 0);
        file_of(names[i], "{}");
    }
}

static void other_forms(void **state)
{
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    file_of("params.json", "{}");
    assert_fails(ah__model_path_check(folder), AH_EINPUT,
                 "/params.json: found a model as its makers published it, expected it in Hugging Face's form");
    file_of("config.json", "{}");
    assert_ok(ah__model_path_check(folder));
}

AH_TEST_CASES("source/model_path", dangling_links, pipes, other_forms, names_of_the_hub, files_of_weights, pointers)
