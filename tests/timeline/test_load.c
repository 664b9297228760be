/* A trace read back is the timeline that was saved: the same picture, byte for byte. */
#include <string.h>

#include "timeline/svg_panel.h"
#include "timeline/synthetic.h"

static const char *path_of(const char *name)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", ah_test_folder(), name);
    return path;
}

static void drawn(struct ah_buf *buf, const struct ah_timeline *predicted, const struct ah_timeline *measured)
{
    assert_ok(ah__timeline_svg(buf, predicted, measured, 54 * SYNTHETIC_MIB));
}

static void both_come_back(void **state)
{
    static const int layers[] = {1, 3, 12};
    for (size_t i = 0; i < AH_LENGTH(layers); i++) {
        struct ah_timeline *predicted = synthetic_timeline(layers[i], 6, true), *again[2] = {NULL, NULL}, *copy;
        struct ah_timeline *measured = synthetic_timeline(layers[i], 5, false);
        struct ah_buf before = {0}, after = {0};
        ah__timeline_caption(predicted, "a \"model\" <of> three, batch 8");
        measured->step_ns = 18300000;
        measured->steps = 98;
        assert_ok(ah__timeline_copy(&copy, measured));
        const char *path = path_of("both.json");
        assert_ok(ah__timeline_save_both(predicted, copy, path));
        assert_ok(ah__timeline_load(&again[0], &again[1], path));
        assert_string_equal(again[0]->caption, predicted->caption);
        assert_int_equal(again[1]->steps, 98);
        assert_int_equal(again[0]->span_count, predicted->span_count);
        drawn(&before, predicted, measured);
        drawn(&after, again[0], again[1]);
        assert_string_equal(before.text, after.text);
        ah__buf_free(&before);
        ah__buf_free(&after);
        ah_timeline_free(copy);
        ah_timeline_free(predicted);
        ah_timeline_free(measured);
        ah_timeline_free(again[0]);
        ah_timeline_free(again[1]);
    }
}

static void one_alone(void **state)
{
    struct ah_timeline *measured = synthetic_timeline(2, 4, false), *again[2] = {NULL, NULL};
    const char *path = path_of("one.json");
    assert_ok(ah__timeline_save_both(NULL, measured, path));
    assert_ok(ah__timeline_load(&again[0], &again[1], path));
    assert_null(again[0]);
    assert_int_equal(again[1]->span_count, measured->span_count);
    assert_false(again[1]->predicted);
    assert_fails(ah__timeline_save_both(NULL, NULL, path), AH_EINPUT, "no timeline to save");
    ah_timeline_free(measured);
    ah_timeline_free(again[1]);
}

/* What is no trace of ours is refused with the key. */
static void others_are_refused(void **state)
{
    static const char about[] = "\"otherData\": {\"measured\": {\"pid\": 2, \"title\": \"\", \"caption\": \"\", "
                                "\"layers\": 1, \"step_ns\": 1, \"median_of_steps\": 0, "
                                "\"fixed_bytes\": 0, \"buffer_bytes\": 0, "
                                "\"device_peak_bytes\": 0, \"device_budget_bytes\": 0}}";
    static const struct {
        const char *events, *words;
    } cases[] = {
        {"{\"ph\": \"X\", \"pid\": 2, \"cat\": \"dance\"}", "found 'dance', expected a kind of work"},
        {"{\"ph\": \"X\", \"pid\": 2, \"cat\": \"forward\", \"tid\": 99}", "tid"},
        {"{\"ph\": \"X\", \"pid\": 2, \"cat\": \"forward\", \"tid\": 0, \"ts\": 1, \"dur\": -1}", "dur"},
        {"{\"ph\": \"X\", \"pid\": 2, \"cat\": \"forward\", \"tid\": 0, \"ts\": 1, \"dur\": 1, "
         "\"args\": {\"iteration\": 0, \"partition\": 3}}",
         "partition"},
        {"{\"ph\": \"C\", \"pid\": 2, \"ts\": 1, \"args\": {\"bytes\": -1}}", "bytes"},
    };
    struct ah_timeline *predicted = NULL, *measured = NULL;
    const char *path = path_of("other.json");
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "{%s, \"traceEvents\": [%s]}", about, cases[i].events);
        fclose(file);
        assert_fails(ah__timeline_load(&predicted, &measured, path), AH_EINPUT, cases[i].words);
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "{%s}", about);
    fclose(file);
    assert_fails(ah__timeline_load(&predicted, &measured, path), AH_EINPUT, "traceEvents");
    assert_null(predicted);
    assert_null(measured);
}

AH_TEST_CASES("timeline/load", both_come_back, one_alone, others_are_refused)
