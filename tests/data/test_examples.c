/* Examples of prompt and completion, documents in memory, and token files of every width. */
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/token_file.h"
#include "data/tokens.h"
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

static int open_as(struct ah_tokens **tokens, enum ah_data_format format, const char *file, int64_t vocab_size,
                   int64_t seq, double val_fraction)
{
    const struct ah_tokens_options options = {.format = format, .seq = seq, .val_fraction = val_fraction};
    return ah__tokens_open_with(tokens, file, &ah__tokenizer_bytes, vocab_size, &options);
}

/* One example in each sequence: '_' stands for a target that does not count, '.' for the end. */
static void examples_are_sequences(void **state)
{
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
        assert_ok(ah__tokens_val_batch(tokens, n, 1, &(struct ah_batch){ids, targets, NULL}));
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
        assert_ok(ah__tokens_batch(tokens, n, 1, 5, &(struct ah_batch){ids, targets, NULL}));
        seen |= ids[0] == 'a' ? 1 : ids[0] == 'x' ? 2 : 4;
    }
    assert_int_equal(seen, 3);
    assert_ok(ah__tokens_val_batch(tokens, 0, 1, &(struct ah_batch){ids, targets, NULL}));
    expect_row(ids, rows[2].ids, 8, SEQ, 0);
    ah__tokens_close(tokens);
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 110, SEQ, 0, NULL), AH_EINPUT,
                 "pairs.jsonl: line 2: token 0: found 120, expected one below the model's vocab_size 110");
    static const char none[] = "{\"prompt\": \"abcdefghijk\", \"completion\": \"k\"}";
    write_as("none.jsonl", none, sizeof none - 1);
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, SEQ, 0, NULL), AH_EINPUT,
                 "found no example with room for what is learned of it in 8 tokens");
}

/* Byte-level, but a prompt begins with 1, and documents end with 2. */
static int encode_with_lead(int32_t **ids, int64_t *count, const struct ah_tokenizer *tokenizer, const char *text,
                            size_t length)
{
    int32_t *plain;
    AH_TRY(tokenizer->encode(&plain, count, tokenizer, text, length));
    int status = ah__new(ids, (size_t)*count + 1, sizeof **ids);
    if (status == AH_OK) {
        (*ids)[0] = 1;
        memcpy(*ids + 1, plain, (size_t)*count * sizeof **ids);
        ++*count;
    }
    ah__free(plain);
    return status;
}

static void examples_begin_and_end_as_the_tokenizer_says(void **state)
{
    enum { SEQ = 8 };
    static const char text[] = "{\"prompt\": \"ab\", \"completion\": \"cde\"}\n";
    static const int32_t expected_ids[SEQ] = {1, 'a', 'b', 'c', 'd', 'e', 2, 0};
    static const int32_t no = AH_TARGET_IGNORED;
    const int32_t expected_targets[SEQ] = {no, no, 'c', 'd', 'e', 2, no, no};
    struct ah_tokenizer tokenizer = ah__tokenizer_bytes;
    struct ah_tokens *tokens = NULL;
    int32_t ids[SEQ], targets[SEQ];
    tokenizer.has_eos = true;
    tokenizer.eos = 2;
    tokenizer.encode_prompt = encode_with_lead;
    write_as("lead.jsonl", text, sizeof text - 1);
    assert_ok(ah__tokens_open(&tokens, path, &tokenizer, 256, SEQ, 0, NULL));
    assert_ok(ah__tokens_val_batch(tokens, 0, 1, &(struct ah_batch){ids, targets, NULL}));
    assert_memory_equal(ids, expected_ids, sizeof ids);
    assert_memory_equal(targets, expected_targets, sizeof targets);
    ah__tokens_close(tokens);
}

static void open_packed(struct ah_tokens **tokens, int64_t seq, double val_fraction)
{
    const struct ah_tokens_options options = {.pack = true, .seq = seq, .val_fraction = val_fraction};
    assert_ok(ah__tokens_open_with(tokens, path, &ah__tokenizer_bytes, 256, &options));
}

/* The longest first, then what still fits; '_' as above, positions as digits. */
static void examples_are_packed(void **state)
{
    enum { SEQ = 8 };
    static const char text[] = "{\"prompt\": \"a\", \"completion\": \"bc\"}\n"
                               "{\"prompt\": \"defg\", \"completion\": \"h\"}\n"
                               "{\"prompt\": \"i\", \"completion\": \"jkl\"}\n"
                               "{\"prompt\": \"\", \"completion\": \"m\"}\n"
                               "{\"prompt\": \"n\", \"completion\": \"o\"}\n";
    static const struct {
        const char *ids, *targets;
        int32_t positions[SEQ];
    } rows[] = {{"defghabc", "___h.bc.", {0, 1, 2, 3, 4, 0, 1, 2}}, {"ijklm", "jkl..___", {0, 1, 2, 3, 0, 0, 0, 0}}};
    struct ah_tokens *tokens = NULL;
    int32_t ids[SEQ], targets[SEQ], positions[SEQ];
    write_as("pack.jsonl", text, sizeof text - 1);
    open_packed(&tokens, SEQ, 0.2);
    const struct ah_tokens_info *info = ah__tokens_info(tokens);
    assert_true(info->train_windows == 2 && info->val_windows == 1 && info->examples == 5 && info->held_out);
    int seen = 0;
    for (int n = 0; n < 2; n++) {
        assert_ok(ah__tokens_batch(tokens, n, 1, 3, &(struct ah_batch){ids, targets, positions}));
        int row = ids[0] == 'd' ? 0 : 1;
        seen |= 1 << row;
        expect_row(ids, rows[row].ids, (int)strlen(rows[row].ids), SEQ, 0);
        expect_row(targets, rows[row].targets, SEQ, SEQ, AH_TARGET_IGNORED);
        assert_memory_equal(positions, rows[row].positions, sizeof positions);
    }
    assert_int_equal(seen, 3);
    assert_ok(ah__tokens_val_batch(tokens, 0, 1, &(struct ah_batch){ids, targets, positions}));
    expect_row(ids, "no", 2, SEQ, 0);
    ah__tokens_close(tokens);
    open_packed(&tokens, SEQ, 0); /* nothing is held out: all of them for both */
    info = ah__tokens_info(tokens);
    assert_true(info->train_windows == 2 && info->val_windows == 2 && !info->held_out);
    assert_ok(ah__tokens_val_batch(tokens, 1, 1, &(struct ah_batch){ids, targets, positions}));
    expect_row(ids, "ijklnom", 7, SEQ, 0);
    ah__tokens_close(tokens);
}

/* The end that the tokenizer says, else the one of byte-level tokens. */
static void documents_end_where_the_tokenizer_says(void **state)
{
    static const char text[] = "{\"text\": \"ab\"}\n{\"text\": \"cdefgh\"}\n";
    static const int32_t ends[9] = {'a', 'b', 2, 'c', 'd', 'e', 'f', 'g', 'h'},
                         expected[9] = {0, 1, 2, 0, 1, 2, 3, 4, 5};
    const struct ah_tokens_options packed = {.pack = true, .seq = 9};
    struct ah_tokenizer tokenizer = ah__tokenizer_bytes;
    struct ah_tokens *tokens = NULL;
    int32_t ids[9], targets[9], positions[9];
    tokenizer.has_eos = true;
    tokenizer.eos = 2;
    write_as("ends.jsonl", text, sizeof text - 1);
    assert_ok(ah__tokens_open_with(&tokens, path, &tokenizer, 256, &packed));
    assert_ok(ah__tokens_batch(tokens, 0, 1, 1, &(struct ah_batch){ids, targets, positions}));
    assert_memory_equal(ids, ends, sizeof ends);
    assert_memory_equal(positions, expected, sizeof expected);
    assert_int_equal(targets[2], AH_TARGET_IGNORED);
    ah__tokens_close(tokens);
}

/* A tokenizer that says nothing of ends: documents need one, a single text does not. */
static void no_end_is_refused(void **state)
{
    static const char text[] = "{\"text\": \"abc\"}\n";
    struct ah_tokenizer tokenizer = ah__tokenizer_bytes;
    struct ah_tokens *tokens = NULL;
    tokenizer.text_is_ids = false;
    write_as("noend.jsonl", text, sizeof text - 1);
    assert_fails(ah__tokens_open(&tokens, path, &tokenizer, 256, 2, 0, NULL), AH_EINPUT,
                 "found no token that ends a text in tokenizer_config.json, special_tokens_map.json");
    assert_ok(ah__tokenizer_end_set(&tokenizer, "7"));
    assert_ok(ah__tokens_open(&tokens, path, &tokenizer, 256, 2, 0, NULL));
    int32_t ids[4];
    assert_ok(ah__tokens_read(tokens, 0, 4, ids));
    assert_int_equal(ids[3], 55); /* a token of that text goes before an id */
    ah__tokens_close(tokens);
    write_as("noend.txt", "abcd", 4);
    tokenizer.has_eos = false;
    assert_ok(ah__tokens_open(&tokens, path, &tokenizer, 256, 2, 0, NULL));
    ah__tokens_close(tokens);
}

static void packed_documents_keep_apart(void **state)
{
    static const char text[] = "{\"text\": \"ab\"}\n{\"text\": \"cdefgh\"}\n";
    static const int32_t expected[9] = {0, 1, 2, 0, 1, 2, 3, 4, 5};
    const struct ah_tokens_options packed = {.pack = true, .seq = 9};
    struct ah_tokens *tokens = NULL;
    int32_t ids[9], targets[9], positions[9];
    write_as("texts.jsonl", text, sizeof text - 1);
    open_packed(&tokens, 9, 0);
    assert_ok(ah__tokens_batch(tokens, 0, 1, 1, &(struct ah_batch){ids, targets, positions}));
    expect_row(ids, "ab.cdefgh", 9, 9, 0);
    expect_row(targets, "b._defgh.", 9, 9, 0);
    assert_memory_equal(positions, expected, sizeof positions);
    ah__tokens_close(tokens);
    write_as("one.txt", "just one text", 13);
    assert_fails(ah__tokens_open_with(&tokens, path, &ah__tokenizer_bytes, 256, &packed), AH_EINPUT,
                 "one.txt: found one text, expected documents or examples to pack");
}

static void documents_follow_one_another(void **state)
{
    static const char text[] = "{\"text\": \"ab\"}\n{\"text\": \"cdefgh\"}\n";
    struct ah_tokens *tokens = NULL;
    int32_t ids[9], targets[9];
    write_as("texts.jsonl", text, sizeof text - 1);
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 9, 0, NULL));
    assert_string_equal(ah__tokens_info(tokens)->format, "documents");
    assert_int_equal(ah__tokens_info(tokens)->tokens, 10);
    assert_true(ah__tokens_info(tokens)->memory_bytes >= 40);
    assert_ok(ah__tokens_batch(tokens, 0, 1, 1, &(struct ah_batch){ids, targets, NULL}));
    expect_row(ids, "ab.cdefgh", 9, 9, 0);
    expect_row(targets, "b.cdefgh.", 9, 9, 0);
    ah__tokens_close(tokens);
    assert_fails(open_as(&tokens, AH_DATA_LLMC, path, 256, 9, 0), AH_EINPUT,
                 "found no token file's header, expected one of llm.c");
    assert_ok(open_as(&tokens, AH_DATA_TEXT, path, 256, 9, 0));
    assert_int_equal(ah__tokens_info(tokens)->tokens, sizeof text - 1);
    ah__tokens_close(tokens);
    assert_fails(open_as(&tokens, AH_DATA_NANOGPT, ah_test_folder(), 256, 9, 0), AH_EINPUT,
                 "found a folder or pipe, expected a file of tokens");
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

/* Our files have documents that end as their tokenizer says; of others that must be known. */
static void token_files_are_packed_where_ends_are_known(void **state)
{
    struct ah_tokens *tokens = NULL;
    uint16_t ids[100];
    token_file_write(2, 100, 30, 700);
    const struct ah_tokens_options packed = {.pack = true, .seq = 8, .val_fraction = 0.1};
    assert_ok(ah__tokens_open_with(&tokens, path, &ah__tokenizer_bytes, 700, &packed));
    ah__tokens_close(tokens);
    for (size_t i = 0; i < AH_LENGTH(ids); i++)
        ids[i] = (uint16_t)(i * 13 % 600);
    write_as("packed.bin", ids, sizeof ids);
    assert_fails(ah__tokens_open_with(&tokens, path, &ah__tokenizer_bytes, 600, &packed), AH_EINPUT,
                 "packed.bin: found no tokenizer beside the model, expected one to pack by");
    struct ah_tokenizer knowing = ah__tokenizer_bytes;
    knowing.has_bos = true;
    assert_ok(ah__tokens_open_with(&tokens, path, &knowing, 600, &packed));
    ah__tokens_close(tokens);
}

static void written_token_files_are_read(void **state)
{
    struct ah_tokens *tokens = NULL;
    int32_t ids[8], targets[8];
    for (int width = 2; width <= 4; width += 2) {
        int32_t scale = width == 4 ? 1000 : 1, vocab = 700 * scale;
        token_file_write(width, 100, 30, vocab);
        assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, vocab, 8, 0.1, NULL));
        const struct ah_tokens_info *info = ah__tokens_info(tokens);
        assert_string_equal(info->format, "llmc");
        assert_true(info->tokens == 100 && info->val_tokens == 30 && info->documents == 3 && info->held_out);
        assert_ok(ah__tokens_val_batch(tokens, 0, 1, &(struct ah_batch){ids, targets, NULL}));
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
    uint16_t ids[500];
    struct ah_tokens *tokens = NULL;
    for (size_t i = 0; i < AH_LENGTH(ids); i++)
        ids[i] = (uint16_t)(i * 13 % 600);
    write_as("train.bin", ids, sizeof ids);
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 600, 8, 0.1, NULL));
    assert_string_equal(ah__tokens_info(tokens)->format, "nanogpt");
    assert_int_equal(ah__tokens_info(tokens)->tokens, 500);
    int32_t row[8], targets[8];
    assert_ok(ah__tokens_val_batch(tokens, 0, 1, &(struct ah_batch){row, targets, NULL}));
    assert_int_equal(row[0], 450 * 13 % 600);
    ah__tokens_close(tokens);
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 599, 8, 0.1, NULL), AH_EINPUT, "zero byte");
    assert_fails(open_as(&tokens, AH_DATA_NANOGPT, path, 590, 8, 0.1), AH_EINPUT,
                 "train.bin: token 46: found 598, expected a token below the model's vocab_size 590");
    write_as("train.tok", ids, sizeof ids);
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 600, 8, 0.1, NULL), AH_EINPUT, "zero byte");
    assert_ok(open_as(&tokens, AH_DATA_NANOGPT, path, 600, 8, 0.1));
    ah__tokens_close(tokens);
    write_as("odd.bin", ids, sizeof ids - 1);
    assert_fails(open_as(&tokens, AH_DATA_NANOGPT, path, 600, 8, 0.1), AH_EINPUT,
                 "found 999 bytes, expected an even number");
}

AH_TEST_CASES("data/examples", no_end_is_refused, examples_are_sequences, examples_begin_and_end_as_the_tokenizer_says,
              examples_are_packed, packed_documents_keep_apart, documents_end_where_the_tokenizer_says,
              documents_follow_one_another, token_files_are_packed_where_ends_are_known, written_token_files_are_read,
              damaged_token_files_are_refused, nanogpt_files_are_read)
