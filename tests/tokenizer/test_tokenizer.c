#include "tokenizer/tokenizer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/tokens.h"
#include "test.h"

static void bytes_there_and_back(void **state)
{
    const struct ah_tokenizer *tokenizer;
    const char text[] = "a\0\xff\n";
    int32_t *ids;
    int64_t count;
    char *back;
    size_t length;
    assert_ok(ah__tokenizer_open(&tokenizer, NULL));
    assert_string_equal(tokenizer->name, "byte-level");
    assert_int_equal(tokenizer->vocab_size, 256);
    assert_ok(tokenizer->encode(&ids, &count, tokenizer, text, 4));
    assert_int_equal(count, 4);
    assert_memory_equal(ids, ((int32_t[]){'a', 0, 255, '\n'}), 4 * sizeof *ids);
    assert_ok(tokenizer->decode(&back, &length, tokenizer, ids, count));
    assert_int_equal(length, 4);
    assert_memory_equal(back, text, 5);
    ah__free(back);
    assert_ok(tokenizer->decode(&back, &length, tokenizer, ids, 0));
    assert_int_equal(length, 0);
    ah__free(back);
    ids[2] = 256;
    assert_fails(tokenizer->decode(&back, &length, tokenizer, ids, count), AH_EINPUT,
                 "token 2: found 256, expected below");
    ids[2] = -1;
    assert_fails(tokenizer->decode(&back, &length, tokenizer, ids, count), AH_EINPUT, "token 2: found -1");
    ah__free(ids);
    ah__tokenizer_close(tokenizer);
    ah__tokenizer_close(NULL);
}

static void a_folder_that_says_nothing_has_bytes(void **state)
{
    const struct ah_tokenizer *tokenizer;
    assert_ok(ah__tokenizer_open(&tokenizer, ah_test_folder()));
    assert_ptr_equal(tokenizer, &ah__tokenizer_bytes);
}

/* ---- a tokenizer whose ids are no bytes: two letters are one token ----------------------------------------------- */

static int pairs_encode(int32_t **ids, int64_t *count, const struct ah_tokenizer *tokenizer, const char *text,
                        size_t length)
{
    if (length % 2)
        return ah__fail(AH_EINPUT, "found an odd number of bytes");
    AH_TRY(ah__new(ids, length / 2, sizeof **ids));
    for (size_t i = 0; i < length / 2; i++)
        (*ids)[i] = 1000 * (text[2 * i] - 'a') + (text[2 * i + 1] - 'a');
    *count = (int64_t)(length / 2);
    return AH_OK;
}

static const struct ah_tokenizer pairs = {
    .name = "pairs", .unit = "pair", .vocab_size = 25026, .signature = 5, .encode = pairs_encode};

static void text_goes_through_its_tokenizer(void **state)
{
    char path[300];
    struct ah_tokens *tokens;
    int32_t ids[2], targets[2];
    snprintf(path, sizeof path, "%s/text", ah_test_folder());
    assert_ok(ah__file_write(path, "aabazzcb", 8));
    assert_ok(ah__tokens_open(&tokens, path, &pairs, 25026, 2, 0, NULL));
    assert_int_equal(ah__tokens_info(tokens)->tokens, 4);
    assert_true(ah__tokens_info(tokens)->text);
    ah__tokens_val_batch(tokens, 0, 1, &(struct ah_batch){ids, targets, NULL});
    assert_memory_equal(ids, ((int32_t[]){0, 1000}), sizeof ids);
    assert_memory_equal(targets, ((int32_t[]){1000, 25025}), sizeof targets);
    uint64_t signature = ah__tokens_info(tokens)->signature;
    ah__tokens_close(tokens);
    assert_ok(ah__tokens_open(&tokens, path, &ah__tokenizer_bytes, 256, 2, 0, NULL));
    assert_int_equal(ah__tokens_info(tokens)->tokens, 8);
    assert_true(ah__tokens_info(tokens)->signature != signature);
    ah__tokens_close(tokens);
    assert_fails(ah__tokens_open(&tokens, path, &pairs, 2000, 2, 0, NULL), AH_EINPUT,
                 "text: pair 2: found 25025, expected a token below the model's vocab_size 2000");
    assert_ok(ah__file_write(path, "abc", 3));
    assert_fails(ah__tokens_open(&tokens, path, &pairs, 25026, 2, 0, NULL), AH_EINPUT,
                 "text: found an odd number of bytes");
}

/* Whoever has one beside the model wants no bytes. */
static void a_tokenizer_that_is_not_read_is_refused(void **state)
{
    static const char *const names[] = {"tekken.json", "vocab.txt", "tokenizer.model.v3"};
    static const char *const makers[] = {"by transformers.PreTrainedTokenizerFast.from_pretrained(FOLDER)",
                                         "by AutoTokenizer.from_pretrained(FOLDER)",
                                         "by AutoTokenizer.from_pretrained(FOLDER)"};
    const struct ah_tokenizer *tokenizer;
    char folder[256];
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[300];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_ok(ah__file_write(path, "x", 1));
        assert_fails(ah__tokenizer_open(&tokenizer, folder), AH_EINPUT,
                     "found a tokenizer of a kind that is not read, expected tokenizer.json");
        assert_fails(ah__tokenizer_open(&tokenizer, folder), AH_EINPUT, makers[i]);
        assert_int_equal(remove(path), 0);
    }
    assert_ok(ah__tokenizer_open(&tokenizer, folder));
    ah__tokenizer_close(tokenizer);
}

AH_TEST_CASES("tokenizer/tokenizer", a_tokenizer_that_is_not_read_is_refused, bytes_there_and_back,
              a_folder_that_says_nothing_has_bytes, text_goes_through_its_tokenizer)
