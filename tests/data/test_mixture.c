/* Several files of data mixed: what the text of --data means, whose sample is whose, and shares. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/mixture.h"
#include "data/mixture_parse.h"
#include "test.h"

enum { SEQ = 4 };

static const char *in(const char *name)
{
    static char place[256], paths[8][512];
    static int next;
    if (!place[0])
        snprintf(place, sizeof place, "%s", ah_test_folder());
    next = (next + 1) % 8;
    snprintf(paths[next], sizeof paths[next], "%s/%s", place, name);
    return paths[next];
}

/* `count` windows of bytes: byte `first` + window, four times. */
static const char *make(const char *name, int first, int count)
{
    char text[4096];
    for (int i = 0; i < count * SEQ; i++)
        text[i] = (char)(first + i / SEQ);
    text[count * SEQ] = 1;
    assert_ok(ah__file_write(in(name), text, (size_t)(count * SEQ) + 1));
    return in(name);
}

static const struct ah_tokens_options whole = {.seq = SEQ};

static struct ah_mixture *open(const char *text)
{
    struct ah_mixture *mixture;
    assert_ok(ah__mixture_open(&mixture, text, &ah__tokenizer_bytes, 256, &whole, NULL, 0));
    return mixture;
}

static void refused(const char *text, const char *words)
{
    struct ah_mixture *mixture = NULL;
    assert_fails(ah__mixture_open(&mixture, text, &ah__tokenizer_bytes, 256, &whole, NULL, 0), AH_EINPUT, words);
    assert_null(mixture);
}

/* The first ids of samples from `first` on: whose they are and which window. */
static void samples(int32_t *out, const struct ah_mixture *mixture, int64_t first, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++) {
        int32_t ids[SEQ], targets[SEQ];
        assert_ok(ah__mixture_batch(mixture, first + i, 1, seed, &(struct ah_batch){ids, targets, NULL}));
        out[i] = ids[0];
    }
}

static void expect_items(const char *text, int count, const char *const *paths, const double *weights)
{
    struct ah_mixture_items items;
    assert_ok(ah__mixture_parse(&items, text));
    assert_int_equal(items.count, count);
    for (int i = 0; i < count; i++) {
        assert_string_equal(items.item[i].path, paths[i]);
        assert_true(items.item[i].weight == weights[i]);
    }
    ah__mixture_items_free(&items);
}

static void names_are_told_from_weights(void **state)
{
    char text[4096], a[512], b[512], odd[512], number[512];
    snprintf(a, sizeof a, "%s", make("a.txt", 10, 3));
    snprintf(b, sizeof b, "%s", make("b.txt", 20, 3));
    snprintf(odd, sizeof odd, "%s", make("x,y:0.5,z", 30, 3));
    snprintf(number, sizeof number, "%s", make("n:7", 40, 3));
    expect_items(a, 1, (const char *[]){a}, (double[]){0});
    expect_items(odd, 1, (const char *[]){odd}, (double[]){0});
    expect_items(number, 1, (const char *[]){number}, (double[]){0});
    snprintf(text, sizeof text, "%s:0.7", a);
    expect_items(text, 1, (const char *[]){a}, (double[]){0.7});
    snprintf(text, sizeof text, "%s,%s", a, b);
    expect_items(text, 2, (const char *[]){a, b}, (double[]){0, 0});
    snprintf(text, sizeof text, "%s:0.7, %s:3e-1", a, b);
    expect_items(text, 2, (const char *[]){a, b}, (double[]){0.7, 0.3});
    snprintf(text, sizeof text, "%s:2,%s:1,%s:7", odd, number, b);
    expect_items(text, 3, (const char *[]){odd, number, b}, (double[]){2, 1, 7});
    snprintf(text, sizeof text, "%s:1,-:2", a);
    expect_items(text, 2, (const char *[]){a, "-"}, (double[]){1, 2});
    snprintf(text, sizeof text, "%s,%s", make("x,y", 50, 3), b); /* beside a name that is its first part */
    make("x", 60, 3);
    expect_items(text, 2, (const char *[]){in("x,y"), b}, (double[]){0, 0});
    /* A folder may have commas, too. */
    char within[512];
    snprintf(within, sizeof within, "%s/p,q,r", ah_test_folder());
    assert_ok(ah__folder_make(within));
    snprintf(within + strlen(within), sizeof within - strlen(within), "/s,t");
    assert_ok(ah__file_write(within, "text", 4));
    snprintf(text, sizeof text, "%s:2,%s:1", within, b);
    expect_items(text, 2, (const char *[]){within, b}, (double[]){2, 1});
    expect_items("gone.jsonl:1,lost:b.jsonl:2", 2, (const char *[]){"gone.jsonl", "lost:b.jsonl"}, (double[]){1, 2});
    expect_items("gone:away", 1, (const char *[]){"gone:away"}, (double[]){0});
}

/* More names than a path is long, and one that is longer. */
static void long_lists_are_taken_name_by_name(void **state)
{
    enum { NAMES = 300, LENGTH = 40, LONG = 6000 };
    static char text[NAMES * (LENGTH + 1) + LONG + 1];
    struct ah_mixture_items items;
    size_t at = 0;
    for (int i = 0; i < NAMES; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%0*d,", LENGTH, i);
    memset(text + at, 'x', LONG);
    assert_ok(ah__mixture_parse(&items, text));
    assert_int_equal(items.count, NAMES + 1);
    for (int i = 0; i < NAMES; i++)
        assert_true(strlen(items.item[i].path) == LENGTH && atoi(items.item[i].path) == i);
    assert_int_equal(strlen(items.item[NAMES].path), LONG);
    ah__mixture_items_free(&items);
}

static void what_is_wrong_is_named(void **state)
{
    char text[4096], a[512], b[512];
    snprintf(a, sizeof a, "%s", make("a.txt", 10, 3));
    snprintf(b, sizeof b, "%s", make("b.txt", 20, 3));
    static const struct {
        const char *format, *words;
    } cases[] = {
        {"%s:0,%s:1", "a.txt: weight: found '0', expected a number above 0"},
        {"%s:1,%s:-1", "b.txt: weight: found '-1', expected a number above 0"},
        {"%s:nan,%s:1", "a.txt: weight: found 'nan', expected a number above 0"},
        {"%s:1e999,%s:1", "a.txt: weight: found '1e999', expected a number above 0"},
        {"%s:1,%s:", "b.txt: weight: found '', expected a number above 0"},
        {"%s:1,%s:half", "b.txt: weight: found 'half', expected a number above 0"},
        {"%s:1,%s", "b.txt: weight: found none beside 1 of "},
        {"%s,,%s", "data: found an empty name in "},
        {"%s,%s,", "data: found an empty name in "},
        {",%s,%s", "data: found an empty name in "},
        {"%s:1e-4,%s:1", "a.txt: weight: found 0.0001, 0.0001 of all, expected at least 1 in 1024"},
        {"%s:1,%s-gone:1", "b.txt-gone: cannot open: No such file"},
        {"%s,%s-gone", "b.txt-gone: cannot open: No such file"},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        char format[64];
        snprintf(format, sizeof format, "%s", cases[i].format);
        char *second = strrchr(format, '%'); /* formats are literals: two %s each */
        *second = 0;
        snprintf(text, sizeof text, "%.*s%s%s%s%s", (int)(strchr(format, '%') - format), format, a,
                 strchr(format, '%') + 2, b, second + 2);
        refused(text, cases[i].words);
    }
}

/* Over each cycle every source gives its slots exactly, each of its own samples once; the order hangs on the seed. */
static void shares_are_exact(void **state)
{
    char text[2048];
    int32_t first[3 * 1024], again[1024];
    int other = 0;
    snprintf(text, sizeof text, "%s:0.7,%s:0.2,%s:0.1", make("a.txt", 10, 40), make("b.txt", 60, 9),
             make("c.txt", 100, 100));
    struct ah_mixture *mixture = open(text);
    const int64_t slots[] = {717, 205, 102}; /* of 716.8, 204.8, 102.4 */
    samples(first, mixture, 0, 3 * 1024, 5);
    for (int cycle = 0; cycle < 3; cycle++) {
        int64_t given[3] = {0};
        for (int i = 0; i < 1024; i++)
            given[first[1024 * cycle + i] < 60 ? 0 : first[1024 * cycle + i] < 100 ? 1 : 2]++;
        for (int s = 0; s < 3; s++) {
            assert_int_equal(given[s], slots[s]);
            assert_int_equal(ah__mixture_given(mixture, (size_t)s, 1024 * (cycle + 1), 5), slots[s] * (cycle + 1));
        }
    }
    int moved = 0; /* cycles differ in whose turn it is */
    for (int i = 0; i < 1024; i++)
        moved += (first[i] < 60) != (first[1024 + i] < 60);
    assert_true(moved > 256);
    int64_t part[3] = {0};
    for (int i = 0; i < 1500; i++)
        part[first[i] < 60 ? 0 : first[i] < 100 ? 1 : 2]++;
    for (int s = 0; s < 3; s++)
        assert_int_equal(ah__mixture_given(mixture, (size_t)s, 1500, 5), part[s]);
    samples(again, mixture, 1024, 1024, 5); /* from the middle */
    assert_memory_equal(again, first + 1024, sizeof again);
    samples(again, mixture, 0, 1024, 6);
    for (int i = 0; i < 1024; i++)
        other += again[i] != first[i];
    assert_true(other > 256);
    int epoch[256] = {0}; /* the first 40 samples of a source of 40 windows are these, each once */
    for (int i = 0, count = 0; count < 40; i++)
        if (first[i] < 60) {
            assert_int_equal(epoch[first[i]]++, 0);
            count++;
        }
    /* each source's own epochs: of any window as many samples as of another, but for the last epoch */
    int seen[256] = {0};
    for (int i = 0; i < 3 * 1024; i++)
        seen[first[i]]++;
    for (int i = 0; i < 40; i++)
        assert_true(seen[10 + i] >= 2151 / 40 && seen[10 + i] <= 2151 / 40 + 1);
    for (int i = 0; i < 9; i++)
        assert_true(seen[60 + i] >= 615 / 9 && seen[60 + i] <= 615 / 9 + 1);
    ah__mixture_close(mixture);
}

/* A hundred samples are near their shares, too: sources do not come one after the other. */
static void sources_alternate(void **state)
{
    char text[2048];
    int32_t ids[1024];
    snprintf(text, sizeof text, "%s:1,%s:1", make("a.txt", 10, 40), make("b.txt", 60, 40));
    struct ah_mixture *mixture = open(text);
    samples(ids, mixture, 0, 1024, 1);
    for (int from = 0; from + 100 <= 1024; from += 50) {
        int given = 0;
        for (int i = from; i < from + 100; i++)
            given += ids[i] < 60;
        assert_true(given > 25 && given < 75);
    }
    ah__mixture_close(mixture);
}

static void by_size_each_window_once_an_epoch(void **state)
{
    char text[2048];
    int32_t ids[142];
    snprintf(text, sizeof text, "%s,%s", make("a.txt", 10, 40), make("b.txt", 60, 31));
    struct ah_mixture *mixture = open(text);
    assert_int_equal(ah__mixture_cycle(mixture), 71);
    assert_int_equal(ah__mixture_info(mixture)->train_windows, 71);
    samples(ids, mixture, 0, 142, 3);
    for (int epoch = 0; epoch < 2; epoch++) {
        bool seen[256] = {0};
        for (int i = 0; i < 71; i++) {
            assert_false(seen[ids[71 * epoch + i]]);
            seen[ids[71 * epoch + i]] = true;
        }
    }
    assert_memory_not_equal(ids, ids + 71, 71 * sizeof *ids);
    ah__mixture_close(mixture);
}

/* Batches of any size are the same samples; so are a single file and ah__tokens_batch. */
static void batches_split_alike(void **state)
{
    char text[2048], a[512];
    int32_t one[24 * SEQ], many[24 * SEQ], targets[24 * SEQ], other[24 * SEQ];
    snprintf(a, sizeof a, "%s", make("a.txt", 10, 40));
    snprintf(text, sizeof text, "%s:3,%s:1", a, make("b.txt", 60, 9));
    struct ah_mixture *mixture = open(text), *single = open(a);
    struct ah_tokens *tokens;
    assert_ok(ah__mixture_batch(mixture, 0, 24, 9, &(struct ah_batch){one, targets, NULL}));
    for (int n = 0; n < 6; n++)
        assert_ok(
            ah__mixture_batch(mixture, n, 4, 9, &(struct ah_batch){many + n * 4 * SEQ, other + n * 4 * SEQ, NULL}));
    assert_memory_equal(one, many, sizeof one);
    assert_memory_equal(targets, other, sizeof targets);
    assert_ok(ah__tokens_open(&tokens, a, &ah__tokenizer_bytes, 256, SEQ, 0, NULL));
    assert_ok(ah__mixture_batch(single, 3, 8, 9, &(struct ah_batch){one, targets, NULL}));
    assert_ok(ah__tokens_batch(tokens, 3, 8, 9, &(struct ah_batch){many, other, NULL}));
    assert_memory_equal(one, many, 8 * SEQ * sizeof *one);
    ah__tokens_close(tokens);
    ah__mixture_close(mixture);
    ah__mixture_close(single);
}

/* The text of an open mixture opens the same again; weights in another unit are the same shares. */
static void the_text_opens_it_again(void **state)
{
    char text[2048], *again;
    int32_t ids[300], same[300];
    snprintf(text, sizeof text, "%s:0.7,%s:0.3", make("x,y:0.5,z", 10, 40), make("b.txt", 60, 9));
    struct ah_mixture *mixture = open(text);
    assert_ok(ah__mixture_text(&again, mixture));
    samples(ids, mixture, 0, 300, 2);
    ah__mixture_close(mixture);
    mixture = open(again);
    samples(same, mixture, 0, 300, 2);
    assert_memory_equal(ids, same, sizeof ids);
    ah__mixture_close(mixture);
    ah__free(again);
    snprintf(text, sizeof text, "%s:7e300,%s:3e300", in("x,y:0.5,z"), in("b.txt"));
    mixture = open(text);
    samples(same, mixture, 0, 300, 2);
    assert_memory_equal(ids, same, sizeof ids);
    ah__mixture_close(mixture);
}

/* A training is not begun whose data could not be found again. */
static void a_text_that_means_others_is_refused(void **state)
{
    char text[2048], *again = NULL;
    make("n:7", 10, 40);
    snprintf(text, sizeof text, "%s:7.0,%s:1", make("n", 60, 40), make("b.txt", 20, 9));
    struct ah_mixture *mixture = open(text);
    assert_fails(ah__mixture_text(&again, mixture), AH_EINPUT, "data: found names that together mean other files, '");
    ah__mixture_close(mixture);
    snprintf(text, sizeof text, "%s,%s", make("x,y", 10, 40), make("x", 60, 9));
    mixture = open(text);
    assert_ok(ah__mixture_text(&again, mixture));
    ah__mixture_close(mixture);
    mixture = open(again);
    assert_int_equal(ah__mixture_count(mixture), 2);
    ah__mixture_close(mixture);
    ah__free(again);
}

/* Validation goes through each source's own part, in the shares. */
static void validation_has_the_shares(void **state)
{
    char text[2048];
    int32_t ids[SEQ], targets[SEQ];
    int given[2] = {0};
    struct ah_mixture *mixture;
    const struct ah_tokens_options tenth = {.seq = SEQ, .val_fraction = 0.1};
    snprintf(text, sizeof text, "%s:3,%s:1", make("a.txt", 10, 40), make("b.txt", 60, 100));
    assert_ok(ah__mixture_open(&mixture, text, &ah__tokenizer_bytes, 256, &tenth, NULL, 0));
    assert_true(ah__mixture_info(mixture)->held_out);
    assert_int_equal(ah__mixture_info(mixture)->tokens, 161 + 401);
    for (int i = 0; i < 1024; i++) {
        assert_ok(ah__mixture_val_batch(mixture, i, 1, &(struct ah_batch){ids, targets, NULL}));
        bool second = ids[0] >= 60;
        assert_true(ids[SEQ - 1] >= (second ? 60 + 89 : 10 + 35));
        given[second]++;
    }
    assert_int_equal(given[0], 768);
    ah__mixture_close(mixture);
}

AH_TEST_CASES("data/mixture", names_are_told_from_weights, long_lists_are_taken_name_by_name, what_is_wrong_is_named,
              shares_are_exact, sources_alternate, by_size_each_window_once_an_epoch, batches_split_alike,
              the_text_opens_it_again, a_text_that_means_others_is_refused, validation_has_the_shares)
