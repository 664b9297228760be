#include "train/metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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
    const char *folder = ah_test_folder();
    struct ah_metrics metrics;
    struct ah_step in = {.step = 1,
                         .loss = 0.1 + 0.2,
                         .grad_norm = 1e-300 / 3,
                         .clip_factor = 1.0 / 3,
                         .lr = 3e-4,
                         .tokens_per_s = 12345678.9 / 7};
    assert_ok(ah__metrics_open(&metrics, folder, 0, 0));
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
        assert_ok(ah__metrics_open(&metrics, folder, 0, rows[i].keep));
        expect_text(folder, "metrics.jsonl", rows[i].after);
        struct ah_step step = {.step = 4, .loss = 0.5, .grad_norm = 1, .lr = 2, .tokens_per_s = 3};
        assert_ok(ah__metrics_step(&metrics, &step));
        ah__metrics_close(&metrics);
        char expected[256];
        snprintf(expected, sizeof expected,
                 "%s{\"step\":4,\"loss\":0.5,\"grad_norm\":1,\"clip_factor\":0,\"lr\":2,"
                 "\"tokens_per_s\":3}\n",
                 rows[i].after);
        expect_text(folder, "metrics.jsonl", expected);
    }
}

/* A new start does not write over what an earlier one measured. */
static void a_new_start_keeps_the_old_aside(void **state)
{
    const char *folder = ah_test_folder();
    struct ah_metrics metrics;
    for (int i = 0; i < 2; i++) {
        put_text(folder, "metrics.jsonl", i ? "second" : three);
        assert_ok(ah__metrics_open(&metrics, folder, 0, 0));
        ah__metrics_close(&metrics);
    }
    expect_text(folder, "metrics.jsonl", "");
    expect_text(folder, "metrics.jsonl.1", three);
    expect_text(folder, "metrics.jsonl.2", "second");
}

#define HEADER "step,loss,grad_norm,clip_factor,lr,tokens_per_s\n"

/* The same figures as the JSON lines, cut where those are cut; a file that is none of ours is not kept. */
static void csv_beside_the_lines(void **state)
{
    static const struct {
        int64_t keep;
        const char *before, *after;
    } rows[] = {
        {2, HEADER "1,3,,,,\n2,2,,,,\n3,1,,,,\n", HEADER "1,3,,,,\n2,2,,,,\n"},
        {9, HEADER "1,3,,,,\n2,2,,", HEADER "1,3,,,,\n"},
        {9, "x,y\n1,2\n", HEADER},
        {0, "x,y\n1,2\n", HEADER},
        {9, "", HEADER},
    };
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        const char *folder = ah_test_folder();
        struct ah_metrics metrics;
        struct ah_step step = {.step = 4, .loss = 0.1, .grad_norm = NAN, .clip_factor = 1, .lr = 2, .tokens_per_s = 3};
        char expected[256];
        put_text(folder, "metrics.csv", rows[i].before);
        assert_ok(ah__metrics_open(&metrics, folder, AH_LOG_CSV, rows[i].keep));
        expect_text(folder, "metrics.csv", rows[i].after);
        assert_ok(ah__metrics_step(&metrics, &step));
        assert_ok(ah__metrics_val(&metrics, 4, 0.5));
        ah__metrics_close(&metrics);
        snprintf(expected, sizeof expected, "%s4,0.10000000000000001,,1,2,3\n", rows[i].after);
        expect_text(folder, "metrics.csv", expected);
        expect_text(folder, "val.csv", "step,val_loss\n4,0.5\n");
    }
}

/* How many event files a folder has, and their bytes in all. */
static int event_files(const char *folder, int64_t *bytes)
{
    int count = 0;
    char path[512];
    struct stat info;
    DIR *dir = opendir(folder);
    *bytes = 0;
    for (const struct dirent *each; dir && (each = readdir(dir));)
        if (strncmp(each->d_name, "events.out.tfevents.", 20) == 0) {
            snprintf(path, sizeof path, "%s/%s", folder, each->d_name);
            assert_int_equal(stat(path, &info), 0);
            *bytes += info.st_size;
            count++;
        }
    assert_non_null(dir);
    closedir(dir);
    return count;
}

/* Each start has a file of its own, also within one second. */
static void an_event_file_each_start(void **state)
{
    const char *folder = ah_test_folder();
    const struct ah_step step = {.step = 1, .loss = 1};
    int64_t bytes, before = 0;
    for (int i = 1; i <= 3; i++) {
        struct ah_metrics metrics;
        assert_ok(ah__metrics_open(&metrics, folder, AH_LOG_TENSORBOARD, i - 1));
        assert_ok(ah__metrics_step(&metrics, &step));
        ah__metrics_close(&metrics);
        assert_int_equal(event_files(folder, &bytes), i);
        assert_true(bytes > before + 2 * 16 + 5 * 10);
        before = bytes;
    }
}

static void words_of_logs(void **state)
{
    for (int logs = 0; logs <= (AH_LOG_CSV | AH_LOG_TENSORBOARD); logs++) {
        int found = -1;
        assert_ok(ah__log_parse(&found, ah__log_words(logs)));
        assert_int_equal(found, logs);
    }
    int untouched = 7;
    assert_fails(ah__log_parse(&untouched, "wandb"), AH_EINPUT, "log: found 'wandb', expected csv");
    assert_int_equal(untouched, 7);
}

static void missing_folder(void **state)
{
    char path[256];
    struct ah_metrics metrics = {.files[0].fd = 77};
    assert_fails(ah__metrics_open(&metrics, in_folder(path, ah_test_folder(), "none"), 0, 0), AH_EIO,
                 "metrics.jsonl: No such file");
    assert_int_equal(metrics.files[0].fd, 77);
}

static void full_disk(void **state)
{
    char path[] = "val.jsonl";
    struct ah_metrics metrics = {.files[AH_METRICS_VALS] = {path, open("/dev/full", O_WRONLY)}};
    assert_true(metrics.files[AH_METRICS_VALS].fd >= 0);
    assert_fails(ah__metrics_val(&metrics, 1, 1.0), AH_EIO, "val.jsonl: cannot write: No space left");
    close(metrics.files[AH_METRICS_VALS].fd);
}

AH_TEST_CASES("train/metrics", lines_round_trip, resume_drops_later_lines, a_new_start_keeps_the_old_aside,
              csv_beside_the_lines, an_event_file_each_start, words_of_logs, missing_folder, full_disk)
