/* autohete fit as a user runs it: the table, its JSON, and what is refused. */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "cli/program.h"

static const char *source(const char *name)
{
    static char paths[4][4200];
    static int at;
    char *path = paths[at++ % 4];
    snprintf(path, sizeof paths[0], "%s/../%s", ah_test_source(), name);
    return path;
}

static cJSON *printed(void)
{
    size_t length = strlen(ran.out);
    assert_true(length > 1 && ran.out[length - 1] == '\n');
    ran.out[length - 1] = 0;
    assert_null(strchr(ran.out, '\n')); /* one line */
    cJSON *tree = cJSON_Parse(ran.out);
    if (!cJSON_IsObject(tree))
        fail_msg("no JSON object: %s", ran.out);
    return tree;
}

static const cJSON *member(const cJSON *tree, const char *key)
{
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(tree, key);
    if (!node)
        fail_msg("no '%s'", key);
    return node;
}

static double number(const cJSON *tree, const char *key)
{
    const cJSON *node = member(tree, key);
    if (!cJSON_IsNumber(node))
        fail_msg("'%s' is no number", key);
    return node->valuedouble;
}

static int files_of_models(void)
{
    int files = 0;
    DIR *models = opendir(source("models"));
    assert_non_null(models);
    for (struct dirent *entry; (entry = readdir(models));)
        files += strstr(entry->d_name, ".json") != NULL;
    closedir(models);
    return files;
}

/* Those of the arguments have a plan on a machine that is large enough. */
static void expect_planned(const char *models, int count)
{
    const cJSON *row;
    run("fit --hardware %s --seq 64 --json %s 2>/dev/null", source("hardware/h100-80g-x8.json"), models);
    assert_ran(0);
    cJSON *tree = printed();
    assert_int_equal(cJSON_GetArraySize(member(tree, "models")), count);
    cJSON_ArrayForEach(row, member(tree, "models"))
    {
        if (!cJSON_IsTrue(member(row, "fits")) || !(number(row, "step_ns") > 0))
            fail_msg("%s: %s", member(row, "name")->valuestring, member(row, "reason")->valuestring);
    }
    cJSON_Delete(tree);
}

/* Every file of models/, by size; what does not fit names what is short and what would do, and fits a larger machine.
 * By a policy that is quick to plan. */
static void every_model_has_a_row(void **state)
{
    static char others[64 * 512];
    double before = 0;
    int rows = 0, fitting = 0, hints = 0;
    size_t used = 0;
    const cJSON *row;
    run("fit --hardware %s --policy stronghold --json 2>/dev/null", source("hardware/rtx4090-64g.json"));
    assert_ran(0);
    cJSON *tree = printed();
    assert_string_equal(member(tree, "hardware")->valuestring, "rtx4090-64g");
    assert_string_equal(member(tree, "dtype")->valuestring, "bf16");
    cJSON_ArrayForEach(row, member(tree, "models"))
    {
        bool fits = cJSON_IsTrue(member(row, "fits"));
        const char *reason = member(row, "reason")->valuestring;
        assert_true(number(row, "parameters") >= before);
        before = number(row, "parameters");
        rows++;
        fitting += fits;
        if (fits) {
            assert_true(number(row, "tokens_per_s") > 0 && !*reason);
            assert_true(number(row, "device_peak_bytes") <= number(tree, "device_memory_bytes"));
            assert_true(number(row, "host_peak_bytes") <= number(tree, "host_memory_bytes"));
        } else {
            assert_true(cJSON_IsNull(member(row, "tokens_per_s")) && number(row, "over_bytes") > 0);
            assert_true(strncmp(reason, "host memory: ", 13) == 0 || strncmp(reason, "device memory: ", 15) == 0);
            hints += member(row, "would_do")->valuestring[0] && number(row, "would_do_tokens_per_s") > 0;
            used +=
                (size_t)snprintf(others + used, sizeof others - used, "--model %s ", member(row, "model")->valuestring);
            assert_true(used < sizeof others);
        }
    }
    assert_int_equal(rows, files_of_models());
    assert_true(fitting > 5 && fitting < rows && hints > 5);
    expect_planned(others, rows - fitting);
    cJSON_Delete(tree);
}

/* A row says what simulate says of that model; tokens in a second. */
static double row_of_both(int passes)
{
    char words[1024];
    snprintf(words, sizeof words,
             "--hardware %s --batch 4 --seq 512 --micro-batch 2 --passes %d --device-memory 12GiB --json 2>/dev/null",
             source("hardware/rtx4090-64g.json"), passes);
    run("simulate --model %s %s", source("models/tinyllama-1.1b.json"), words);
    assert_ran(0);
    cJSON *tree = printed();
    const cJSON *policy = cJSON_GetArrayItem(member(tree, "policies"), 0);
    double tokens_per_s = number(policy, "tokens_per_s"), host = number(policy, "host_peak_bytes");
    cJSON_Delete(tree);
    run("fit --model %s %s", source("models/tinyllama-1.1b.json"), words);
    assert_ran(0);
    tree = printed();
    const cJSON *row = cJSON_GetArrayItem(member(tree, "models"), 0);
    assert_true(number(row, "tokens_per_s") == tokens_per_s && number(row, "host_peak_bytes") == host);
    assert_string_equal(member(row, "name")->valuestring, "tinyllama-1.1b");
    assert_int_equal((int)(number(row, "parameters") / 1e6), 1100);
    cJSON_Delete(tree);
    return tokens_per_s;
}

static void a_row_is_what_simulate_says(void **state)
{
    double once = row_of_both(1), twice = row_of_both(2);
    assert_true(once != twice);
}

/* On this machine a block of one model is timed, and no file of that stays. */
static void this_machine(void **state)
{
    run("fit --model %s --model %s/model.json --seq 32 --batch 2 --micro-batch 1 --passes 2 --device cpu "
        "--device-memory 64MiB",
        source("models/gpt-20b.json"), folder());
    assert_ran(0);
    assert_says(ran.err, "this machine, measured with gpt2-124m");
    assert_says(ran.out, "on this-machine: ");
    assert_says(ran.out, "device memory 64.0 MiB");
    const char *small = strstr(ran.out, "0.00 B      32  yes "), *large = strstr(ran.out, "\ngpt-20b ");
    assert_true(small && large && large > small); /* by size, not as given */
    assert_says(ran.out, "yes ");
    assert_says(large, "no   device memory: ");
    assert_int_equal(system("ls -d /tmp/autohete-*/this-machine.json >/dev/null 2>&1"), 2 << 8);
    /* It is the same machine beside adapters. */
    run("fit --model %s/model.json --seq 32 --batch 2 --device cpu --device-memory 64MiB --lora-rank 2", folder());
    assert_ran(0);
    assert_says(ran.err, "profile: cached ");
    /* It may have a described drive, or its own, which is measured. */
    run("fit --model %s/model.json --seq 32 --batch 2 --device cpu --device-memory 64MiB --disk nvme-pcie4", folder());
    assert_ran(0);
    assert_says(ran.out, "1.8 TiB on the disk nvme-pcie4; predicted");
    run("fit --model %s/model.json --seq 32 --batch 2 --device cpu --device-memory 64MiB --disk %s --disk-space 1GiB",
        folder(), folder());
    assert_ran(0);
    assert_says(ran.out, "1.0 GiB on the disk /");
    assert_int_equal(system("ls -d /tmp/autohete-*/this-drive.json >/dev/null 2>&1"), 2 << 8);
}

static void what_is_wrong_is_refused(void **state)
{
    char machine[4200];
    snprintf(machine, sizeof machine, "%s", source("hardware/rtx4090-64g.json"));
    run("fit --hardware nonsuch");
    assert_refused("--hardware: found 'nonsuch', expected a file or one of: a100-40g");
    run("fit --hardware %s --device cpu", machine);
    assert_refused("--device: found it beside --hardware");
    run("fit --ranks 2");
    assert_refused("--ranks: found it without --hardware");
    run("fit --hardware %s --model /no/such/model.json", machine);
    assert_refused("/no/such/model.json: cannot open");
    run("fit --hardware %s --dtype int8", machine);
    assert_refused("--dtype: found 'int8', expected bf16 or fp32");
    run("fit --hardware %s --batch 4 --micro-batch 3", machine);
    assert_refused("--micro-batch: found 3, expected a divisor of the batch of 4");
    run("fit --hardware %s --batch 4 --micro-batch 2 --passes 9", machine);
    assert_refused("--plan: passes=9: found 9, expected at most 2, the micro-batches of a step");
    run("fit --hardware %s --model %s --seq 4096", machine, source("models/tinyllama-1.1b.json"));
    assert_refused("--seq: found 4096, expected at most 2048, the longest sequence of tinyllama-1.1b");
    /* with another model beside it the row says so */
    run("fit --hardware %s --model %s --model %s --seq 4096", machine, source("models/tinyllama-1.1b.json"),
        source("models/qwen3-0.6b.json"));
    assert_ran(0);
    assert_says(ran.out, "no   sequences: at most 2048 tokens");
}

/* A model goes by the name in its row, in every command; what is nearly one is refused with those that are near. */
static void models_have_names(void **state)
{
    char words[4200];
    snprintf(words, sizeof words, "--hardware %s --policy stronghold --seq 64 --batch 1",
             source("hardware/rtx4090-64g.json"));
    run("fit %s --model qwen2.5-0.5b --model gpt2-124m --lora-rank 8 --frozen nf4 --moments int8", words);
    assert_ran(0);
    assert_says(ran.out, "\nqwen2.5-0.5b");
    assert_says(ran.out, "\nbf16, moments in int8, adapters of rank 8 beside nf4, 1 sequences in a step, ");
    run("plan %s --model gpt2-124m", words);
    assert_ran(0);
    run("inspect --model gpt2-124m");
    assert_ran(0);
    run("plan %s --model qwen2.5", words);
    assert_refused("--model: found 'qwen2.5', expected a file, a folder or a model that comes with autohete, as "
                   "qwen2.5-0.5b, qwen2.5-14b, qwen2.5-3b, qwen2.5-7b");
    run("inspect --model gtp2-124m");
    assert_refused(", as gpt2-124m");
}

/* The first row is there while the second, which would take minutes, is still being made. */
static void rows_come_one_by_one(void **state)
{
    char text[4096] = "", machine[4200];
    size_t length = 0;
    ssize_t count = 1;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    snprintf(machine, sizeof machine, "%s", source("hardware/rtx5090-128g.json"));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(program(), "autohete", "fit", "--hardware", machine, "--model", "gpt2-124m", "--model", "llama-3.3-70b",
              "--effort", "5", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    while (count > 0 && !strstr(text, "\ngpt2-124m ")) {
        count = read(ends[0], text + length, sizeof text - 1 - length);
        length += count > 0 ? (size_t)count : 0;
        text[length] = 0;
    }
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(ends[0]);
    assert_says(text, "\ngpt2-124m ");
    assert_null(strstr(text, "\nllama-3.3-70b "));
}

/* What comes with the program has no weights to run. */
static void a_configuration_has_no_weights(void **state)
{
    static const char *const commands[] = {"generate", "chat", "eval --data README", "export --gguf x.gguf",
                                           "eval --ids 1 --logits x.safetensors"};
    char out[4096];
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        run("%s --model gpt2-124m", commands[i]);
        assert_refused("/gpt2-124m.json: found a configuration without weights, expected a folder with config.json");
    }
    snprintf(out, sizeof out, "%s/merged", ah_test_folder());
    run("merge --model gpt2-124m --out %s", out);
    assert_refused("/gpt2-124m.json: found a configuration without weights");
    assert_int_not_equal(access(out, F_OK), 0);
    run("generate --model %s", source("README.md"));
    assert_refused("README.md: found another file, expected a folder with config.json");
}

/* Of several models those that do not have what is to be frozen or adapted; none has it: refused. */
static void what_a_model_does_not_have_is_said_in_its_row(void **state)
{
    char inputs[9000];
    snprintf(inputs, sizeof inputs, "--hardware %s", source("hardware/rtx4090-64g.json"));
    snprintf(inputs + strlen(inputs), sizeof inputs - strlen(inputs), " --model %s", source("models/gpt2-124m.json"));
    snprintf(inputs + strlen(inputs), sizeof inputs - strlen(inputs), " --model %s", source("models/qwen3-0.6b.json"));
    run("fit %s --freeze embedding,blocks:1-20", inputs);
    assert_ran(0);
    assert_says(strstr(ran.out, "\ngpt2-124m"), "no   model 'gpt2': freeze: found 'blocks:1-20', expected blocks:");
    assert_says(strstr(ran.out, "\nqwen3-0.6b"), "yes ");
    run("fit %s --freeze embedding,blocks:1-40", inputs);
    assert_refused("gpt2-124m: model 'gpt2': freeze: found 'blocks:1-40'");
    run("fit %s --lora-rank 2 --lora-targets o_proj --json", inputs);
    assert_ran(0);
    assert_says(ran.out, "\"reason\": \"model 'gpt2': lora_targets: found 'o_proj'");
}

AH_TEST_CASES("cli/fit", every_model_has_a_row, a_row_is_what_simulate_says, this_machine, models_have_names,
              rows_come_one_by_one, a_configuration_has_no_weights, what_is_wrong_is_refused,
              what_a_model_does_not_have_is_said_in_its_row)
