/* Profiles that are kept: two runs agree, damage is measured again, and nothing is profiled in vain. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "cli/program.h"

/* Points the program at a cache of this test's own. */
static const char *fresh_cache(void)
{
    static char path[128];
    snprintf(path, sizeof path, "%s", ah_test_folder());
    assert_int_equal(setenv("XDG_CACHE_HOME", path, 1), 0);
    return path;
}

/* How many files the cache holds whose names begin so; the path of the last one. */
static int entries_of(char path[512], const char *cache, const char *prefix)
{
    char dir_path[256];
    int count = 0;
    snprintf(dir_path, sizeof dir_path, "%s/autohete", cache);
    DIR *dir = opendir(dir_path);
    for (const struct dirent *each; dir && (each = readdir(dir));)
        if (strncmp(each->d_name, prefix, strlen(prefix)) == 0) {
            snprintf(path, 512, "%s/%s", dir_path, each->d_name);
            count++;
        }
    if (dir)
        closedir(dir);
    return count;
}

static int entries(char path[512], const char *cache)
{
    return entries_of(path, cache, "profile-");
}

static void plan_and_train_agree(void **state)
{
    char path[512];
    static char first[1 << 16];
    const char *at = folder(), *cache = fresh_cache();
    const char *flags = "--batch 2 --seq 32 --threads 1 --device-memory 700KiB --json";
    run("plan --model %s/model.json %s", at, flags);
    assert_ran(0);
    assert_null(strstr(ran.err, "profile: cached"));
    snprintf(first, sizeof first, "%s", ran.out);
    assert_int_equal(entries(path, cache), 1);
    run("plan --model %s/model.json %s", at, flags);
    assert_ran(0);
    assert_says(ran.err, "ago (--no-cache measures again)\n");
    assert_string_equal(ran.out, first);
    run("train --model %s/model.json --data %s/text --steps 2 %s", at, at, flags);
    assert_ran(0);
    assert_says(ran.err, "profile: cached ");
    cJSON *planned = cJSON_Parse(first), *trained = cJSON_Parse(ran.out);
    /* plan says the speed beside its plan, train among its results. */
    cJSON *speed = cJSON_DetachItemFromObject(planned, "tokens_per_s");
    assert_true(cJSON_IsNumber(speed) && speed->valuedouble > 0);
    cJSON_Delete(speed);
    assert_true(cJSON_Compare(planned, cJSON_GetObjectItem(trained, "plan"), true));
    cJSON_Delete(planned);
    cJSON_Delete(trained);
    assert_int_equal(entries(path, cache), 1);
    run("plan --model %s/model.json %s --no-cache", at, flags);
    assert_ran(0);
    assert_null(strstr(ran.err, "profile: cached"));
    assert_int_equal(entries(path, cache), 1);
}

/* Another batch, thread count, dtype, clip, link or micro-batch is another profile. */
static void other_questions_have_other_entries(void **state)
{
    static const char *const flags[] = {"--batch 2 --threads 1",
                                        "--batch 4 --threads 1",
                                        "--batch 2 --threads 2",
                                        "--batch 2 --threads 1 --dtype bf16",
                                        "--batch 2 --threads 1 --clip 0",
                                        "--batch 2 --threads 1 --link 1GB/s",
                                        "--batch 2 --threads 1 --seq 16",
                                        "--batch 2 --threads 1 --micro-batch 1",
                                        "--batch 2 --threads 1 --host-threads 2"};
    enum { FLAGS = sizeof flags / sizeof flags[0] };
    char path[512];
    const char *at = folder(), *cache = fresh_cache();
    for (int i = 0; i < FLAGS; i++) {
        run("plan --model %s/model.json --plan resident %s", at, flags[i]);
        assert_ran(0);
        assert_null(strstr(ran.out, "profile: cached"));
        assert_int_equal(entries(path, cache), i + 1);
    }
    assert_int_equal(setenv("OMP_WAIT_POLICY", "passive", 1), 0); /* libraries read it */
    run("plan --model %s/model.json --plan resident %s", at, flags[0]);
    unsetenv("OMP_WAIT_POLICY");
    assert_ran(0);
    assert_int_equal(entries(path, cache), FLAGS + 1);
    run("plan --model %s/model.json --plan resident %s", at, flags[0]);
    assert_says(ran.out, "profile: cached");
}

/* Each byte changed, or the end cut off: measured again and mended. */
static void damaged_entries_are_measured_again(void **state)
{
    char path[512];
    const char *at = folder(), *cache = fresh_cache(), *flags = "--batch 2 --seq 32 --threads 1";
    for (int damage = 0; damage < 5; damage++) {
        run("plan --model %s/model.json --plan resident %s", at, flags);
        assert_ran(0);
        assert_null(strstr(ran.out, "profile: cached"));
        run("plan --model %s/model.json --plan resident %s", at, flags);
        assert_says(ran.out, "profile: cached");
        assert_int_equal(entries(path, cache), 1);
        struct stat info;
        assert_int_equal(stat(path, &info), 0);
        FILE *file = fopen(path, "r+");
        assert_non_null(file);
        fseek(file, damage * (long)info.st_size / 4 - (damage == 4), SEEK_SET);
        int before = fgetc(file);
        fseek(file, -1, SEEK_CUR);
        fputc(before ^ 1, file);
        fclose(file);
        if (damage == 3)
            assert_int_equal(truncate(path, info.st_size / 2), 0);
    }
}

/* What was planned before leaves no trace: the same question has the same answer, and no plan is kept. */
static void plans_depend_on_no_history(void **state)
{
    static const char *const between[] = {"--device-memory 3MiB", "--device-memory 4MiB --dtype fp32", "--seq 16"};
    char path[512];
    static char first[1 << 16];
    const char *at = folder(), *cache = fresh_cache(), *flags = "--batch 2 --hardware a100-40g-x4 --json";
    run("plan --model %s/model.json %s --device-memory 2MiB", at, flags);
    assert_ran(0);
    snprintf(first, sizeof first, "%s", ran.out);
    for (size_t i = 0; i < sizeof between / sizeof between[0]; i++) {
        run("plan --model %s/model.json %s %s", at, flags, between[i]);
        assert_ran(0);
    }
    run("plan --model %s/model.json %s --device-memory 2MiB", at, flags);
    assert_ran(0);
    assert_string_equal(ran.out, first);
    assert_int_equal(entries_of(path, cache, ""), 0);
}

/* A cache that cannot be made is no reason to fail. */
static void no_cache_no_harm(void **state)
{
    const char *at = folder();
    assert_int_equal(setenv("XDG_CACHE_HOME", "/dev/null/nowhere", 1), 0);
    for (int i = 0; i < 2; i++) {
        run("plan --model %s/model.json --batch 2 --seq 32 --threads 1", at);
        assert_ran(0);
        assert_string_equal(ran.err, "");
        assert_null(strstr(ran.out, "profile: cached"));
    }
    fresh_cache();
}

static void bad_plans_cost_no_profile(void **state)
{
    static const char *const plans[] = {"c=9,p=0,o=0", "c=0,q=0", "c=1,p=2,o=1", "c=x,p=0,o=0", "/no/such/plan.json"};
    char path[512];
    const char *at = folder(), *cache = fresh_cache();
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++)
        for (int trains = 0; trains < 2; trains++) {
            run("%s --model %s/model.json %s%s%s --plan %s", trains ? "train" : "plan", at, trains ? "--data " : "",
                trains ? at : "", trains ? "/text" : "", plans[i]);
            assert_ran(2);
            assert_int_equal(entries(path, cache), 0);
        }
}

/* Ctrl-C while the device is profiled: at once, and nothing is written. */
static void stopped_while_profiling(void **state)
{
    char out[256], text[256], model[256];
    const char *at = folder(), *cache = fresh_cache();
    snprintf(out, sizeof out, "%s/stopped", at);
    snprintf(model, sizeof model, "%s/model.json", at);
    snprintf(text, sizeof text, "%s/text", at);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(126);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is killed leaves no training behind */
        execl(program(), "autohete", "train", "--model", model, "--data", text, "--batch", "8", "--steps", "1000000",
              "--out", out, (char *)NULL);
        _exit(127);
    }
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); /* a profile takes a second and more */
    kill(child, SIGINT);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1); /* what was asked for, a checkpoint, is not there */
    char path[512];
    assert_int_equal(entries(path, cache), 0);
    assert_int_not_equal(access(out, F_OK), 0);
}

AH_TEST_CASES("cli/cache", plan_and_train_agree, other_questions_have_other_entries, damaged_entries_are_measured_again,
              plans_depend_on_no_history, no_cache_no_harm, bad_plans_cost_no_profile, stopped_while_profiling)
