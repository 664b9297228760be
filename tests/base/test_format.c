#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/format.h"
#include "base/json.h"

/* What the library writes and reads has a decimal point; what the program around it writes keeps its comma. */
static void a_point_whatever_the_locale(void **state)
{
    static const char written[] = "{\"a\": 0.1, \"b\": 1e-300}";
    char text[64], *end, *out = NULL;
    struct ah_buf buf = {0};
    struct ah_json json = {0};
    double a = 0, b = 0;
    ah_test_comma(true);
    ah__snprintf(text, sizeof text, "%.2f|%g", 1.25, 1e-7);
    assert_string_equal(text, "1.25|1e-07");
    assert_true(ah__strtod("2.5x", &end) == 2.5 && *end == 'x');
    assert_true(ah__strtof("2,5", &end) == 2.0F && *end == ',');
    assert_string_equal(ah_size_format(text, sizeof text, 1536), "1.5 KiB");
    ah__buf_printf(&buf, "%.1f", 0.5);
    assert_string_equal(buf.text, "0.5");
    ah__buf_free(&buf);
    ah__fail(AH_EINPUT, "%.3f", 0.125);
    assert_string_equal(ah_error(), "0.125");
    assert_ok(ah__json_parse(&json, written, strlen(written), "f.json"));
    assert_ok(ah__json_double(&a, &json, "a", 0, 1));
    assert_ok(ah__json_double(&b, &json, "b", 0, 1));
    assert_true(a == 0.1 && b == 1e-300);
    assert_ok(ah__json_text(&out, json.node, true));
    assert_string_equal(out, written);
    free(out);
    ah__json_free(&json);
    snprintf(text, sizeof text, "%.1f", 0.5);
    assert_string_equal(text, "0,5");
    ah_test_comma(false);
}

AH_TEST_CASES("base/format", a_point_whatever_the_locale)
