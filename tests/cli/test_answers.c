/* fit, plan, simulate and README are asked the same and say the same: whether it fits, how fast, in how much memory,
 * and what would do where it does not. */
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "cli/program.h"

enum { TEXT = 512 };

/* What one command says of one question. */
struct answer {
    bool fits;
    double tokens_per_s, step_ns, device_bytes, host_bytes; /* where it fits */
    char why[TEXT];                                         /* where it does not */
    char would_do[TEXT];                                    /* "": nothing */
    double would_do_tokens_per_s;
};

static double number(const cJSON *tree, const char *key)
{
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(tree, key);
    if (!cJSON_IsNumber(node))
        fail_msg("'%s' is no number in: %s", key, ran.out);
    return node->valuedouble;
}

static const char *text(const cJSON *tree, const char *key)
{
    const char *string = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, key));
    if (!string)
        fail_msg("'%s' is no text in: %s", key, ran.out);
    return string;
}

static cJSON *asked(const char *command, const char *question)
{
    run("%s %s --json 2>%s/err", command, question, ah_test_folder());
    assert_ran(0);
    cJSON *tree = cJSON_Parse(ran.out);
    assert_non_null(tree);
    return tree;
}

static void read_speeds(struct answer *out, const cJSON *row)
{
    out->tokens_per_s = number(row, "tokens_per_s");
    out->step_ns = number(row, "step_ns");
    out->device_bytes = number(row, "device_peak_bytes");
    out->host_bytes = number(row, "host_peak_bytes");
}

static struct answer fit_says(const char *question)
{
    struct answer answer = {.fits = false};
    cJSON *tree = asked("fit", question);
    const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "models"), 0);
    answer.fits = cJSON_IsTrue(cJSON_GetObjectItem(row, "fits"));
    if (answer.fits)
        read_speeds(&answer, row);
    snprintf(answer.why, TEXT, "%s", text(row, "reason"));
    snprintf(answer.would_do, TEXT, "%s", text(row, "would_do"));
    if (*answer.would_do)
        answer.would_do_tokens_per_s = number(row, "would_do_tokens_per_s");
    cJSON_Delete(tree);
    return answer;
}

static struct answer simulate_says(const char *question)
{
    struct answer answer = {.fits = false};
    cJSON *tree = asked("simulate", question);
    const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "policies"), 0);
    answer.fits = cJSON_IsTrue(cJSON_GetObjectItem(row, "fits"));
    if (answer.fits)
        read_speeds(&answer, row);
    snprintf(answer.why, TEXT, "%s", text(row, "reason"));
    char *hint = strstr(answer.why, "; ");
    if (hint) {
        snprintf(answer.would_do, TEXT, "%.*s", (int)(strstr(hint, " would do") - hint) - 2, hint + 2);
        *hint = 0;
    }
    cJSON_Delete(tree);
    return answer;
}

/* "; --moments int8 would do within this budget (2103 tokens/s)" */
static struct answer plan_says(const char *question)
{
    struct answer answer = {.fits = false};
    run("plan %s --json", question);
    answer.fits = ran.status == 0;
    if (!answer.fits) {
        assert_refused(" memory: found ");
        snprintf(answer.why, TEXT, "%s", ran.err);
        char *hint = strstr(answer.why, "; "), *end = hint ? strstr(hint, " would do within this budget") : NULL;
        if (end) {
            snprintf(answer.would_do, TEXT, "%.*s", (int)(end - hint) - 2, hint + 2);
            assert_int_equal(sscanf(strchr(end, '('), "(%lf tokens/s)", &answer.would_do_tokens_per_s), 1);
        }
        return answer;
    }
    cJSON *tree = cJSON_Parse(ran.out);
    assert_non_null(tree);
    answer.step_ns = number(tree, "step_ns");
    answer.tokens_per_s = number(tree, "tokens_per_s");
    assert_says(ran.err, " tokens/s predicted\nplan: ");
    answer.device_bytes = number(tree, "device_peak_bytes");
    answer.host_bytes = number(tree, "host_peak_bytes");
    cJSON_Delete(tree);
    return answer;
}

/* "host memory: 29.5 GiB too much, or device memory: ..." speaks of the memories that the other line finds. */
static void expect_same_memories(const char *question, const char *fit, const char *plan)
{
    static const char *const names[] = {"device memory", "host memory"};
    for (size_t i = 0; i < 2; i++)
        if (!strstr(fit, names[i]) != !strstr(plan, names[i]))
            fail_msg("%s:\n%s\n%s", question, fit, plan);
    if (strstr(plan, fit[0] == 'd' ? "device memory: found" : "host memory: found") == NULL)
        fail_msg("%s:\n%s\n%s", question, fit, plan);
}

static struct answer expect_same(const char *question)
{
    const struct answer fit = fit_says(question), simulated = simulate_says(question), plan = plan_says(question);
    if (fit.fits != simulated.fits || fit.fits != plan.fits)
        fail_msg("%s: fit %d, simulate %d, plan %d", question, fit.fits, simulated.fits, plan.fits);
    if (fit.tokens_per_s != simulated.tokens_per_s || fit.step_ns != simulated.step_ns || fit.step_ns != plan.step_ns ||
        fit.device_bytes != simulated.device_bytes || fit.device_bytes != plan.device_bytes ||
        fit.host_bytes != simulated.host_bytes || fit.host_bytes != plan.host_bytes)
        fail_msg("%s: %f, %f and %f ns", question, fit.step_ns, simulated.step_ns, plan.step_ns);
    assert_true(!fit.fits ||
                (fit.tokens_per_s < 1.0001 * plan.tokens_per_s && fit.tokens_per_s > 0.9999 * plan.tokens_per_s));
    assert_string_equal(fit.why, simulated.why);
    assert_string_equal(fit.would_do, simulated.would_do);
    assert_string_equal(fit.would_do, plan.would_do);
    if (!fit.fits)
        expect_same_memories(question, fit.why, plan.why);
    assert_true(fit.would_do_tokens_per_s < plan.would_do_tokens_per_s + 1 &&
                fit.would_do_tokens_per_s > plan.would_do_tokens_per_s - 1);
    return fit;
}

/* What is named to do does, as fast as it is said to. */
static void commands_agree(void **state)
{
    static const struct {
        const char *options, *would_do;
    } questions[] = {
        {"--batch 1 --device-memory 1GiB", NULL},
        {"--batch 1 --policy stronghold --clip 0", NULL},
        {"--batch 1 --policy stronghold --device-memory 550MiB", "--moments int8"},
        {"--batch 1 --policy stronghold --device-memory 450MiB", "--master bf16 --moments int8"},
        {"--batch 1 --policy stronghold --device-memory 300MiB", "--lora-rank 16"},
        {"--batch 1 --policy stronghold --device-memory 175MiB", "--lora-rank 16 --frozen nf4"},
        {"--batch 1 --policy stronghold --device-memory 175MiB --lora-rank 4", "--frozen int8"},
        {"--batch 1 --policy stronghold --device-memory 50MiB --host-memory 1MiB", ""},
        {"--batch 8 --policy stronghold --device-memory 870MiB --micro-batch 8", "--micro-batch 1"},
    };
    const char *root = ah_test_source();
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        char question[TEXT * 3], again[TEXT * 4];
        snprintf(question, sizeof question,
                 "--model %s/../models/gpt2-124m.json --hardware %s/../hardware/a100-40g.json --seq 256 %s", root, root,
                 questions[i].options);
        struct answer answer = expect_same(question);
        const char *would_do = questions[i].would_do;
        if (answer.fits != (would_do == NULL))
            fail_msg("%s: %s", question, answer.fits ? "fits" : answer.why);
        if (!would_do)
            continue;
        if (strcmp(answer.would_do, would_do) != 0)
            fail_msg("%s: '%s' would do, expected '%s'", question, answer.would_do, would_do);
        if (!*would_do)
            continue;
        char *micro_batch = strstr(question, "--micro-batch");
        if (micro_batch)
            *micro_batch = 0;
        snprintf(again, sizeof again, "%s %s", question, answer.would_do);
        struct answer with = fit_says(again);
        assert_true(with.fits && with.tokens_per_s == answer.would_do_tokens_per_s);
    }
}

/* The number-th cell of README's row that begins with these words. */
static const char *readme_cell(const char *page, const char *row, int number)
{
    static char cell[80];
    const char *at = strstr(page, row);
    for (int i = 0; at && i < number; i++)
        at = strstr(at + 1, " | ");
    if (!at)
        fail_msg("README has no cell %d in the row of '%s'", number, row);
    snprintf(cell, sizeof cell, "%.*s", (int)strcspn(at + 3, "|") - 1, at + 3);
    return cell;
}

/* 1234.5 as "1,235" */
static const char *thousands(char out[32], double value)
{
    long long whole = (long long)(value + 0.5);
    if (whole >= 1000)
        snprintf(out, 32, "%lld,%03lld", whole / 1000, whole % 1000);
    else
        snprintf(out, 32, "%lld", whole);
    return out;
}

/* A cell of README's table is what fit says, and its letter what would do; a model goes by its name there. */
static void readme_says_the_same(void **state)
{
    enum { RTX4090 = 5 };
    static const struct {
        const char *model, *row;
    } rows[] = {{"qwen2.5-0.5b", "\n| Qwen2.5 0.5B |"}, {"llama-3.1-8b", "\n| Llama 3.1 8B |"}};
    const char *page = program_file("%s/../README.md", ah_test_source());
    assert_says(strstr(page, "<!-- begin: bench/readme_table -->"), "| RTX 4090 24 GB, 64 GB host |");
    for (size_t i = 0; i < 2; i++) {
        char question[TEXT], speed[32], start[48], legend[TEXT];
        snprintf(question, sizeof question, "--hardware rtx4090-64g --model %s --batch 8 --seq 1024", rows[i].model);
        const struct answer answer = fit_says(question);
        const char *cell = readme_cell(page, rows[i].row, RTX4090), *letter = strchr(cell, '*');
        assert_int_equal(answer.fits, letter == NULL);
        thousands(speed, answer.fits ? answer.tokens_per_s : answer.would_do_tokens_per_s);
        snprintf(start, sizeof start, "%s %s", speed, answer.fits ? "(" : "*");
        if (strncmp(cell, start, strlen(start)) != 0)
            fail_msg("README says '%s' of %s, fit says %s", cell, rows[i].model, start);
        snprintf(legend, sizeof legend, "%s: `%s`", answer.fits ? "" : letter, answer.would_do);
        if (!answer.fits)
            assert_says(page, legend);
    }
}

AH_TEST_CASES("cli/answers", commands_agree, readme_says_the_same)
