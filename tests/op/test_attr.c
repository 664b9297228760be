#include "op/attr.h"
#include "test.h"

#include <math.h>
#include <string.h>

/* What an attribute changes must show everywhere: a block with another value is another block. */
static void expect_seen(const struct ah_attr *changed, unsigned bit, const char *name)
{
    static const struct ah_attr defaults;
    char text[AH_ATTR_TEXT_BYTES], plain[AH_ATTR_TEXT_BYTES];
    assert_int_equal(ah__attr_set(changed), bit);
    assert_false(ah__attr_equal(changed, &defaults));
    assert_true(ah__attr_equal(changed, changed));
    assert_true(ah__attr_hash(changed, 1) != ah__attr_hash(&defaults, 1));
    assert_string_equal(ah__attr_format(plain, sizeof plain, &defaults), "");
    if (strncmp(ah__attr_format(text, sizeof text, changed), name, strlen(name)) != 0)
        fail_msg("found '%s', expected %s=...", text, name);
}

static void each_is_seen(void **state)
{
    int count = 0;
#define CHECK(id, type, name)                                                                                          \
    expect_seen(&(struct ah_attr){.name = 1}, AH_ATTR_##id, #name);                                                    \
    assert_int_equal(AH_ATTR_##id, 1 << count++);
    AH_ATTR_NUMBERS(CHECK)
#undef CHECK
    assert_int_equal(count, AH_ATTR_COUNT - 1);
    expect_seen(&(struct ah_attr){.stretch = {{1}}}, AH_ATTR_STRETCH, "stretch");
    assert_int_equal(AH_ATTR_STRETCH, 1 << count);
}

/* Not only from the default, and in no place that another attribute could stand for. */
static void values_differ(void **state)
{
    struct ah_attr all[2 * AH_ATTR_COUNT + 4] = {{.stretch = {{1}}}, {.stretch = {{2}}}, {.stretch = {{1, 1}}}};
    char a[AH_ATTR_TEXT_BYTES], b[AH_ATTR_TEXT_BYTES];
    int count = 3;
    all[count++] = (struct ah_attr){.stretch = {{1, [AH_ATTR_MOST_STRETCHES - 1] = 3}}};
#define ADD(id, type, name)                                                                                            \
    all[count++] = (struct ah_attr){.name = 1};                                                                        \
    all[count] = (struct ah_attr){.name = (type)2};                                                                    \
    count += all[count].name != all[count - 1].name; /* a bool has no third value */
    AH_ATTR_NUMBERS(ADD)
#undef ADD
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++) {
            assert_false(ah__attr_equal(&all[i], &all[j]));
            assert_true(ah__attr_hash(&all[i], 0) != ah__attr_hash(&all[j], 0));
            assert_string_not_equal(ah__attr_format(a, sizeof a, &all[i]), ah__attr_format(b, sizeof b, &all[j]));
        }
}

static void texts(void **state)
{
    char text[AH_ATTR_TEXT_BYTES], other[AH_ATTR_TEXT_BYTES], tiny[8];
    struct ah_attr attr = {.heads = 12, .eps = 1e-5F, .out_in = true, .acc = 6};
    assert_string_equal(ah__attr_format(text, sizeof text, &attr), "heads=12, eps=1e-05, out_in=1, acc=6");
    assert_string_equal(ah__attr_format(tiny, sizeof tiny, &attr), "heads=1");
    struct ah_attr next = attr;
    next.eps = nextafterf(attr.eps, 1);
    assert_string_not_equal(ah__attr_format(other, sizeof other, &next), text);
    assert_false(ah__attr_equal(&attr, &next));
}

AH_TEST_CASES("op/attr", each_is_seen, values_differ, texts)
