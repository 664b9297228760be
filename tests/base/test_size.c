#include "test.h"

#include <stdio.h>

#include "base/status.h"

static void good(void **state)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } rows[] = {{"0", 0},
                {"4096", 4096},
                {"17B", 17},
                {"64MiB", 67108864},
                {"64 MiB", 67108864},
                {"1.5KiB", 1536},
                {"1.1KiB", 1126},
                {"48G", INT64_C(48) << 30},
                {"64M", 67108864},
                {"2K", 2048},
                {"1.5T", INT64_C(3) << 39},
                {"2kB", 2000},
                {"2KB", 2000},
                {"1.5GB", 1500000000},
                {"3TB", INT64_C(3000000000000)},
                {"2TiB", INT64_C(2199023255552)},
                {"9223372036854775807", INT64_MAX}};
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        int64_t bytes = -1;
        assert_ok(ah_size_parse(&bytes, rows[i].text));
        assert_int_equal(bytes, rows[i].bytes);
    }
}

static void bad(void **state)
{
    static const char *const rows[] = {"",          " 1",
                                       "-1",        "+1",
                                       "MiB",       "64Q",
                                       "64mib",     "1.MiB",
                                       ".5MiB",     "1.5B",
                                       "1.5",       "1e9",
                                       "0x10",      "1  MiB",
                                       "1MiB ",     "1MiB/s",
                                       "1,5GB",     "nan",
                                       "1.",        "12..",
                                       "1.5.5MiB",  "9223372036854775808",
                                       "8388608TiB"};
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        int64_t bytes = -7;
        char words[64];
        snprintf(words, sizeof words, "found '%s', expected a size such as 64MiB", rows[i]);
        assert_fails(ah_size_parse(&bytes, rows[i]), AH_EINPUT, words);
        assert_int_equal(bytes, -7);
    }
}

static void rates(void **state)
{
    int64_t bytes = -7;
    assert_ok(ah_rate_parse(&bytes, "4GB/s"));
    assert_int_equal(bytes, 4000000000);
    assert_ok(ah_rate_parse(&bytes, "1.5MiB/s"));
    assert_int_equal(bytes, 1572864);
    assert_ok(ah_rate_parse(&bytes, "10 B/s"));
    assert_int_equal(bytes, 10);
    static const char *const rows[] = {"", "/s", "4GB", "4GB/S", "4GB/s/s", "x/s", "4./s", "1 . /s"};
    for (size_t i = 0; i < AH_LENGTH(rows); i++)
        assert_fails(ah_rate_parse(&bytes, rows[i]), AH_EINPUT, "expected a rate such as 4GB/s");
    assert_int_equal(bytes, 10);
}

static void formats(void **state)
{
    char text[32];
    assert_string_equal(ah_size_format(text, sizeof text, 67108864), "64.0 MiB");
    assert_string_equal(ah_count_format(text, sizeof text, 812), "812");
    assert_string_equal(ah_count_format(text, sizeof text, 10800000), "10.8 M");
    assert_string_equal(ah_count_format(text, sizeof text, 11555000000), "11.6 G");
    assert_string_equal(ah_size_format(text, sizeof text, 0), "0 B");
    assert_string_equal(ah_size_format(text, sizeof text, 1023), "1023 B");
    assert_string_equal(ah_size_format(text, sizeof text, 1536), "1.5 KiB");
    assert_string_equal(ah_size_format(text, sizeof text, 1048575), "1.0 MiB");
    assert_string_equal(ah_size_format(text, sizeof text, -67108864), "-64.0 MiB");
    assert_string_equal(ah_size_format(text, sizeof text, INT64_MAX), "8388608.0 TiB");
}

AH_TEST_CASES("base/size", good, bad, rates, formats)
