#include "report/events.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

/* Bytes that TensorBoard's own RecordWriter made of the same events (tensorboard 2.21). */
static const char start[] = "1800000000000000a37f4b220900001040fc54d9411a0d627261696e2e4576656e743a32338d2fe9"
                            "100000000000000095fbfe180900001040fc54d94110ad023a020801cb79b93b";
static const char scalars[] = "31000000000000009d8383e90900006040fc54d94110f0a2042a220a0b0a046c6f737315000050400a13"
                              "0a0c746f6b656e735f7065725f73153b3d084d9b7ce461";

static void expect_hex(const unsigned char *bytes, size_t length, const char *expected)
{
    char text[512];
    assert_true(2 * length < sizeof text);
    for (size_t i = 0; i < length; i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned)bytes[i]);
    assert_string_equal(text, expected);
}

static void records_are_tensorboards(void **state)
{
    const struct ah_event_scalar values[] = {{"loss", 3.25}, {"tokens_per_s", 1e9 / 7}};
    unsigned char out[256];
    expect_hex(out, ah__events_start(out, sizeof out, 1700000000.25, 301), start);
    expect_hex(out, ah__events_scalars(out, sizeof out, 1700000001.5, 70000, values, 2), scalars);
}

/* What does not fit is cut, never written beyond the end. */
static void nothing_beyond_the_end(void **state)
{
    const struct ah_event_scalar value = {"loss", 1};
    for (size_t size = 0; size < 48; size++) {
        unsigned char out[64];
        memset(out, 0xa5, sizeof out);
        assert_true(ah__events_scalars(out, size, 1, 1, &value, 1) <= size);
        for (size_t i = size; i < sizeof out; i++)
            assert_int_equal(out[i], 0xa5);
    }
}

AH_TEST_CASES("report/events", records_are_tensorboards, nothing_beyond_the_end)
