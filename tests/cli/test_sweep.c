/* Sweeps: what they hold, and one line for each way to get them wrong. */
#include "cli/out.c"
#include "cli/sweep.c"
#include "test.h"

static void values_from_first_to_last(void **state)
{
    struct ah_sweep sweep;
    struct ah_point point = {.batch = 1, .seq = 2, .device_bytes = 3, .host_bytes = 4};
    char text[32];
    assert_int_equal(ah__sweep_parse(&sweep, "device-memory=8GiB:40GiB:4GiB"), AH_OK);
    assert_int_equal(sweep.count, 9);
    assert_true(ah__sweep_value(&sweep, 0) == (int64_t)8 << 30 && ah__sweep_value(&sweep, 8) == (int64_t)40 << 30);
    assert_string_equal(ah__sweep_text(text, sizeof text, &sweep, 1), "12.0 GiB");
    ah__sweep_set(&point, &sweep, 2);
    assert_true(point.device_bytes == (int64_t)16 << 30 && point.host_bytes == 4 && point.batch == 1 && point.seq == 2);
    assert_int_equal(ah__sweep_parse(&sweep, "batch=4:15:4"), AH_OK);
    assert_int_equal(sweep.count, 3);
    assert_string_equal(ah__sweep_text(text, sizeof text, &sweep, 2), "12");
    assert_string_equal(sweep.key, "batch");
    assert_int_equal(ah__sweep_parse(&sweep, "seq=64:64:1"), AH_OK);
    ah__sweep_set(&point, &sweep, 0);
    assert_true(sweep.count == 1 && point.seq == 64);
    assert_int_equal(ah__sweep_parse(&sweep, "host-memory=1kB:2kB:0.5kB"), AH_OK);
    assert_int_equal(sweep.count, 3);
}

static void none_is_one_point(void **state)
{
    struct ah_sweep sweep;
    struct ah_point point = {1, 2, 3, 4};
    assert_int_equal(ah__sweep_parse(&sweep, NULL), AH_OK);
    assert_int_equal(sweep.count, 1);
    assert_null(sweep.name);
    ah__sweep_set(&point, &sweep, 0);
    assert_true(point.batch == 1 && point.seq == 2 && point.device_bytes == 3 && point.host_bytes == 4);
}

static void mistakes_of_sweeps(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "expected device-memory, host-memory, batch or seq"},
        {"batch", "found 'batch', expected device-memory"},
        {"bat=1:2:1", "found 'bat=1:2:1', expected device-memory"},
        {"=1:2:1", "expected device-memory"},
        {"batch=", "expected batch=FROM:TO:STEP like 4:32:4"},
        {"batch=4", "expected batch=FROM:TO:STEP"},
        {"batch=4:8", "expected batch=FROM:TO:STEP"},
        {"batch=4:8:4:4", "expected batch=FROM:TO:STEP"},
        {"batch=4:8:0", "expected batch=FROM:TO:STEP"},
        {"batch=0:8:1", "expected batch=FROM:TO:STEP"},
        {"batch=-4:8:4", "expected batch=FROM:TO:STEP"},
        {"batch=4:8:4x", "expected batch=FROM:TO:STEP"},
        {"batch= 4:8:4", "expected batch=FROM:TO:STEP"},
        {"batch=4GiB:8GiB:4GiB", "expected batch=FROM:TO:STEP"},
        {"batch=99999999999999999999:1:1", "expected batch=FROM:TO:STEP"},
        {"device-memory=8:40:4Gib", "expected device-memory=FROM:TO:STEP like 8GiB:40GiB:4GiB"},
        {"batch=8:4:1", "expected its end not below its start"},
        {"batch=1:257:1", "found 257 points, expected at most 256"},
        {"batch=1:9223372036854775807:1", "found 9223372036854775807 points"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ah_sweep sweep = {.count = 77};
        assert_int_equal(ah__sweep_parse(&sweep, cases[i].text), AH_EINPUT);
        if (!strstr(own_fault, cases[i].words) || strncmp(own_fault, "--sweep: ", 9) != 0)
            fail_msg("'%s': found \"%s\", expected \"%s\"", cases[i].text, own_fault, cases[i].words);
        assert_int_equal(sweep.count, 77);
    }
}

AH_TEST_CASES("cli/sweep", values_from_first_to_last, none_is_one_point, mistakes_of_sweeps)
