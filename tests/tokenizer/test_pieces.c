/* What tokenizer.model and the files beside it say, and what of it is refused. Ids of real models are compared with the
 * sentencepiece library's in test_tokenizer_golden.c. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "test.h"
#include "tokenizer/tokenizer.h"

enum { PATH_SIZE = 512 };

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void bytes_put(struct ah_buf *to, int number, const void *bytes, size_t length)
{
    assert_true(length < 128);
    const char head[] = {(char)(number << 3 | 2), (char)length};
    /* numbers above 15 take two bytes */
    const char wide[] = {(char)(((number << 3 | 2) & 0x7f) | 0x80), (char)(number >> 4), (char)length};
    ah__buf_add(to, number > 15 ? wide : head, number > 15 ? sizeof wide : sizeof head);
    ah__buf_add(to, bytes, length);
}

static void int_put(struct ah_buf *to, int number, int value)
{
    const char head[] = {(char)(number << 3), (char)value};
    const char wide[] = {(char)(((number << 3) & 0x7f) | 0x80), (char)(number >> 4), (char)value};
    ah__buf_add(to, number > 15 ? wide : head, number > 15 ? sizeof wide : sizeof head);
}

static void piece_put(struct ah_buf *to, const char *text, float score, int type)
{
    struct ah_buf piece = {0};
    char number[5] = {(char)(2 << 3 | 5)};
    memcpy(number + 1, &score, sizeof score);
    bytes_put(&piece, 1, text, strlen(text));
    ah__buf_add(&piece, number, sizeof number);
    int_put(&piece, 3, type);
    bytes_put(to, 1, piece.text, piece.length);
    ah__buf_free(&piece);
}

enum { NORMAL = 1, UNKNOWN, CONTROL, USER, UNUSED, BYTE };
enum { UNIGRAM = 1, BPE = 2, WORD = 3 };

static void pieces_put(struct ah_buf *to)
{
    piece_put(to, "<unk>", 0, UNKNOWN);
    piece_put(to, "<s>", 0, CONTROL);
    piece_put(to, "</s>", 0, CONTROL);
    piece_put(to, "\xe2\x96\x81", -1, NORMAL);
    piece_put(to, "a", -2, NORMAL);
    piece_put(to, "b", -3, NORMAL);
    piece_put(to, "ab", -4, NORMAL);
    piece_put(to,
              "\xe2\x96\x81"
              "ab",
              -5, NORMAL);
    piece_put(to, "[x]", 0, USER);
}

static void trainer_put(struct ah_buf *to, int type)
{
    struct ah_buf trainer = {0};
    int_put(&trainer, 3, type);
    bytes_put(to, 2, trainer.text, trainer.length);
    ah__buf_free(&trainer);
}

static const char *folder_of(const struct ah_buf *model)
{
    static char folder[PATH_SIZE];
    char path[PATH_SIZE + 32];
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    snprintf(path, sizeof path, "%s/tokenizer.model", folder);
    assert_ok(ah__file_write(path, model->text, model->length));
    return folder;
}

/* A folder with a model and, unless null, another file. */
static const char *folder_with(int type, const char *name, const char *text)
{
    char path[PATH_SIZE + 32];
    struct ah_buf model = {0};
    pieces_put(&model);
    trainer_put(&model, type);
    const char *folder = folder_of(&model);
    ah__buf_free(&model);
    snprintf(path, sizeof path, "%s/%s", folder, name ? name : "");
    if (name)
        assert_ok(ah__file_write(path, text, strlen(text)));
    return folder;
}

static const struct ah_tokenizer *open_with(int type, const char *name, const char *text)
{
    const struct ah_tokenizer *tokenizer;
    assert_ok(ah__tokenizer_open(&tokenizer, folder_with(type, name, text)));
    return tokenizer;
}

static void ids_are(const struct ah_tokenizer *tokenizer, const char *text, bool prompt, size_t count,
                    const int32_t *expected)
{
    int32_t *ids;
    int64_t found;
    assert_ok((prompt ? tokenizer->encode_prompt : tokenizer->encode)(&ids, &found, tokenizer, text, strlen(text)));
    assert_int_equal(found, count);
    if (count)
        assert_memory_equal(ids, expected, count * sizeof *ids);
    ah__free(ids);
}

#define assert_ids(tokenizer, text, prompt, ...)                                                                       \
    ids_are(tokenizer, text, prompt, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t), (int32_t[]){__VA_ARGS__})

/* ---- what is done ------------------------------------------------------------------------------------------------ */

/* Special pieces are found where their text stands, and what is between them is a text of its own. */
static void special_pieces_are_found(void **state)
{
    const struct ah_tokenizer *tokenizer = open_with(BPE, NULL, NULL);
    assert_string_equal(tokenizer->name, "tokenizer.model");
    assert_int_equal(tokenizer->vocab_size, 9);
    assert_ids(tokenizer, "ab[x]ba", false, 7, 8, 5, 4);
    assert_ids(tokenizer, "ab</s>ab", false, 7, 2, 7);
    assert_true(tokenizer->is_special(tokenizer, 0) && tokenizer->is_special(tokenizer, 2));
    assert_false(tokenizer->is_special(tokenizer, 8));
    ah__tokenizer_close(tokenizer);
}

static void text_begins_and_ends_as_the_model_says(void **state)
{
    const struct ah_tokenizer *tokenizer = open_with(BPE, NULL, NULL);
    assert_true(tokenizer->has_bos && tokenizer->bos == 1);
    assert_true(tokenizer->has_eos && tokenizer->eos == 2);
    assert_int_equal(tokenizer->stop_count, 1);
    assert_ids(tokenizer, "ab", true, 1, 7);
    ah__tokenizer_close(tokenizer);
    tokenizer = open_with(UNIGRAM, NULL, NULL);
    assert_ids(tokenizer, "ab", true, 7);
    ah__tokenizer_close(tokenizer);
}

static void config_says_what_stands_around(void **state)
{
    const struct ah_tokenizer *tokenizer =
        open_with(BPE, "tokenizer_config.json", "{\"add_bos_token\": false, \"add_eos_token\": true}");
    assert_ids(tokenizer, "ab", true, 7, 2);
    ah__tokenizer_close(tokenizer);
    tokenizer = open_with(BPE, "tokenizer_config.json",
                          "{\"tokenizer_class\": \"LlamaTokenizerFast\", \"legacy\": false, \"eos_token\": \"<s>\"}");
    assert_ids(tokenizer, "ab</s>ab", true, 1, 7, 2, 6);
    assert_int_equal(tokenizer->eos, 1);
    ah__tokenizer_close(tokenizer);
    tokenizer = open_with(UNIGRAM, "tokenizer_config.json", "{\"tokenizer_class\": \"T5Tokenizer\", \"extra_ids\": 2}");
    assert_int_equal(tokenizer->vocab_size, 11);
    assert_ids(tokenizer, "<extra_id_0>ab", true, 10, 7, 2);
    ah__tokenizer_close(tokenizer);
}

/* Where tokenizer_config.json does not name the class, config.json does. */
static void class_is_the_models(void **state)
{
    const struct ah_tokenizer *tokenizer = open_with(UNIGRAM, "config.json", "{\"model_type\": \"t5\"}");
    assert_int_equal(tokenizer->vocab_size, 109);
    assert_ids(tokenizer, "ab", true, 7, 2);
    ah__tokenizer_close(tokenizer);
    tokenizer = open_with(BPE, "config.json", "{\"tokenizer_class\": \"TokenizersBackend\"}");
    assert_ids(tokenizer, "ab", true, 7);
    ah__tokenizer_close(tokenizer);
}

static void the_added_space_is_where_it_is_told(void **state)
{
    const struct ah_tokenizer *tokenizer = open_with(BPE, "tokenizer_config.json", "{\"add_prefix_space\": false}");
    char *text;
    size_t length;
    const int32_t ids[] = {7, 7};
    assert_ids(tokenizer, "ab</s>ab", false, 6, 2, 6);
    assert_ok(tokenizer->decode(&text, &length, tokenizer, ids, 2));
    assert_string_equal(text, " ab ab");
    ah__free(text);
    ah__tokenizer_close(tokenizer);
}

static void added_tokens_are_found(void **state)
{
    const struct ah_tokenizer *tokenizer = open_with(BPE, "added_tokens.json", "{\"<pad>\": 9}");
    assert_int_equal(tokenizer->vocab_size, 10);
    assert_ids(tokenizer, "ab<pad>", false, 7, 9);
    ah__tokenizer_close(tokenizer);
}

/* Unknown characters in a row are one, and the text says that something was there. */
static void unknown_text_is_told(void **state)
{
    char *text;
    size_t length;
    const int32_t ids[] = {3, 0, 4};
    const struct ah_tokenizer *tokenizer = open_with(BPE, NULL, NULL);
    assert_ids(tokenizer, "xyza", false, 3, 0, 4);
    assert_ok(tokenizer->decode(&text, &length, tokenizer, ids, 3));
    assert_string_equal(text, " \xe2\x81\x87 a");
    ah__free(text);
    ah__tokenizer_close(tokenizer);
}

/* Unused pieces are put together on the way to others, and taken apart where they are left. */
static void unused_pieces_are_taken_apart(void **state)
{
    struct ah_buf model = {0};
    const struct ah_tokenizer *tokenizer;
    pieces_put(&model);
    piece_put(&model, "ba", -1.5F, UNUSED);
    piece_put(&model, "baab", -1.25F, NORMAL);
    piece_put(&model, "aba", -3.5F, UNUSED);
    trainer_put(&model, BPE);
    assert_ok(ah__tokenizer_open(&tokenizer, folder_of(&model)));
    assert_ids(tokenizer, "baab", false, 3, 10);
    assert_ids(tokenizer, "ba", false, 3, 5, 4);
    assert_ids(tokenizer, "xaba", false, 3, 0, 4, 5, 4);
    ah__tokenizer_close(tokenizer);
    ah__buf_free(&model);
}

/* A folder with both files is read as ever. */
static void tokenizer_json_wins(void **state)
{
    const struct ah_tokenizer *tokenizer =
        open_with(BPE, "tokenizer.json", "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": []}}");
    assert_string_equal(tokenizer->name, "tokenizer.json");
    ah__tokenizer_close(tokenizer);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static void refused(const struct ah_buf *model, const char *expected)
{
    const struct ah_tokenizer *tokenizer;
    assert_fails(ah__tokenizer_open(&tokenizer, folder_of(model)), AH_EINPUT, expected);
}

static void models_are_refused(void **state)
{
    static const struct {
        const char *text;
        int type, trainer;
        const char *expected;
    } wrong[] = {
        {"a", NORMAL, BPE, "piece 9: found 'a' a second time, expected it once"},
        {"<unk>", UNKNOWN, BPE, "piece 9: found a second unknown piece, expected one"},
        {"</s>", CONTROL, BPE, "piece 9: found '</s>' a second time, expected it once"},
        {"\xff", NORMAL, BPE, "piece 9: found bytes that are no text of UTF-8"},
        {"c", 7, BPE, "piece 9: found type 7, expected 1 to 6"},
        {"", NORMAL, BPE, "piece 9: found 0 bytes, expected 1 to 1024"},
        {"<0x0a>", BYTE, BPE, "piece 9: found '<0x0a>' as a byte, expected one like <0x0A>"},
        {"<0x0A>", BYTE, BPE, "expected none without 'trainer_spec.byte_fallback'"},
        {"c", NORMAL, WORD, "key 'trainer_spec.model_type': found 3 (word), expected 1 (unigram) or 2 (BPE)"},
    };
    for (size_t i = 0; i < AH_LENGTH(wrong); i++) {
        struct ah_buf model = {0};
        pieces_put(&model);
        piece_put(&model, wrong[i].text, 0, wrong[i].type);
        trainer_put(&model, wrong[i].trainer);
        refused(&model, wrong[i].expected);
        ah__buf_free(&model);
    }
}

static void other_files_are_refused(void **state)
{
    static const char rank[] = "IQ== 0\nIg== 1\n";
    static const char rules[] = "\x04\0\0\0abcdefg", fallback[] = {(char)((35 << 3 & 0x7f) | 0x80), 35 >> 4, 1};
    struct ah_buf model = {0};
    ah__buf_add(&model, rank, strlen(rank));
    refused(&model, "found no model of SentencePiece");
    model.length = 0;
    trainer_put(&model, BPE);
    refused(&model, "found no model of SentencePiece: there are no pieces in it");
    piece_put(&model, "a", 0, NORMAL);
    refused(&model, "found 1 pieces, none of them the unknown one, expected one");
    model.length = 0;
    pieces_put(&model);
    size_t good = model.length;
    for (int number = 3; number <= 5; number += 2) {
        struct ah_buf normal = {0};
        model.length = good;
        bytes_put(&normal, 2, rules, sizeof rules - 1);
        bytes_put(&model, number, normal.text, normal.length);
        refused(&model, number == 3 ? "key 'normalizer_spec.precompiled_charsmap': found 11 bytes"
                                    : "key 'denormalizer_spec.precompiled_charsmap': found 11 bytes, expected none");
        ah__buf_free(&normal);
    }
    model.length = good;
    bytes_put(&model, 2, fallback, sizeof fallback);
    refused(&model, "key 'trainer_spec.byte_fallback': found true and pieces of 0 bytes, expected all 256");
    ah__buf_free(&model);
}

/* Classes that have other ids than the file. */
static void classes_are_refused(void **state)
{
    const struct ah_tokenizer *tokenizer;
    const char *folder =
        folder_with(UNIGRAM, "tokenizer_config.json", "{\"tokenizer_class\": \"XLMRobertaTokenizer\"}");
    assert_fails(ah__tokenizer_open(&tokenizer, folder), AH_EINPUT,
                 "key 'tokenizer_class': found 'XLMRobertaTokenizer', expected LlamaTokenizer");
}

/* Wherever a model is cut off, it is refused or has fewer pieces. */
static void cut_models_are_survived(void **state)
{
    char path[PATH_SIZE];
    struct ah_buf model = {0};
    size_t length, refusals = 0;
    snprintf(path, sizeof path, "%s/golden/tokenizers/pieces_unigram/tokenizer.model", ah_test_source());
    assert_ok(ah__file_read(&model.text, &length, path, 1 << 20));
    for (size_t cut = 1; cut < length; cut += 37) {
        const struct ah_tokenizer *tokenizer = NULL;
        model.length = cut;
        int status = ah__tokenizer_open(&tokenizer, folder_of(&model));
        assert_true(status == AH_OK || status == AH_EINPUT);
        refusals += status == AH_EINPUT;
        ah__tokenizer_close(tokenizer);
    }
    assert_true(refusals > length / 37 / 2);
    ah__free(model.text);
}

AH_TEST_CASES("tokenizer/pieces", special_pieces_are_found, text_begins_and_ends_as_the_model_says, class_is_the_models,
              the_added_space_is_where_it_is_told, config_says_what_stands_around, added_tokens_are_found,
              unknown_text_is_told, tokenizer_json_wins, unused_pieces_are_taken_apart, models_are_refused,
              other_files_are_refused, classes_are_refused, cut_models_are_survived)
