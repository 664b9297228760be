/* A disk for blocks on the command line: folders and space that are refused, and what run.json keeps of it. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/program.h"

static const char on_disk[] = "--plan c=1,p=1,o=3,disk=3,chunks=2";

/* Measured once, without a drive, which takes longer. */
static const char *profile(void)
{
    static char path[300];
    if (path[0])
        return path;
    snprintf(path, sizeof path, "%s/profile.json", ah_test_folder());
    run("profile --model %s/model.json --batch 2 --seq 16 --threads 1 --out %s", folder(), path);
    assert_ran(0);
    return path;
}

static void train(const char *words, const char *more)
{
    run("train --model %s/model.json --data %s/text --batch 2 --seq 16 --steps 2 --val-batches 0 --threads 1 --quiet "
        "--profile %s %s %s",
        folder(), folder(), profile(), words, more);
}

static void what_is_no_folder_is_refused(void **state)
{
    char words[400];
    train(on_disk, "--disk /nowhere/at/all");
    assert_refused("/nowhere/at/all: cannot find folder: No such file or directory; --disk names folders that are "
                   "there");
    snprintf(words, sizeof words, "--disk %s/text", folder());
    train(on_disk, words);
    assert_refused("/text: found a file, expected a folder");
    train(on_disk, "--disk /tmp,");
    assert_refused("expected folders for scratch space, separated by commas");
    train(on_disk, "--disk ''");
    assert_refused("--disk: found '', expected a value");
}

static void a_plan_on_disk_needs_a_folder(void **state)
{
    train(on_disk, "");
    assert_refused("--plan: found disk=3, expected --disk with a folder for them");
    run("train --model %s/model.json --data %s/text --batch 2 --seq 16 --steps 2 --micro-batch auto --threads 1 "
        "--quiet %s",
        folder(), folder(), on_disk);
    assert_refused("--plan: found disk=3, expected --disk with a folder for them");
    train("--plan c=1,p=1,o=2,disk=3", "--disk /tmp");
    assert_refused("--plan: disk=3: found 3, expected at most o=2");
    train("--plan c=1,p=1,o=3,disk=3,disk_ahead=15", "--disk /tmp");
    assert_refused("--plan: disk_ahead=15: found 15, expected at most 14");
}

static void a_refusal_names_the_space_that_would_do(void **state)
{
    char words[400];
    long long bytes = 0;
    const char *before = "disk space: found 97.7 KiB, expected at least ";
    snprintf(words, sizeof words, "--disk %s --disk-space 100kB", folder());
    train(on_disk, words);
    assert_refused(before);
    assert_int_equal(sscanf(strstr(ran.err, before) + strlen(before), "%lld bytes", &bytes), 1);
    snprintf(words, sizeof words, "--disk %s --disk-space %lld", folder(), bytes - 1);
    train(on_disk, words);
    assert_refused("disk space: found ");
    snprintf(words, sizeof words, "--disk %s --disk-space %lld", folder(), bytes);
    train(on_disk, words);
    assert_ran(0);
}

/* A profile says how much was free when it was made; what is free now counts, also for sizes of micro-batches. */
static void what_is_free_now_counts(void **state)
{
    char path[300];
    cJSON *tree = cJSON_Parse(program_file("%s", profile()));
    assert_non_null(tree);
    cJSON *drive = cJSON_AddObjectToObject(tree, "drive");
    cJSON_AddNumberToObject(drive, "read_bytes_per_s", 1e9);
    cJSON_AddNumberToObject(drive, "write_bytes_per_s", 1e9);
    cJSON_AddNumberToObject(drive, "latency_ns", 1000);
    cJSON_AddNumberToObject(drive, "free_bytes", 4096);
    cJSON_AddNumberToObject(drive, "endurance_bytes", 0);
    snprintf(path, sizeof path, "%s/old.json", ah_test_folder());
    char *text = cJSON_Print(tree);
    assert_ok(ah__file_write(path, text, strlen(text)));
    free(text);
    cJSON_Delete(tree);
    run("plan --model %s/model.json --batch 2 --seq 16 --threads 1 --profile %s --disk %s %s", folder(), path, folder(),
        on_disk);
    assert_ran(0);
    const char *space = strstr(ran.out, "  disk space ");
    assert_true(space && strstr(space, " of ") && strstr(space, " of ") < strchr(space, '\n'));
    run("plan --model %s/model.json --batch 2 --seq 16 --threads 1 --micro-batch auto --disk %s %s", folder(), folder(),
        on_disk);
    assert_ran(0);
    space = strstr(ran.out, "  disk space ");
    assert_true(space && strstr(space, " of ") && strstr(space, " of ") < strchr(space, '\n'));
}

/* ---- run.json ---------------------------------------------------------------------------------------------------- */

static cJSON *settings_of(const char *out)
{
    cJSON *tree = cJSON_Parse(program_file("%s/run.json", out));
    assert_non_null(tree);
    return tree;
}

/* As version 0.2.0 wrote it, which knew no disk. */
static void forget_the_disk(const char *out)
{
    char path[400];
    cJSON *tree = settings_of(out);
    cJSON_DeleteItemFromObject(tree, "disk");
    cJSON_DeleteItemFromObject(tree, "disk_space");
    snprintf(path, sizeof path, "%s/run.json", out);
    char *text = cJSON_Print(tree);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
    free(text);
    cJSON_Delete(tree);
}

static void resume(const char *out, int steps, const char *words)
{
    run("train --resume %s --steps %d --val-batches 0 --threads 1 --quiet --profile %s %s", out, steps, profile(),
        words);
}

/* Also from another folder than that in which it began. */
static void a_training_keeps_its_disk(void **state)
{
    char out[300], disk[300], words[700], *real;
    snprintf(out, sizeof out, "%s/run", folder());
    snprintf(disk, sizeof disk, "%s/scratch", folder());
    assert_int_equal(mkdir(disk, 0777), 0);
    assert_int_equal(chdir(folder()), 0);
    snprintf(words, sizeof words, "--disk scratch,./scratch --disk-space 100MB --out %s", out);
    train(on_disk, words);
    assert_ran(0);
    assert_int_equal(chdir("/"), 0);
    resume(out, 3, "");
    assert_ran(0);
    cJSON *tree = settings_of(out);
    real = realpath(disk, NULL);
    snprintf(words, sizeof words, "%s,%s", real, real);
    assert_string_equal(cJSON_GetObjectItem(tree, "disk")->valuestring, words);
    assert_true(cJSON_GetObjectItem(tree, "disk_space")->valuedouble == 100e6);
    cJSON_Delete(tree);
    free(real);
    assert_int_equal(rmdir(disk), 0); /* nothing is left there */
    resume(out, 4, "");
    assert_refused("/scratch: cannot find folder: No such file or directory; --disk names folders that are there");
    forget_the_disk(out);
    resume(out, 4, "");
    assert_refused("--plan: found disk=3, expected --disk with a folder for them");
    resume(out, 4, "--plan resident");
    assert_ran(0);
    assert_null(strstr(program_file("%s/run.json", out), "\"disk\""));
}

AH_TEST_CASES("cli/disk", what_is_no_folder_is_refused, a_plan_on_disk_needs_a_folder,
              a_refusal_names_the_space_that_would_do, what_is_free_now_counts, a_training_keeps_its_disk)
