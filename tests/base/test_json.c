#include "test.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/json_python.h"

static struct ah_json parse(const char *text)
{
    struct ah_json json = {0};
    assert_ok(ah__json_parse(&json, text, strlen(text), "f.json"));
    return json;
}

static void getters_read(void **state)
{
    struct ah_json inner, innermost,
        json = parse("{\"i\": -5, \"d\": 0.5, \"b\": true, \"s\": \"x\", \"n\": null,"
                     "\"h\": \"0123456789abcdef\", \"o\": {\"p\": {\"q\": 7}}, \"a\": [1, 2, 3]}");
    int64_t number = 0, numbers[4];
    double real = 0;
    bool flag = false;
    const char *text = NULL;
    uint64_t hash = 0;
    size_t count = 0;
    assert_ok(ah__json_int(&number, &json, "i", -5, -5));
    assert_int_equal(number, -5);
    assert_ok(ah__json_double(&real, &json, "d", 0, 1));
    assert_true(real == 0.5);
    assert_ok(ah__json_bool(&flag, &json, "b"));
    assert_true(flag);
    assert_ok(ah__json_string(&text, &json, "s"));
    assert_string_equal(text, "x");
    assert_ok(ah__json_hash(&hash, &json, "h"));
    assert_true(hash == 0x0123456789abcdefu);
    assert_ok(ah__json_object(&inner, &json, "o"));
    assert_ok(ah__json_object(&innermost, &inner, "p"));
    assert_string_equal(innermost.where, "o.p");
    assert_ok(ah__json_int(&number, &innermost, "q", 0, 10));
    assert_int_equal(number, 7);
    assert_ok(ah__json_ints(numbers, &count, 3, &json, "a", 1, 3));
    assert_int_equal(count, 3);
    assert_int_equal(numbers[2], 3);
    assert_true(ah__json_has(&json, "i"));
    assert_false(ah__json_has(&json, "n"));
    assert_false(ah__json_has(&json, "absent"));
    ah__json_free(&json);
}

/* Every getter against every wrong kind of value, with its whole line. */
static void getters_refuse(void **state)
{
    struct ah_json inner,
        json = parse("{\"o\": {\"i\": 1.5, \"big\": 9007199254740994, \"s\": \"no\", \"n\": null, \"a\": [1, 2.5],"
                     "\"t\": true, \"h\": \"0123456789ABCDEF\", \"inf\": 1e999, \"x\": {}}}");
    int64_t number = 77, numbers[4];
    double real = 77;
    bool flag;
    const char *text;
    uint64_t hash;
    size_t count;
    assert_ok(ah__json_object(&inner, &json, "o"));
#define LINE(call, line) assert_fails(call, AH_EINPUT, "f.json: key 'o." line)
    LINE(ah__json_int(&number, &inner, "i", 0, 9), "i': found 1.5, expected an integer from 0 to 9");
    LINE(ah__json_int(&number, &inner, "s", 0, INT64_MAX), "s': found 'no', expected an integer of at least 0");
    LINE(ah__json_int(&number, &inner, "big", INT64_MIN, INT64_MAX),
         "big': found 9.00719925474099e+15, expected an integer");
    LINE(ah__json_int(&number, &inner, "absent", 1, 2), "absent': found nothing, expected an integer from 1 to 2");
    LINE(ah__json_int(&number, &inner, "n", 1, 2), "n': found null, expected an integer from 1 to 2");
    LINE(ah__json_int(&number, &inner, "inf", INT64_MIN, INT64_MAX), "inf': found inf, expected an integer");
    LINE(ah__json_double(&real, &inner, "i", 2, 3), "i': found 1.5, expected a number from 2 to 3");
    LINE(ah__json_double(&real, &inner, "i", 2, INFINITY), "i': found 1.5, expected a number of at least 2");
    LINE(ah__json_double(&real, &inner, "t", -INFINITY, DBL_MAX), "t': found true, expected a finite number");
    LINE(ah__json_double(&real, &inner, "inf", -INFINITY, INFINITY), "inf': found inf, expected a finite number");
    LINE(ah__json_bool(&flag, &inner, "i"), "i': found 1.5, expected true or false");
    LINE(ah__json_string(&text, &inner, "x"), "x': found an object, expected a string");
    LINE(ah__json_hash(&hash, &inner, "h"), "h': found '0123456789ABCDEF', expected 16 hexadecimal digits");
    LINE(ah__json_hash(&hash, &inner, "i"), "i': found 1.5, expected 16 hexadecimal digits");
    LINE(ah__json_object(&inner, &inner, "a"), "a': found an array, expected an object");
    LINE(ah__json_ints(numbers, &count, 4, &inner, "a", 0, 9), "a[1]': found 2.5, expected an integer from 0 to 9");
    LINE(ah__json_ints(numbers, &count, 1, &inner, "a", 0, 9),
         "a': found an array, expected an array of at most 1 integers");
    LINE(ah__json_ints(numbers, &count, 1, &inner, "s", 0, 9),
         "s': found 'no', expected an array of at most 1 integers");
    static const char *const keys[] = {"i", "s", NULL};
    LINE(ah__json_only(&inner, keys), "big': found an unknown key, expected one of: i, s");
#undef LINE
    assert_int_equal(number, 77);
    assert_true(real == 77);
    ah__json_free(&json);
}

static void syntax_errors_have_lines(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"", "f.json: line 1, column 1: found a syntax error at the end of the text, expected JSON"},
        {"{\n\"a\": 1,\n\"b\" 2}", "f.json: line 3, column 5: found a syntax error, expected JSON"},
        {"{\"a\": 1", "found a syntax error at the end of the text"},
        {"{\"a\": 1}\n\n {}", "f.json: line 3, column 2: found more text after the object"},
        {"[1]", "f.json: found no object at the root, expected one"},
        {"{\"a\": {\"b\": 1, \"c\": [{\"d\": 1, \"e\": 2, \"d\": 3}]}}", "f.json: key 'd': found twice in one object"},
    };
    struct ah_json json = {0};
    for (size_t i = 0; i < AH_LENGTH(rows); i++)
        assert_fails(ah__json_parse(&json, rows[i].text, strlen(rows[i].text), "f.json"), AH_EINPUT, rows[i].words);
    assert_fails(ah__json_parse(&json, "{\n\0}", 4, "f.json"), AH_EINPUT, "line 2, column 1: found a zero byte");
    assert_null(json.node);
}

/* What cJSON takes although it is no JSON: one line each, with its place. */
static void only_json_is_taken(void **state)
{
    static const struct {
        const char *value, *found;
    } rows[] = {
        {"016", "line 2, column 6: found '016', expected JSON"},
        {"-01", "found '-01'"},
        {"16.", "found '16.'"},
        {"+1", "found '+1'"},
        {".5", "found '.5'"},
        {"-.5", "found '-.5'"},
        {"-", "found '-'"},
        {"1e", "found '1e'"},
        {"1e+", "found '1e+'"},
        {"1.5.5", "found '1.5.5'"},
        {"0x10", "found '0x10'"},
        {"NaN", "found 'NaN'"},
        {"truely", "found 'truely'"},
        {"[1\x02]", "found the byte 0x02"},
        {"[1\xc2\xa0]", "found the byte 0xc2"},
        {"\"a\nb\"", "column 8: found in a string the control character 0x0a"},
        {"\"\x1f\"", "found in a string the control character 0x1f"},
        {"\"a\xff\"", "column 8: found in a string what is no UTF-8, byte 0xff"},
        {"\"\xc0\x80\"", "byte 0xc0"},
        {"\"\xed\xa0\x80\"", "byte 0xed"},
        {"\"\xe2\x82\"", "byte 0xe2"},
        {"\"\xf5\x80\x80\x80\"", "byte 0xf5"},
        {"\"a\\u0000b\"", "column 8: found \\u0000 in a string, which is JSON but is not read"},
        {"\"\\u12g4\"", "found \\u without four hexadecimal digits"},
        {"\"\\x41\"", "found an unknown escape in a string"},
        {"\"\\ud800\"", "found half of a surrogate pair"},
        {"\"\\udc00\"", "found half of a surrogate pair"},
        {"\"\\ud83d\\u0041\"", "found half of a surrogate pair"},
    };
    struct ah_json json = {0};
    char text[128];
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        snprintf(text, sizeof text, "{\n\"a\": %s}", rows[i].value);
        assert_fails(ah__json_parse(&json, text, strlen(text), "f.json"), AH_EINPUT, rows[i].found);
        /* and as a key */
        if (rows[i].value[0] != '"')
            continue;
        snprintf(text, sizeof text, "{%s: 1}", rows[i].value);
        assert_fails(ah__json_parse(&json, text, strlen(text), "f.json"), AH_EINPUT, "f.json: line 1, column ");
    }
    assert_fails(ah__json_parse(&json, "\xef\xbb\xbf{}", 5, "f.json"), AH_EINPUT, "column 1: found the byte 0xef");
    assert_fails(ah__json_parse(&json, "{\"a", 3, "f.json"), AH_EINPUT, "column 4: found a string without its end");
    assert_fails(ah__json_parse(&json, "{\"a\xe2\x82\xac", 5, "f.json"), AH_EINPUT, "byte 0xe2");
    assert_null(json.node);
    json = parse("{\"a\": [0, -0.0, 0.5e-3, 1E+2, 10, true, false, null], \"\xe2\x82\xac\": \"\xf0\x9f\x98\x80 "
                 "\\ud83d\\uDE00 \\\" \\\\ \\/ \\b\\f\\n\\r\\t \x7f\"}");
    const char *string = NULL;
    assert_ok(ah__json_string(&string, &json, "\xe2\x82\xac"));
    assert_string_equal(string, "\xf0\x9f\x98\x80 \xf0\x9f\x98\x80 \" \\ / \b\f\n\r\t \x7f");
    ah__json_free(&json);
}

static void values_that_are_not_read_are_refused(void **state)
{
    static const char text[] = " {\n\"a\": \"b\\u0000\"}";
    cJSON *tree;
    assert_fails(ah__json_value_parse(&tree, text, strlen(text), "f.json"), AH_EINPUT,
                 "f.json: line 2, column 8: found in a string \\u0000, which is JSON but is not read");
}

static void deep_nesting_is_refused(void **state)
{
    static char text[400000];
    struct ah_json json = {0};
    memset(text, '[', sizeof text);
    assert_fails(ah__json_parse(&json, text, sizeof text, "f.json"), AH_EINPUT, "f.json: line 1, column ");
}

static cJSON *tree_of(double value)
{
    cJSON *tree = cJSON_CreateObject();
    assert_ok(ah__json_add_double(tree, "v", value));
    return tree;
}

static void doubles_round_trip(void **state)
{
    for (uint64_t i = 0; i < 20000; i++) {
        union {
            uint64_t bits;
            double value;
        } number = {(i + 1) * 0x9e3779b97f4a7c15u};
        if (i == 0)
            number.value = -0.0;
        if (i == 1)
            number.value = 0.1 + 0.2;
        if (i == 2)
            number.value = DBL_TRUE_MIN;
        if (!isfinite(number.value))
            continue;
        cJSON *tree = tree_of(number.value);
        char *text = NULL;
        double back = 0;
        assert_ok(ah__json_text(&text, tree, true));
        struct ah_json json = parse(text);
        assert_ok(ah__json_double(&back, &json, "v", -INFINITY, INFINITY));
        assert_memory_equal(&back, &number.value, sizeof back);
        ah__json_free(&json);
        free(text);
        cJSON_Delete(tree);
    }
}

static void trees_round_trip(void **state)
{
    char path[128];
    snprintf(path, sizeof path, "%s/a.json", ah_test_folder());
    cJSON *tree = cJSON_CreateObject(), *inner = cJSON_AddObjectToObject(tree, "o");
    assert_ok(ah__json_add_int(inner, "i", INT64_C(1) << 53));
    assert_ok(ah__json_add_hash(inner, "h", 0xfedcba9876543210u));
    assert_ok(ah__json_add_string(inner, "s", "a\"\n\x01\xc3\xa9"));
    assert_ok(ah__json_add_bool(inner, "b", false));
    cJSON_AddItemToObject(inner, "a", cJSON_CreateIntArray((const int[]){1, 2}, 2));
    assert_ok(ah__json_save(tree, path));
    struct ah_json json, back;
    assert_ok(ah__json_load(&json, path));
    assert_ok(ah__json_object(&back, &json, "o"));
    int64_t number = 0;
    uint64_t hash = 0;
    const char *text = NULL;
    assert_ok(ah__json_int(&number, &back, "i", 0, INT64_MAX));
    assert_true(number == INT64_C(1) << 53);
    assert_ok(ah__json_hash(&hash, &back, "h"));
    assert_true(hash == 0xfedcba9876543210u);
    assert_ok(ah__json_string(&text, &back, "s"));
    assert_string_equal(text, "a\"\n\x01\xc3\xa9");
    assert_true(cJSON_Compare(tree, json.node, true));
    ah__json_free(&json);
    char *pretty = NULL;
    assert_ok(ah__json_text(&pretty, tree, false));
    assert_string_equal(pretty,
                        "{\n  \"o\": {\n    \"i\": 9007199254740992,\n    \"h\": \"fedcba9876543210\",\n"
                        "    \"s\": \"a\\\"\\n\\u0001\xc3\xa9\",\n    \"b\": false,\n    \"a\": [1, 2]\n  }\n}");
    free(pretty);
    cJSON_Delete(tree);
}

static void writers_refuse(void **state)
{
    cJSON *tree = cJSON_CreateObject();
    assert_fails(ah__json_add_double(tree, "v", NAN), AH_EINTERNAL,
                 "JSON key 'v': found nan, expected a finite number");
    assert_fails(ah__json_add_int(tree, "v", (INT64_C(1) << 53) + 1), AH_EINTERNAL, "JSON key 'v'");
    assert_fails(ah__json_add_int(NULL, "v", 1), AH_ENOMEM, "JSON key 'v'");
    assert_fails(ah__json_add_string(NULL, "v", "x"), AH_ENOMEM, "JSON key 'v'");
    assert_fails(ah__json_add_bool(NULL, "v", true), AH_ENOMEM, "JSON key 'v'");
    assert_fails(ah__json_add_hash(NULL, "v", 1), AH_ENOMEM, "JSON key 'v'");
    assert_fails(ah__json_add_double(NULL, "v", 1), AH_ENOMEM, "JSON key 'v'");
    assert_fails(ah__json_save(NULL, "/nowhere"), AH_ENOMEM, "out of host memory");
    cJSON_Delete(tree);
}

AH_TEST_CASES("base/json", getters_read, getters_refuse, syntax_errors_have_lines, only_json_is_taken,
              values_that_are_not_read_are_refused, deep_nesting_is_refused, doubles_round_trip, trees_round_trip,
              writers_refuse)
