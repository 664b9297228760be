/* Tokenizers that are made to be slow or to grow: each limit is a total and says so, and what is within it is quick. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/file.h"
#include "test.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/tokenizer.h"

enum { LETTERS = 1 << 18 };

/* The letters "a" and "b", and what the parts say. */
static int open_with(const struct ah_tokenizer **out, const char *vocab, const char *added, const char *decoder)
{
    char path[512];
    const char *folder = ah_test_folder();
    struct ah_buf text = {0};
    ah__buf_printf(&text,
                   "{\"added_tokens\": [%s], \"decoder\": %s, \"model\": {\"type\": \"BPE\", \"vocab\": {%s}, "
                   "\"merges\": []}}",
                   added, decoder, vocab);
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    assert_ok(ah__file_write(path, text.text, text.length));
    ah__buf_free(&text);
    return ah__tokenizer_open(out, folder);
}

static void added_add(struct ah_buf *to, int id, const char *content, bool normalized)
{
    ah__buf_printf(to,
                   "%s{\"id\": %d, \"content\": \"%s\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
                   "\"normalized\": %s, \"special\": false}",
                   to->length ? ", " : "", id, content, normalized ? "true" : "false");
}

static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* A decoder that makes much of one token. */
static void one_token_grows(void **state)
{
    static const char grows[] = "{\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, \"content\": "
                                "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}";
    struct ah_buf decoder = {0};
    const struct ah_tokenizer *tokenizer = NULL;
    for (int steps = 1; steps <= 5; steps++) {
        decoder.length = 0;
        ah__buf_printf(&decoder, "{\"type\": \"Sequence\", \"decoders\": [");
        for (int i = 0; i < steps; i++)
            ah__buf_printf(&decoder, "%s%s", i ? ", " : "", grows);
        ah__buf_printf(&decoder, "]}");
        int status = open_with(&tokenizer, "\"a\": 0, \"b\": 1", "", decoder.text);
        if (steps <= 4) { /* 2^20 bytes are within it */
            char *text;
            size_t length;
            assert_ok(status);
            assert_ok(tokenizer->decode(&text, &length, tokenizer, (const int32_t[]){0, 1}, 2));
            assert_int_equal(length, ((size_t)1 << 5 * steps) + 1);
            ah__free(text);
            ah__tokenizer_close(tokenizer);
        } else {
            assert_fails(status, AH_EINPUT, "tokenizer.json: the tokenizer's decoder makes over 1048576 bytes of one");
        }
    }
    ah__buf_free(&decoder);
}

/* Each token is within the limit, all together are not. */
static void all_tokens_grow(void **state)
{
    static const char decoder[] =
        "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, "
        "\"content\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}, {\"type\": \"Replace\", \"pattern\": {\"String\": "
        "\"a\"}, \"content\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}]}";
    enum { TOKENS = 300, LETTERS_EACH = 1000 };
    struct ah_buf vocab = {0};
    const struct ah_tokenizer *tokenizer = NULL;
    static char many[LETTERS_EACH + 1];
    memset(many, 'a', LETTERS_EACH);
    for (int i = 0; i < TOKENS; i++)
        ah__buf_printf(&vocab, "%s\"%s%d\": %d", i ? ", " : "", many, i, i);
    assert_fails(open_with(&tokenizer, vocab.text, "", decoder), AH_EINPUT,
                 "tokenizer.json: the tokenizer's decoder makes over 268435456 bytes of all tokens");
    ah__buf_free(&vocab);
}

static void long_added_tokens_are_refused(void **state)
{
    static char content[AH_ADDED_TOKEN_BYTES + 2];
    const struct ah_tokenizer *tokenizer = NULL;
    for (int normalized = 0; normalized < 2; normalized++) {
        struct ah_buf added = {0};
        memset(content, 'a', AH_ADDED_TOKEN_BYTES + 1);
        added_add(&added, 2, content, normalized);
        assert_fails(open_with(&tokenizer, "\"a\": 0, \"b\": 1", added.text, "null"), AH_EINPUT,
                     "tokenizer.json: added token 2: found 1025 bytes, expected at most 1024");
        ah__buf_free(&added);
        content[AH_ADDED_TOKEN_BYTES] = 0;
        added_add(&added, 2, content, normalized);
        assert_ok(open_with(&tokenizer, "\"a\": 0, \"b\": 1", added.text, "null"));
        int32_t *ids;
        int64_t count;
        assert_ok(tokenizer->encode(&ids, &count, tokenizer, content, AH_ADDED_TOKEN_BYTES));
        assert_int_equal(count, 1);
        assert_int_equal(ids[0], 2);
        ah__free(ids);
        ah__tokenizer_close(tokenizer);
        ah__buf_free(&added);
    }
}

/* The longest token but for its last letter at every place of a text: found nowhere, in seconds. */
static void almost_tokens_take_seconds(void **state)
{
    static char content[AH_ADDED_TOKEN_BYTES + 1], text[LETTERS];
    struct ah_buf added = {0};
    const struct ah_tokenizer *tokenizer;
    int32_t *ids;
    int64_t count;
    memset(content, 'a', AH_ADDED_TOKEN_BYTES - 1);
    content[AH_ADDED_TOKEN_BYTES - 1] = 'b';
    memset(text, 'a', LETTERS);
    added_add(&added, 2, content, false);
    assert_ok(open_with(&tokenizer, "\"a\": 0, \"b\": 1", added.text, "null"));
    double from = cpu_seconds();
    assert_ok(tokenizer->encode(&ids, &count, tokenizer, text, LETTERS));
    print_message("%d letters: %.2f s\n", LETTERS, cpu_seconds() - from);
    assert_int_equal(count, LETTERS);
    ah__free(ids);
    ah__tokenizer_close(tokenizer);
    ah__buf_free(&added);
}

/* As many as a large file has: each costs about the same. Some twice, which the first time counts. */
static void many_added_tokens_are_quick(void **state)
{
    enum { TOKENS = 100000 };
    struct ah_buf added = {0};
    const struct ah_tokenizer *tokenizer;
    int32_t *ids;
    int64_t count;
    char content[32];
    for (int i = 0; i < TOKENS; i++) {
        snprintf(content, sizeof content, "<%d>", i);
        added_add(&added, 2 + i, content, i % 2 == 0);
    }
    added_add(&added, 2 + 7, "<7>", false);
    double from = cpu_seconds();
    assert_ok(open_with(&tokenizer, "\"a\": 0, \"b\": 1", added.text, "null"));
    print_message("%d added tokens: %.2f s\n", TOKENS, cpu_seconds() - from);
    assert_ok(tokenizer->encode(&ids, &count, tokenizer, "a<99999>b<7>", 12));
    assert_int_equal(count, 4);
    assert_int_equal(ids[1], 2 + 99999);
    assert_int_equal(ids[3], 2 + 7);
    ah__free(ids);
    ah__tokenizer_close(tokenizer);
    added_add(&added, 2 + 7, "<other>", false);
    assert_fails(open_with(&tokenizer, "\"a\": 0, \"b\": 1", added.text, "null"), AH_EINPUT,
                 "found id 9 for '<7>' and '<other>', expected one token of an id");
    ah__buf_free(&added);
}

static void no_text_has_no_tokens(void **state)
{
    const struct ah_tokenizer *tokenizer;
    int32_t *ids;
    int64_t count;
    char *text;
    size_t length;
    assert_ok(open_with(&tokenizer, "\"a\": 0, \"b\": 1", "", "null"));
    assert_ok(tokenizer->encode(&ids, &count, tokenizer, "", 0));
    assert_int_equal(count, 0);
    assert_ok(tokenizer->decode(&text, &length, tokenizer, ids, 0));
    assert_int_equal(length, 0);
    assert_string_equal(text, "");
    ah__free(text);
    ah__free(ids);
    ah__tokenizer_close(tokenizer);
}

AH_TEST_CASES("tokenizer/limits", one_token_grows, all_tokens_grow, long_added_tokens_are_refused,
              almost_tokens_take_seconds, many_added_tokens_are_quick, no_text_has_no_tokens)
