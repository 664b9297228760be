/* Words that splits make, as the tokenizers library makes them; and their limits. */
#include <string.h>

#include "base/alloc.h"
#include "test.h"
#include "tokenizer/normalize.h"
#include "tokenizer/pretokenize.h"

static int word_add(const char *text, size_t length, void *context)
{
    struct ah_buf *words = context;
    if (words->length)
        ah__buf_add(words, "|", 1);
    ah__buf_add(words, text, length);
    return words->status;
}

/* Patterns that engines other than Oniguruma read in another way, and what becomes of matches of the empty text. */
static const struct {
    const char *pattern;
    enum ah_split_behavior behavior;
    bool invert;
    const char *text, *words;
} rows[] = {
    {"a{2}?", AH_SPLIT_ISOLATED, false, "baab ab", "b|aa|b| |a|b"}, /* (?:a{2})? */
    {"(?:x|y)(?i)a[|]c", AH_SPLIT_ISOLATED, false, "xA|C aC", "xA|C| aC"},
    {"\\pL+", AH_SPLIT_ISOLATED, false, "pLab 12", "pL|ab 12"}, /* no property without braces */
    {"(?i:\xc3\x9f)", AH_SPLIT_ISOLATED, false, "assb", "a|ss|b"},
    {"\\s*", AH_SPLIT_CONTIGUOUS, false, "ab  ab", "a|b|  |a|b"}, /* an empty match parts what stands beside it */
    {"\\s*", AH_SPLIT_MERGED_WITH_NEXT, false, "ab  ab", "a|b|  a|b"},
    {"\\s*", AH_SPLIT_MERGED_WITH_PREVIOUS, false, "ab  ab", "a|b  |a|b"},
    {"\\s*", AH_SPLIT_ISOLATED, false, "ab  ab", "a|b|  |a|b"},
    {"a*", AH_SPLIT_REMOVED, false, "baab", "b|b"},
    {"a*", AH_SPLIT_REMOVED, true, "baab", "aa"},
    {"[a[b]]", AH_SPLIT_ISOLATED, false, "cabc", "c|a|b|c"},
    {"[ab&&[^b]]", AH_SPLIT_ISOLATED, false, "cabc", "c|a|bc"},
    {"a{1,2}+", AH_SPLIT_ISOLATED, false, "caaac", "c|aaa|c"},
    {"a\\b", AH_SPLIT_ISOLATED, false, "aab ba", "aab b|a"},
};

static int split(struct ah_buf *words, const char *pattern, enum ah_split_behavior behavior, bool invert,
                 const char *text, size_t length)
{
    struct ah_pretokenizer pre = {.count = 1};
    pre.steps[0].kind = AH_PRE_SPLIT;
    pre.steps[0].behavior = behavior;
    pre.steps[0].invert = invert;
    *words = (struct ah_buf){0};
    int status = ah__regex_new(&pre.steps[0].regex, pattern, false);
    if (status == AH_OK)
        status = ah__pretokenize(&pre, text, length, true, word_add, words);
    ah__pretokenizer_fini(&pre);
    return status;
}

static void splits(void **state)
{
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        struct ah_buf words;
        assert_ok(split(&words, rows[i].pattern, rows[i].behavior, rows[i].invert, rows[i].text, strlen(rows[i].text)));
        if (strcmp(words.text, rows[i].words) != 0)
            fail_msg("row %d, %s: found %s, expected %s", (int)i, rows[i].pattern, words.text, rows[i].words);
        ah__buf_free(&words);
    }
}

static void flags_before_branches_are_refused(void **state)
{
    static const char *const patterns[] = {"(?:a(?i)b|c)", "(?i)a|b", "x((?i)(a|b)|c)"};
    struct ah_buf words;
    for (size_t i = 0; i < AH_LENGTH(patterns); i++)
        assert_fails(split(&words, patterns[i], AH_SPLIT_ISOLATED, false, "a", 1), AH_EINPUT,
                     "found '(?i)' before '|'");
}

/* A match, and a text of many that are each within the limit, end with a message instead of after hours. */
static void steps_are_bounded(void **state)
{
    enum { LENGTH = 1 << 20 };
    static char text[LENGTH];
    struct ah_buf words;
    memset(text, 'a', LENGTH);
    assert_int_equal(split(&words, "(a+)+b", AH_SPLIT_ISOLATED, false, text, 64), AH_EINPUT);
    assert_non_null(strstr(ah_error(), "too many steps at byte 0"));
    ah__buf_free(&words);
    for (int i = 0; i < LENGTH; i += 18)
        text[i] = 'c'; /* each run of 17 letters takes 2^18 steps and matches nothing */
    assert_int_equal(split(&words, "(a|a)+b|.", AH_SPLIT_ISOLATED, false, text, LENGTH), AH_EINPUT);
    assert_non_null(strstr(ah_error(), "too many steps at byte "));
    ah__buf_free(&words);
}

/* Long runs that every pattern in use passes over with one step back are no reason to refuse a text. */
static void long_runs_pass(void **state)
{
    enum { LENGTH = 1 << 20 };
    static const char pattern[] = "'s| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    static char text[LENGTH];
    for (const char *fill = " a1\n-"; *fill; fill++) {
        struct ah_buf words;
        memset(text, *fill, LENGTH - 1);
        text[LENGTH - 1] = 'z';
        assert_ok(split(&words, pattern, AH_SPLIT_ISOLATED, false, text, LENGTH));
        assert_true(words.length >= LENGTH);
        ah__buf_free(&words);
    }
}

/* Replacements that multiply are refused before they take all memory. */
static void normalizers_are_bounded(void **state)
{
    char thousand[1001];
    memset(thousand, 'a', 1000);
    thousand[1000] = 0;
    struct ah_normal_step steps[4];
    for (int i = 0; i < 4; i++)
        steps[i] = (struct ah_normal_step){.kind = AH_NORMAL_REPLACE, .from = "a", .to = thousand};
    struct ah_buf buffers[2] = {{0}};
    const char *text = "aaaa";
    size_t length = 4;
    struct ah_normalizer normalizer = {.count = 4};
    memcpy(normalizer.steps, steps, sizeof steps);
    assert_fails(ah__normalize(&text, &length, buffers, &normalizer), AH_EINPUT, "normalizer makes over 65792 bytes");
    assert_true(buffers[0].capacity + buffers[1].capacity < 1 << 20);
    ah__buf_free(&buffers[0]);
    ah__buf_free(&buffers[1]);
}

AH_TEST_CASES("tokenizer/pretokenize", splits, flags_before_branches_are_refused, steps_are_bounded, long_runs_pass,
              normalizers_are_bounded)
