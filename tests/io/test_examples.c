/* Examples of prompt and completion, documents in memory, and token files of every width. */
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "io/token_file.h"
#include "io/tokens.h"
#include "op/op.h"

static char path[512];

static void write_as(const char *name, const void *data, size_t length)
{
    snprintf(path, sizeof path, "%s/%s", ah_test_folder(), name);
    assert_ok(ah__file_write(path, data, length));
}

static void expect_row(const int32_t *row, const char *text, int count, int seq, int32_t rest)
{
    for (int i = 0; i < seq; i++) {
        int32_t expected = i < count ? (text[i] == '_' ? AH_TARGET_IGNORED : text[i] == '.' ? 0 : text[i]) : rest;
        if (row[i] != expected)
            fail_msg("%s[%d]: found %d, expected %d", text, i, row[i], expected);
    }
}

/* One example in each sequence: '_' stands for a target that does not count, '.' for the end. */
static void examples_are_sequences(void **state)
{
    (void)state;
    enum { SEQ = 8 };
    static const char text[] = "{\"prompt\": \"ab\", \"completion\": \"cde\"}\n"
                               "{\"prompt\": \"\", \"completion\": \"xy\"}\n"
                               "{\"prompt\": \"abcd\", \"completion\": \"efghijkl\"}\n"
                               "{\"prompt\": \"abcdefghij\", \"completion\": \"k\"}\n"
                               "{\"prompt\": \"q\", \"completion\": \"\"}\n";
    static const struct {
        const char *ids, *targets;
    } rows[] = {{"abcde.", "_cde.___"}, {"xy.", "y.______"}, {"abcdefgh", "___efghi"}, {"q.", ".______"}};
    struct ah_tokens *tokens = NULL;
    int32_t ids[SEQ], targets[SEQ];
    write_as("pairs.jsonl", text, sizeof text - 1);
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, SEQ, 0, NULL));
    const struct ah_tokens_info *info = ah__tokens_info(tokens);
    assert_string_equal(info->format, "examples");
    assert_int_equal(info->documents, 5);
    assert_int_equal(info->left_out, 1);
    assert_int_equal(info->cut, 1);
    assert_int_equal(info->train_windows, 4);
    assert_false(info->held_out);
    for (int n = 0; n < 4; n++) {
        assert_ok(ah__tokens_val_batch(tokens, n, 1, ids, targets));
        expect_row(ids, rows[n].ids, (int)strlen(rows[n].ids), SEQ, 0);
        expect_row(targets, rows[n].targets, (int)strlen(rows[n].targets), SEQ, AH_TARGET_IGNORED);
    }
    uint64_t signature = info->signature;
    ah__tokens_close(tokens);
    write_as("pairs.jsonl", text, sizeof text - 2); /* a byte less */
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, SEQ, 0.5, NULL));
    info = ah__tokens_info(tokens);
    assert_true(info->signature != signature);
    assert_true(info->held_out && info->train_windows == 2 && info->val_windows == 2);
    int seen = 0;
    for (int n = 0; n < 2; n++) {
        assert_ok(ah__tokens_batch(tokens, n, 1, 5, ids, targets));
        seen |= ids[0] == 'a' ? 1 : ids[0] == 'x' ? 2 : 4;
    }
    assert_int_equal(seen, 3);
    assert_ok(ah__tokens_val_batch(tokens, 0, 1, ids, targets));
    expect_row(ids, rows[2].ids, 8, SEQ, 0);
    ah__tokens_close(tokens);
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 110, SEQ, 0, NULL), AH_EINPUT,
                 "pairs.jsonl: line 2: token 0: found 120, expected one below the model's vocab_size 110");
    static const char none[] = "{\"prompt\": \"abcdefghijk\", \"completion\": \"k\"}";
    write_as("none.jsonl", none, sizeof none - 1);
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, SEQ, 0, NULL), AH_EINPUT,
                 "found no example with room for its completion in 8 tokens");
}

static void documents_follow_one_another(void **state)
{
    (void)state;
    static const char text[] = "{\"text\": \"ab\"}\n{\"text\": \"cdefgh\"}\n";
    struct ah_tokens *tokens = NULL;
    int32_t ids[9], targets[9];
    write_as("texts.jsonl", text, sizeof text - 1);
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 9, 0, NULL));
    assert_string_equal(ah__tokens_info(tokens)->format, "documents");
    assert_int_equal(ah__tokens_info(tokens)->tokens, 10);
    assert_true(ah__tokens_info(tokens)->memory_bytes >= 40);
    assert_ok(ah__tokens_batch(tokens, 0, 1, 1, ids, targets));
    expect_row(ids, "ab.cdefgh", 9, 9, 0);
    expect_row(targets, "b.cdefgh.", 9, 9, 0);
    ah__tokens_close(tokens);
    assert_fails(ah__tokens_open_as(&tokens, AH_DATA_LLMC, path, &ah__tokenizer_bytes, 256, 9, 0, NULL), AH_EINPUT,
                 "found no token file's header, expected one of llm.c");
    assert_ok(ah__tokens_open_as(&tokens, AH_DATA_TEXT, path, &ah__tokenizer_bytes, 256, 9, 0, NULL));
    assert_int_equal(ah__tokens_info(tokens)->tokens, sizeof text - 1);
    ah__tokens_close(tokens);
    assert_fails(ah__tokens_open_as(&tokens, AH_DATA_NANOGPT, ah_test_folder(), &ah__tokenizer_bytes, 256, 9, 0, NULL),
                 AH_EINPUT, "found a folder, expected a file of tokens");
}

/* Tokens 0, 7, 14, ... below `vocab`, of which the last `val` are for validation. */
static void token_file_write(int width, int count, int64_t val, int32_t vocab)
{
    struct ah_token_writer *writer;
    struct ah_token_file file = {.val_tokens = val, .documents = 3};
    snprintf(path, sizeof path, "%s/tokens-%d", ah_test_folder(), width);
    assert_ok(ah__token_writer_open(&writer, path, width));
    for (int32_t i = 0; i < count; i++) {
        int32_t id = (int32_t)((int64_t)i * 7 * (width == 4 ? 1000 : 1) % vocab);
        assert_ok(ah__token_writer_append(writer, &id, 1));
    }
    assert_ok(ah__token_writer_close(writer, &file));
    ah__token_writer_free(writer);
    assert_int_equal(file.tokens, count);
}

static void written_token_files_are_read(void **state)
{
    (void)state;
    struct ah_tokens *tokens = NULL;
    int32_t ids[8], targets[8];
    for (int width = 2; width <= 4; width += 2) {
        int32_t scale = width == 4 ? 1000 : 1, vocab = 700 * scale;
        token_file_write(width, 100, 30, vocab);
        assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, vocab, 8, 0.1, NULL));
        const struct ah_tokens_info *info = ah__tokens_info(tokens);
        assert_string_equal(info->format, "llmc");
        assert_true(info->tokens == 100 && info->val_tokens == 30 && info->documents == 3 && info->held_out);
        assert_ok(ah__tokens_val_batch(tokens, 0, 1, ids, targets));
        assert_int_equal(ids[0], 70 * 7 * scale);
        assert_int_equal(targets[7], 78 * 7 * scale);
        ah__tokens_close(tokens);
        assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, vocab, 40, 0.1, NULL), AH_EINPUT,
                     "found 70 tokens to train on and 30 for validation, expected at least 41 of each");
        assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 7 * scale, 8, 0.1, NULL), AH_EINPUT,
                     "token 1: found 7");
        struct ah_tokenizer other = ah__tokenizer_bytes;
        other.signature = 1;
        assert_fails(ah__tokens_open(&tokens, path, &other, vocab, 8, 0.1, NULL), AH_EINPUT,
                     "found tokens of another tokenizer (0000000000000000), expected the model's, byte-level");
        token_file_write(width, 100, 0, vocab);
        assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, vocab, 8, 0.1, NULL));
        assert_false(ah__tokens_info(tokens)->held_out);
        ah__tokens_close(tokens);
    }
}

/* A bit changed anywhere is told, in the header and in the tokens. */
static void damaged_token_files_are_refused(void **state)
{
    (void)state;
    struct ah_tokens *tokens = NULL;
    char *whole;
    size_t length;
    token_file_write(2, 100, 30, 700);
    assert_ok(ah__file_read(&whole, &length, path, 1 << 20));
    for (size_t at = 0; at < length; at += at < 64 ? 1 : 37) {
        if (at >= 64 && at < AH_TOKEN_FILE_HEADER)
            continue; /* nobody's */
        whole[at] ^= 4;
        write_as("damaged", whole, length);
        int status = ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 65536, 8, 0.1, NULL);
        if (status == AH_OK && at < 16 && at >= 12) { /* no longer ours, but still a token file */
            ah__tokens_close(tokens);
            status = AH_ECORRUPT;
        }
        assert_true(status == AH_ECORRUPT || (status == AH_EINPUT && at < 8));
        whole[at] ^= 4;
    }
    ah__free(whole);
}

/* 16 bits each and nothing else: by name and content, or by word. */
static void nanogpt_files_are_read(void **state)
{
    (void)state;
    uint16_t ids[500];
    struct ah_tokens *tokens = NULL;
    for (size_t i = 0; i < AH_LENGTH(ids); i++)
        ids[i] = (uint16_t)(i * 13 % 600);
    write_as("train.bin", ids, sizeof ids);
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 600, 8, 0.1, NULL));
    assert_string_equal(ah__tokens_info(tokens)->format, "nanogpt");
    assert_int_equal(ah__tokens_info(tokens)->tokens, 500);
    int32_t row[8], targets[8];
    assert_ok(ah__tokens_val_batch(tokens, 0, 1, row, targets));
    assert_int_equal(row[0], 450 * 13 % 600);
    ah__tokens_close(tokens);
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 599, 8, 0.1, NULL), AH_EINPUT, "zero byte");
    assert_fails(ah__tokens_open_as(&tokens, AH_DATA_NANOGPT, path, &ah__tokenizer_bytes, 590, 8, 0.1, NULL), AH_EINPUT,
                 "train.bin: token 46: found 598, expected a token below the model's vocab_size 590");
    write_as("train.tok", ids, sizeof ids);
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 600, 8, 0.1, NULL), AH_EINPUT, "zero byte");
    assert_ok(ah__tokens_open_as(&tokens, AH_DATA_NANOGPT, path, &ah__tokenizer_bytes, 600, 8, 0.1, NULL));
    ah__tokens_close(tokens);
    write_as("odd.bin", ids, sizeof ids - 1);
    assert_fails(ah__tokens_open_as(&tokens, AH_DATA_NANOGPT, path, &ah__tokenizer_bytes, 600, 8, 0.1, NULL), AH_EINPUT,
                 "found 999 bytes, expected an even number");
}

AH_TEST_SUITE("io/examples", cmocka_unit_test(examples_are_sequences), cmocka_unit_test(documents_follow_one_another),
              cmocka_unit_test(written_token_files_are_read), cmocka_unit_test(damaged_token_files_are_refused),
              cmocka_unit_test(nanogpt_files_are_read))
