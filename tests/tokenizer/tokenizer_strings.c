#include "tokenizer/tokenizer_strings.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/json.h"
#include "test.h"
#include "tokenizer/utf8.h"

enum { LONG_EVERY = 250, LONG_PARTS = 300 };

struct test_strings {
    struct ah_json json;
    const cJSON **fragments, **spaces;
    size_t fragment_count, space_count, range_count;
    uint32_t (*ranges)[2];
    const char *corpus;
    size_t *starts, chars; /* where the corpus's characters begin; and its end */
};

struct draws {
    uint64_t seed, counter;
};

static size_t below(struct draws *draws, size_t limit)
{
    return (size_t)(ah__random_bits(draws->seed, draws->counter++) % limit);
}

static size_t list_open(const cJSON ***out, const struct test_strings *strings, const char *key)
{
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(strings->json.node, key);
    size_t count = 0;
    assert_ok(ah__new(out, (size_t)cJSON_GetArraySize(array), sizeof **out));
    for (const cJSON *child = array->child; child; child = child->next)
        (*out)[count++] = child;
    return count;
}

static void corpus_open(struct test_strings *strings)
{
    assert_ok(ah__json_string(&strings->corpus, &strings->json, "corpus"));
    size_t length = strlen(strings->corpus);
    assert_ok(ah__new(&strings->starts, length + 1, sizeof *strings->starts));
    for (size_t at = 0; at < length; at += ah__utf8_bytes(strings->corpus[at]))
        strings->starts[strings->chars++] = at;
    strings->starts[strings->chars] = length;
}

struct test_strings *test_strings_open(void)
{
    struct test_strings *strings;
    char path[512];
    static char kept[512]; /* the tree's path for messages */
    const cJSON **ranges;
    snprintf(path, sizeof path, "%s/golden/tokenizers/strings.json", ah_test_source());
    memcpy(kept, path, sizeof kept);
    assert_ok(ah__new(&strings, 1, sizeof *strings));
    assert_ok(ah__json_load(&strings->json, kept));
    strings->fragment_count = list_open(&strings->fragments, strings, "fragments");
    strings->space_count = list_open(&strings->spaces, strings, "spaces");
    strings->range_count = list_open(&ranges, strings, "ranges");
    assert_ok(ah__new(&strings->ranges, strings->range_count, sizeof *strings->ranges));
    for (size_t i = 0; i < strings->range_count; i++) {
        strings->ranges[i][0] = (uint32_t)ranges[i]->child->valuedouble;
        strings->ranges[i][1] = (uint32_t)ranges[i]->child->next->valuedouble;
    }
    ah__free(ranges);
    corpus_open(strings);
    return strings;
}

void test_strings_close(struct test_strings *strings)
{
    ah__json_free(&strings->json);
    ah__free(strings->fragments);
    ah__free(strings->spaces);
    ah__free(strings->ranges);
    ah__free(strings->starts);
    ah__free(strings);
}

static uint32_t code_draw(struct draws *draws, const struct test_strings *strings)
{
    const uint32_t *range = strings->ranges[below(draws, strings->range_count)];
    return range[0] + (uint32_t)below(draws, range[1] - range[0] + 1);
}

static void code_add(struct ah_buf *to, uint32_t code)
{
    char bytes[4];
    ah__buf_add(to, bytes, ah__utf8_put(bytes, code));
}

static void text_add(struct ah_buf *to, struct draws *draws, const cJSON **texts, size_t count)
{
    const char *text = texts[below(draws, count)]->valuestring;
    ah__buf_add(to, text, strlen(text));
}

static void corpus_add(struct ah_buf *to, struct draws *draws, const struct test_strings *strings)
{
    size_t start = below(draws, strings->chars), end = start + below(draws, 60);
    end = end < strings->chars ? end : strings->chars;
    ah__buf_add(to, strings->corpus + strings->starts[start], strings->starts[end] - strings->starts[start]);
}

/* One character `repeats` times, or as many different ones. */
static void codes_add(struct ah_buf *to, struct draws *draws, const struct test_strings *strings, bool same)
{
    uint32_t code = same ? code_draw(draws, strings) : 0;
    size_t count = 1 + below(draws, same ? 40 : 6);
    for (size_t i = 0; i < count; i++)
        code_add(to, same ? code : code_draw(draws, strings));
}

static void part_add(struct ah_buf *to, struct draws *draws, const struct test_strings *strings)
{
    size_t kind = below(draws, 10), count = 0;
    switch (kind) {
    case 4:
        codes_add(to, draws, strings, false);
        break;
    case 5:
        count = 1 + below(draws, 4);
        for (size_t i = 0; i < count; i++)
            text_add(to, draws, strings->spaces, strings->space_count);
        break;
    case 6:
        count = 1 + below(draws, 7);
        for (size_t i = 0; i < count; i++)
            code_add(to, '0' + (uint32_t)below(draws, 10));
        break;
    case 7:
        text_add(to, draws, strings->fragments, strings->fragment_count);
        break;
    case 8:
        codes_add(to, draws, strings, true);
        break;
    case 9:
        count = 1 + below(draws, 12);
        for (size_t i = 0; i < count; i++)
            code_add(to, 0x21 + (uint32_t)below(draws, 94));
        break;
    default:
        corpus_add(to, draws, strings);
    }
}

void test_string(struct ah_buf *to, const struct test_strings *strings, uint64_t i)
{
    struct draws draws = {i, 0};
    size_t parts = 1 + below(&draws, 7);
    if (i % LONG_EVERY == LONG_EVERY - 1)
        parts = LONG_PARTS;
    to->length = 0;
    for (size_t k = 0; k < parts; k++)
        part_add(to, &draws, strings);
    ah__buf_add(to, "", 0);
    assert_ok(to->status);
}

uint64_t test_id_draw(uint64_t i, uint64_t counter)
{
    return ah__random_bits(UINT64_C(1) << 32 | i, counter);
}
