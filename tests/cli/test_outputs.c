/* No command writes over what it reads, under whatever name, replaces what is no file, or leaves a temporary. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "cli/program.h"

static const char *at(const char *name)
{
    static char path[4][512];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", folder(), name);
    return path[next];
}

/* Of every file in a folder and below: its path, bytes and kind. */
static uint64_t folder_hash(const char *dir)
{
    uint64_t sum = 0;
    DIR *list = opendir(dir);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));) {
        char path[512];
        struct stat info;
        snprintf(path, sizeof path, "%s/%.200s", dir, entry->d_name);
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "out") == 0 || strcmp(entry->d_name, "err") == 0)
            continue;
        assert_int_equal(lstat(path, &info), 0);
        uint64_t hash = ah__hash_int(info.st_mode, ah__hash_text(path, 1));
        char *text = NULL;
        size_t length = 0;
        if (S_ISREG(info.st_mode) && info.st_size) {
            assert_ok(ah__file_read(&text, &length, path, 1 << 26));
            hash = ah__hash(text, length, hash);
            free(text);
        }
        sum += S_ISDIR(info.st_mode) ? folder_hash(path) : hash;
    }
    closedir(list);
    return sum;
}

/* A training in RUN, a configuration and names for both. */
static void place_make(void)
{
    char line[2048];
    const char *where = folder();
    snprintf(line, sizeof line,
             "cd '%s' && cp model.json m.json && cp text t.txt && ln m.json hard.json && ln -s m.json soft.json && "
             "ln -s run/step-00000002/model.safetensors weights && mkdir d && ln t.txt d/t.txt && "
             "ln run/metrics.jsonl numbers && echo 'model: m.json' > c.yaml",
             where);
    run("train --model %s/model.json --data %s/text --seq 8 --batch 1 --steps 2 --threads 1 --device cpu --val-batches "
        "0 --plan resident --quiet --out %s/run",
        where, where, where);
    assert_ran(0);
    assert_int_equal(system(line), 0);
}

#define PLAN "plan --batch 1 --seq 8 --threads 1 --device cpu --model "
#define SIMULATE "simulate --batch 1 --seq 8 --hardware h100 --model "

static void inputs_are_no_outputs(void **state)
{
    static const struct {
        const char *words, *says;
    } cases[] = {
        {PLAN "m.json --out m.json", "--out, --model: m.json: found a file that is read or written as well"},
        {PLAN "m.json --out hard.json", "--out, --model: hard.json: found 'm.json', which is read as well"},
        {PLAN "m.json --out soft.json", "--out, --model: soft.json: found 'm.json'"},
        {PLAN "soft.json --out run/../WHERE/./m.json", "found 'soft.json', which is read"},
        {PLAN "run --out run/config.json", "--out, --model: run/config.json: found"},
        {PLAN "run/config.json --out run/checkpoint/state.json", "--out, --model: run/checkpoint/state.json"},
        {PLAN "m.json --profile p.json --out p.json", "--out, --profile: p.json"},
        {PLAN "m.json --out m.json/", "m.json/: cannot write: Not a directory"},
        {PLAN "m.json --out /proc/self/fd/8 8<>m.json", "--out, --model: /proc/self/fd/8: found 'm.json'"},
        {"plan --config c.yaml --out c.yaml --batch 1", "--out, --config: c.yaml"},
        {"profile --model m.json --batch 1 --out m.json", "--out, --model"},
        {"profile --model m.json --batch 1 --as-hardware hard.json", "--as-hardware, --model"},
        {"profile --model m.json --batch 1 --out new.json --as-hardware new.json", "--out, --as-hardware: new.json"},
        {SIMULATE "m.json --svg m.json", "--svg, --model"},
        {SIMULATE "m.json --trace soft.json", "--trace, --model"},
        {SIMULATE "m.json --svg x --trace ./x", "--svg, --trace: x: found './x'"},
        {"data --model m.json --out t.txt t.txt", "--out, INPUT: t.txt"},
        {"data --model m.json --out m.json t.txt", "--out, --model"},
        {"data --model m.json --out t.txt - < t.txt", "--out, INPUT: t.txt: found 'standard input'"},
        {"data --model m.json --out t.txt d", "t.txt: found 'd/t.txt', which is read"},
        {"data --model m.json --out run t.txt", "--out: run: found a folder, expected a file name"},
        {"report run --out run/metrics.jsonl", "--out, DIR: run/metrics.jsonl"},
        {"report run --out numbers", "--out, DIR: numbers: found 'run/metrics.jsonl'"},
        {"report run --out run/step-00000002/state.json", "run/step-00000002/state.json"},
        {"report run/../run --out run/run.json", "run/run.json"},
        {"eval --model run --ids 1,2 --logits run/model.safetensors", "--logits, --model"},
        {"eval --model run --ids 1,2 --logits weights", "--logits, --model: weights: found 'run/"},
        {"eval --model run --ids 1,2 --logits run/step-00000002/optimizer.safetensors", "--logits, --model"},
        {"export --model run --gguf weights", "--gguf, --model: weights"},
        {"export --model run --gguf run/checkpoint/config.json", "--gguf, --model"},
        {"export --model run --gguf no/such/folder", "--gguf: no/such/folder: cannot write into folder 'no/such'"},
    };
    place_make();
    assert_int_equal(chdir(folder()), 0);
    assert_int_equal(symlink(".", "WHERE"), 0);
    assert_int_equal(system("cp m.json p.json"), 0);
    const uint64_t before = folder_hash(folder());
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run("%s", cases[i].words);
        if (ran.status != 2 || !strstr(ran.err, cases[i].says) || strchr(ran.err, '\n')[1])
            fail_msg("%s: exit status %d, expected 2 and one line with '%s':\n%s", cases[i].words, ran.status,
                     cases[i].says, ran.err);
        if (folder_hash(folder()) != before)
            fail_msg("%s: files are not as before", cases[i].words);
    }
}

/* What a folder has beside a model or a training may be made again. */
static void results_are_replaced(void **state)
{
    place_make();
    assert_int_equal(chdir(folder()), 0);
    for (int i = 0; i < 2; i++) {
        run("report run --out run/report.html");
        assert_ran(0);
        run("eval --model run --ids 1,2 --device cpu --threads 1 --logits %s", i ? "link" : "run/logits");
        assert_ran(0);
        (void)symlink("run/logits", "link");
        run("data --model m.json --out data.bin t.txt");
        assert_ran(0);
        run("report run --out /dev/stdout");
        assert_ran(0);
        assert_says(ran.out, "</html>");
        run("data --model m.json --out /dev/null t.txt");
        assert_ran(0);
    }
    struct stat info;
    assert_true(lstat(at("link"), &info) == 0 && S_ISLNK(info.st_mode));
    assert_true(stat("/dev/null", &info) == 0 && S_ISCHR(info.st_mode));
    run("data --model m.json --out /dev/stdout t.txt");
    assert_refused("/dev/stdout: found a pipe or an open file");
    assert_int_equal(system("ls | grep -E 'tmp|spool'") == 0, false);
}

AH_TEST_CASES("cli/outputs", inputs_are_no_outputs, results_are_replaced)
