/* --threads auto of the program itself: what it says, what training goes on with, what is refused. */
#include <stdio.h>
#include <string.h>

#include "cli/program.h"

/* The line that says what was chosen, "threads: 2 compute, 1 host, predicted fastest of 3 splits", and its numbers. */
static const char *threads_line(int *threads, int *host_threads)
{
    static char line[128];
    char end[64];
    const char *found = strstr(ran.out, "threads: ");
    int tried = 0;
    found = found ? found : strstr(ran.err, "threads: ");
    assert_non_null(found);
    snprintf(line, sizeof line, "%.*s", (int)strcspn(found, "\n"), found);
    assert_int_equal(sscanf(line, "threads: %d compute, %d host, %63[^\n]", threads, host_threads, end), 3);
    assert_true(*threads >= 1 && *host_threads >= 1);
    if (strcmp(end, "the only split") != 0) {
        assert_int_equal(sscanf(end, "predicted fastest of %d splits", &tried), 1);
        assert_true(tried > 1);
    }
    return line;
}

static void expect_recipe(int threads, int host_threads)
{
    char words[64];
    snprintf(words, sizeof words, "\"threads\": %d,\n  \"host_threads\": %d,", threads, host_threads);
    assert_says(program_file("%s/auto/run.json", folder()), words);
}

/* Plan, simulate and train choose alike, from one another's profiles; training goes on with what was chosen. */
static void threads_are_chosen(void **state)
{
    (void)state;
    static char chosen[128];
    const char *at = folder(), *shape = "--batch 2 --seq 16 --plan c=1,p=1,o=1";
    int threads, host_threads, host_given;
    run("plan --model %s/model.json %s --threads auto", at, shape);
    assert_ran(0);
    snprintf(chosen, sizeof chosen, "%s", threads_line(&threads, &host_threads));
    run("simulate --model %s/model.json %s --threads auto --json", at, shape);
    assert_ran(0);
    assert_string_equal(threads_line(&threads, &host_threads), chosen);
    assert_says(ran.err, "profile: kept from ");
    run("train --model %s/model.json --data %s/text %s --steps 2 --threads auto --out %s/auto --json", at, at, shape,
        at);
    assert_ran(0);
    assert_string_equal(threads_line(&threads, &host_threads), chosen);
    expect_recipe(threads, host_threads);
    run("train --resume %s/auto --steps 3", at);
    assert_ran(0);
    assert_null(strstr(ran.out, "threads: "));
    expect_recipe(threads, host_threads);
    run("plan --model %s/model.json %s --threads auto --host-threads 2", at, shape);
    assert_ran(0);
    threads_line(&threads, &host_given);
    assert_int_equal(host_given, 2);
}

static void refused_in_one_line(void **state)
{
    (void)state;
    static const struct {
        const char *words, *message;
    } cases[] = {
        {"profile --model x --threads auto", "--threads: found 'auto', expected a whole number from 1 to 4096"},
        {"plan --model x --threads some", "--threads: found 'some', expected auto or a whole number from 1 to 4096"},
        {"plan --model x --threads -1", "--threads: found '-1', expected auto or a whole number from 1 to 4096"},
        {"plan --model x --threads auto --profile y", "--threads: found auto beside --profile, expected a number"},
        {"plan --model x --threads auto --hardware y", "--threads: found auto beside --hardware, expected a number"},
        {"plan --model x --threads auto --micro-batch auto",
         "--threads: found auto beside --micro-batch auto, expected a number for one of them"},
        {"simulate --model x --threads auto --hardware y", "--threads: found it beside --hardware"},
        {"simulate --model x --threads auto --policy all",
         "--threads: found auto, expected a number where policies or machines are compared"},
        {"generate --model x --prompt y --threads auto", "--threads: found 'auto', expected a whole number from 1"},
    };
    const char *at = folder();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run("%s", cases[i].words);
        assert_refused(cases[i].message);
    }
    run("plan --model %s/model.json --threads auto --device cpu:1", at);
    assert_refused("threads: auto: device \"cpu:1\": there is one cpu device");
    run("plan --model %s/model.json --batch 32 --seq 32 --device-memory 2MiB --threads auto", at);
    assert_refused("would do within this budget");
    run("train --model %s/model.json --data %s/text --threads auto --micro-batch auto", at, at);
    assert_refused("threads: found auto beside micro_batch auto, expected a number for one of them");
}

AH_TEST_SUITE("cli/threads", cmocka_unit_test(threads_are_chosen), cmocka_unit_test(refused_in_one_line))
