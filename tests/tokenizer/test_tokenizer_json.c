/* What tokenizer.json and the older files say, and what of it is refused. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "test.h"
#include "tokenizer/tokenizer.h"

enum { PARTS = 6, PATH_SIZE = 512 };

/* A tokenizer of six letters and four merges; "<s>" begins texts, "<x>" is any text. */
static const char *const defaults[PARTS][2] = {
    {"added_tokens",
     "[{\"id\": 10, \"content\": \"<s>\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
     "\"normalized\": false, \"special\": true}, {\"id\": 11, \"content\": \"<x>\", \"single_word\": false, "
     "\"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": false}]"},
    {"normalizer", "null"},
    {"pre_tokenizer", "null"},
    {"post_processor", "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"<s>\", "
                       "\"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"pair\": [], "
                       "\"special_tokens\": {\"<s>\": {\"id\": \"<s>\", \"ids\": [10], \"tokens\": [\"<s>\"]}}}"},
    {"decoder", "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Fuse\"}]}"},
    {"model", "{\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"c\": 2, \"d\": 3, \"ab\": 4, \"cd\": 5, "
              "\"abcd\": 6, \"bc\": 7, \"?\": 8}, \"merges\": [\"b c\", [\"a\", \"b\"], \"c d\", \"ab cd\"]}"},
};

static char folder[PATH_SIZE]; /* of the test at hand */

/* The default file in a folder of its own, one part replaced; the folder's path. */
static const char *folder_with(const char *key, const char *value)
{
    char path[PATH_SIZE + 32];
    struct ah_buf text = {0};
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    ah__buf_printf(&text, "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null");
    for (int i = 0; i < PARTS; i++)
        ah__buf_printf(&text, ", \"%s\": %s", defaults[i][0],
                       key && strcmp(key, defaults[i][0]) == 0 ? value : defaults[i][1]);
    ah__buf_printf(&text, "%s%s}", key && key[0] == '+' ? ", " : "", key && key[0] == '+' ? value : "");
    assert_ok(ah__file_write(path, text.text, text.length));
    ah__buf_free(&text);
    return folder;
}

static const struct ah_tokenizer *open_with(const char *key, const char *value)
{
    const struct ah_tokenizer *tokenizer;
    assert_ok(ah__tokenizer_open(&tokenizer, folder_with(key, value)));
    return tokenizer;
}

static void ids_are(const struct ah_tokenizer *tokenizer, const char *text, size_t length, bool prompt, size_t count,
                    const int32_t *expected)
{
    int32_t *ids;
    int64_t found;
    assert_ok((prompt ? tokenizer->encode_prompt : tokenizer->encode)(&ids, &found, tokenizer, text, length));
    assert_int_equal(found, count);
    if (count)
        assert_memory_equal(ids, expected, count * sizeof *ids);
    ah__free(ids);
}

#define assert_ids(tokenizer, text, prompt, ...)                                                                       \
    ids_are(tokenizer, text, sizeof(text) - 1, prompt, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t),             \
            (int32_t[]){__VA_ARGS__})

/* ---- what is done ------------------------------------------------------------------------------------------------ */

static void documents_and_prompts(void **state)
{
    const struct ah_tokenizer *tokenizer = open_with(NULL, NULL);
    assert_string_equal(tokenizer->name, "tokenizer.json");
    assert_int_equal(tokenizer->vocab_size, 12);
    assert_true(tokenizer->signature != 0);
    assert_ids(tokenizer, "ab<x>cd", false, 4, 11, 5);
    assert_ids(tokenizer, "ab<x>cd", true, 10, 4, 11, 5);
    assert_ids(tokenizer, "<s>abcd", false, 10, 0, 7, 3); /* "b c" ranks before "a b" */
    assert_ids(tokenizer, "", true, 10);
    ids_are(tokenizer, "", 0, false, 0, NULL);
    assert_true(tokenizer->is_special(tokenizer, 10));
    assert_false(tokenizer->is_special(tokenizer, 11));
    assert_false(tokenizer->is_special(tokenizer, 12));
    assert_false(tokenizer->is_special(tokenizer, -1));
    assert_string_equal(tokenizer->token(tokenizer, 6), "abcd");
    assert_string_equal(tokenizer->token(tokenizer, 10), "<s>");
    assert_null(tokenizer->token(tokenizer, 9));
    assert_null(tokenizer->token(tokenizer, 12));
    assert_false(tokenizer->has_eos);
    ah__tokenizer_close(tokenizer);
}

static void decoding_names_what_is_no_id(void **state)
{
    const struct ah_tokenizer *tokenizer = open_with(NULL, NULL);
    char *text;
    size_t length;
    assert_ok(tokenizer->decode(&text, &length, tokenizer, (int32_t[]){10, 6, 9, 11}, 4)); /* 9 has no text */
    assert_string_equal(text, "<s>abcd<x>");
    assert_int_equal(length, 10);
    ah__free(text);
    assert_ok(tokenizer->decode(&text, &length, tokenizer, NULL, 0));
    assert_string_equal(text, "");
    ah__free(text);
    assert_fails(tokenizer->decode(&text, &length, tokenizer, (int32_t[]){0, 12}, 2), AH_EINPUT,
                 "token 1: found 12, expected below the tokenizer's vocabulary of 12");
    assert_fails(tokenizer->decode(&text, &length, tokenizer, (int32_t[]){-1}, 1), AH_EINPUT, "token 0: found -1");
    ah__tokenizer_close(tokenizer);
}

/* Unknown characters vanish without an unknown token, and what stood around them may merge. */
static void unknown_characters(void **state)
{
    const struct ah_tokenizer *tokenizer = open_with(NULL, NULL);
    assert_ids(tokenizer, "a.b", false, 4);
    ah__tokenizer_close(tokenizer);
    tokenizer = open_with("model", "{\"unk_token\": \"?\", \"fuse_unk\": true, \"vocab\": {\"a\": 0, "
                                   "\"b\": 1, \"ab\": 2, \"?\": 3}, \"merges\": [\"a b\"]}");
    assert_ids(tokenizer, "a..b!", false, 0, 3, 1, 3);
    ah__tokenizer_close(tokenizer);
    tokenizer = open_with("model", "{\"unk_token\": \"?\", \"fuse_unk\": false, \"vocab\": {\"a\": 0, "
                                   "\"b\": 1, \"ab\": 2, \"?\": 3}, \"merges\": [\"a b\"]}");
    assert_ids(tokenizer, "a..b!ab", false, 0, 3, 3, 1, 3, 2);
    ah__tokenizer_close(tokenizer);
}

/* What is no UTF-8 is U+FFFD, one for each wrong part. */
static void wrong_text_is_repaired(void **state)
{
    const struct ah_tokenizer *tokenizer =
        open_with("model", "{\"type\": \"BPE\", \"unk_token\": \"?\", \"vocab\": {\"a\": 0, \"\xef\xbf\xbd\": 1, "
                           "\"?\": 2}, \"merges\": []}");
    assert_ids(tokenizer, "a\xff\xe2\x82z", false, 0, 1, 1, 2);
    assert_ids(tokenizer, "\xc0\x80\xed\xa0\x80\xf0\x9f\x98", false, 1, 1, 1, 1, 1, 1);
    assert_ids(tokenizer, "a\0a", false, 0, 2, 0);
    ah__tokenizer_close(tokenizer);
}

/* A word of a million letters takes n log n steps. */
static void long_words(void **state)
{
    enum { LETTERS = 1 << 20 };
    const struct ah_tokenizer *tokenizer = open_with(NULL, NULL);
    char *text;
    int32_t *ids;
    int64_t count;
    assert_ok(ah__new(&text, LETTERS, 1));
    memset(text, 'a', LETTERS);
    for (int i = 1; i < LETTERS; i += 2)
        text[i] = 'b';
    assert_ok(tokenizer->encode(&ids, &count, tokenizer, text, LETTERS));
    assert_int_equal(count, LETTERS / 2);
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(ids[i], 4);
    ah__free(ids);
    ah__free(text);
    ah__tokenizer_close(tokenizer);
}

/* ---- what begins and ends texts ---------------------------------------------------------------------------------- */

static void write_beside(const char *name, const char *text)
{
    char path[2 * PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(ah__file_write(path, text, strlen(text)));
}

static void special_ids(void **state)
{
    char config[PATH_SIZE + 16];
    snprintf(config, sizeof config, "%s/config.json", folder_with(NULL, NULL));
    write_beside("config.json", "{\"bos_token_id\": 50256, \"eos_token_id\": 2}");
    write_beside("generation_config.json", "{\"eos_token_id\": [3, 11, 400000]}");
    const struct ah_tokenizer *tokenizer;
    assert_ok(ah__tokenizer_open(&tokenizer, config));
    assert_false(tokenizer->has_bos); /* 50256 is another model's */
    assert_true(tokenizer->has_eos);
    assert_int_equal(tokenizer->eos, 3);
    assert_int_equal(tokenizer->stop_count, 3);
    assert_memory_equal(tokenizer->stops, ((int32_t[]){3, 11, 2}), 3 * sizeof(int32_t));
    ah__tokenizer_close(tokenizer);
    write_beside("tokenizer_config.json", "{\"bos_token\": {\"content\": \"<s>\", \"lstrip\": false}, \"eos_token\": "
                                          "\"<x>\", \"tokenizer_class\": \"X\"}");
    assert_ok(ah__tokenizer_open(&tokenizer, config));
    assert_int_equal(tokenizer->bos, 10);
    assert_int_equal(tokenizer->eos, 11);
    assert_int_equal(tokenizer->stop_count, 3);
    ah__tokenizer_close(tokenizer);
    write_beside("tokenizer_config.json", "{");
    assert_fails(ah__tokenizer_open(&tokenizer, config), AH_EINPUT, "tokenizer_config.json: line 1");
}

/* ---- token by token ---------------------------------------------------------------------------------------------- */

/* A text told token by token is the text, in whole characters. */
static void streams(void **state)
{
    static const char *const kinds[] = {"gpt2", "llama2", "metaspace"};
    static const char text[] = " na\xc3\xafve \xe4\xba\xba\xe4\xba\xba \xf0\x9f\x91\xa9\xe2\x80\x8d "
                               "\xf0\x9f\x91\xa9 end";
    for (size_t k = 0; k < AH_LENGTH(kinds); k++) {
        char original[PATH_SIZE];
        const struct ah_tokenizer *tokenizer;
        struct ah_buf told = {0};
        int32_t *ids;
        int64_t count;
        size_t length;
        char *whole;
        snprintf(original, sizeof original, "%s/golden/tokenizers/%s", ah_test_source(), kinds[k]);
        assert_ok(ah__tokenizer_open(&tokenizer, original));
        assert_ok(tokenizer->encode(&ids, &count, tokenizer, text, sizeof text - 1));
        assert_ok(tokenizer->decode(&whole, &length, tokenizer, ids, count));
        struct ah_token_stream stream = {.tokenizer = tokenizer};
        for (int64_t i = 0; i < count; i++) {
            assert_ok(ah__token_stream_next(&told, &stream, ids[i]));
            assert_null(told.text ? strstr(told.text, "\xef\xbf\xbd") : NULL);
        }
        assert_ok(ah__token_stream_end(&told, &stream));
        assert_string_equal(told.text, whole);
        ah__free(whole);
        ah__free(ids);
        ah__buf_free(&told);
        ah__tokenizer_close(tokenizer);
    }
}

static void a_stream_ends_in_the_middle(void **state)
{
    struct ah_token_stream bytes = {.tokenizer = &ah__tokenizer_bytes};
    struct ah_buf told = {0};
    assert_ok(ah__token_stream_next(&told, &bytes, 0xe4)); /* byte-level tokens pass as they are */
    assert_string_equal(told.text, "\xe4");
    ah__buf_free(&told);
    const struct ah_tokenizer *tokenizer;
    char original[PATH_SIZE];
    snprintf(original, sizeof original, "%s/golden/tokenizers/llama2", ah_test_source());
    assert_ok(ah__tokenizer_open(&tokenizer, original));
    struct ah_token_stream stream = {.tokenizer = tokenizer};
    int32_t first = 3 + 0xe4, second = 3 + 0xba;
    assert_string_equal(tokenizer->token(tokenizer, first), "<0xE4>");
    told = (struct ah_buf){0};
    assert_ok(ah__token_stream_next(&told, &stream, first));
    assert_ok(ah__token_stream_next(&told, &stream, second));
    assert_int_equal(told.length, 0);
    assert_ok(ah__token_stream_end(&told, &stream));
    assert_string_equal(told.text, "\xef\xbf\xbd");
    ah__buf_free(&told);
    ah__tokenizer_close(tokenizer);
}

/* ---- the older files --------------------------------------------------------------------------------------------- */

/* vocab.json and merges.txt of a golden tokenizer, whose own file has the same parts. */
static void older_files_write(const char *kind)
{
    char path[PATH_SIZE];
    struct ah_json json, model, vocab;
    struct ah_buf merges = {0};
    snprintf(path, sizeof path, "%s/golden/tokenizers/%s/tokenizer.json", ah_test_source(), kind);
    assert_ok(ah__json_load(&json, path));
    assert_ok(ah__json_object(&model, &json, "model"));
    assert_ok(ah__json_object(&vocab, &model, "vocab"));
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(model.node, "merges");
    ah__buf_printf(&merges, "#version: 0.2\n");
    for (const cJSON *pair = list->child; pair; pair = pair->next)
        ah__buf_printf(&merges, "%s %s\r\n", pair->child->valuestring, pair->child->next->valuestring);
    write_beside("merges.txt", merges.text);
    snprintf(path, sizeof path, "%s/vocab.json", folder);
    assert_ok(ah__json_save(vocab.node, path));
    ah__buf_free(&merges);
    ah__json_free(&json);
}

static void same_ids(const struct ah_tokenizer *a, const struct ah_tokenizer *b, const char *text)
{
    int32_t *ids;
    int64_t count;
    assert_ok(a->encode(&ids, &count, a, text, strlen(text)));
    ids_are(b, text, strlen(text), false, (size_t)count, ids);
    ah__free(ids);
}

static void vocab_and_merges(void **state)
{
    static const char text[] = "All human beings<|endoftext|> are born  free, don't they? E\xcc\x81t\xc3\xa9 12345 x";
    char original[PATH_SIZE], path[2 * PATH_SIZE];
    const struct ah_tokenizer *golden, *older;
    static const struct {
        const char *kind, *config;
    } rows[] = {{"gpt2", "{\"tokenizer_class\": \"GPT2Tokenizer\"}"},
                {"qwen2", "{\"tokenizer_class\": \"Qwen2TokenizerFast\", \"added_tokens_decoder\": {\"1500\": "
                          "{\"content\": \"<|endoftext|>\", \"special\": true}}, \"eos_token\": \"<|endoftext|>\"}"}};
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        older_files_write(rows[i].kind);
        write_beside("tokenizer_config.json", rows[i].config);
        snprintf(original, sizeof original, "%s/golden/tokenizers/%s", ah_test_source(), rows[i].kind);
        assert_ok(ah__tokenizer_open(&golden, original));
        assert_ok(ah__tokenizer_open(&older, folder));
        assert_string_equal(older->name, "vocab.json and merges.txt");
        same_ids(golden, older, text);
        assert_true(i == 0 || (older->has_eos && older->eos == 1500));
        ah__tokenizer_close(golden);
        ah__tokenizer_close(older);
    }
    write_beside("tokenizer_config.json", "{\"tokenizer_class\": \"T5Tokenizer\"}");
    assert_fails(ah__tokenizer_open(&older, folder), AH_EINPUT,
                 "key 'tokenizer_class': found 'T5Tokenizer', expected GPT2Tokenizer or Qwen2Tokenizer");
    write_beside("tokenizer_config.json", "{}");
    write_beside("merges.txt", "#version: 0.2\na\n");
    assert_fails(ah__tokenizer_open(&older, folder), AH_EINPUT, "merges.txt: line 2: found 'a', expected two");
    write_beside("merges.txt", "a \xe2\x98\x83\n");
    assert_fails(ah__tokenizer_open(&older, folder), AH_EINPUT, "vocab.json: merges.txt, line 1: found 'a'");
    snprintf(path, sizeof path, "%s/merges.txt", folder);
    remove(path);
    assert_fails(ah__tokenizer_open(&older, folder), AH_EINPUT, "merges.txt");
}

/* What transformers 5.24 gives for the same folders: tests/hf/folders asks it. */
static void what_stands_around_older_files(void **state)
{
#define ADDS "{\"add_bos_token\": true, "
#define OPT "\"bos_token\": {\"content\": \"the\"}, \"tokenizer_class\": \"GPT2Tokenizer\""
#define QWEN2 "\"tokenizer_class\": \"Qwen2Tokenizer\""
    static const struct {
        const char *kind, *config, *map;
        int32_t before, behind; /* -1: none */
    } rows[] = {
        {"gpt2", ADDS OPT "}", "{}", 472, -1},
        {"gpt2", "{" OPT "}", "{}", -1, -1},
        {"gpt2", "{\"add_bos_token\": true}", "{}", 0, -1},
        {"gpt2", ADDS "\"add_eos_token\": true, " OPT "}", "{\"bos_token\": \"a\"}", 65, 0},
        {"gpt2", ADDS "\"bos_token\": null}", "{}", -1, -1},
        {"gpt2", ADDS "\"bos_token\": \"the\", \"added_tokens_decoder\": {}}", "{\"bos_token\": \"a\"}", 472, -1},
        {"qwen2", ADDS QWEN2 ", \"bos_token\": null}", "{}", -1, -1},
        {"qwen2", ADDS QWEN2 "}", "{}", -1, -1},
        {"qwen2", "{\"add_eos_token\": true, \"eos_token\": \"a\", " QWEN2 "}", "{}", -1, 64},
    };
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        const struct ah_tokenizer *tokenizer;
        const int32_t letter = rows[i].kind[0] == 'g' ? 40 : 39, all[] = {rows[i].before, letter, rows[i].behind};
        const bool begins = all[0] >= 0;
        older_files_write(rows[i].kind);
        write_beside("tokenizer_config.json", rows[i].config);
        write_beside("special_tokens_map.json", rows[i].map);
        assert_ok(ah__tokenizer_open(&tokenizer, folder));
        ids_are(tokenizer, "H", 1, true, (size_t)(1 + begins + (all[2] >= 0)), all + !begins);
        ids_are(tokenizer, "H", 1, false, 1, &letter);
        ah__tokenizer_close(tokenizer);
    }
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

#define TOKEN(members) "[{\"single_word\": false, \"lstrip\": false, \"rstrip\": false, " members "}]"
#define SPLIT(pattern) "{\"type\": \"Split\", \"pattern\": " pattern ", \"behavior\": \"Isolated\", \"invert\": false}"
#define BYTE_LEVEL "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": true}"

static const struct {
    const char *key, *value, *words;
} refused[] = {
    {"+", "\"surprise\": 1", "key 'surprise': found an unknown key"},
    {"model", "null", "key 'model': found null, expected an object"},
    {"model", "{\"type\": \"Unigram\", \"vocab\": []}", "key 'model.type': found 'Unigram', expected BPE"},
    {"model", "{\"vocab\": {\"a\": 0}, \"merges\": [], \"x\": 1}", "key 'model.x': found an unknown key"},
    {"model", "{\"vocab\": {\"a\": 0}, \"merges\": [], \"dropout\": 0.1}", "key 'model.dropout': found 0.1"},
    {"model", "{\"vocab\": {\"a\": 0}, \"merges\": [], \"end_of_word_suffix\": \"</w>\"}",
     "key 'model.end_of_word_suffix': found '</w>', expected none"},
    {"model", "{\"vocab\": {\"a\": 0}, \"merges\": [], \"unk_token\": \"?\"}", "key 'model.unk_token': found '?'"},
    {"model", "{\"vocab\": {\"a\": -1}, \"merges\": []}", "the vocabulary's 'a': found no id from 0 to"},
    {"model", "{\"vocab\": {\"a\": 0.5}, \"merges\": []}", "the vocabulary's 'a'"},
    {"model", "{\"vocab\": {\"a\": 16777216}, \"merges\": []}", "the vocabulary's 'a'"},
    {"model", "{\"vocab\": {\"a\": 0, \"b\": 0}, \"merges\": []}", "found id 0 for 'a' and 'b'"},
    {"added_tokens", "[]", "key 'post_processor.special_tokens.<s>.ids': found 10, expected ids of tokens"},
    {"model", "{\"vocab\": {\"a\": 0, \"b\": 1}, \"merges\": [\"a b\"]}", "key 'model.merges[0]': found 'a' and 'b'"},
    {"model", "{\"vocab\": {\"a\": 0}, \"merges\": [\"aa\"]}", "key 'model.merges[0]': found 'aa', expected two texts"},
    {"model", "{\"vocab\": {\"a\": 0}, \"merges\": [[\"a\"]]}", "key 'model.merges[0]': found no pair"},
    {"model", "{\"vocab\": {\"a\": 0}, \"merges\": 1}", "key 'model.merges': found no array"},
    {"added_tokens", "[1]", "key 'added_tokens[0]': found no object"},
    {"added_tokens", TOKEN("\"id\": 0, \"content\": \"q\", \"normalized\": true, \"special\": false"),
     "found 'q' with id 0, expected 'a', the vocabulary's"},
    {"added_tokens", TOKEN("\"id\": 1, \"content\": \"a\", \"normalized\": true, \"special\": false"),
     "found 'a' with id 1, expected the vocabulary's id"},
    {"added_tokens", TOKEN("\"id\": 20, \"content\": \"a\", \"normalized\": 1, \"special\": false"),
     "key 'added_tokens[0].normalized': found 1, expected true or false"},
    {"normalizer", "{\"type\": \"BertNormalizer\"}", "key 'normalizer.type': found 'BertNormalizer', expected one of"},
    {"normalizer", "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \" +\"}, \"content\": \"\"}",
     "key 'normalizer.pattern': found a Regex, expected a String"},
    {"normalizer", "{\"type\": \"Replace\", \"pattern\": {\"String\": \"\"}, \"content\": \"\"}", "an empty pattern"},
    {"normalizer", "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Lowercase\"}]}",
     "key 'normalizer.normalizers[0].type': found 'Lowercase'"},
    {"pre_tokenizer", "{\"type\": \"Whitespace\"}", "key 'pre_tokenizer.type': found 'Whitespace'"},
    {"pre_tokenizer", SPLIT("{\"Regex\": \"a(\"}"), "pre_tokenizer: found a regular expression that does not compile"},
    {"pre_tokenizer", "{\"type\": \"Split\", \"pattern\": {\"String\": \"a\"}, \"behavior\": \"X\", \"invert\": false}",
     "key 'pre_tokenizer.behavior': found 'X', expected Isolated"},
    {"pre_tokenizer", "{\"type\": \"Sequence\", \"pretokenizers\": [" BYTE_LEVEL ", " SPLIT("{\"String\": \"a\"}") "]}",
     "pre_tokenizer.pretokenizers[1]: found it behind ByteLevel"},
    {"pre_tokenizer", "{\"type\": \"Metaspace\", \"replacement\": \"ab\"}", "found 'ab', expected one character"},
    {"pre_tokenizer", "{\"type\": \"Metaspace\", \"replacement\": \"_\", \"prepend_scheme\": \"x\"}",
     "key 'pre_tokenizer.prepend_scheme': found 'x', expected always, first or never"},
    {"post_processor", "{\"type\": \"BertProcessing\"}", "key 'post_processor.type': found 'BertProcessing'"},
    {"post_processor", "{\"type\": \"TemplateProcessing\", \"single\": [], \"pair\": [], \"special_tokens\": {}}",
     "key 'post_processor.single': found no Sequence A"},
    {"post_processor",
     "{\"type\": \"TemplateProcessing\", \"single\": [{\"Sequence\": {\"id\": \"B\"}}],"
     " \"pair\": [], \"special_tokens\": {}}",
     "found 'B', expected 'A' once"},
    {"decoder", "{\"type\": \"WordPiece\"}", "key 'decoder.type': found 'WordPiece'"},
    {"decoder", "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Fuse\"}, {\"type\": \"ByteFallback\"}]}",
     "key 'decoder.decoders[1]': found it at this place"},
    {"decoder", "{\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}", "key 'decoder': found it at"},
};

static void refuses(void **state)
{
    for (size_t i = 0; i < AH_LENGTH(refused); i++) {
        const struct ah_tokenizer *tokenizer = NULL;
        folder_with(refused[i].key, refused[i].value);
        if (ah__tokenizer_open(&tokenizer, folder) == AH_OK)
            fail_msg("row %d: %s: %s was taken", (int)i, refused[i].key, refused[i].value);
        if (!strstr(ah_error(), refused[i].words) || !strstr(ah_error(), "tokenizer.json: "))
            fail_msg("row %d: found '%s', expected '%s' in it", (int)i, ah_error(), refused[i].words);
        assert_null(tokenizer);
    }
}

/* Whichever request for memory is refused: one line, nothing lost. */
static void no_memory(void **state)
{
    const struct ah_tokenizer *tokenizer;
    folder_with(NULL, NULL);
    for (uint64_t n = 1;; n++) {
        ah__alloc_fail_at(n);
        int status = ah__tokenizer_open(&tokenizer, folder);
        ah__alloc_fail_at(0);
        if (status == AH_OK)
            break;
        assert_int_equal(status, AH_ENOMEM);
    }
    for (uint64_t n = 1;; n++) {
        int32_t *ids;
        int64_t count;
        ah__alloc_fail_at(n);
        int status = tokenizer->encode_prompt(&ids, &count, tokenizer, "ab\xff<x>cd", 8);
        ah__alloc_fail_at(0);
        if (status == AH_OK) {
            ah__free(ids);
            break;
        }
        assert_int_equal(status, AH_ENOMEM);
    }
    ah__tokenizer_close(tokenizer);
}

AH_TEST_CASES("tokenizer/tokenizer_json", documents_and_prompts, decoding_names_what_is_no_id, unknown_characters,
              wrong_text_is_repaired, long_words, special_ids, streams, a_stream_ends_in_the_middle, vocab_and_merges,
              what_stands_around_older_files, refuses, no_memory)
