#include "train/metrics.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "test.h"

static char *in_folder(char path[256], const char *folder, const char *name)
{
    snprintf(path, 256, "%s/%s", folder, name);
    return path;
}

static void expect_text(const char *folder, const char *name, const char *expected)
{
    char path[256], *text;
    size_t length;
    assert_ok(ah__file_read(&text, &length, in_folder(path, folder, name), 1 << 20));
    assert_string_equal(text, expected);
    ah__free(text);
}

static void put_text(const char *folder, const char *name, const char *text)
{
    char path[256];
    assert_ok(ah__file_write(in_folder(path, folder, name), text, strlen(text)));
}

static void lines_round_trip(void **state)
{
    (void)state;
    const char *folder = ah_test_folder();
    struct ah_metrics metrics;
    struct ah_step in = {
        .step = 1, .loss = 0.1 + 0.2, .grad_norm = 1e-300 / 3, .clip_factor = 1.0 / 3, .lr = 3e-4,
        .tokens_per_s = 12345678.9 / 7};
    assert_ok(ah__metrics_open(&metrics, folder, 0));
    assert_ok(ah__metrics_step(&metrics, &in));
    assert_ok(ah__metrics_val(&metrics, 1, 5.0 / 3));
    assert_ok(ah__metrics_sync(&metrics));
    ah__metrics_close(&metrics);

    char path[256], *text;
    size_t length;
    assert_ok(ah__file_read(&text, &length, in_folder(path, folder, "metrics.jsonl"), 1 << 20));
    struct ah_step out = {0};
    char last = 0;
    assert_int_equal(sscanf(text,
                            "{\"step\":%" SCNd64 ",\"loss\":%lf,\"grad_norm\":%lf,\"clip_factor\":%lf,\"lr\":%lf,"
                             "\"tokens_per_s\":%lf%c",
                            &out.step, &out.loss, &out.grad_norm, &out.clip_factor, &out.lr, &out.tokens_per_s, &last),
                     7);
    assert_int_equal(last, '}');
    assert_memory_equal(&in, &out, sizeof in);
    ah__free(text);
    expect_text(folder, "val.jsonl", "{\"step\":1,\"val_loss\":1.6666666666666667}\n");
}

static const char three[] = "{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":2}\n{\"step\":3,\"loss\":1}\n";

static void resume_drops_later_lines(void **state)
{
    (void)state;
    static const struct {
        int64_t keep;
        const char *before, *after;
    } rows[] = {
        {2, three, "{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":2}\n"},
        {3, three, three},
        {9, three, three},
        {0, three, ""},
        {9, "{\"step\":1,\"loss\":3}\n{\"step\":2,\"lo", "{\"step\":1,\"loss\":3}\n"},
        {9, "{\"step\":1,\"loss\":3}\nnoise\n{\"step\":2}\n", "{\"step\":1,\"loss\":3}\n"},
        {9, "", ""},
    };
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        const char *folder = ah_test_folder();
        put_text(folder, "metrics.jsonl", rows[i].before);
        struct ah_metrics metrics;
        assert_ok(ah__metrics_open(&metrics, folder, rows[i].keep));
        expect_text(folder, "metrics.jsonl", rows[i].after);
        struct ah_step step = {.step = 4, .loss = 0.5, .grad_norm = 1, .lr = 2, .tokens_per_s = 3};
        assert_ok(ah__metrics_step(&metrics, &step));
        ah__metrics_close(&metrics);
        char expected[256];
        snprintf(expected, sizeof expected, "%s{\"step\":4,\"loss\":0.5,\"grad_norm\":1,\"clip_factor\":0,\"lr\":2,"
                 "\"tokens_per_s\":3}\n",
                 rows[i].after);
        expect_text(folder, "metrics.jsonl", expected);
    }
}

/* A new start does not write over what an earlier one measured. */
static void a_new_start_keeps_the_old_aside(void **state)
{
    (void)state;
    const char *folder = ah_test_folder();
    struct ah_metrics metrics;
    for (int i = 0; i < 2; i++) {
        put_text(folder, "metrics.jsonl", i ? "second" : three);
        assert_ok(ah__metrics_open(&metrics, folder, 0));
        ah__metrics_close(&metrics);
    }
    expect_text(folder, "metrics.jsonl", "");
    expect_text(folder, "metrics.jsonl.1", three);
    expect_text(folder, "metrics.jsonl.2", "second");
}

static void missing_folder(void **state)
{
    (void)state;
    char path[256];
    struct ah_metrics metrics = {.step_fd = 77};
    assert_fails(ah__metrics_open(&metrics, in_folder(path, ah_test_folder(), "none"), 0), AH_EIO,
                 "metrics.jsonl: No such file");
    assert_int_equal(metrics.step_fd, 77);
}

static void full_disk(void **state)
{
    (void)state;
    char path[] = "val.jsonl";
    struct ah_metrics metrics = {.val_path = path, .val_fd = open("/dev/full", O_WRONLY)};
    assert_true(metrics.val_fd >= 0);
    assert_fails(ah__metrics_val(&metrics, 1, 1.0), AH_EIO, "val.jsonl: cannot write: No space left");
    close(metrics.val_fd);
}

AH_TEST_SUITE("train/metrics", cmocka_unit_test(lines_round_trip), cmocka_unit_test(resume_drops_later_lines),
              cmocka_unit_test(a_new_start_keeps_the_old_aside),
              cmocka_unit_test(missing_folder), cmocka_unit_test(full_disk))
