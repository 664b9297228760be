/* The program itself, run as a user runs it. */
#include <math.h>
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

static const char *const commands[] = {"train", "data",     "tokenize", "plan",    "profile", "simulate",
                                       "fit",   "generate", "eval",     "inspect", "devices"};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

/* As where a file system has no links, or nothing came after the checkpoint itself. */
static void links_remove(const char *at)
{
    static const char *const links[] = {"checkpoint", "config.json"};
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        char path[4096];
        assert_true(snprintf(path, sizeof path, "%s/run/%s", at, links[i]) > 0 && unlink(path) == 0);
    }
}

static cJSON *last_line_object(void)
{
    size_t length = strlen(ran.out);
    assert_true(length > 1 && ran.out[length - 1] == '\n');
    ran.out[length - 1] = 0;
    const char *line = strrchr(ran.out, '\n');
    cJSON *tree = cJSON_ParseWithOpts(line ? line + 1 : ran.out, NULL, true);
    if (!cJSON_IsObject(tree))
        fail_msg("the last line is no JSON object: %s", line ? line + 1 : ran.out);
    return tree;
}

static double number(const cJSON *tree, const char *key)
{
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(tree, key);
    if (!cJSON_IsNumber(node))
        fail_msg("no number '%s'", key);
    return node->valuedouble;
}

static void help_and_version(void **state)
{
    run("--help");
    assert_ran(0);
    static char first[sizeof ran.out];
    char usage[64];
    for (int i = 0; i < COMMANDS; i++) {
        run("--help");
        assert_non_null(strstr(ran.out, commands[i]));
        run("%s --help", commands[i]);
        assert_ran(0);
        snprintf(usage, sizeof usage, "usage: autohete %s ", commands[i]);
        assert_int_equal(strncmp(ran.out, usage, strlen(usage)), 0);
        assert_non_null(strstr(ran.out, "--json"));
        memcpy(first, ran.out, sizeof first);
        run("help %s", commands[i]);
        assert_ran(0);
        assert_string_equal(ran.out, first);
        run("%s --version", commands[i]);
        assert_ran(0);
        assert_says(ran.out, ah_version());
    }
    run("--version");
    assert_says(ran.out, ah_version());
    run("%s", ""); /* nothing asked for */
    assert_ran(2);
    assert_int_equal(strncmp(ran.err, "usage: autohete COMMAND", 23), 0);
    char line[4200];
    snprintf(line, sizeof line, "'%s' --help >/dev/full 2>/dev/null", program());
    int status = system(line);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static void bad_command_lines(void **state)
{
    static const struct {
        const char *words, *message;
    } cases[] = {
        {"trian", "found 'trian', expected a command, did you mean 'train'?"},
        {"help plam", "did you mean 'plan'?"},
        {"frobnicate", "see 'autohete --help'"},
        {"train --data x", "--model is missing"},
        {"train --model x", "--data is missing"},
        {"train --modle x", "did you mean --model?"},
        {"train --model x --data x --device-memory 64Mib",
         "--device-memory: found '64Mib', expected a size like 64MiB"},
        {"train --model x --data x --steps 0", "--steps: found '0'"},
        {"train --model x --data x --link 999999B/s",
         "--link: found '999999B/s', expected a rate like 4GB/s, at least 1000000 bytes a second"},
        {"train --model x --data x --beta1 1", "--beta1: found '1', expected a number from 0 to 0.999999999"},
        {"plan --batch 4", "--model is missing"},
        {"plan --model x --policy best", "--policy: found 'best', expected autohete, "},
        {"plan --model x --out /no/such/plan.json",
         "--out: /no/such/plan.json: cannot write into folder '/no/such': No such file"},
        {"plan --model x --out /", "--out: /: found a folder, expected a file name"},
        {"profile --model x --out /no/such/profile.json", "--out: /no/such/profile.json: cannot write into folder"},
        {"simulate --model x --svg /no/such/x.svg", "--svg: /no/such/x.svg: cannot write into folder"},
        {"simulate --model x --trace /no/such/x.json", "--trace: /no/such/x.json: cannot write into folder"},
        {"plan --model x --seq many", "--seq: found 'many'"},
        {"plan --model x --micro-batch 3", "--micro-batch: found 3, expected a divisor of the batch of 8"},
        {"inspect --model x --batch 4 --micro-batch 8", "--micro-batch: found 8, expected a divisor of the batch of 4"},
        {"profile --model x --micro-batch auto", "--micro-batch: found 'auto', expected a whole number from 1"},
        {"plan --model x --micro-batch some", "--micro-batch: found 'some', expected auto or a whole number from 1"},
        {"plan --model x --micro-batch auto --profile y", "--micro-batch: found auto beside a saved profile"},
        {"simulate --model x --hardware y --micro-batch auto", "--micro-batch: found auto, expected a size"},
        {"simulate --model x --hardware y --ranks 2 --micro-batch 8", "found 8, expected a divisor of the batch of 4"},
        {"simulate --model x --iterations 0", "--iterations: found '0', expected a whole number from 1 to 10000"},
        {"simulate --model x --ranks 2", "--ranks: found it without --hardware"},
        {"plan --model x --dtype fp16", "--dtype: found 'fp16', expected bf16 or fp32"},
        {"train --model x --data x --dtype fp16", "--dtype: found 'fp16', expected bf16 or fp32"},
        {"train --model x --data x --save-dtype int8", "--save-dtype: found 'int8', expected bf16 or fp32"},
        {"simulate --model x --hardware y --profile z", "--profile: found it beside --hardware"},
        {"plan --model x --hardware y --micro-batch auto", "--micro-batch: found auto beside hardware"},
        {"simulate --model x --hardware y --link 4GB/s", "--link: found it beside --hardware"},
        {"simulate --model x --hardware y --dtype fp8", "--dtype: found 'fp8', expected bf16 or fp32"},
        {"simulate --model x --hardware y --policy autohete,stronghld", "did you mean 'stronghold'?"},
        {"simulate --model x --hardware y --policy autohete,", "--policy: found ''"},
        {"simulate --model x --hardware a100-40g-x4 --ranks 4 --batch 6", "--batch: found 6, expected a multiple of 4"},
        {"simulate --model x --hardware y --sweep batch=4:8", "--sweep: found 'batch=4:8'"},
        {"simulate --model x --hardware y --sweep seq=8:16:8 --seq 8", "--seq: found it beside --sweep seq"},
        {"simulate --model x --hardware /no/such.json", "/no/such.json"},
        {"simulate --model x --policy all --svg y", "--svg: found it with several policies"},
        {"generate", "--model is missing"},
        {"eval --model x", "--data is missing (or --ids with --logits)"},
        {"eval --model x --ids 1,2", "--ids and --logits go together, and without --data"},
        {"eval --model x --logits y --data z", "--ids and --logits go together"},
        {"eval --model x --ids 1,,2 --logits y", "--ids: found ',2', expected numbers like 1,5,9"},
        {"eval --model x --ids 1,-2 --logits y", "--ids: found '-2'"},
        {"eval --model x --ids 1, --logits y", "--ids: found ''"},
        {"eval --model x --ids 99999999999 --logits y", "--ids: found '99999999999'"},
        {"inspect", "--model is missing: 'autohete inspect' needs it, or --checkpoint"},
        {"inspect --model x --checkpoint x", "found it beside --model"},
        {"plan --model /no/such.json", "/no/such.json"},
        {"generate --model /no/such --prompt x", "/no/such"},
        {"train --model /no/such.json --data /no/text", "/no/such.json"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run("%s", cases[i].words);
        assert_refused(cases[i].message);
    }
}

static void train_json(void **state)
{
    const char *at = folder();
    run("train --model %s/model.json --data %s/text --batch 2 --seq 32 --steps 6 --threads 1 --out %s/run --json", at,
        at, at);
    assert_ran(0);
    assert_ptr_equal(strchr(ran.out, '\n'), ran.out + strlen(ran.out) - 1); /* text went to standard error */
    assert_non_null(strstr(ran.err, "step 6/6"));
    assert_non_null(strstr(ran.err, "validation loss"));
    cJSON *tree = last_line_object();
    assert_true(number(tree, "final_loss") > 1 && number(tree, "final_loss") < 7);
    assert_true(number(tree, "val_loss") > 1 && number(tree, "val_loss") < 7);
    assert_true(number(tree, "device_peak_bytes_predicted") == number(tree, "device_peak_bytes_used"));
    assert_true(number(tree, "host_peak_bytes_predicted") == number(tree, "host_peak_bytes_used"));
    assert_true(number(tree, "step_ns_predicted") > 0 && number(tree, "step_ns_median") > 0);
    assert_true(number(tree, "tokens_per_s") > 0);
    assert_true(number(tree, "steps") == 6);
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(tree, "stopped")));
    assert_true(cJSON_IsObject(cJSON_GetObjectItem(tree, "plan")));
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(tree, "policy")), "autohete");
    cJSON_Delete(tree);
    run("generate --model %s/run --prompt ab --tokens 5 --threads 1 --json", at);
    assert_ran(0);
    tree = last_line_object();
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "tokens")), 5);
    cJSON_Delete(tree);
    run("generate --model %s/run --prompt ab --tokens 5 --threads 1", at);
    assert_ran(0);
    assert_int_equal(strncmp(ran.out, "ab", 2), 0);
    char whole[64], *line = strchr(ran.out, 0) - 1;
    *line = 0; /* a line break */
    snprintf(whole, sizeof whole, "%s", ran.out);
    run("generate --model %s/run --prompt ab --tokens 5 --threads 1 --raw", at);
    assert_ran(0);
    assert_string_equal(ran.out, whole + 2);
    run("generate --model %s/run --raw --json", at);
    assert_refused("--raw: found it beside --json");
    run("eval --model %s/run --data %s/text --threads 1 --json", at, at);
    assert_ran(0);
    tree = last_line_object();
    assert_true(number(tree, "loss") > 1 && number(tree, "loss") < 7);
    assert_true(fabs(number(tree, "perplexity") - exp(number(tree, "loss"))) < 1e-6);
    assert_true(fabs(number(tree, "bits_per_byte") - number(tree, "loss") / log(2)) < 1e-9);
    assert_true(number(tree, "tokens") == (double)strlen(program_file("%s/text", at)) - 1);
    cJSON_Delete(tree);
    run("eval --model %s/run --ids 1,5,9 --logits %s/logits.safetensors --threads 1", at, at);
    assert_ran(0);
    assert_non_null(strstr(ran.out, "logits of 3 tokens: "));
    assert_non_null(strstr(program_file("%s/logits.safetensors", at) + 8, "\"shape\":[3,256]"));
    run("inspect --checkpoint %s/run --batch 2 --json", at);
    assert_ran(0);
    tree = last_line_object();
    assert_true(number(tree, "layers") == 3);
    assert_true(number(cJSON_GetObjectItem(tree, "config"), "n_embd") == 32);
    assert_true(cJSON_IsObject(cJSON_GetObjectItem(tree, "partition")));
    cJSON_Delete(tree);
    links_remove(at);
    run("inspect --checkpoint %s/run --batch 2 --json", at);
    assert_ran(0);
    run("inspect --checkpoint %s --batch 2", at);
    assert_ran(2);
    assert_non_null(strstr(ran.err, "found no complete checkpoint"));
}

/* In micro-batches, and with their size left open. */
static void train_in_micro_batches(void **state)
{
    const char *at = folder();
    run("train --model %s/model.json --data %s/text --batch 8 --micro-batch 2 --seq 16 --steps 3 --threads 1 "
        "--out %s/micro --json",
        at, at, at);
    assert_ran(0);
    assert_non_null(strstr(ran.err, "micro-batches: 4 of 2 sequences\n"));
    cJSON *tree = last_line_object();
    assert_true(number(tree, "micro_batch") == 2);
    assert_true(number(tree, "device_peak_bytes_predicted") == number(tree, "device_peak_bytes_used"));
    cJSON_Delete(tree);
    run("train --resume %s/micro --micro-batch 4", at);
    assert_refused("--micro-batch: found 4, expected 2 as in the checkpoint");
    run("train --resume %s/micro --micro-batch auto --steps 4 --threads 1 --json", at);
    assert_ran(0);
    tree = last_line_object();
    assert_true(number(tree, "micro_batch") == 2);
    cJSON_Delete(tree);
    run("generate --model %s/micro --prompt ab --tokens 5 --threads 1", at);
    assert_ran(0);
    run("plan --model %s/model.json --batch 4 --seq 32 --micro-batch auto --threads 1", at);
    assert_ran(0);
    assert_non_null(strstr(ran.out, ", the fastest\n"));
    run("plan --model %s/model.json --batch 32 --seq 32 --device-memory 2MiB --threads 1", at);
    assert_refused("would do within this budget");
    long long size = 0;
    assert_int_equal(sscanf(strstr(ran.err, "; --micro-batch"), "; --micro-batch %lld", &size), 1);
    assert_in_range(size, 1, 16);
    run("plan --model %s/model.json --batch 32 --seq 32 --device-memory 2MiB --micro-batch %lld --threads 1", at, size);
    assert_ran(0);
    run("plan --model %s/model.json --batch 32 --seq 32 --device-memory 2MiB --micro-batch %lld --threads 1", at,
        2 * size);
    assert_refused("would do within this budget");
    run("simulate --model %s/model.json --batch 8 --micro-batch 2 --hardware %s/../hardware/a100-40g.json --json", at,
        ah_test_source());
    assert_ran(0);
    tree = last_line_object();
    assert_true(number(tree, "micro_batch") == 2);
    cJSON_Delete(tree);
}

/* A checkpoint larger than files may be: a failed write with its message, not the end by a signal. */
static void file_size_limit(void **state)
{
    char line[8192];
    snprintf(
        line, sizeof line,
        "ulimit -f 100; '%s' train --model %s/model.json --data %s/text --batch 1 --seq 16 --steps 1 --val-batches 0"
        " --threads 1 --out %s/limited --quiet >%s/out 2>%s/err",
        program(), folder(), folder(), folder(), folder(), folder());
    int status = system(line);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    snprintf(ran.err, sizeof ran.err, "%s", program_file("%s/err", folder()));
    assert_non_null(strstr(ran.err, "cannot write: File too large\n"));
    snprintf(line, sizeof line, "%s/limited/checkpoint", folder());
    assert_int_not_equal(access(line, F_OK), 0);
    snprintf(line, sizeof line, "%s/limited/step-00000001.tmp", folder());
    assert_int_not_equal(access(line, F_OK), 0);
}

static void quiet_says_nothing(void **state)
{
    const char *at = folder();
    run("train --model %s/model.json --data %s/text --batch 2 --seq 16 --steps 2 --threads 1 --quiet", at, at);
    assert_ran(0);
    assert_string_equal(ran.out, "");
    assert_string_equal(ran.err, "");
}

static void artefacts_travel(void **state)
{
    const char *at = folder(), *shape = "--batch 2 --seq 32 --threads 1";
    run("profile --model %s/model.json %s --out %s/profile.json --json", at, shape, at);
    assert_ran(0);
    cJSON_Delete(last_line_object());
    run("plan --model %s/model.json %s --profile %s/profile.json --plan c=2,p=1,o=2 --out %s/plan.json --explain", at,
        shape, at, at);
    assert_ran(0);
    assert_non_null(strstr(ran.out, "plan: c=2 p=1 o=2"));
    run("simulate --model %s/model.json %s --profile %s/profile.json --plan %s/plan.json --svg %s/t.svg --trace "
        "%s/t.json "
        "--json",
        at, shape, at, at, at, at);
    assert_ran(0);
    assert_non_null(strstr(ran.err, "longest gap"));
    cJSON *plan = last_line_object();
    assert_true(number(plan, "checkpoint") == 2);
    cJSON_Delete(plan);
    char path[160];
    snprintf(path, sizeof path, "%s/t.svg", at);
    assert_int_equal(access(path, R_OK), 0);
    snprintf(path, sizeof path, "%s/t.json", at);
    assert_int_equal(access(path, R_OK), 0);
    run("plan --model %s/model.json --profile %s/profile.json --device-memory 1KiB %s", at, at, shape);
    assert_refused("expected at least");
}

static const char *hardware(void)
{
    static char path[4200];
    snprintf(path, sizeof path, "%s/../hardware/a100-40g.json", ah_test_source());
    return path;
}

static const cJSON *entry(const cJSON *policies, const char *policy)
{
    const cJSON *each;
    cJSON_ArrayForEach(each, policies) if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(each, "policy")), policy) ==
                                           0) return each;
    fail_msg("no policy '%s'", policy);
    return NULL;
}

/* One entry: consistent with itself and with the autohete entry beside it. */
static void check_entry(const cJSON *of, const cJSON *ours, int layers)
{
    const cJSON *plan = cJSON_GetObjectItem(of, "plan");
    assert_true(number(plan, "c") <= layers && number(plan, "p") <= number(plan, "o") && number(plan, "o") <= layers);
    assert_true(number(of, "device_peak_bytes") > 0 && number(of, "host_peak_bytes") > 0);
    if (!cJSON_IsTrue(cJSON_GetObjectItem(of, "fits"))) {
        assert_non_null(strstr(cJSON_GetStringValue(cJSON_GetObjectItem(of, "reason")), " too much"));
        assert_true(number(of, "over_bytes") > 0 && cJSON_IsNull(cJSON_GetObjectItem(of, "step_ns")));
        return;
    }
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(of, "reason")), "");
    assert_true(number(of, "step_ns") >= number(of, "bound_ns") && number(of, "bound_ns") > 0);
    assert_true(number(of, "tflops_hardware") >= number(of, "tflops_model") && number(of, "tflops_model") > 0);
    double expected = number(ours, "tokens_per_s") / number(of, "tokens_per_s");
    assert_true(number(of, "speedup") > 0.999 * expected && number(of, "speedup") < 1.001 * expected);
}

static void policies_on_a_machine(void **state)
{
    const char *at = folder();
    run("simulate --model %s/model.json --hardware %s --batch 4 --seq 32 --policy all --json", at, hardware());
    assert_ran(0);
    assert_non_null(strstr(ran.err, "TFLOPS    model flops of one rank per second"));
    cJSON *tree = last_line_object();
    const cJSON *policies = cJSON_GetObjectItem(tree, "policies"), *each;
    int count = 0;
    for (const char *const *policy = ah_policy_names(); *policy; policy++, count++)
        entry(policies, *policy);
    assert_int_equal(cJSON_GetArraySize(policies), count);
    cJSON_ArrayForEach(each, policies) check_entry(each, entry(policies, "autohete"), 3);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(entry(policies, "resident"), "fits")));
    double needed = number(entry(policies, "resident"), "device_peak_bytes");
    cJSON_Delete(tree);
    run("simulate --model %s/model.json --hardware %s --batch 4 --seq 32 --policy autohete,resident --device-memory "
        "%.0f --json",
        at, hardware(), needed - 1);
    assert_ran(0);
    tree = last_line_object();
    policies = cJSON_GetObjectItem(tree, "policies");
    assert_int_equal(cJSON_GetArraySize(policies), 2);
    assert_true(number(entry(policies, "resident"), "over_bytes") == 1);
    const char *reason = cJSON_GetStringValue(cJSON_GetObjectItem(entry(policies, "resident"), "reason"));
    assert_int_equal(strncmp(reason, "device memory: 1 B too much; --", 31), 0); /* and what would do */
    cJSON_Delete(tree);
}

/* plan answers for a machine what simulate does, within its memories. */
static void a_plan_for_a_machine(void **state)
{
    const char *at = folder();
    run("simulate --model %s/model.json --hardware %s --batch 4 --seq 32 --policy autohete,resident --json", at,
        hardware());
    assert_ran(0);
    cJSON *tree = last_line_object();
    double step_ns = number(entry(cJSON_GetObjectItem(tree, "policies"), "autohete"), "step_ns");
    cJSON_Delete(tree);
    run("plan --model %s/model.json --hardware %s --batch 4 --seq 32 --json", at, hardware());
    assert_ran(0);
    assert_non_null(strstr(ran.err, ", which is not this one\n"));
    tree = last_line_object();
    assert_true(number(tree, "step_ns") == step_ns);
    cJSON_Delete(tree);
    run("plan --model %s/model.json --hardware %s --batch 4 --seq 32 --device-memory 1KiB", at, hardware());
    assert_refused("device memory");
    run("plan --model %s/model.json --hardware no-such --batch 4", at);
    assert_refused("no-such");
    run("plan --model %s/model.json --hardware %s --profile x", at, hardware());
    assert_refused("--profile: found it beside hardware");
}

/* The same question about the device at hand, which is measured. */
static void policies_on_the_device(void **state)
{
    run("simulate --model %s/model.json --batch 1 --seq 16 --threads 1 --policy autohete,resident --json", folder());
    assert_ran(0);
    cJSON_Delete(last_line_object());
    assert_non_null(strstr(ran.err, "autohete"));
    assert_non_null(strstr(ran.err, "resident"));
}

static void sweeps_of_a_machine(void **state)
{
    const char *at = folder();
    run("simulate --model %s/model.json --hardware %s --seq 32 --policy autohete,l2l --sweep batch=2:6:2 --json", at,
        hardware());
    assert_ran(0);
    cJSON *tree = last_line_object();
    const cJSON *sweep = cJSON_GetObjectItem(tree, "sweep"), *point;
    int64_t batch = 2;
    assert_int_equal(cJSON_GetArraySize(sweep), 3);
    cJSON_ArrayForEach(point, sweep)
    {
        const cJSON *policies = cJSON_GetObjectItem(point, "policies");
        assert_true(number(point, "batch") == (double)batch);
        assert_int_equal(cJSON_GetArraySize(policies), 2);
        check_entry(entry(policies, "l2l"), entry(policies, "autohete"), 3);
        double step_s = number(entry(policies, "l2l"), "step_ns") / 1e9;
        double tokens = number(entry(policies, "l2l"), "tokens_per_s") * step_s;
        assert_true(tokens > (double)(batch * 32) - 1e-6 && tokens < (double)(batch * 32) + 1e-6);
        batch += 2;
    }
    cJSON_Delete(tree);
    run("simulate --model %s/model.json --hardware a100-40g-x4 --ranks 4 --seq 32 --sweep batch=4:8:2", at);
    assert_refused("--batch: found 6, expected a multiple of 4");
    run("simulate --model %s/model.json --hardware %s --seq 32 --batch 3 --svg %s/paper.svg --trace %s/paper.json", at,
        hardware(), at, at);
    assert_ran(0);
    char path[160];
    snprintf(path, sizeof path, "%s/paper.svg", at);
    assert_int_equal(access(path, R_OK), 0);
    snprintf(path, sizeof path, "%s/paper.json", at);
    assert_int_equal(access(path, R_OK), 0);
    run("simulate --model %s/model.json --hardware %s --seq 32 --plan c=1,p=1,o=2 --json", at, hardware());
    assert_ran(0);
    tree = last_line_object();
    assert_true(number(tree, "checkpoint") == 1 && number(tree, "offload_optimizer") == 2);
    cJSON_Delete(tree);
    run("simulate --model %s/model.json --hardware %s --seq 32 --plan c=1,selective=1,p=1,o=2", at, hardware());
    assert_ran(0);
    assert_non_null(strstr(ran.out, "selective=1"));
    run("simulate --model %s/model.json --hardware %s --seq 32 --plan c=1,selective=9,p=1,o=2", at, hardware());
    assert_refused("selective=9: found 9, expected at most layers-c=");
}

static pid_t start(char *const words[], const char *out)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!freopen(out, "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(126);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is killed leaves no training behind */
        execv(program(), words);
        _exit(127);
    }
    return child;
}

static void wait_for_text(const char *path, pid_t writer)
{
    struct stat info;
    int status;
    while (stat(path, &info) != 0 || info.st_size == 0) {
        if (waitpid(writer, &status, WNOHANG) != 0)
            fail_msg("the program ended before it wrote %s", path);
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
}

static void signal_saves_and_exits(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        char model[160], text[160], dir[160], metrics[192], out[160];
        snprintf(model, sizeof model, "%s/model.json", folder());
        snprintf(text, sizeof text, "%s/text", folder());
        snprintf(dir, sizeof dir, "%s/stop-%zu", folder(), i);
        snprintf(metrics, sizeof metrics, "%s/metrics.jsonl", dir);
        snprintf(out, sizeof out, "%s/stop-%zu.out", folder(), i);
        char *words[] = {"autohete", "train",     "--model",   model, "--data", text, "--batch", "2", "--seq", "16",
                         "--steps",  "100000000", "--threads", "1",   "--out",  dir,  "--json",  NULL};
        pid_t child = start(words, out);
        wait_for_text(metrics, child);
        kill(child, signals[i]);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        char name[32];
        snprintf(name, sizeof name, "stop-%zu.out", i);
        snprintf(ran.out, sizeof ran.out, "%s", program_file("%s/%s", folder(), name));
        cJSON *tree = last_line_object();
        assert_true(cJSON_IsTrue(cJSON_GetObjectItem(tree, "stopped")));
        int64_t steps = (int64_t)number(tree, "steps");
        cJSON_Delete(tree);
        assert_true(steps >= 1);
        run("train --resume %s --steps %lld --profile %s/profile.json --threads 1 --json", dir, (long long)steps + 2,
            dir);
        assert_ran(0);
        tree = last_line_object();
        assert_true(number(tree, "steps") == (double)(steps + 2));
        cJSON_Delete(tree);
    }
}

/* Without standard streams nothing that is meant for them gets into a file of the training; and whoever reads the
 * progress may go. */
static void streams_that_are_gone_end_nothing(void **state)
{
    static const char *const gone[] = {"<&- >&- 2>&-", "2>/dev/null | head -c 1 >/dev/null"};
    char line[8192];
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) {
        int lines = 0;
        snprintf(line, sizeof line,
                 "rm -rf %s/gone; '%s' train --model %s/model.json --data %s/text --batch 2 --seq 16 --steps 3 "
                 "--threads 1 --out %s/gone %s",
                 folder(), program(), folder(), folder(), folder(), gone[i]);
        assert_int_equal(system(line), 0);
        for (const char *at = program_file("%s/gone/metrics.jsonl", folder()); *at; at = strchr(at, '\n') + 1, lines++)
            assert_true(*at == '{');
        assert_int_equal(lines, 3);
    }
}

static void devices_are_listed(void **state)
{
    run("devices");
    assert_ran(0);
    assert_int_equal(strncmp(ran.out, "device ", 7), 0);
    assert_non_null(strstr(ran.out, "\ncpu "));
    run("devices --json");
    assert_ran(0);
    cJSON *tree = last_line_object();
    const cJSON *cpu = cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "devices"), 0);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(cpu, "device")), "cpu");
    assert_true(number(cpu, "memory_bytes") > 0 && number(cpu, "h2d_bytes_per_s") > 0);
    cJSON_Delete(tree);
    run("plan --model %s/model.json --device cpu:1", folder());
    assert_refused("device \"cpu:1\": there is one cpu device");
}

#ifdef AH_TEST_EMULATION
/* "auto" takes a GPU and says so. */
static void a_gpu_is_named(void **state)
{
    const char *at = folder();
    setenv("AUTOHETE_PLUGINS", AH_TEST_EMULATION, 1);
    setenv("AUTOHETE_CUDA_LIBRARIES", AH_TEST_EMULATION "/libraries", 1);
    run("train --model %s/model.json --data %s/text --batch 1 --seq 8 --steps 1 --val-batches 0 --json", at, at);
    assert_ran(0);
    assert_non_null(strstr(ran.err, "device: cuda:0, "));
    cJSON *tree = last_line_object();
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(tree, "device")), "cuda:0");
    cJSON_Delete(tree);
    run("plan --model %s/model.json --device cuda --threads 2", at);
    assert_refused("device \"cuda\": found 2 device threads, expected none");
    unsetenv("AUTOHETE_PLUGINS");
    unsetenv("AUTOHETE_CUDA_LIBRARIES");
}
#define GPU_TESTS , cmocka_unit_test(a_gpu_is_named)
#else
#define GPU_TESTS
#endif

AH_TEST_SUITE("cli/commands", cmocka_unit_test(help_and_version), cmocka_unit_test(bad_command_lines),
              cmocka_unit_test(train_json), cmocka_unit_test(train_in_micro_batches),
              cmocka_unit_test(quiet_says_nothing), cmocka_unit_test(artefacts_travel),
              cmocka_unit_test(policies_on_a_machine), cmocka_unit_test(a_plan_for_a_machine),
              cmocka_unit_test(policies_on_the_device), cmocka_unit_test(sweeps_of_a_machine),
              cmocka_unit_test(signal_saves_and_exits), cmocka_unit_test(streams_that_are_gone_end_nothing),
              cmocka_unit_test(file_size_limit), cmocka_unit_test(devices_are_listed) GPU_TESTS)
