/* The tokenizer's keys in GGUF files: which of llama.cpp's names says how text is split, what its tokenizer does
 * otherwise, what it reads at all (tests/golden/llamacpp_keys.py). */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "gguf/tokenizer.h"
#include "source/model_tokenizer.h"
#include "test.h"

/* tokenizer.json of a golden tokenizer, its first `from` replaced. */
static char *json_of(const char *tokenizer, const char *from, const char *to)
{
    char path[512], *text, *changed;
    size_t length;
    snprintf(path, sizeof path, "%s/golden/tokenizers/%s/tokenizer.json", ah_test_source(), tokenizer);
    assert_ok(ah__file_read(&text, &length, path, 1 << 20));
    char *found = strstr(text, from);
    assert_non_null(found);
    assert_ok(ah__sprintf(&changed, "%.*s%s%s", (int)(found - text), text, to, found + strlen(from)));
    ah__free(text);
    return changed;
}

static const struct ah_tokenizer *tokenizer_of(const char *json, const char *config)
{
    char path[512];
    const char *folder = ah_test_folder();
    const struct ah_tokenizer *tokenizer;
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    assert_ok(ah__file_write(path, json, strlen(json)));
    snprintf(path, sizeof path, "%s/tokenizer_config.json", folder);
    assert_ok(ah__file_write(path, config, strlen(config)));
    assert_ok(ah__model_tokenizer_open(&tokenizer, folder));
    return tokenizer;
}

/* Into a file at `path`, or why not. */
static int put(struct ah_buf *notes, const char *path, const char *json, const struct ah_tokenizer *tokenizer)
{
    const struct ah_gguf_tokenizer from = {
        .path = "folder", .json = json, .tokenizer = tokenizer, .rows = tokenizer->vocab_size + 2};
    struct ah_gguf_writer *writer;
    assert_ok(ah__gguf_writer_new(&writer));
    int status = ah__gguf_put_tokenizer(writer, notes, &from);
    if (status == AH_OK) {
        assert_ok(ah__gguf_writer_open(writer, path));
        assert_ok(ah__gguf_writer_close(writer));
    }
    ah__gguf_writer_free(writer);
    return status;
}

static void expect_pre(const char *path, const char *expected)
{
    struct ah_gguf *file;
    const char *found = "";
    assert_ok(ah__gguf_open(&file, path));
    assert_ok(ah__gguf_text(&found, file, "tokenizer.ggml.pre"));
    assert_string_equal(found, expected);
    ah__gguf_close(file);
}

#define NFC "\"normalizer\":{\"type\":\"NFC\"}"
#define KEEPS "\"ignore_merges\":false"
#define IGNORES "\"ignore_merges\":true"
#define PREFIX "\"add_prefix_space\":"

static void splits_have_llama_cpps_names(void **state)
{
    static const struct {
        const char *tokenizer, *from, *to, *pre; /* pre: null: refused, with these words, */
        const char *words;                       /* or noted with them */
    } rows[] = {
        {"gpt2", KEEPS, KEEPS, "gpt-2", NULL},
        {"llama3", IGNORES, IGNORES, "llama-bpe", NULL},
        {"llama3", IGNORES, KEEPS, "dbrx", NULL},
        {"llama3", "\"behavior\":\"Isolated\",\"invert\":false", "\"behavior\":\"Removed\",\"invert\":true",
         "llama-bpe", NULL},
        {"o200k", KEEPS, KEEPS, "gpt-4o", "takes letters beyond a to z for both cases"},
        {"qwen2", NFC, NFC, "qwen2", "brings text to NFC first and llama.cpp does not"},
        {"qwen2", NFC, "\"normalizer\":null", "stablelm2", NULL},
        {"gpt_neox", NFC, NFC, "gpt-2", "brings text to NFC first"},
        {"qwen2", KEEPS, IGNORES, NULL,
         "key 'model.ignore_merges': found true, expected false: text is split as by 'qwen2'"},
        {"gpt2", KEEPS, IGNORES, NULL,
         "key 'model.ignore_merges': found true, expected false: text is split as by 'gpt-2'"},
        {"gpt2", PREFIX "false", PREFIX "true", NULL,
         "key 'pre_tokenizer.add_prefix_space': found true, expected false: text is split as by 'gpt-2' but for it"},
        {"qwen2", NFC, "\"normalizer\":{\"type\":\"NFKC\"}", NULL, "key 'normalizer.type': found 'NFKC', expected NFC"},
        {"qwen2", "\\\\s+(?!", "\\\\s(?!", NULL, "none of those known here by llama.cpp's name"},
    };
    char path[512];
    snprintf(path, sizeof path, "%s/out.gguf", ah_test_folder());
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        char *json = json_of(rows[i].tokenizer, rows[i].from, rows[i].to);
        const struct ah_tokenizer *tokenizer = tokenizer_of(json, "{\"eos_token\": \"<|endoftext|>\"}");
        struct ah_buf notes = {0};
        if (!rows[i].pre) {
            assert_fails(put(&notes, path, json, tokenizer), AH_EINPUT, rows[i].words);
        } else {
            assert_ok(put(&notes, path, json, tokenizer));
            expect_pre(path, rows[i].pre);
            if (rows[i].words ? !notes.text || !strstr(notes.text, rows[i].words) : notes.text != NULL)
                fail_msg("row %zu: found note '%s'", i, notes.text ? notes.text : "none");
        }
        ah__buf_free(&notes);
        ah__free(json);
        ah__tokenizer_close(tokenizer);
    }
}

static void keys_are_llama_cpps(void **state)
{
    static const char *const always[] = {"model", "pre", "tokens", "token_type", "add_bos_token", "add_eos_token"};
    char path[512], table_path[512], line[256], *json = json_of("llama3", IGNORES, IGNORES), *table;
    size_t length;
    const struct ah_tokenizer *tokenizer =
        tokenizer_of(json, "{\"eos_token\": \"<|endoftext|>\", \"bos_token\": \"<|begin_of_text|>\"}");
    struct ah_buf notes = {0};
    struct ah_gguf *file;
    snprintf(path, sizeof path, "%s/out.gguf", ah_test_folder());
    snprintf(table_path, sizeof table_path, "%s/golden/gguf/llamacpp_keys.txt", ah_test_source());
    assert_ok(ah__file_read(&table, &length, table_path, 1 << 20));
    assert_ok(put(&notes, path, json, tokenizer));
    assert_ok(ah__gguf_open(&file, path));
    for (size_t i = 0; ah__gguf_key(file, i); i++) {
        snprintf(line, sizeof line, "file %s ", ah__gguf_key(file, i));
        if (!strstr(table, line))
            fail_msg("%s: llama.cpp does not read it", ah__gguf_key(file, i));
    }
    for (size_t i = 0; i < AH_LENGTH(always); i++) {
        snprintf(line, sizeof line, "tokenizer.ggml.%s", always[i]);
        assert_true(ah__gguf_has(file, line));
    }
    ah__gguf_close(file);
    ah__buf_free(&notes);
    ah__free(table);
    ah__free(json);
    ah__tokenizer_close(tokenizer);
}

/* More than one token ends what the model writes; or none does, where llama.cpp has one all the same. */
static void ends_go_into_the_file(void **state)
{
    char path[512], *json = json_of("qwen2", NFC, "\"normalizer\":null");
    const struct ah_tokenizer *tokenizer = tokenizer_of(json, "{\"eos_token\": \"<|endoftext|>\"}"), *again;
    int32_t stops[3];
    struct ah_tokenizer changed = *tokenizer;
    struct ah_buf notes = {0};
    snprintf(path, sizeof path, "%s/out.gguf", ah_test_folder());
    for (int i = 0; i < 3; i++)
        stops[i] = tokenizer->eos + i;
    assert_ok(put(&notes, path, json, tokenizer));
    assert_null(notes.text);
    assert_ok(ah__model_tokenizer_open(&again, path));
    assert_int_equal(again->stop_count, 1);
    ah__tokenizer_close(again);
    ((struct ah_tokenizer *)tokenizer)->stops = stops;
    ((struct ah_tokenizer *)tokenizer)->stop_count = 3;
    assert_ok(put(&notes, path, json, tokenizer));
    assert_null(notes.text);
    assert_ok(ah__model_tokenizer_open(&again, path));
    assert_int_equal(again->stop_count, 3);
    assert_memory_equal(again->stops, stops, sizeof stops);
    ah__tokenizer_close(again);
    ((struct ah_tokenizer *)tokenizer)->has_eos = false;
    assert_ok(put(&notes, path, json, tokenizer));
    assert_non_null(strstr(notes.text, "no token ends a text; llama.cpp ends one at token 11, "));
    *(struct ah_tokenizer *)tokenizer = changed;
    ah__buf_free(&notes);
    ah__free(json);
    ah__tokenizer_close(tokenizer);
}

/* A template's tokens that no other file names. */
static void what_stands_around_a_prompt_goes_into_the_file(void **state)
{
    static const struct {
        const char *tokenizer, *config;
        int64_t bos, eos; /* -1: none around a prompt */
    } rows[] = {
        {"llama3", "{}", 1503, -1},
        {"llama3", "{\"bos_token\": \"<|begin_of_text|>\", \"eos_token\": \"<|im_end|>\"}", 1503, -1},
        {"gpt_neox", "{}", -1, 0},
        {"qwen2", "{\"bos_token\": \"<|endoftext|>\"}", -1, -1},
    };
    char path[512];
    snprintf(path, sizeof path, "%s/out.gguf", ah_test_folder());
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        char *json = json_of(rows[i].tokenizer, "{", "{");
        const struct ah_tokenizer *tokenizer = tokenizer_of(json, rows[i].config), *again;
        struct ah_buf notes = {0};
        int32_t *ids;
        int64_t count;
        assert_ok(put(&notes, path, json, tokenizer));
        assert_ok(ah__model_tokenizer_open(&again, path));
        assert_ok(again->encode_prompt(&ids, &count, again, "1", 1));
        assert_int_equal(count, 1 + (rows[i].bos >= 0) + (rows[i].eos >= 0));
        assert_true(rows[i].bos < 0 || ids[0] == rows[i].bos);
        assert_true(rows[i].eos < 0 || ids[count - 1] == rows[i].eos);
        ah__free(ids);
        ah__free(json);
        ah__buf_free(&notes);
        ah__tokenizer_close(again);
        ah__tokenizer_close(tokenizer);
    }
}

/* A token that llama.cpp knows by its text is special in a file, whatever its type is. */
static void texts_make_tokens_special(void **state)
{
    char path[512];
    const struct ah_tokenizer *again;
    struct ah_gguf_writer *writer;
    snprintf(path, sizeof path, "%s/out.gguf", ah_test_folder());
    static const char *const tokens[] = {"a", "<|im_end|>", "<|im_other|>"};
    assert_ok(ah__gguf_writer_new(&writer));
    ah__gguf_put_text(writer, "tokenizer.ggml.model", "gpt2");
    ah__gguf_put_text(writer, "tokenizer.ggml.pre", "gpt-2");
    ah__gguf_put_array(writer, "tokenizer.ggml.tokens", AH_GGUF_ITEMS_TEXT, AH_LENGTH(tokens));
    for (size_t i = 0; i < AH_LENGTH(tokens); i++)
        ah__gguf_item_text(writer, tokens[i], strlen(tokens[i]));
    ah__gguf_put_array(writer, "tokenizer.ggml.merges", AH_GGUF_ITEMS_TEXT, 0);
    assert_ok(ah__gguf_writer_open(writer, path));
    assert_ok(ah__gguf_writer_close(writer));
    ah__gguf_writer_free(writer);
    assert_ok(ah__model_tokenizer_open(&again, path));
    assert_true(again->is_special(again, 1) && !again->is_special(again, 2));
    ah__tokenizer_close(again);
}

AH_TEST_CASES("gguf/splits", what_stands_around_a_prompt_goes_into_the_file, texts_make_tokens_special,
              splits_have_llama_cpps_names, keys_are_llama_cpps, ends_go_into_the_file)
