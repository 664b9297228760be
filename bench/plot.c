#include "plot.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"

/* Pixels. */
enum {
    WIDTH = 920,
    HEIGHT = 438,
    LEFT = 68,
    RIGHT = 20,
    TOP = 112, /* below two rows of the legend */
    BOTTOM = 58,
    PLOT_WIDTH = WIDTH - LEFT - RIGHT,
    PLOT_HEIGHT = HEIGHT - TOP - BOTTOM,
    MARK = 3, /* half the cross of what does not fit */
    LEGEND_ROW = 18,
};
static const double legend_character = 7.2;

static const char *const ink = "#1f2933", *const faint = "#66727f", *const grid = "#e4e7eb";

struct scale {
    double y_top, y_step; /* of the axis, which begins at 0 */
    double x_low, x_high; /* lines: the ends of the axis */
};

/* ---- scales ------------------------------------------------------------------------------------------------------ */

/* The smallest of 1, 2, 2.5, 5 and their tenfolds that covers `most` in at most `ticks` steps. */
static double nice_step(double most, int ticks)
{
    static const double steps[] = {1, 2, 2.5, 5, 10};
    double power = pow(10, floor(log10(most / ticks)));
    for (size_t i = 0; i < AH_LENGTH(steps); i++)
        if (steps[i] * power * ticks >= most * (1 - 1e-12))
            return steps[i] * power;
    return 10 * power;
}

static struct scale scale_of(const struct plot *plot)
{
    double most = 0;
    for (size_t s = 0; s < plot->series_count; s++)
        for (size_t i = 0; i < plot->points; i++)
            most = isfinite(plot->series[s].y[i]) ? fmax(most, plot->series[s].y[i]) : most;
    most = most > 0 ? most : 1;
    struct scale scale = {.y_step = nice_step(most, 6)};
    scale.y_top = ceil(most / scale.y_step) * scale.y_step;
    if (plot->x) {
        double first = plot->x[0], last = plot->x[plot->points - 1], margin = 0.04 * (last - first);
        margin = margin > 0 ? margin : 1;
        scale.x_low = first - margin;
        scale.x_high = last + margin;
    }
    return scale;
}

static double y_at(const struct scale *scale, double value)
{
    return TOP + PLOT_HEIGHT * (1 - value / scale->y_top);
}

static double x_at(const struct scale *scale, double value)
{
    return LEFT + PLOT_WIDTH * (value - scale->x_low) / (scale->x_high - scale->x_low);
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static void text(struct ah_buf *buf, double x, double y, const char *style, const char *words)
{
    ah__buf_printf(buf, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
    ah__buf_xml(buf, words);
    ah__buf_printf(buf, "</text>\n");
}

static void cross(struct ah_buf *buf, double x, double y, const char *colour)
{
    ah__buf_printf(buf, "<path d=\"M%.1f %.1fl%d %dm0 %dl%d %d\" stroke=\"%s\" stroke-width=\"1.6\" fill=\"none\"/>\n",
                   x - MARK, y - MARK, 2 * MARK, 2 * MARK, -2 * MARK, -2 * MARK, 2 * MARK, colour);
}

static void frame(struct ah_buf *buf, const struct plot *plot, const struct scale *scale)
{
    char label[32], style[160];
    ah__buf_printf(buf,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                   "font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\" font-size=\"12\">\n"
                   "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
                   WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT);
    snprintf(style, sizeof style, "font-size=\"17\" font-weight=\"bold\" fill=\"%s\"", ink);
    text(buf, LEFT, 30, style, plot->title);
    snprintf(style, sizeof style, "fill=\"%s\"", faint);
    text(buf, LEFT, 50, style, plot->subtitle);
    snprintf(style, sizeof style, "text-anchor=\"end\" fill=\"%s\"", faint);
    for (double y = 0; y <= scale->y_top * (1 + 1e-9); y += scale->y_step) {
        ah__buf_printf(buf, "<path d=\"M%d %.1fh%d\" stroke=\"%s\"/>\n", LEFT, y_at(scale, y), PLOT_WIDTH,
                       y == 0 ? faint : grid);
        snprintf(label, sizeof label, "%g", y);
        text(buf, LEFT - 8, y_at(scale, y) + 4, style, label);
    }
    snprintf(style, sizeof style, "text-anchor=\"middle\" fill=\"%s\" transform=\"rotate(-90 20 %d)\"", ink,
             TOP + PLOT_HEIGHT / 2);
    text(buf, 20, TOP + PLOT_HEIGHT / 2.0, style, plot->y_label);
    snprintf(style, sizeof style, "text-anchor=\"middle\" fill=\"%s\"", ink);
    text(buf, LEFT + PLOT_WIDTH / 2.0, HEIGHT - 14, style, plot->x_label);
}

/* Where an entry of so many characters goes: the first row, or the next where it would not fit there. A glyph's width
 * is guessed, generously. */
static void legend_place(double *x, double *y, size_t characters)
{
    double width = 18 + legend_character * (double)characters;
    if (*x + width > WIDTH) {
        *x = LEFT;
        *y += LEGEND_ROW;
    }
}

static void legend(struct ah_buf *buf, const struct plot *plot)
{
    static const char none[] = "does not fit";
    double x = LEFT, y = 66;
    char style[64];
    snprintf(style, sizeof style, "fill=\"%s\"", ink);
    for (size_t s = 0; s < plot->series_count; s++) {
        size_t characters = strlen(plot->series[s].name);
        legend_place(&x, &y, characters);
        ah__buf_printf(buf, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" rx=\"2\" fill=\"%s\"/>\n", x, y,
                       plot->series[s].colour);
        text(buf, x + 18, y + 10, style, plot->series[s].name);
        x += 18 + legend_character * (double)characters + 22;
    }
    if (plot->all_fit)
        return;
    legend_place(&x, &y, sizeof none - 1);
    cross(buf, x + 6, y + 6, faint);
    text(buf, x + 18, y + 10, style, none);
}

/* ---- bars -------------------------------------------------------------------------------------------------------- */

static void bars(struct ah_buf *buf, const struct plot *plot, const struct scale *scale)
{
    double group = (double)PLOT_WIDTH / (double)plot->points, bar = 0.8 * group / (double)plot->series_count;
    char style[96];
    snprintf(style, sizeof style, "text-anchor=\"middle\" fill=\"%s\"", faint);
    for (size_t i = 0; i < plot->points; i++) {
        double left = LEFT + group * ((double)i + 0.1);
        text(buf, LEFT + group * ((double)i + 0.5), TOP + PLOT_HEIGHT + 18, style, plot->x_names[i]);
        for (size_t s = 0; s < plot->series_count; s++) {
            double value = plot->series[s].y[i], x = left + bar * (double)s;
            if (isfinite(value))
                ah__buf_printf(buf, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n",
                               x + 0.5, y_at(scale, value), bar - 1, y_at(scale, 0) - y_at(scale, value),
                               plot->series[s].colour);
            else
                cross(buf, x + bar / 2, y_at(scale, 0) - MARK - 3, plot->series[s].colour);
        }
    }
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static void line(struct ah_buf *buf, const struct plot *plot, const struct plot_series *series,
                 const struct scale *scale)
{
    bool open = false;
    ah__buf_printf(buf, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2.2\" stroke-linejoin=\"round\" d=\"",
                   series->colour);
    for (size_t i = 0; i < plot->points; i++) {
        bool fits = isfinite(series->y[i]);
        if (fits)
            ah__buf_printf(buf, "%s%.1f %.1f", open ? "L" : "M", x_at(scale, plot->x[i]), y_at(scale, series->y[i]));
        open = fits;
    }
    ah__buf_printf(buf, "\"/>\n");
    for (size_t i = 0; i < plot->points; i++)
        if (isfinite(series->y[i]))
            ah__buf_printf(buf, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.4\" fill=\"%s\"/>\n", x_at(scale, plot->x[i]),
                           y_at(scale, series->y[i]), series->colour);
}

static void lines(struct ah_buf *buf, const struct plot *plot, const struct scale *scale)
{
    char style[96], label[32];
    snprintf(style, sizeof style, "text-anchor=\"middle\" fill=\"%s\"", faint);
    for (size_t i = 0; i < plot->points; i++) {
        double x = x_at(scale, plot->x[i]), missing = 0;
        ah__buf_printf(buf, "<path d=\"M%.1f %dv4\" stroke=\"%s\"/>\n", x, TOP + PLOT_HEIGHT, faint);
        snprintf(label, sizeof label, "%g", plot->x[i]);
        text(buf, x, TOP + PLOT_HEIGHT + 18, style, label);
        for (size_t s = 0; s < plot->series_count; s++)
            if (!isfinite(plot->series[s].y[i]))
                cross(buf, x, y_at(scale, 0) - MARK - 3 - 10 * missing++, plot->series[s].colour);
    }
    for (size_t s = 0; s < plot->series_count; s++)
        line(buf, plot, &plot->series[s], scale);
}

int plot_save(const struct plot *plot, const char *path)
{
    struct ah_buf buf = {0};
    struct scale scale = scale_of(plot);
    frame(&buf, plot, &scale);
    legend(&buf, plot);
    if (plot->x_names)
        bars(&buf, plot, &scale);
    else
        lines(&buf, plot, &scale);
    ah__buf_printf(&buf, "</svg>\n");
    int status = buf.status == AH_OK ? ah__file_write(path, buf.text, buf.length) : buf.status;
    ah__buf_free(&buf);
    return status;
}
