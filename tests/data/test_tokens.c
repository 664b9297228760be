#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "data/tokens.h"

static char path[256];

static void text_make(size_t length)
{
    char text[8192];
    snprintf(path, sizeof path, "%s/data", ah_test_folder());
    for (size_t i = 0; i < length; i++)
        text[i] = (char)(i * 7 % 251 ? i * 7 % 251 : 1);
    assert_ok(ah__file_write(path, text, length));
}

/* A token file with `claimed` in its header and `count` tokens 0, 3, 6, ... behind it. */
static void tokens_make(int32_t version, int32_t claimed, int count)
{
    unsigned char file[1024 + 2 * 4096] = {0};
    int32_t header[3] = {20240520, version, claimed};
    memcpy(file, header, sizeof header);
    for (int i = 0; i < count; i++) {
        uint16_t token = (uint16_t)(3 * i);
        memcpy(file + 1024 + 2 * i, &token, 2);
    }
    snprintf(path, sizeof path, "%s/tokens.bin", ah_test_folder());
    assert_ok(ah__file_write(path, file, 1024 + 2 * (size_t)count));
}

static void permutation_is_one(void **state)
{
    for (uint64_t count = 1; count < 200; count++) {
        bool seen[200] = {0};
        for (uint64_t i = 0; i < count; i++) {
            uint64_t to = ah__permute(i, count, 5);
            assert_true(to < count && !seen[to]);
            seen[to] = true;
        }
    }
    int same = 0, fixed = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        same += ah__permute(i, 1000, 1) == ah__permute(i, 1000, 2);
        fixed += ah__permute(i, 1000, 1) == i;
    }
    assert_true(same < 20 && fixed < 20);
    assert_true(ah__permute(7, UINT64_C(1) << 40, 3) < UINT64_C(1) << 40);
}

static void text_splits(void **state)
{
    struct ah_tokens *tokens = NULL;
    text_make(1000);
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 8, 0.1, NULL));
    const struct ah_tokens_info *info = ah__tokens_info(tokens);
    assert_true(info->text && info->held_out);
    assert_int_equal(info->tokens, 1000);
    assert_int_equal(info->val_tokens, 100);
    assert_int_equal(info->train_tokens, 900);
    assert_int_equal(info->train_windows, 112);
    assert_int_equal(info->val_windows, 12);
    ah__tokens_close(tokens);
    ah__tokens_close(NULL);
}

/* Sizes around the point where a held-out part becomes possible. */
static void short_files(void **state)
{
    struct ah_tokens *tokens = NULL;
    text_make(9);
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 8, 0.05, NULL));
    assert_false(ah__tokens_info(tokens)->held_out);
    assert_int_equal(ah__tokens_info(tokens)->train_windows, 1);
    assert_int_equal(ah__tokens_info(tokens)->val_windows, 1);
    ah__tokens_close(tokens);
    text_make(17);
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 8, 0.05, NULL));
    assert_false(ah__tokens_info(tokens)->held_out);
    ah__tokens_close(tokens);
    text_make(18);
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 8, 0.05, NULL));
    assert_true(ah__tokens_info(tokens)->held_out);
    assert_int_equal(ah__tokens_info(tokens)->val_tokens, 9);
    ah__tokens_close(tokens);
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 8, 0, NULL));
    assert_false(ah__tokens_info(tokens)->held_out);
    ah__tokens_close(tokens);
}

/* A table of examples is no running text, unless it is asked for as that. */
static void tables_are_no_text(void **state)
{
    char table[512];
    struct ah_tokens *tokens;
    snprintf(table, sizeof table, "%s/data.csv", ah_test_folder());
    static const char examples[] = "id,instruction,output\n1,a,b\n2,c,d\n", numbers[] = "id,height,width\n1,2,3\n";
    assert_ok(ah__file_write(table, examples, sizeof examples - 1));
    assert_fails(ah__tokens_open(&tokens, table, &ah__tokenizer_bytes, 256, 8, 0, NULL), AH_EINPUT,
                 "data.csv: found a table, expected records of JSON: python3 -c");
    const struct ah_tokens_options as_text = {.seq = 8, .format = AH_DATA_TEXT};
    assert_ok(ah__tokens_open_with(&tokens, table, &ah__tokenizer_bytes, 256, &as_text));
    ah__tokens_close(tokens);
    assert_ok(ah__file_write(table, numbers, sizeof numbers - 1));
    assert_ok(ah__tokens_open(&tokens, table, &ah__tokenizer_bytes, 256, 8, 0, NULL));
    ah__tokens_close(tokens);
}

static void bad_input(void **state)
{
    struct ah_tokens *tokens = NULL;
    assert_fails(ah__tokens_open(&tokens, "/nowhere/x", &ah__tokenizer_bytes, 256, 8, 0.05, NULL), AH_EINPUT,
                 "/nowhere/x: cannot open: No such file");
    text_make(0);
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 8, 0.05, NULL), AH_EINPUT,
                 "data: found an empty file, expected data");
    text_make(8);
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 8, 0.05, NULL), AH_EINPUT,
                 "data: found 8 tokens, expected at least 9 (one sequence of 8 and its target)");
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, INT64_MAX - 1, 0.05, NULL), AH_EINPUT,
                 "data: found 8 tokens, expected at least");
    text_make(100);
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 245, 8, 0.05, NULL), AH_EINPUT,
                 "data: byte 35: found 245, expected a token below the model's vocab_size 245");
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 0, 0.05, NULL), AH_EINPUT, "found seq 0");
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, INT64_MAX, 0.05, NULL), AH_EINPUT,
                 "found seq 9223372036854775807");
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 8, 0.9, NULL), AH_EINPUT,
                 "validation part 0.9");
    tokens_make(1, 100, 100);
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 100, 8, 0.05, NULL), AH_EINPUT,
                 "tokens.bin: token 34: found 102, expected a token below the model's vocab_size 100");
    tokens_make(7, 100, 100);
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 300, 8, 0.05, NULL), AH_EINPUT,
                 "found token file version 7, expected 1");
    tokens_make(1, 101, 100);
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 300, 8, 0.05, NULL), AH_ECORRUPT,
                 "tokens.bin: found 200 bytes of tokens, expected 2 for each of 101 tokens");
    tokens_make(1, -1, 100);
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 300, 8, 0.05, NULL), AH_ECORRUPT, "of -1 tokens");
    tokens_make(1, 0, 0);
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 300, 8, 0.05, NULL), AH_EINPUT,
                 "found 0 tokens, expected at least 9");
    assert_ok(ah__file_write(path, "\x88\xd8\x34\x01more", 8));
    assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 300, 8, 0.05, NULL), AH_ECORRUPT,
                 "found 8 bytes, expected a token file's header");
    assert_null(tokens);
}

static void token_file_batches(void **state)
{
    struct ah_tokens *tokens = NULL;
    int32_t ids[16], targets[16];
    tokens_make(1, 400, 400);
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 1200, 8, 0.05, NULL));
    assert_false(ah__tokens_info(tokens)->text);
    assert_int_equal(ah__tokens_info(tokens)->tokens, 400);
    ah__tokens_val_batch(tokens, 0, 2, &(struct ah_batch){ids, targets, NULL});
    for (int i = 0; i < 16; i++) {
        assert_int_equal(ids[i], 3 * (380 + i));
        assert_int_equal(targets[i], 3 * (381 + i));
    }
    /* two windows in 20 tokens: the first again */
    ah__tokens_val_batch(tokens, 1, 2, &(struct ah_batch){ids, targets, NULL});
    assert_int_equal(ids[0], 3 * 380);
    ah__tokens_close(tokens);
}

/* Over two epochs and batches that straddle their border: each window twice, no token of the validation part, shifted
 * targets. */
static void epochs_cover_the_training_part(void **state)
{
    enum { SEQ = 8, BATCH = 3, WINDOWS = 47 };
    struct ah_tokens *tokens = NULL;
    int32_t ids[BATCH * SEQ], targets[BATCH * SEQ], again[BATCH * SEQ], unused[BATCH * SEQ];
    int seen[2][WINDOWS] = {0}, order_changed = 0, first[WINDOWS];
    tokens_make(1, 400, 400);
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 1200, SEQ, 0.05, NULL));
    assert_int_equal(ah__tokens_info(tokens)->train_windows, WINDOWS);
    for (int64_t sample = 0; sample < 2 * WINDOWS; sample++) {
        int row = (int)(sample % BATCH) * SEQ;
        ah__tokens_batch(tokens, sample / BATCH, BATCH, 9, &(struct ah_batch){ids, targets, NULL});
        int window = ids[row] / 3 / SEQ;
        assert_true(ids[row] == 3 * SEQ * window && window < WINDOWS);
        for (int i = 0; i < SEQ; i++) {
            assert_int_equal(ids[row + i], 3 * (SEQ * window + i));
            assert_int_equal(targets[row + i], ids[row + i] + 3);
        }
        seen[sample / WINDOWS][window]++;
        if (sample < WINDOWS)
            first[sample] = window;
        else
            order_changed += first[sample - WINDOWS] != window;
    }
    for (int i = 0; i < WINDOWS; i++)
        assert_true(seen[0][i] == 1 && seen[1][i] == 1);
    assert_true(order_changed > WINDOWS / 2);
    /* A batch is a function of its number alone, and of the seed. */
    ah__tokens_batch(tokens, 5, BATCH, 9, &(struct ah_batch){ids, targets, NULL});
    ah__tokens_batch(tokens, 11, BATCH, 9, &(struct ah_batch){unused, targets, NULL});
    ah__tokens_batch(tokens, 5, BATCH, 9, &(struct ah_batch){again, targets, NULL});
    assert_memory_equal(ids, again, sizeof ids);
    ah__tokens_batch(tokens, 5, BATCH, 10, &(struct ah_batch){again, targets, NULL});
    assert_memory_not_equal(ids, again, sizeof ids);
    ah__tokens_close(tokens);
}

static void signature_tells_files_apart(void **state)
{
    struct ah_tokens *tokens = NULL;
    text_make(1000);
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 8, 0.05, NULL));
    uint64_t first = ah__tokens_info(tokens)->signature;
    ah__tokens_close(tokens);
    text_make(1001);
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 8, 0.05, NULL));
    assert_true(ah__tokens_info(tokens)->signature != first);
    ah__tokens_close(tokens);
    text_make(1000);
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 16, 0.1, NULL));
    assert_true(ah__tokens_info(tokens)->signature == first);
    ah__tokens_close(tokens);
}

/* Wherever they differ, however large they are. */
static void every_byte_counts(void **state)
{
    enum { LENGTH = 4 << 20 };
    struct ah_tokens *tokens = NULL;
    char *text = malloc(LENGTH);
    uint64_t first = 0;
    assert_non_null(text);
    memset(text, 'x', LENGTH);
    snprintf(path, sizeof path, "%s/data", ah_test_folder());
    for (int i = 0; i < 3; i++) {
        text[LENGTH / 3 + 12345] = (char)('x' + i % 2);
        assert_ok(ah__file_write(path, text, LENGTH));
        assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 8, 0.05, NULL));
        uint64_t signature = ah__tokens_info(tokens)->signature;
        first = i == 0 ? signature : first;
        assert_int_equal(signature == first, i % 2 == 0);
        ah__tokens_close(tokens);
    }
    free(text);
}

/* What would be learned as text although it is none. */
static void no_text_is_refused(void **state)
{
    static const struct {
        const char *name, *start, *words;
        size_t length;
    } cases[] = {
        {"a.xz", "\xfd\x37zXZ and so on", "found data packed by xz", 15},
        {"train.bin", "\xc6\x01\x45\x00\x17\x02 and so on", "found a zero byte at 3", 16},
        {"utf16.txt",
         "\xff\xfe"
         "a\x00"
         "b\x00 and so on",
         "found text in UTF-16, expected text or a token file: iconv", 16},
        {"a.zip", "PK\x03\x04 and so on", "found data packed by zip", 14},
        {"a.txt", "%PDF-1.7 and so on", "found a PDF document, expected text", 18},
        {"a.safetensors", "\x40\0\0\0\0\0\0\0{\"a\": and so on", "found weights (safetensors), expected text", 24},
        {"model.gguf", "GGUF\x03\0\0\0 and so on", "found a model in GGUF, expected text", 18},
        {"a.npy", "\x93NUMPY\x01\0 and so on", "found an array of NumPy, expected text", 18},
        {"a.json", "[]", "a.json: found no record, expected documents or examples", 2},
        {"a.jsonl", "{\"input_ids\": [1, 2], \"labels\": [-100, -100]}\n",
         "found 1 example of which nothing is learned, since labels leave all out", 46},
        {"a.jsonl", "{\"story\": \"x\"}\n", "line 1: found an object with the keys story, expected text", 15},
    };
    struct ah_tokens *tokens = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", ah_test_folder(), cases[i].name);
        assert_ok(ah__file_write(path, cases[i].start, cases[i].length));
        assert_fails(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 2, 0.05, NULL), AH_EINPUT,
                     cases[i].words);
    }
    assert_null(tokens);
}

/* A file that is the very one of an earlier opening is not read whole again; any other is. */
static void what_is_known_is_not_read_again(void **state)
{
    struct ah_tokens *tokens = NULL;
    text_make(1000);
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 8, 0.1, NULL));
    struct ah_tokens_info first = *ah__tokens_info(tokens);
    ah__tokens_close(tokens);
    struct ah_tokens_known known = {first.stamp, first.signature + 1, first.tokenizer, 256};
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 8, 0.1, &known));
    assert_true(ah__tokens_info(tokens)->signature == known.signature); /* a lie tells that it was believed */
    ah__tokens_close(tokens);
    struct ah_tokens_known others[] = {known, known, known, known, known};
    others[0].stamp.bytes++;
    others[1].stamp.modified_ns++;
    others[2].stamp.inode++;
    others[3].tokenizer++;
    others[4].vocab_size = 257;
    for (size_t i = 0; i < AH_LENGTH(others); i++) {
        assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 8, 0.1, &others[i]));
        assert_true(ah__tokens_info(tokens)->signature == first.signature);
        ah__tokens_close(tokens);
    }
}

/* Whatever happens to the file while it is open: a failure, never a token that is none of its vocabulary. */
static void a_file_that_changes_fails(void **state)
{
    int32_t ids[8], targets[8];
    struct ah_tokens *tokens = NULL;
    text_make(1000);
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 8, 0.1, NULL));
    assert_int_equal(truncate(path, 500), 0);
    int failed = 0;
    for (int64_t n = 0; n < ah__tokens_info(tokens)->train_windows; n++)
        failed += ah__tokens_batch(tokens, n, 1, 1, &(struct ah_batch){ids, targets, NULL}) == AH_EIO;
    assert_in_range(failed, 40, 60); /* of 112 windows in the first 900 bytes */
    assert_fails(ah__tokens_val_batch(tokens, 0, 1, &(struct ah_batch){ids, targets, NULL}), AH_EIO,
                 "cut short since it was opened");
    ah__tokens_close(tokens);
}

AH_TEST_CASES("data/tokens", what_is_known_is_not_read_again, a_file_that_changes_fails, permutation_is_one,
              text_splits, short_files, tables_are_no_text, bad_input, token_file_batches,
              epochs_cover_the_training_part, signature_tells_files_apart, every_byte_counts, no_text_is_refused)
