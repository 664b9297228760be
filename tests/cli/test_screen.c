/* What a user sees: figures that agree, words that say what they mean, pictures and pages. */
#include <math.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "cli/program.h"

/* A training of some steps into FOLDER/NAME. */
static const char *trained(const char *name, const char *more)
{
    static char dir[256];
    const char *at = folder();
    snprintf(dir, sizeof dir, "%s/%s", at, name);
    run("train --model %s/model.json --data %s/text --batch 2 --seq 32 --threads 1 --out %s %s", at, at, dir, more);
    return dir;
}

/* No line of what was printed is longer. */
static void assert_narrow(const char *text, size_t most)
{
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strcspn(line, "\n") > most)
            fail_msg("%zu columns: %.*s", strcspn(line, "\n"), (int)strcspn(line, "\n"), line);
}

static void one_step_time(void **state)
{
    const char *dir = trained("once", "--steps 30 --device-memory 1MiB");
    assert_ran(0);
    double measured, predicted, drawn, drawn_predicted, error, drawn_error;
    int steps;
    const char *line = strstr(ran.out, "step time      ");
    line = line ? strstr(line + 1, "step time      ") : NULL; /* the first is the plan's */
    assert_non_null(line);
    assert_int_equal(sscanf(line, "step time %lf ms measured (median of %d steps), %lf ms predicted (%lf%%)", &measured,
                            &steps, &predicted, &error),
                     4);
    assert_int_equal(steps, 28);
    const char *svg = program_file("%s/timeline.svg", dir), *title = strstr(svg, "AutoHete: ");
    char unit[3], other[3];
    assert_non_null(title);
    assert_int_equal(sscanf(title, "AutoHete: %lf %2s per step measured, %lf %2s predicted (%lf%%)", &drawn, unit,
                            &drawn_predicted, other, &drawn_error),
                     5);
    double scale = strcmp(unit, "us") == 0 ? 1e-3 : 1;
    assert_string_equal(unit, other);
    double rounding = scale < 1 ? 0.011 : 0.056; /* the picture has a tenth of its unit, the terminal 0.01 ms */
    assert_true(fabs(drawn * scale - measured) < rounding);
    assert_true(fabs(drawn_predicted * scale - predicted) < rounding);
    assert_true(fabs(drawn_error - error) < 0.11);
    assert_says(svg, "the median over 28 steps of the run");
    assert_says(svg, "buffers in use");
    assert_says(svg, "gpt2, 3 blocks, ");
    assert_says(svg, "batch 2 x 32 tokens, fp32; cpu");
    assert_narrow(ran.out, 100);
}

static const cJSON *about(const cJSON *tree, const char *name)
{
    const cJSON *node = cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "otherData"), name);
    assert_non_null(node);
    return node;
}

static void the_trace_has_both(void **state)
{
    const char *dir = trained("both", "--steps 12 --device-memory 1MiB");
    assert_ran(0);
    cJSON *tree = cJSON_Parse(program_file("%s/timeline.json", dir));
    assert_non_null(tree);
    double pids[2] = {0, 0}, starts[2] = {1e300, 1e300};
    const char *const names[] = {"predicted", "measured"};
    for (int i = 0; i < 2; i++) {
        const cJSON *node = about(tree, names[i]);
        assert_true(cJSON_GetObjectItem(node, "device_budget_bytes")->valuedouble == 1 << 20);
        assert_true(cJSON_GetObjectItem(node, "step_ns")->valuedouble > 0);
        pids[i] = cJSON_GetObjectItem(node, "pid")->valuedouble;
    }
    const cJSON *event;
    cJSON_ArrayForEach(event, cJSON_GetObjectItem(tree, "traceEvents"))
    {
        if (strcmp(cJSON_GetObjectItem(event, "ph")->valuestring, "X") != 0)
            continue;
        int which = cJSON_GetObjectItem(event, "pid")->valuedouble == pids[1];
        double start = cJSON_GetObjectItem(event, "ts")->valuedouble;
        starts[which] = start < starts[which] ? start : starts[which];
    }
    assert_true(starts[0] == 0 && starts[1] == 0);
    assert_true(cJSON_GetObjectItem(about(tree, "measured"), "median_of_steps")->valuedouble == 10);
    cJSON_Delete(tree);
}

static void report_page(void **state)
{
    const char *dir = trained("page", "--steps 12 --val-every 4 --device-memory 1MiB");
    assert_ran(0);
    assert_says(ran.out, "on one page    autohete report ");
    assert_says(program_file("%s/loss.svg", dir), "Loss after 12 steps: ");
    assert_says(program_file("%s/loss.svg", dir), "<circle");
    run("report %s", dir);
    assert_ran(0);
    const char *page = program_file("%s/report.html", dir);
    static const char *const words[] = {"<!DOCTYPE html>", "class=\"chart\"", "class=\"timeline\"", "Learning rate",
                                        "validation loss", "plan: c=",        "data_tokens",        "</html>"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_says(page, words[i]);
    /* everything is in it */
    assert_null(strstr(page, "src="));
    assert_null(strstr(page, "href="));
    assert_null(strstr(page, "<script"));
    run("report %s --out %s/other.html --json", dir, dir);
    assert_ran(0);
    assert_says(ran.out, "other.html\"}");
    /* of another version, too */
    run("--version && sed -i 's/\"version\": \"/&9/' %s/plan.json", dir);
    run("report %s", dir);
    assert_ran(0);
    assert_says(program_file("%s/report.html", dir), "plan: c=");
    run("report %s", ah_test_folder());
    assert_ran(2);
    assert_says(ran.err, "found no training there");
    run("report");
    assert_ran(2);
    assert_says(ran.err, "DIR is missing");
}

static void facts_are_told(void **state)
{
    trained("facts", "--steps 4");
    assert_ran(0);
    assert_says(ran.out, "model: gpt2, 3 blocks, 47.4 K parameters, 256 bytes in its vocabulary\n");
    assert_says(ran.out, "data: 53.8 K bytes: 48.4 K to train on, 5.3");
    assert_says(ran.out, "steps: 1 to 4 of 2 x 32 bytes, 0.00529 epochs in all\n");
    assert_says(ran.out, " mean ");
    assert_says(ran.out, "lanes work at once: compute (c)");
    assert_null(strstr(ran.out, "did not fall")); /* too few steps to say */
}

static void a_loss_that_does_not_fall(void **state)
{
    trained("high", "--steps 60 --lr 3 --warmup 0 --schedule constant");
    assert_ran(0);
    assert_says(ran.err, "a uniform guess has 5.545: the learning rate may be too high");
    const char *first = strstr(ran.err, "a uniform guess has");
    assert_null(strstr(first + 1, "a uniform guess has")); /* once */
    assert_says(ran.out, "did not fall");
    trained("low", "--steps 60 --lr 3e-3");
    assert_ran(0);
    assert_null(strstr(ran.err, "a uniform guess has"));
    assert_says(ran.out, "fell: ");
}

/* Short chats in long sequences: what is padding and what is learned is told, and packing where it helps. */
static void padding_is_told(void **state)
{
    const char *at = folder();
    char path[300];
    snprintf(path, sizeof path, "%s/pairs.jsonl", at);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 40; i++)
        fputs("{\"prompt\": \"12345\", \"completion\": \"678\"}\n", file); /* 9 bytes with the end: 8 places */
    fclose(file);
    static const char options[] = "--batch 2 --seq 32 --threads 1 --steps 2 --val-batches 0 --plan resident --json";
    run("train --model %s/model.json --data %s %s", at, path, options);
    assert_ran(0);
    assert_says(ran.err, "75% of the places in sequences of 32 are padding: --pack makes 9 sequences of 36");
    assert_says(ran.err, "\npadding: 75% of the places in sequences hold no token\n");
    assert_says(ran.err, " learned)  ETA ");
    assert_says(ran.err, " (12%) are learned"); /* 3 and the end, of 32 */
    assert_says(ran.out, "\"learned\": 0.125");
    run("train --model %s/model.json --data %s %s --pack", at, path, options);
    assert_ran(0);
    assert_null(strstr(ran.err, "padding"));
    assert_says(ran.out, "\"learned\": 0.5");
    run("train --model %s/model.json --data %s/text %s", at, at, options);
    assert_ran(0);
    assert_null(strstr(ran.err, "padding"));
    assert_null(strstr(ran.err, "learned"));
    assert_says(ran.out, "\"learned\": 1");
}

static void simulate_table(void **state)
{
    const char *at = folder();
    run("simulate --model %s/model.json --hardware %s/../hardware/a100-40g.json --batch 8 --seq 32 "
        "--policy all",
        at, ah_test_source());
    assert_ran(0);
    assert_narrow(ran.out, 100);
    char policy[32], switches[32], line[256];
    double step, other_step, relative, ours = 0;
    const char *row = strstr(ran.out, "\nautohete ");
    assert_non_null(row);
    assert_int_equal(sscanf(row, "%31s %31s %lf ms", policy, switches, &ours), 3);
    assert_says(ran.out, " 1.00x\n");
    row = strstr(ran.out, "\nl2l ");
    assert_non_null(row);
    snprintf(line, sizeof line, "%.*s", (int)strcspn(row + 1, "\n"), row + 1);
    assert_int_equal(sscanf(line, "%31s %31s %lf ms", policy, switches, &other_step), 3);
    assert_int_equal(sscanf(strrchr(line, ' '), "%lfx", &relative), 1);
    step = ours / other_step; /* the slower policy has less than 1 */
    assert_true(other_step < ours || relative <= 1);
    assert_true(relative > step - 0.3 && relative < step + 0.3);
    run("simulate --model %s/model.json --hardware %s/../hardware/a100-40g.json --batch 8 --seq 32 "
        "--sweep batch=8:16:8",
        at, ah_test_source());
    assert_ran(0);
    assert_says(ran.out, "\nbatch 16\n");
    assert_narrow(ran.out, 100);
}

/* What a child writes to a terminal of its own. */
static const char *on_a_terminal(const char *words)
{
    static char text[1 << 16];
    char line[4096];
    int terminal;
    snprintf(line, sizeof line, "exec '%s' %s", program(), words);
    pid_t child = forkpty(&terminal, NULL, NULL, NULL);
    assert_true(child >= 0);
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    size_t length = 0;
    ssize_t got;
    while (length < sizeof text - 1 && (got = read(terminal, text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = 0;
    close(terminal);
    waitpid(child, NULL, 0);
    return text;
}

static void control_bytes_are_shown(void **state)
{
    char words[512];
    const char *dir = trained("untrained", "--steps 1");
    assert_ran(0);
    /* a model that has learnt nothing writes any byte */
    snprintf(words, sizeof words, "generate --model %s --tokens 400 --temperature 5 --threads 1 --prompt ''", dir);
    const char *text = on_a_terminal(words);
    assert_says(text, "\\x1b");
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < 32 && !strchr("\r\n\t", *at))
            fail_msg("byte %d reached the terminal", *at);
    /* the prompt, too, and the upper controls */
    snprintf(words, sizeof words,
             "generate --model %s --tokens 1 --threads 1 --prompt \"$(printf '\\302\\23331m\\377')\"", dir);
    text = on_a_terminal(words);
    assert_says(text, "\\xc2\\x9b31m\\xff");
    assert_null(strstr(text, "\xc2\x9b"));
    snprintf(words, sizeof words, "generate --model %s --tokens 400 --temperature 5 --threads 1 --prompt ''", dir);
    run("%s", words); /* elsewhere bytes are bytes */
    assert_ran(0);
    assert_null(strstr(ran.out, "\\x1b"));
}

/* What is asked of the search holds where a picture of its plan is drawn, too. */
static void pictures_are_of_the_passes_asked_for(void **state)
{
    const char *at = folder();
    run("simulate --model %s/model.json --batch 8 --micro-batch 2 --plan passes=2,sums=0 "
        "--hardware %s/../hardware/a100-40g.json --trace %s/rounds.json --svg %s/rounds.svg",
        at, ah_test_source(), at, at);
    assert_ran(0);
    assert_says(program_file("%s/rounds.json", at), "sums in");
    assert_says(program_file("%s/rounds.svg", at), ", 2 passes</text>");
}

/* --explain has the fastest plans of half and of twice as many passes, which --passes finds, too. */
static void passes_are_explained(void **state)
{
    char words[1024];
    double step_ms[3] = {0};
    snprintf(words, sizeof words, "plan --model %s/model.json --batch 8 --micro-batch 2 --hardware %s/%s %s", folder(),
             ah_test_source(), "../hardware/a100-40g.json", "--device-memory 1MiB");
    for (int i = 0; i < 3; i += 2) {
        run("%s --passes %d --json 2>/dev/null", words, 1 << i);
        assert_ran(0);
        cJSON *plan = cJSON_Parse(ran.out);
        step_ms[i] = cJSON_GetNumberValue(cJSON_GetObjectItem(plan, "step_ns")) / 1e6;
        cJSON_Delete(plan);
    }
    run("%s --passes 2 --explain", words);
    assert_ran(0);
    assert_says(ran.out, " passes         step\n  chosen ");
    for (int i = 0; i < 3; i += 2) {
        char name[32], step[32];
        snprintf(name, sizeof name, "\n  fastest with passes=%d ", 1 << i);
        snprintf(step, sizeof step, "%6d %9.2f ms ", 1 << i, step_ms[i]);
        const char *line = strstr(ran.out, name), *at = line ? strstr(line, step) : NULL;
        assert_true(at && at < strchr(line + 1, '\n'));
    }
    assert_null(strstr(ran.out, "fastest with passes=2 "));
}

/* --passes is short for a plan of which nothing else is said; other switches are fixed in the same way. */
static void a_part_of_a_plan_is_kept(void **state)
{
    char words[1024];
    snprintf(words, sizeof words, "plan --model %s/model.json --batch 8 --micro-batch 2 --hardware %s/%s %s --json",
             folder(), ah_test_source(), "../hardware/a100-40g.json", "--device-memory 1MiB");
    run("%s --passes 2 2>/dev/null", words);
    assert_ran(0);
    char *passes = strdup(ran.out);
    run("%s --plan passes=2 2>/dev/null", words);
    assert_ran(0);
    assert_string_equal(ran.out, passes);
    free(passes);
    run("%s --plan embedding=host,c=1 2>/dev/null", words);
    assert_ran(0);
    cJSON *plan = cJSON_Parse(ran.out);
    assert_int_equal((int)cJSON_GetNumberValue(cJSON_GetObjectItem(plan, "checkpoint")), 1);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(plan, "embedding_on_host")));
    cJSON_Delete(plan);
    run("%s --plan c=9", words);
    assert_refused("--plan: c=9: found 9, expected at most layers=");
    run("%s --plan passes=9", words);
    assert_refused("--plan: passes=9: found 9, expected at most 4, the micro-batches of a step");
    run("%s --plan passes=2 --policy l2l", words);
    assert_refused("--plan: passes=2: found policy l2l, expected autohete");
}

/* A policy that has no such switch stands beside one that has it, in any order, but not alone. */
static void passes_are_for_policies_that_have_them(void **state)
{
    char words[1024];
    snprintf(words, sizeof words, "--model %s/model.json --batch 8 --micro-batch 2 --passes 2 --hardware %s/%s",
             folder(), ah_test_source(), "../hardware/a100-40g.json");
    for (int last = 0; last < 2; last++) {
        run("simulate %s --policy %s --json 2>/dev/null", words, last ? "l2l,autohete" : "autohete,l2l");
        assert_ran(0);
        cJSON *tree = cJSON_Parse(ran.out);
        for (int i = 0; i < 2; i++) {
            const cJSON *policy = cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "policies"), i);
            const cJSON *passes = cJSON_GetObjectItem(cJSON_GetObjectItem(policy, "plan"), "passes");
            assert_int_equal((int)cJSON_GetNumberValue(passes), i == last ? 2 : 1);
        }
        cJSON_Delete(tree);
    }
    run("simulate %s --policy l2l", words);
    assert_refused("--plan: passes=2: found policy l2l, expected autohete");
}

static void advice_knows_gradient_accumulation(void **state)
{
    const char *at = folder();
    run("train --model %s/model.json --data %s/text --batch 32 --seq 32 --device-memory 2MiB --gradient-accumulation 1 "
        "--steps 1 --threads 1",
        at, at);
    assert_refused("; give --micro-batch in place of --gradient-accumulation 1, which is --micro-batch 32 here");
}

AH_TEST_CASES("cli/screen", pictures_are_of_the_passes_asked_for, passes_are_explained, a_part_of_a_plan_is_kept,
              passes_are_for_policies_that_have_them, one_step_time, the_trace_has_both, report_page, facts_are_told,
              padding_is_told, a_loss_that_does_not_fall, simulate_table, control_bytes_are_shown,
              advice_knows_gradient_accumulation)
