/* Tokenizers into GGUF files: what is written gives the same ids, and what llama.cpp would do otherwise is refused. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "gguf/write.h"
#include "source/model_tokenizer.h"
#include "train/tiny.h"

static const char config[] =
    "{\"model_type\": \"llama\", \"vocab_size\": 1760, \"hidden_size\": 16, \"intermediate_size\": 16, "
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"num_key_value_heads\": 2, "
    "\"max_position_embeddings\": 64}";

/* A model's folder without a tokenizer, that was trained. */
static void folder_of(char folder[PATH_SIZE])
{
    struct place place;
    struct ah_train_result result;
    char model[PATH_SIZE], file[PATH_SIZE];
    place_init(&place);
    snprintf(model, sizeof model, "%s", ah_test_folder());
    write_text(at(file, model, "config.json"), config);
#define IDS "[5, 6, 7, 8, 9, 5, 6, 7, 8]"
    write_text(at(file, model, "ids.jsonl"), "{\"input_ids\": " IDS ", \"labels\": " IDS "}\n"
                                             "{\"input_ids\": " IDS ", \"labels\": " IDS "}\n");
    struct ah_train_options options = options_of(&place);
    options.model_path = model;
    options.data_path = file;
    options.profile_path = NULL;
    options.steps = 1;
    assert_ok(ah_train(&result, &options));
    snprintf(folder, PATH_SIZE, "%s/checkpoint", place.out);
}

/* The file of a golden tokenizer. */
static char *golden(size_t *length, const char *tokenizer, const char *name)
{
    char path[512], *text;
    snprintf(path, sizeof path, "%s/golden/tokenizers/%s/%s", ah_test_source(), tokenizer, name);
    assert_ok(ah__file_read(&text, length, path, 1 << 20));
    return text;
}

/* A model's folder with the pieces of a golden tokenizer. */
static void folder_with_pieces(char folder[PATH_SIZE], const char *tokenizer)
{
    char path[PATH_SIZE];
    size_t length;
    folder_of(folder);
    char *pieces = golden(&length, tokenizer, "tokenizer.model");
    assert_ok(ah__file_write(at(path, folder, "tokenizer.model"), pieces, length));
    ah__free(pieces);
}

/* Ids of prompts, of texts without user-defined pieces: behind those llama.cpp adds a space, and SentencePiece does
 * not. */
static void expect_same(const char *a, const char *b)
{
    static const char *const texts[] = {
        "",
        "a",
        "The quick brown fox.",
        "  two  spaces ",
        "\n\ttabs\n",
        "\xc3\xa9 3,14 2",
        "x<s>y",
        "\xf0\x9f\x98\x80 and \xe2\x96\x81",
        "for (int i = 0; i < 12; i++)",
        "<<begin>> said he",
    };
    const struct ah_tokenizer *left, *right;
    assert_ok(ah__model_tokenizer_open(&left, a));
    assert_ok(ah__model_tokenizer_open(&right, b));
    assert_true(left->bos == right->bos && left->eos == right->eos && left->has_eos == right->has_eos);
    for (size_t i = 0; i < AH_LENGTH(texts); i++) {
        int32_t *ids, *others;
        int64_t count, other;
        assert_ok(left->encode_prompt(&ids, &count, left, texts[i], strlen(texts[i])));
        assert_ok(right->encode_prompt(&others, &other, right, texts[i], strlen(texts[i])));
        if (count != other || memcmp(ids, others, (size_t)count * sizeof *ids) != 0)
            fail_msg("'%s': found other ids", texts[i]);
        ah__free(ids);
        ah__free(others);
    }
    ah__tokenizer_close(left);
    ah__tokenizer_close(right);
}

static void expect_types(const char *path, int32_t id, int64_t type)
{
    struct ah_gguf *file;
    struct ah_gguf_array types;
    int64_t found = 0;
    assert_ok(ah__gguf_open(&file, path));
    assert_ok(ah__gguf_ints(&types, file, "tokenizer.ggml.token_type"));
    for (int32_t i = 0; i <= id; i++)
        found = ah__gguf_next_int(&types);
    assert_int_equal(found, type);
    ah__gguf_close(file);
}

/* Scores fall from one merged piece to the next. */
static void expect_falling_scores(const char *path, int32_t first, int32_t count)
{
    struct ah_gguf *file;
    struct ah_gguf_array scores;
    double before = 1, score;
    assert_ok(ah__gguf_open(&file, path));
    assert_ok(ah__gguf_doubles(&scores, file, "tokenizer.ggml.scores"));
    for (int32_t i = 0; i<first + count; i++, before = i> first ? score : 1) {
        score = ah__gguf_next_double(&scores);
        assert_true(i <= first || score < before);
    }
    ah__gguf_close(file);
}

/* With a token of its own behind the pieces. */
static void tokenizer_model_goes_into_the_file(void **state)
{
    char folder[PATH_SIZE], path[PATH_SIZE], file[PATH_SIZE];
    folder_with_pieces(folder, "pieces_bpe");
    write_text(at(path, folder, "tokenizer_config.json"),
               "{\"tokenizer_class\": \"LlamaTokenizer\", \"added_tokens_decoder\": {\"1500\": "
               "{\"content\": \"<|end|>\", \"special\": true}}, \"eos_token\": \"<|end|>\", \"pad_token\": "
               "{\"content\": \"<|end|>\"}}");
    assert_ok(ah_export_gguf(at(file, folder, "out.gguf"), folder, "f16"));
    expect_same(folder, file);
    expect_falling_scores(file, 400, 100);
    struct ah_gguf *written;
    int64_t unknown = -1, padding = -1;
    assert_ok(ah__gguf_open(&written, file));
    assert_ok(ah__gguf_int(&unknown, written, "tokenizer.ggml.unknown_token_id", 0, 1500));
    assert_ok(ah__gguf_int(&padding, written, "tokenizer.ggml.padding_token_id", 0, 1500));
    assert_true(unknown == 0 && padding == 1500);
    ah__gguf_close(written);
    expect_types(file, 0, 2);    /* unknown */
    expect_types(file, 1, 3);    /* control */
    expect_types(file, 1500, 3); /* and that of the folder */
    expect_types(file, 1501, 5); /* unused */
}

static void expect_token(const char *path, int32_t id, const char *token, int64_t type)
{
    struct ah_gguf *file;
    struct ah_gguf_array texts;
    const char *found = "";
    size_t length = 0;
    assert_ok(ah__gguf_open(&file, path));
    assert_ok(ah__gguf_texts(&texts, file, "tokenizer.ggml.tokens"));
    for (int32_t i = 0; i <= id; i++)
        found = ah__gguf_next_text(&length, &texts);
    assert_int_equal(length, strlen(token));
    assert_memory_equal(found, token, length);
    ah__gguf_close(file);
    expect_types(path, id, type);
}

/* As llama.cpp's converter types them: what is added is user-defined, with spaces as they are in texts, unless it is
 * special or looks so. */
static void added_tokens_have_their_types(void **state)
{
    char folder[PATH_SIZE], path[PATH_SIZE], file[PATH_SIZE];
    folder_with_pieces(folder, "pieces_bpe");
    write_text(at(path, folder, "tokenizer_config.json"),
               "{\"added_tokens_decoder\": {\"535\": {\"content\": \"ab\"}, \"1500\": {\"content\": \"<|x|>\"}, "
               "\"1501\": {\"content\": \"\u2581y\u2581\"}, \"1502\": {\"content\": \"<z>\", \"special\": true}}}");
    assert_ok(ah_export_gguf(at(file, folder, "out.gguf"), folder, "f16"));
    expect_token(file, 535, "ab", 4);
    expect_token(file, 1500, "<|x|>", 3);
    expect_token(file, 1501, " y ", 4);
    expect_token(file, 1502, "<z>", 3);
}

/* llama.cpp adds a space behind added tokens, whatever the folder says: that is told. */
static void other_ids_behind_added_tokens_are_told(void **state)
{
    static const struct {
        const char *config, *expected;
    } rows[] = {
        {"{}", "or pieces that are user-defined"}, /* this has some */
        {"{\"legacy\": false}", "not behind added tokens ('legacy' false, 'prepend_scheme' first, or pieces"},
        {"{\"legacy\": false, \"add_prefix_space\": false}", NULL},
    };
    char folder[PATH_SIZE], path[PATH_SIZE], file[PATH_SIZE], *note;
    folder_with_pieces(folder, "pieces_bpe");
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        write_text(at(path, folder, "tokenizer_config.json"), rows[i].config);
        assert_ok(ah_export_gguf_noted(&note, at(file, folder, "out.gguf"), folder, "f16"));
        assert_int_equal(note != NULL, rows[i].expected != NULL);
        assert_true(!note || strstr(note, rows[i].expected));
        ah__free(note);
    }
    const struct ah_tokenizer *tokenizer; /* of the last, without the space */
    int32_t *ids;
    int64_t count;
    assert_ok(ah__model_tokenizer_open(&tokenizer, file));
    assert_ok(tokenizer->encode(&ids, &count, tokenizer, "ab", 2));
    assert_int_equal(count, 1);
    ah__free(ids);
    ah__tokenizer_close(tokenizer);
}

static void other_pieces_are_refused(void **state)
{
    char folder[PATH_SIZE], file[PATH_SIZE];
    folder_with_pieces(folder, "pieces_unigram");
    assert_fails(ah_export_gguf(at(file, folder, "out.gguf"), folder, "f16"), AH_EINPUT,
                 "tokenizer.model: found unigrams, expected SentencePiece's BPE as Llama 2 has it");
    assert_false(ah__path_exists(file));
}

/* Gemma's: runs of spaces are tokens of their own, and merge. */
static void tokens_of_spaces_merge(void **state)
{
    struct ah_buf json = {0};
    char folder[PATH_SIZE], path[PATH_SIZE], file[PATH_SIZE];
    ah__buf_printf(&json, "{\"added_tokens\": [");
    for (int i = 0; i < 2; i++)
        ah__buf_printf(&json,
                       "%s{\"id\": %d, \"content\": \"%*s\", \"single_word\": false, \"lstrip\": false, "
                       "\"rstrip\": false, \"normalized\": false, \"special\": false}",
                       i ? "," : "", 260 + i, 2 << i, "");
    ah__buf_printf(&json, "], \"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": "
                          "\"\u2581\"}, \"pre_tokenizer\": null, \"post_processor\": null, \"decoder\": null, "
                          "\"model\": {\"type\": \"BPE\", \"unk_token\": \"<unk>\", \"fuse_unk\": true, "
                          "\"byte_fallback\": true, \"vocab\": {\"<unk>\": 256");
    for (int i = 0; i < 256; i++)
        ah__buf_printf(&json, ", \"<0x%02X>\": %d", (unsigned)i, i);
    ah__buf_printf(&json, ", \"\u2581\": 257, \"a\": 258, \"\u2581a\": 259, \"  \": 260, \"    \": 261}, \"merges\": "
                          "[[\"\u2581\", \"a\"], [\"  \", \"  \"]]}}");
    folder_of(folder);
    write_text(at(path, folder, "tokenizer.json"), json.text);
    ah__buf_free(&json);
    assert_ok(ah_export_gguf(at(file, folder, "out.gguf"), folder, "f16"));
    expect_same(folder, file);
}

/* The golden tokenizer with its first `from` replaced. */
static void write_with(const char *path, const char *tokenizer, const char *from, const char *to)
{
    char *changed;
    size_t length;
    char *text = golden(&length, tokenizer, "tokenizer.json");
    size_t found = 0;
    while (found < length && strncmp(text + found, from, strlen(from)) != 0)
        found++;
    assert_true(found < length);
    assert_ok(ah__sprintf(&changed, "%.*s%s%s", (int)found, text, to, text + found + strlen(from)));
    ah__free(text);
    write_text(path, changed);
    ah__free(changed);
}

/* Steps of the same kinds with other texts are not SentencePiece's. */
static void only_its_marks_are_sentencepieces(void **state)
{
    static const struct {
        const char *tokenizer, *from, *to, *words;
    } rows[] = {
        {"llama2", "\"prepend\"", "\"prepend\"", "key 'model.merges'"}, /* as it is: what comes after */
        {"llama2", "\"String\":\" \"", "\"String\":\"_\"", "keys 'normalizer' and 'pre_tokenizer'"},
        {"llama2", "\"content\":\"\xe2\x96\x81\"", "\"content\":\"_\"", "keys 'normalizer' and 'pre_tokenizer'"},
        {"llama2", "\"prepend\":\"\xe2\x96\x81\"", "\"prepend\":\"_\"", "keys 'normalizer' and 'pre_tokenizer'"},
        {"llama2", "\"pre_tokenizer\":null",
         "\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": \",\"}, \"behavior\": "
         "\"MergedWithPrevious\", \"invert\": false}",
         "keys 'normalizer' and 'pre_tokenizer'"},
        {"llama2", "\"pre_tokenizer\":null",
         "\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": \" \"}, \"behavior\": "
         "\"MergedWithPrevious\", \"invert\": false}",
         "key 'model.merges'"},
        {"mistral", "\"split\":false", "\"split\":true", "keys 'normalizer' and 'pre_tokenizer'"},
        {"mistral", "\"replacement\":\"\xe2\x96\x81\"", "\"replacement\":\"_\"",
         "keys 'normalizer' and 'pre_tokenizer'"},
    };
    char folder[PATH_SIZE], path[PATH_SIZE], file[PATH_SIZE];
    folder_of(folder);
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        write_with(at(path, folder, "tokenizer.json"), rows[i].tokenizer, rows[i].from, rows[i].to);
        assert_fails(ah_export_gguf(at(file, folder, "out.gguf"), folder, "f16"), AH_EINPUT, rows[i].words);
        assert_false(ah__path_exists(file));
    }
}

static void digits_write(const char *path, const char *pre)
{
    static const char *const tokens[] = {"1", "2", "3", "4", "12", "123", "1234"};
    static const char *const merges[] = {"1 2", "12 3", "123 4"};
    struct ah_gguf_writer *writer;
    assert_ok(ah__gguf_writer_new(&writer));
    ah__gguf_put_text(writer, "tokenizer.ggml.model", "gpt2");
    if (pre)
        ah__gguf_put_text(writer, "tokenizer.ggml.pre", pre);
    ah__gguf_put_array(writer, "tokenizer.ggml.tokens", AH_GGUF_ITEMS_TEXT, AH_LENGTH(tokens));
    for (size_t i = 0; i < AH_LENGTH(tokens); i++)
        ah__gguf_item_text(writer, tokens[i], strlen(tokens[i]));
    ah__gguf_put_array(writer, "tokenizer.ggml.merges", AH_GGUF_ITEMS_TEXT, AH_LENGTH(merges));
    for (size_t i = 0; i < AH_LENGTH(merges); i++)
        ah__gguf_item_text(writer, merges[i], strlen(merges[i]));
    assert_ok(ah__gguf_writer_open(writer, path));
    assert_ok(ah__gguf_writer_close(writer));
    ah__gguf_writer_free(writer);
}

/* Digits come in threes; elsewhere the four of them are one token. */
static void expect_digits(const char *pre, int64_t count)
{
    char path[PATH_SIZE];
    const struct ah_tokenizer *tokenizer;
    int32_t *ids;
    int64_t found;
    snprintf(path, sizeof path, "%s/digits.gguf", ah_test_folder());
    digits_write(path, pre);
    assert_ok(ah__model_tokenizer_open(&tokenizer, path));
    assert_ok(tokenizer->encode(&ids, &found, tokenizer, "1234", 4));
    assert_int_equal(found, count);
    ah__free(ids);
    ah__tokenizer_close(tokenizer);
}

static void unknown_tokenizers_split_as_llama_cpp_does(void **state)
{
    expect_digits("gpt-2", 1);
    expect_digits("default", 2);
    expect_digits(NULL, 2);
}

/* By every command that reads the tokenizer, from here. */
static void a_split_by_default_is_told(void **state)
{
    char path[PATH_SIZE], *note;
    snprintf(path, sizeof path, "%s/digits.gguf", ah_test_folder());
    digits_write(path, "gpt-2");
    assert_ok(ah_tokenizer_note(&note, path));
    assert_null(note);
    digits_write(path, NULL);
    assert_ok(ah_tokenizer_note(&note, path));
    assert_non_null(strstr(note, "digits.gguf: key 'tokenizer.ggml.pre': found nothing; text is split by llama.cpp's"));
    ah__free(note);
    assert_ok(ah_tokenizer_note(&note, ah_test_folder()));
    assert_null(note);
}

AH_TEST_CASES("train/gguf_tokenizer", tokenizer_model_goes_into_the_file, added_tokens_have_their_types,
              other_ids_behind_added_tokens_are_told, a_split_by_default_is_told, other_pieces_are_refused,
              unknown_tokenizers_split_as_llama_cpp_does, only_its_marks_are_sentencepieces, tokens_of_spaces_merge)
