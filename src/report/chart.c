#include "report/chart.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "timeline/svg_panel.h"

/* Pixels. */
enum { LEFT = 64, RIGHT = 20, TOP = 84, BOTTOM = 40, PLOT = AH_CHART_WIDTH - LEFT - RIGHT };

/* ---- series ------------------------------------------------------------------------------------------------------ */

int ah__series_add(struct ah_series *series, double step, double value)
{
    static const double most = 1e300; /* differences of larger values may be infinite */
    if (!(fabs(value) <= most) || !(fabs(step) <= most))
        return AH_OK;
    size_t values = series->capacity;
    AH_TRY(ah__grow(&series->value, &values, series->count + 1, sizeof *series->value));
    AH_TRY(ah__grow(&series->step, &series->capacity, series->count + 1, sizeof *series->step));
    series->step[series->count] = step;
    series->value[series->count++] = value;
    return AH_OK;
}

void ah__series_fini(struct ah_series *series)
{
    ah__free(series->step);
    ah__free(series->value);
    *series = (struct ah_series){0};
}

size_t ah__series_window(const struct ah_series *series)
{
    enum { MOST = 200, SHARE = 30 };
    size_t window = series->count / SHARE;
    return window < 1 ? 1 : window > MOST ? MOST : window;
}

/* Adds a value and returns the new mean. *sum and *weight are 0 at first; *weight corrects for the missing values
 * before the first. */
static double smooth(double *sum, double *weight, double value, size_t window)
{
    double share = 2 / ((double)window + 1);
    *sum += share * (value - *sum);
    *weight += share * (1 - *weight);
    return *sum / *weight;
}

double ah__series_smoothed(const struct ah_series *series)
{
    double sum = 0, weight = 0, mean = NAN;
    size_t window = ah__series_window(series);
    for (size_t i = 0; i < series->count; i++)
        mean = smooth(&sum, &weight, series->value[i], window);
    return mean;
}

/* Returns the number of values over which the chart smooths its curve. */
static size_t window_of(const struct ah_chart *chart)
{
    return chart->plain ? 1 : ah__series_window(chart->main);
}

/* ---- scale ------------------------------------------------------------------------------------------------------- */

struct scale {
    double first, last; /* steps at the left and right edge of the plot */
    double low, high;   /* values at the bottom and top of the plot */
    int top, height;    /* pixels */
};

static double x_of(const struct scale *scale, double step)
{
    double part = (step - scale->first) / (scale->last - scale->first);
    return LEFT + (part < 0   ? 0
                   : part > 1 ? 1
                              : part) *
                      PLOT; /* a step out of order, from a damaged file, is drawn at an edge */
}

static double y_of(const struct scale *scale, double value)
{
    double part = (value - scale->low) / (scale->high - scale->low);
    return scale->top + scale->height * (1 - (part < 0 ? 0 : part > 1 ? 1 : part));
}

static void widen(struct scale *scale, double value)
{
    scale->low = value < scale->low ? value : scale->low;
    scale->high = value > scale->high ? value : scale->high;
}

/* Adds room around the values. Values that differ only by rounding count as constant. The axis begins at zero if that
 * costs the curve no more than half of its height. */
static void edges_set(struct scale *scale)
{
    static const double constant = 1e-12;
    double range = scale->high - scale->low, size = fmax(fabs(scale->low), fabs(scale->high));
    double margin = range > constant * size ? 0.06 * range : size > 0 ? 0.1 * size : 1;
    scale->low = scale->low >= 0 && scale->low <= scale->high / 2 ? 0 : scale->low - margin;
    scale->high += margin;
    if (!(scale->last - scale->first > constant * fabs(scale->first)))
        scale->last = scale->first + fmax(1, 1e-6 * fabs(scale->first));
}

/* Returns a scale that is wide enough for every value. */
static struct scale scale_of(const struct ah_chart *chart)
{
    const struct ah_series *main = chart->main, *dots = chart->dots;
    struct scale scale = {.first = main->step[0],
                          .last = main->step[main->count - 1],
                          .low = main->value[0],
                          .high = main->value[0],
                          .top = TOP,
                          .height = chart->height - TOP - BOTTOM};
    for (size_t i = 0; i < main->count; i++)
        widen(&scale, main->value[i]);
    for (size_t i = 0; dots && i < dots->count; i++)
        widen(&scale, dots->value[i]);
    double range = scale.high - scale.low;
    if (chart->reference > scale.low - range / 2 && chart->reference < scale.high + range / 2)
        widen(&scale, chart->reference);
    edges_set(&scale);
    return scale;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static void axes(struct ah_buf *buf, const struct scale *scale)
{
    int bottom = scale->top + scale->height;
    struct ah_svg_ticks ticks = ah__svg_ticks(scale->low, scale->high, 5, 0);
    for (int i = 0; i < ticks.count; i++) {
        double at = ah__svg_tick(&ticks, i);
        ah__buf_printf(buf,
                       "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.2f\" y2=\"%.2f\"/>"
                       "<text class=\"small end\" x=\"%d\" y=\"%.2f\">%g</text>\n",
                       LEFT, LEFT + PLOT, y_of(scale, at), y_of(scale, at), LEFT - 8, y_of(scale, at) + 4, at);
    }
    ticks = ah__svg_ticks(scale->first, scale->last, 8, 1);
    for (int i = 0; i < ticks.count; i++) {
        double at = ah__svg_tick(&ticks, i);
        ah__buf_printf(buf,
                       "<line class=\"tick\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%d\" y2=\"%d\"/>"
                       "<text class=\"small middle\" x=\"%.2f\" y=\"%d\">%.15g</text>\n",
                       x_of(scale, at), x_of(scale, at), bottom, bottom + 5, x_of(scale, at), bottom + 18, at);
    }
    ah__buf_printf(buf,
                   "<line class=\"tick\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>"
                   "<text class=\"small end\" x=\"%d\" y=\"%d\">step</text>\n",
                   LEFT, LEFT + PLOT, bottom, bottom, LEFT - 8, bottom + 18);
    if (scale->low < 0 || scale->low > 0)
        ah__buf_printf(buf, "<text class=\"small end\" x=\"%d\" y=\"%d\">the vertical axis begins at %.3g</text>\n",
                       LEFT + PLOT, bottom + 34, scale->low);
}

/* Draws the series unsmoothed. If many values share a column of pixels, it draws the least and the greatest. */
static void raw(struct ah_buf *buf, const struct scale *scale, const struct ah_series *series)
{
    ah__buf_printf(buf, "<path class=\"raw\" d=\"");
    for (size_t i = 0, next; i < series->count; i = next) {
        double column = floor(x_of(scale, series->step[i])), low = series->value[i], high = low;
        for (next = i + 1; next < series->count && floor(x_of(scale, series->step[next])) <= column; next++) {
            low = series->value[next] < low ? series->value[next] : low;
            high = series->value[next] > high ? series->value[next] : high;
        }
        ah__buf_printf(buf, "%s%.2f %.2f", i ? "L" : "M", x_of(scale, series->step[i]), y_of(scale, high));
        if (low < high)
            ah__buf_printf(buf, "V%.2f", y_of(scale, low));
    }
    ah__buf_printf(buf, "\"/>\n");
}

static void smoothed(struct ah_buf *buf, const struct scale *scale, const struct ah_chart *chart)
{
    const struct ah_series *series = chart->main;
    double sum = 0, weight = 0, column = -1;
    ah__buf_printf(buf, "<path class=\"main\" d=\"");
    for (size_t i = 0; i < series->count; i++) {
        double value = smooth(&sum, &weight, series->value[i], window_of(chart));
        double x = x_of(scale, series->step[i]);
        if (x - column < 0.7 && i + 1 < series->count)
            continue;
        ah__buf_printf(buf, "%s%.2f %.2f", i ? "L" : "M", x, y_of(scale, value));
        column = x;
    }
    ah__buf_printf(buf, "\"/>\n");
}

/* Draws the dots. Only the first of dots that share a place on the step axis is drawn, to bound the size of the
 * picture. */
static void dots(struct ah_buf *buf, const struct scale *scale, const struct ah_series *series)
{
    struct ah_buf circles = {0};
    double before = -1;
    ah__buf_printf(buf, "<path class=\"dots\" d=\"");
    for (size_t i = 0; i < series->count; i++) {
        double x = x_of(scale, series->step[i]), y = y_of(scale, series->value[i]);
        if (x - before < 0.7 && i > 0 && i + 1 < series->count)
            continue;
        before = x;
        ah__buf_printf(buf, "%s%.2f %.2f", i ? "L" : "M", x, y);
        ah__buf_printf(&circles, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"3.2\"><title>step %.15g: %.6g</title></circle>\n",
                       x, y, series->step[i], series->value[i]);
    }
    ah__buf_printf(buf, "\"/>\n%s", circles.text ? circles.text : "");
    buf->status = buf->status == AH_OK ? circles.status : buf->status;
    ah__buf_free(&circles);
}

static void reference(struct ah_buf *buf, const struct scale *scale, const struct ah_chart *chart)
{
    if (!(chart->reference >= scale->low && chart->reference <= scale->high))
        return;
    double y = y_of(scale, chart->reference);
    ah__buf_printf(buf,
                   "<line class=\"reference\" x1=\"%d\" x2=\"%d\" y1=\"%.2f\" y2=\"%.2f\"/>"
                   "<text class=\"small end\" x=\"%d\" y=\"%.2f\">",
                   LEFT, LEFT + PLOT, y, y, LEFT + PLOT - 4, y - 5);
    ah__buf_xml(buf, chart->reference_name);
    ah__buf_printf(buf, "</text>\n");
}

static void text(struct ah_buf *buf, const char *class, double x, int y, const char *words)
{
    ah__buf_printf(buf, "<text class=\"%s\" x=\"%.1f\" y=\"%d\">", class, x, y);
    ah__buf_xml(buf, words);
    ah__buf_printf(buf, "</text>\n");
}

static void legend(struct ah_buf *buf, const struct ah_chart *chart, int y)
{
    size_t window = window_of(chart);
    char words[96];
    snprintf(words, sizeof words, "%s", chart->name);
    if (window > 1)
        snprintf(words, sizeof words, "%s, the mean of about %zu steps; pale: each step", chart->name, window);
    ah__buf_printf(buf, "<line class=\"main\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n", LEFT, LEFT + 22, y - 4,
                   y - 4);
    text(buf, "plain", LEFT + 30, y, words);
    if (!chart->dots || chart->dots->count == 0)
        return;
    double x = LEFT + 30 + 6.1 * (double)strlen(words) + 26;
    ah__buf_printf(buf,
                   "<line class=\"dots\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>"
                   "<circle cx=\"%.1f\" cy=\"%d\" r=\"3.2\"/>\n",
                   x, x + 22, y - 4, y - 4, x + 11, y - 4);
    text(buf, "plain", x + 30, y, chart->dots_name);
}

static void frame(struct ah_buf *buf, const struct ah_chart *chart)
{
    ah__buf_printf(buf,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" width=\"%d\" height=\"%d\" "
                   "viewBox=\"0 0 %d %d\">\n<style>\n"
                   ".chart text { font-family: Inter, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif; "
                   "font-size: 12px; fill: #475569; }\n"
                   ".chart .title { font-size: 18px; font-weight: 600; fill: #0f172a; }\n"
                   ".chart .small { font-size: 11px; fill: #64748b; }\n"
                   ".chart .end { text-anchor: end; } .chart .middle { text-anchor: middle; }\n"
                   ".chart .grid { stroke: #e2e8f0; stroke-width: 1; } .chart .tick { stroke: #94a3b8; }\n"
                   ".chart .raw { fill: none; stroke: #93c5fd; stroke-width: 1; stroke-linejoin: round; }\n"
                   ".chart .main { fill: none; stroke: #1d4ed8; stroke-width: 2; stroke-linejoin: round; }\n"
                   ".chart .dots { fill: none; stroke: #d97706; stroke-width: 1.6; }\n"
                   ".chart circle { fill: #ffffff; stroke: #d97706; stroke-width: 1.8; }\n"
                   ".chart .reference { stroke: #94a3b8; stroke-dasharray: 5 4; }\n</style>\n"
                   "<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#ffffff\"/>\n",
                   AH_CHART_WIDTH, chart->height, AH_CHART_WIDTH, chart->height, AH_CHART_WIDTH, chart->height);
    text(buf, "title", 24, 34, chart->title);
    if (chart->note)
        text(buf, "plain", 24, 54, chart->note);
}

void ah__chart(struct ah_buf *buf, const struct ah_chart *chart)
{
    frame(buf, chart);
    if (chart->main->count == 0) {
        text(buf, "plain", 24, TOP, "No step has been recorded.");
    } else {
        struct scale scale = scale_of(chart);
        axes(buf, &scale);
        if (window_of(chart) > 1)
            raw(buf, &scale, chart->main);
        reference(buf, &scale, chart);
        smoothed(buf, &scale, chart);
        if (chart->dots && chart->dots->count > 0)
            dots(buf, &scale, chart->dots);
        if (!chart->plain)
            legend(buf, chart, chart->note ? 74 : 60);
    }
    ah__buf_printf(buf, "</svg>\n");
}
