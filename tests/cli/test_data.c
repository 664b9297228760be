/* autohete data, as a user runs it, and training on what it writes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/alloc.h"
#include "base/file.h"
#include "cli/program.h"
#include "data/token_file.h"

enum { DOCUMENTS = 26 };

static char place[256];

static const char *in(const char *name)
{
    static char paths[4][400];
    static int next;
    if (!place[0])
        snprintf(place, sizeof place, "%s", ah_test_folder());
    next = (next + 1) % 4;
    snprintf(paths[next], sizeof paths[next], "%s/%s", place, name);
    return paths[next];
}

/* "Abcdef\0", "Bbcdefbcdef\0", ..: of different lengths, each begins with a character of its own. */
static void write_documents(void)
{
    char text[16384];
    size_t length = 0;
    for (int i = 0; i < DOCUMENTS; i++) {
        length += (size_t)snprintf(text + length, sizeof text - length, "{\"text\": \"%c", 'A' + i);
        for (int k = 0; k <= i % 7; k++)
            length += (size_t)snprintf(text + length, sizeof text - length, "bcdef");
        length += (size_t)snprintf(text + length, sizeof text - length, "\"}\n");
    }
    assert_ok(ah__file_write(in("a.jsonl"), text, length));
}

/* The tokens of a file written with 16 bits each; freed with ah__free. */
static uint16_t *tokens_of(const char *path, struct ah_token_file *file)
{
    char *text;
    size_t length;
    uint16_t *tokens;
    assert_ok(ah__file_read(&text, &length, path, 1 << 24));
    assert_ok(ah__token_file_parse(file, (const unsigned char *)text, length, path));
    assert_true(file->ours && file->width == 2);
    assert_ok(ah__new(&tokens, (size_t)file->tokens, sizeof *tokens));
    memcpy(tokens, text + AH_TOKEN_FILE_HEADER, 2 * (size_t)file->tokens);
    ah__free(text);
    return tokens;
}

/* Each document once, whole, with its end behind it; the order by the seed. */
static void expect_documents(const char *path, char order[DOCUMENTS + 1])
{
    struct ah_token_file file;
    uint16_t *tokens = tokens_of(path, &file);
    int count = 0, at = 0, val = -1;
    while (at < file.tokens) {
        assert_true(count < DOCUMENTS);
        if (at == file.tokens - file.val_tokens)
            val = count;
        int index = tokens[at++] - 'A';
        for (int k = 0; k < 5 * (index % 7 + 1); k++)
            assert_int_equal(tokens[at++], 'b' + k % 5);
        assert_int_equal(tokens[at++], 0);
        order[count++] = (char)('A' + index);
    }
    order[count] = 0;
    assert_int_equal(count, DOCUMENTS);
    for (int i = 0; i < DOCUMENTS; i++)
        assert_non_null(strchr(order, 'A' + i));
    assert_true(val > DOCUMENTS / 2 && val < DOCUMENTS); /* it begins with a document */
    assert_true(file.val_tokens * 10 >= file.tokens && file.val_tokens * 10 < 2 * file.tokens);
    ah__free(tokens);
}

static void documents_become_a_token_file(void **state)
{
    char first[DOCUMENTS + 1], again[DOCUMENTS + 1], other[DOCUMENTS + 1];
    write_documents();
    const char *model = folder();
    run("data --model %s/model.json --out %s %s --steps 100 --batch 2 --seq 16 --json", model, in("one.bin"),
        in("a.jsonl"));
    assert_ran(0);
    assert_says(ran.err, "documents: 26, ");
    assert_says(ran.err, " parameters, ");
    assert_says(ran.err, "steps: 100 of 2 x 16 tokens are ");
    cJSON *tree = cJSON_Parse(ran.out);
    assert_non_null(tree);
    assert_int_equal(cJSON_GetObjectItem(tree, "documents")->valueint, DOCUMENTS);
    double tokens = cJSON_GetObjectItem(tree, "tokens")->valuedouble;
    double params = cJSON_GetObjectItem(tree, "parameters")->valuedouble;
    assert_true(cJSON_GetObjectItem(tree, "tokens_per_parameter")->valuedouble == tokens / params);
    double train = tokens - cJSON_GetObjectItem(tree, "val_tokens")->valuedouble;
    assert_true(cJSON_GetObjectItem(tree, "epochs")->valuedouble == 200. / (double)(int64_t)((train - 1) / 16));
    assert_int_equal(cJSON_GetObjectItem(tree, "token_bits")->valueint, 16);
    cJSON_Delete(tree);
    expect_documents(in("one.bin"), first);
    run("data --model %s/model.json --out %s %s", model, in("two.bin"), in("a.jsonl"));
    assert_ran(0);
    expect_documents(in("two.bin"), again);
    assert_string_equal(first, again);
    run("data --model %s/model.json --out %s %s --seed 2", model, in("two.bin"), in("a.jsonl"));
    expect_documents(in("two.bin"), other);
    assert_string_not_equal(first, other);
    /* nothing of the work is left beside it */
    run("train --model %s/model.json --data %s --seq 16 --batch 2 --steps 2 --threads 1 --out %s", model, in("one.bin"),
        in("run"));
    assert_ran(0);
    assert_says(ran.out, " held back for validation");
    assert_int_equal(access(in("one.bin.tmp"), F_OK), -1);
}

static void several_inputs_are_one(void **state)
{
    struct ah_token_file file;
    write_documents();
    assert_ok(ah__file_write(in("b.txt"), "a text of its own", 17));
    run("data --model %s/model.json --out %s --val-share 0 %s %s", folder(), in("both.bin"), in("b.txt"),
        in("a.jsonl"));
    assert_ran(0);
    ah__free(tokens_of(in("both.bin"), &file));
    assert_true(file.documents == DOCUMENTS + 1 && file.val_tokens == 0);
    run("data --model %s/model.json --out %s --val-share 0.25 %s", folder(), in("one.bin"), in("b.txt"));
    assert_ran(0);
    ah__free(tokens_of(in("one.bin"), &file));
    assert_true(file.documents == 1 && file.tokens == 18 && file.val_tokens == 4);
}

static void bad_input_leaves_no_file(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{\"prompt\": \"a\", \"completion\": \"b\"}\n", "line 1: found an example (pairs), expected a document"},
        {"{\"text\": \"a\"}\n{\"text\": 3}\n", "line 2: key 'text': found"},
        {"", "found no document, expected text"},
        {"{\"text\": \"\xc3\xa9\"}\n", "line 1: token 0: found 195, expected one below the model's vocab_size 128"},
    };
    char model[400];
    snprintf(model, sizeof model, "%s", in("small.json"));
    static const char config[] = "{\"model_type\": \"gpt2\", \"vocab_size\": 128, \"n_positions\": 16, \"n_embd\": 16, "
                                 "\"n_layer\": 1, \"n_head\": 2}";
    assert_ok(ah__file_write(model, config, sizeof config - 1));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_ok(ah__file_write(in("bad.jsonl"), cases[i].text, strlen(cases[i].text)));
        run("data --model %s --out %s %s", model, in("none.bin"), in("bad.jsonl"));
        assert_ran(2);
        assert_says(ran.err, cases[i].words);
        assert_int_equal(access(in("none.bin"), F_OK), -1);
    }
    run("data --model %s --out %s", model, in("none.bin"));
    assert_ran(2);
    assert_says(ran.err, "INPUT is missing: 'autohete data' needs it");
    run("data --model %s --out %s %s --data-format llmc", model, in("none.bin"), in("bad.jsonl"));
    assert_ran(2);
    assert_says(ran.err, "--data-format: found llmc, expected auto, text or jsonl");
    run("data --model %s --out %s %s", model, in("none.bin"), in("nowhere"));
    assert_ran(2);
    assert_says(ran.err, "nowhere: cannot open");
}

/* What comes through a pipe is what a file of it is. */
static void pipes_are_read(void **state)
{
    char first[DOCUMENTS + 1];
    static const char pairs[] =
        "{\"prompt\": \"ab\", \"completion\": \"cd\"}\n{\"prompt\": \"e\", \"completion\": \"f\"}\n";
    write_documents();
    run("data --model %s/model.json --out %s - < %s", folder(), in("one.bin"), in("a.jsonl"));
    assert_ran(0);
    expect_documents(in("one.bin"), first);
    assert_ok(ah__file_write(in("pairs"), pairs, sizeof pairs - 1));
    run("train --model %s/model.json --data %s --seq 8 --batch 1 --steps 2 --threads 1 --out %s", folder(), in("pairs"),
        in("file"));
    assert_ran(0);
    char fifo[400];
    snprintf(fifo, sizeof fifo, "%s", in("fifo"));
    assert_int_equal(mkfifo(fifo, 0600), 0);
    run("train --model %s/model.json --data %s --seq 8 --batch 1 --steps 2 --threads 1 --out %s & gzip -c %s > %s; "
        "wait",
        folder(), fifo, in("pipe"), in("pairs"), fifo);
    assert_ran(0);
    run("inspect %s >%s; cmp %s/checkpoint/model.safetensors %s/checkpoint/model.safetensors", in("file"), in("shown"),
        in("file"), in("pipe"));
    assert_ran(0);
    run("train --model %s/model.json --data - --data-format llmc --seq 8 --steps 2 < %s", folder(), in("one.bin"));
    assert_ran(2);
    assert_says(ran.err, "-: found a folder or pipe, expected a file of tokens");
}

/* From the command line and from a file of options; a file that is missing is named, and nothing is written. */
static void files_are_mixed(void **state)
{
    char text[1024];
    static const char pairs[] =
        "{\"prompt\": \"ab\", \"completion\": \"cd\"}\n{\"prompt\": \"e\", \"completion\": \"f\"}\n";
    assert_ok(ah__file_write(in("pairs"), pairs, sizeof pairs - 1));
    run("train --model %s/model.json --data %s/text:3,%s:1 --seq 8 --batch 4 --steps 4 --threads 1", folder(), folder(),
        in("pairs"));
    assert_ran(0);
    assert_says(ran.err, "/text: 75% of the samples; text, ");
    assert_says(ran.err, "/pairs: 25% of the samples; pairs, ");
    assert_says(ran.out, "  data           /");
    assert_says(ran.out, " samples of it, ");
    snprintf(text, sizeof text, "model: %s/model.json\ndata:\n  - %s/text:3\n  - %s:1\nseq: 8\nsteps: 1\n", folder(),
             folder(), in("pairs"));
    assert_ok(ah__file_write(in("o.yaml"), text, strlen(text)));
    run("train --config %s --threads 1 --json", in("o.yaml"));
    assert_ran(0);
    assert_says(ran.out, "\"format\": \"pairs\", \"weight\": 1, \"share\": 0.25, ");
    run("train --config %s --data %s:1,%s:2 --out %s", in("o.yaml"), in("pairs"), in("gone"), in("new"));
    assert_refused("gone: cannot open: No such file");
    assert_int_equal(access(in("new"), F_OK), -1);
}

AH_TEST_CASES("cli/data", files_are_mixed, pipes_are_read, documents_become_a_token_file, several_inputs_are_one,
              bad_input_leaves_no_file)
