/* Charts: every point inside the frame, whatever the numbers; the smoothed mean; curves read from metrics. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "report/curve.h"
#include "test.h"
#include "timeline/svg_panel.h"

static struct ah_series series_of(const double *values, size_t count)
{
    struct ah_series series = {0};
    for (size_t i = 0; i < count; i++)
        assert_ok(ah__series_add(&series, (double)i + 1, values[i]));
    return series;
}

/* Every coordinate of every path lies in the picture. */
static void assert_inside(const char *svg, int height)
{
    assert_null(strstr(svg, "nan"));
    assert_null(strstr(svg, "inf"));
    for (const char *path = strstr(svg, " d=\"M"); path; path = strstr(path + 1, " d=\"M"))
        for (const char *at = path + 4; *at && *at != '"';) {
            double x = 0, y = 0;
            int used = 0;
            if (sscanf(at, "%*1[ML]%lf %lf%n", &x, &y, &used) >= 2 && used > 0) {
                assert_true(x >= 0 && x <= AH_CHART_WIDTH && y >= 0 && y <= height);
            } else if (sscanf(at, "V%lf%n", &y, &used) >= 1 && used > 0) {
                assert_true(y >= 0 && y <= height);
            } else {
                fail_msg("not a path: %.30s", at);
            }
            at += used;
        }
}

static void any_numbers(void **state)
{
    static const double rows[][5] = {
        {1, 1, 1, 1, 1}, {0, 0, 0, 0, 0}, {1e30, 1e-30, 5, 7, 1e30}, {-3, 2, -1, 5, 0.5}, {5, NAN, 4, INFINITY, 3},
    };
    for (size_t i = 0; i < AH_LENGTH(rows); i++)
        for (size_t count = 0; count <= 5; count++) {
            struct ah_series series = series_of(rows[i], count);
            struct ah_buf buf = {0};
            struct ah_chart chart = {.title = "a < b",
                                     .name = "it",
                                     .main = &series,
                                     .dots = &series,
                                     .dots_name = "& that",
                                     .reference = i % 2 ? NAN : 4,
                                     .reference_name = "four",
                                     .height = 300};
            ah__chart(&buf, &chart);
            assert_int_equal(buf.status, AH_OK);
            assert_inside(buf.text, 300);
            assert_non_null(strstr(buf.text, "a &lt; b"));
            ah__buf_free(&buf);
            ah__series_fini(&series);
        }
}

static void assert_small_chart(struct ah_series *series)
{
    struct ah_buf buf = {0};
    struct ah_chart chart = {
        .title = "", .name = "", .main = series, .dots = series, .dots_name = "", .reference = NAN, .height = 300};
    ah__chart(&buf, &chart);
    assert_int_equal(buf.status, AH_OK);
    assert_inside(buf.text, 300);
    assert_true(buf.length < 400000);
    ah__buf_free(&buf);
    ah__series_fini(series);
}

/* Values and steps between which no number lies: an axis has a bounded number of ticks, whatever it shows. */
static void axes_are_bounded(void **state)
{
    static const double at[] = {5, 5.541, 1e-300, 1e17, 9007199254740993.0, 1e300, -3.25};
    for (size_t i = 0; i < AH_LENGTH(at); i++)
        for (int ulps = 0; ulps < 4; ulps++) {
            double other = at[i];
            for (int k = 0; k < ulps; k++)
                other = nextafter(other, INFINITY);
            struct ah_series values = {0}, steps = {0};
            for (int k = 0; k < 100; k++)
                assert_ok(ah__series_add(&values, k + 1, k % 2 ? at[i] : other));
            assert_small_chart(&values);
            assert_ok(ah__series_add(&steps, at[i], 1));
            assert_ok(ah__series_add(&steps, other, 2));
            assert_ok(ah__series_add(&steps, 2, 3)); /* backwards, as after damage */
            assert_small_chart(&steps);
        }
}

/* The ticks of an axis lie on it, are told apart, and end. */
static void ticks(void **state)
{
    static const double edges[][2] = {{0, 1}, {0, 63.9},  {-7, 1e-9}, {1e9, 1e9 + 1}, {5, 5},
                                      {5, 4}, {0, 1e300}, {NAN, 1},   {0, INFINITY}};
    for (size_t i = 0; i < AH_LENGTH(edges); i++) {
        double low = edges[i][0], high = edges[i][1];
        struct ah_svg_ticks axis = ah__svg_ticks(low, high, 5, 0);
        assert_int_equal(axis.count > 0, high > low && high <= 1e300);
        assert_true(axis.count <= 12);
        for (int k = 0; k < axis.count; k++) {
            assert_true(ah__svg_tick(&axis, k) >= low && ah__svg_tick(&axis, k) <= high);
            assert_true(k == 0 || ah__svg_tick(&axis, k) > ah__svg_tick(&axis, k - 1));
        }
    }
    assert_int_equal(ah__svg_ticks(1, 3, 8, 1).count, 3); /* whole steps */
}

/* A million steps make a small picture. */
static void many_steps(void **state)
{
    struct ah_series series = {0};
    for (int i = 1; i <= 1000000; i++)
        assert_ok(ah__series_add(&series, i, 2 + 3 * exp(-i * 1e-5) + 0.1 * sin(i)));
    struct ah_buf buf = {0};
    struct ah_chart chart = {
        .title = "", .name = "", .main = &series, .dots = &series, .dots_name = "", .reference = NAN, .height = 300};
    ah__chart(&buf, &chart);
    assert_int_equal(buf.status, AH_OK);
    assert_inside(buf.text, 300);
    assert_true(buf.length < 300000);
    ah__buf_free(&buf);
    ah__series_fini(&series);
}

/* Highest and lowest place of a chart's pale curve, and the chart itself, which the caller frees. */
static struct ah_buf chart_of(const double *values, size_t count, double *top, double *bottom)
{
    struct ah_series series = series_of(values, count);
    struct ah_buf buf = {0};
    struct ah_chart chart = {.title = "", .name = "", .main = &series, .reference = NAN, .height = 300};
    ah__chart(&buf, &chart);
    assert_int_equal(buf.status, AH_OK);
    ah__series_fini(&series);
    const char *at = strstr(buf.text, "class=\"raw\" d=\"");
    assert_non_null(at);
    at += strlen("class=\"raw\" d=\"");
    *top = 300, *bottom = 0;
    for (double x, y; sscanf(at, "%*1[ML]%lf %lf", &x, &y) == 2; at += 1 + strcspn(at + 1, "L\"")) {
        *top = fmin(*top, y);
        *bottom = fmax(*bottom, y);
    }
    return buf;
}

/* An outlier is drawn where it is; an axis that does not begin at zero says where it does. */
static void nothing_is_cut_off(void **state)
{
    double values[120], top, bottom;
    for (int i = 0; i < 120; i++)
        values[i] = i == 60 ? 10 : 1;
    struct ah_buf buf = chart_of(values, 120, &top, &bottom);
    assert_null(strstr(buf.text, "axis begins"));
    double plot_bottom = 300 - 40, plot_top = 84, unit = (plot_bottom - bottom) / 1; /* the axis begins at zero */
    assert_true(top > plot_top && fabs((plot_bottom - top) - 10 * unit) < 0.1);
    ah__buf_free(&buf);
    for (int i = 0; i < 120; i++)
        values[i] = 5 + 0.01 * i;
    buf = chart_of(values, 120, &top, &bottom);
    assert_non_null(strstr(buf.text, ">the vertical axis begins at 4.93</text>"));
    ah__buf_free(&buf);
}

static void smoothing(void **state)
{
    double values[3000];
    struct ah_series none = {0};
    assert_true(isnan(ah__series_smoothed(&none)));
    for (int i = 0; i < 3000; i++)
        values[i] = i % 2 ? 3 : 1;
    struct ah_series series = series_of(values, 10);
    assert_int_equal(ah__series_window(&series), 1); /* a few values are shown as they are */
    assert_true(ah__series_smoothed(&series) == 3);
    ah__series_fini(&series);
    series = series_of(values, 3000);
    assert_int_equal(ah__series_window(&series), 100);
    assert_true(fabs(ah__series_smoothed(&series) - 2) < 0.05);
    ah__series_fini(&series);
    for (int i = 0; i < 3000; i++)
        values[i] = 5;
    series = series_of(values, 60);
    assert_true(fabs(ah__series_smoothed(&series) - 5) < 1e-12); /* from the first value on */
    ah__series_fini(&series);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void metrics_are_read(void **state)
{
    struct ah_curves curves;
    const char *folder = ah_test_folder();
    assert_ok(ah__curves_load(&curves, folder)); /* nothing there */
    assert_int_equal(curves.loss.count, 0);
    ah__curves_fini(&curves);
    write_file(folder, "metrics.jsonl",
               "{\"step\":1,\"loss\":5.5,\"grad_norm\":2,\"clip_factor\":0.5,\"lr\":0.001,\"tokens_per_s\":100}\n"
               "{\"step\":2,\"loss\":null,\"grad_norm\":null,\"clip_factor\":null,\"lr\":0.002,\"tokens_per_s\":110}\n"
               "{\"step\":3,\"loss\":4.5,\"grad_norm\":1,\"clip_factor\":1,\"lr\":0.003,\"tokens_per_s\":120}\n"
               "{\"step\":4,\"los");
    write_file(folder, "val.jsonl", "{\"step\":3,\"val_loss\":4.75}\n");
    assert_ok(ah__curves_load(&curves, folder));
    assert_int_equal(curves.loss.count, 2);
    assert_true(curves.loss.step[1] == 3 && curves.loss.value[1] == 4.5);
    assert_int_equal(curves.lr.count, 3);
    assert_true(curves.val_loss.count == 1 && curves.val_loss.value[0] == 4.75);
    struct ah_buf buf = {0};
    ah__curves_loss(&buf, &curves, "a model", 256);
    assert_non_null(strstr(buf.text, "Loss after 3 steps: 4.500, validation 4.750"));
    assert_non_null(strstr(buf.text, "a guess among 256 tokens: 5.55"));
    assert_inside(buf.text, 380);
    ah__buf_free(&buf);
    ah__curves_fini(&curves);
}

static void failing_allocations(void **state)
{
    const char *folder = ah_test_folder();
    write_file(folder, "metrics.jsonl", "{\"step\":1,\"loss\":5.5}\n{\"step\":2,\"loss\":5}\n");
    int status = AH_ENOMEM;
    for (uint64_t n = 1; status != AH_OK; n++) {
        struct ah_curves curves;
        ah__alloc_fail_at(n);
        status = ah__curves_load(&curves, folder);
        ah__curves_fini(&curves);
        assert_true(status == AH_OK || status == AH_ENOMEM);
        assert_true(n < 100);
    }
    ah__alloc_fail_at(0);
}

AH_TEST_CASES("report/chart", any_numbers, axes_are_bounded, ticks, many_steps, smoothing, nothing_is_cut_off,
              metrics_are_read, failing_allocations)
