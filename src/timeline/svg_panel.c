/* Draws one timeline of the image: lanes, iteration boundaries, device memory below them, time axis. */
#include "timeline/svg_panel.h"

#include <math.h>
#include <string.h>

#include "base/format.h"

/* Pixels, from the top of a panel. */
enum { LANES = 68, ROW = 28, PITCH = 36, MEMORY_GAP = 18, MEMORY = 108, AXIS = 32 };

static const char *const lane_labels[AH_LANE_COUNT] = {
    [AH_LANE_COMPUTE] = "compute",
    [AH_LANE_H2D] = "host \xe2\x86\x92 device",
    [AH_LANE_D2H] = "device \xe2\x86\x92 host",
    [AH_LANE_HOST] = "host optimizer",
    [AH_LANE_COMM] = "network",
    [AH_LANE_DISK] = "disk",
};

static const enum ah_svg_shade shades[AH_ITEM_COUNT] = {
#define AH_ITEM(id, lane, name, short_name, shade, ...) AH_SVG_##shade,
#include "sched/items.def"
#undef AH_ITEM
};

/* Vertical positions of a panel's parts, in pixels; rows[lane] < 0: no work ever ran on the lane. */
struct places {
    int rows[AH_LANE_COUNT];
    int lanes_end, memory, memory_end;
};

static void places_init(struct places *places, const struct ah_svg_panel *panel, int y)
{
    y += LANES;
    for (int lane = 0; lane < AH_LANE_COUNT; lane++) {
        struct ah_view_lane sum;
        ah__view_lane(&sum, panel->timeline, &panel->view, (enum ah_lane)lane);
        bool shown = sum.items > 0 || lane == AH_LANE_COMPUTE;
        places->rows[lane] = shown ? y : -1;
        y += shown ? PITCH : 0;
    }
    places->lanes_end = y - (PITCH - ROW);
    places->memory = places->lanes_end + MEMORY_GAP;
    places->memory_end = places->memory + MEMORY;
}

int ah__svg_panel_height(const struct ah_svg_panel *panel)
{
    struct places places;
    places_init(&places, panel, 0);
    return places.memory_end + AXIS;
}

static double x_of(const struct ah_svg_panel *panel, int64_t time_ns)
{
    double x = (double)(time_ns - panel->view.start_ns) / (double)panel->span_ns * AH_SVG_PLOT;
    return AH_SVG_LEFT + (x < 0 ? 0 : x > AH_SVG_PLOT ? AH_SVG_PLOT : x);
}

struct ah_svg_ticks ah__svg_ticks(double low, double high, int about, double least)
{
    static const double smallest = 1e-12;
    enum { MOST = 64 };
    double range = high - low, size = fabs(low) > fabs(high) ? fabs(low) : fabs(high);
    if (!(range > smallest * size) || !isfinite(range))
        return (struct ah_svg_ticks){1, 0, 0};
    double raw = range / about, power = pow(10, floor(log10(raw))), digit = raw / power;
    double step = power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
    step = step < least ? least : step;
    double first = ceil(low / step), count = floor(high / step * (1 + 1e-12)) - first + 1;
    return (struct ah_svg_ticks){step, first, count >= 1 ? count < MOST ? (int)count : MOST : 0};
}

double ah__svg_tick(const struct ah_svg_ticks *ticks, int index)
{
    return (ticks->first + index) * ticks->step;
}

/* Returns the largest unit in which the value is at least 4, else the smallest unit. */
static struct ah_svg_unit unit_of(const struct ah_svg_unit *units, size_t count, double value)
{
    size_t at = 0;
    while (at + 1 < count && value >= 4 * units[at + 1].size)
        at++;
    return units[at];
}

struct ah_svg_unit ah__svg_time_unit(int64_t ns)
{
    static const struct ah_svg_unit units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    return unit_of(units, AH_LENGTH(units), (double)ns);
}

struct ah_svg_unit ah__svg_memory_unit(int64_t bytes)
{
    static const struct ah_svg_unit units[] = {{"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}};
    return unit_of(units, AH_LENGTH(units), (double)bytes);
}

char *ah__svg_figure(char text[24], double value)
{
    ah__snprintf(text, 24, value < 10 ? "%.2f" : value < 1000 ? "%.1f" : "%.0f", value);
    return text;
}

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

static void item_name(char *text, size_t size, const struct ah_item *item, int layers)
{
    if (item->partition == 0 || item->partition == layers + 1)
        ah__snprintf(text, size, "%s", item->partition ? "head" : "emb");
    else
        ah__snprintf(text, size, "%d", item->partition);
}

static void item_label(struct ah_buf *buf, const struct ah_span *span, int layers, double x, double width, int y)
{
    char text[16];
    item_name(text, sizeof text, &span->item, layers);
    if (width < 6.4 * (double)strlen(text) + 3)
        return;
    bool light = shades[span->item.kind] == AH_SVG_LIGHT;
    ah__buf_printf(buf, "<text class=\"%s\" x=\"%.1f\" y=\"%d\">%s</text>", light ? "on-light" : "on-dark",
                   x + width / 2, y + ROW / 2 + 4, text);
}

static void item_tooltip(struct ah_buf *buf, const struct ah_svg_panel *panel, const struct ah_span *span)
{
    char name[16];
    item_name(name, sizeof name, &span->item, panel->timeline->layers);
    bool block = span->item.partition >= 1 && span->item.partition <= panel->timeline->layers;
    const char *what = block ? "block " : "";
    ah__buf_printf(buf, "<title>%s %s%s%s, iteration %lld: %.3f to %.3f ms (%.3f ms)</title>",
                   ah__item_names[span->item.kind], what, strcmp(name, "emb") == 0 ? "embedding" : name,
                   span->item.kind != AH_ITEM_BACKWARD ? ""
                   : span->item.recompute              ? " with recompute"
                   : span->item.selective              ? " with selective recompute"
                                                       : "",
                   (long long)span->item.iteration, (double)(span->start_ns - panel->view.start_ns) / 1e6,
                   (double)(span->end_ns - panel->view.start_ns) / 1e6, (double)(span->end_ns - span->start_ns) / 1e6);
}

/* Returns true if the span runs after the end of its own iteration's compute. */
static bool is_late(const struct ah_svg_panel *panel, const struct ah_span *span)
{
    const struct ah_view *view = &panel->view;
    if (span->item.iteration < view->first)
        return span->start_ns >= view->start_ns;
    if (span->item.iteration == view->first && view->last > view->first)
        return span->start_ns >= view->boundary_ns;
    return span->item.iteration == view->last && span->start_ns >= view->end_ns;
}

static void item(struct ah_buf *buf, const struct ah_svg_panel *panel, const struct ah_span *span, int y)
{
    double x = x_of(panel, span->start_ns), width = x_of(panel, span->end_ns) - x;
    if (width <= 0)
        return;
    char colour[8];
    bool recomputes = span->item.kind == AH_ITEM_BACKWARD && (span->item.recompute || span->item.selective);
    bool again = shades[span->item.kind] == AH_SVG_AGAIN || recomputes;
    ah__svg_colour(colour, span->item.partition, panel->timeline->layers, shades[span->item.kind]);
    /* a thin white line between neighbours, if the span is wide enough */
    double drawn = width > 3 ? width - 0.7 : width;
    ah__buf_printf(buf, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" rx=\"%g\" fill=\"%s\">", x, y, drawn,
                   ROW, width > 8 ? 2.0 : 0.0, colour);
    item_tooltip(buf, panel, span);
    ah__buf_printf(buf, "</rect>");
    if (again)
        ah__buf_printf(buf, "<rect class=\"again\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"/>", x, y, drawn,
                       ROW);
    if (is_late(panel, span))
        ah__buf_printf(buf, "<rect class=\"late\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"3\"/>", x, y + ROW + 1,
                       drawn);
    item_label(buf, span, panel->timeline->layers, x, drawn, y);
    ah__buf_printf(buf, "\n");
}

static void lanes(struct ah_buf *buf, const struct ah_svg_panel *panel, const struct places *places)
{
    for (int lane = 0; lane < AH_LANE_COUNT; lane++) {
        int y = places->rows[lane];
        if (y < 0)
            continue;
        struct ah_view_lane sum;
        ah__view_lane(&sum, panel->timeline, &panel->view, (enum ah_lane)lane);
        ah__buf_printf(buf,
                       "<text class=\"lane\" x=\"%d\" y=\"%d\">%s</text>"
                       "<text class=\"small end\" x=\"%d\" y=\"%d\">%.0f%% busy</text>"
                       "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#f1f5f9\" rx=\"3\"/>\n",
                       AH_SVG_LEFT - 14, y + 12, lane_labels[lane], AH_SVG_LEFT - 14, y + 25,
                       100.0 * (double)sum.busy_ns / (double)(panel->view.end_ns - panel->view.start_ns), AH_SVG_LEFT,
                       y, AH_SVG_PLOT, ROW);
        for (size_t i = 0; i < panel->timeline->span_count; i++) {
            const struct ah_span *span = &panel->timeline->spans[i];
            if ((int)span->lane == lane && span->end_ns > panel->view.start_ns &&
                span->start_ns < panel->view.start_ns + panel->span_ns)
                item(buf, panel, span, y);
        }
    }
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

struct scale {
    double top_bytes;
    struct ah_svg_unit unit;
    int y, height;
    bool shows_budget; /* a budget far above the peak would flatten the curve */
};

static double y_of(const struct scale *scale, double bytes)
{
    return scale->y + scale->height * (1 - bytes / scale->top_bytes);
}

static void scale_init(struct scale *scale, const struct ah_svg_panel *panel, int y)
{
    const struct ah_timeline *timeline = panel->timeline;
    double peak = (double)timeline->device_peak_bytes, budget = (double)panel->budget_bytes;
    for (size_t i = 0; i < timeline->sample_count; i++) {
        double used = (double)(timeline->fixed_bytes + timeline->samples[i].buffers_used * timeline->buffer_bytes);
        peak = used > peak ? used : peak;
    }
    scale->shows_budget = budget > 0 && budget < 3 * peak;
    peak = scale->shows_budget && budget > peak ? budget : peak;
    peak = (peak > 0 ? peak : 1) * 1.12;
    *scale = (struct scale){peak, panel->memory_unit, y, MEMORY, scale->shows_budget};
}

/* Writes the outline of memory in use, from the left edge of the plot to the right edge, as path commands. */
static void outline(struct ah_buf *buf, const struct ah_svg_panel *panel, const struct scale *scale)
{
    const struct ah_timeline *timeline = panel->timeline;
    int buffers = 0;
    double x = AH_SVG_LEFT;
    size_t i = 0;
    for (; i < timeline->sample_count && timeline->samples[i].time_ns <= panel->view.start_ns; i++)
        buffers = timeline->samples[i].buffers_used;
    ah__buf_printf(buf, "M%.2f %.2f", x,
                   y_of(scale, (double)(timeline->fixed_bytes + buffers * timeline->buffer_bytes)));
    for (; i < timeline->sample_count; i++) {
        const struct ah_sample *sample = &timeline->samples[i];
        if (sample->time_ns >= panel->view.start_ns + panel->span_ns)
            break;
        if (sample->buffers_used == buffers)
            continue;
        buffers = sample->buffers_used;
        x = x_of(panel, sample->time_ns) > x ? x_of(panel, sample->time_ns) : x;
        ah__buf_printf(buf, "H%.2fV%.2f", x,
                       y_of(scale, (double)(timeline->fixed_bytes + buffers * timeline->buffer_bytes)));
    }
    ah__buf_printf(buf, "H%d", AH_SVG_LEFT + AH_SVG_PLOT);
}

static void memory_axis(struct ah_buf *buf, const struct scale *scale)
{
    double size = scale->unit.size;
    struct ah_svg_ticks ticks = ah__svg_ticks(0, scale->top_bytes / size, 4, 0);
    for (int i = 0; i < ticks.count; i++) {
        double at = ah__svg_tick(&ticks, i), y = y_of(scale, at * size);
        ah__buf_printf(buf,
                       "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.2f\" y2=\"%.2f\"/>"
                       "<text class=\"small end\" x=\"%d\" y=\"%.2f\">%g</text>\n",
                       AH_SVG_LEFT, AH_SVG_LEFT + AH_SVG_PLOT, y, y, AH_SVG_LEFT - 8, y + 3.5, at);
    }
    ah__buf_printf(buf,
                   "<text class=\"lane\" x=\"%d\" y=\"%d\">device</text>"
                   "<text class=\"lane\" x=\"%d\" y=\"%d\">memory</text>"
                   "<text class=\"small end\" x=\"%d\" y=\"%d\">in %s</text>\n",
                   AH_SVG_LEFT - 44, scale->y + 36, AH_SVG_LEFT - 44, scale->y + 51, AH_SVG_LEFT - 44, scale->y + 66,
                   scale->unit.name);
}

/* Returns the smallest number of buffers in use between two horizontal positions of the plot. */
static int least_buffers(const struct ah_svg_panel *panel, double from, double to)
{
    const struct ah_timeline *timeline = panel->timeline;
    int least = -1, before = 0;
    for (size_t i = 0; i < timeline->sample_count; i++) {
        const struct ah_sample *sample = &timeline->samples[i];
        double x = x_of(panel, sample->time_ns);
        if (x > to)
            break;
        if (x >= from && (least < 0 || sample->buffers_used < least))
            least = sample->buffers_used;
        else if (x < from)
            before = sample->buffers_used;
    }
    return least < 0 || before < least ? before : least;
}

/* Writes the name of each band into it, if there is room. The upper band may be too low in places: its name starts at
 * the first position where it is high enough. */
static void memory_names(struct ah_buf *buf, const struct ah_svg_panel *panel, const struct scale *scale)
{
    static const char buffers_text[] = "buffers in use: parameters and gradients of blocks";
    const double width = 6.2 * (double)sizeof buffers_text;
    const struct ah_timeline *timeline = panel->timeline;
    double fixed = y_of(scale, (double)timeline->fixed_bytes), bottom = scale->y + scale->height;
    double end = x_of(panel, panel->view.end_ns);
    for (double x = AH_SVG_LEFT + 8; x + width < end; x += 12) {
        int64_t least = least_buffers(panel, x - 4, x + width) * timeline->buffer_bytes;
        if (fixed - y_of(scale, (double)(timeline->fixed_bytes + least)) < 13)
            continue;
        ah__buf_printf(buf, "<text class=\"band\" x=\"%.0f\" y=\"%.2f\">%s</text>\n", x, fixed - 4, buffers_text);
        break;
    }
    if (bottom - fixed > 14)
        ah__buf_printf(buf,
                       "<text class=\"band\" x=\"%d\" y=\"%.2f\">always in use: optimizer states, activations, "
                       "workspace</text>\n",
                       AH_SVG_LEFT + 8, bottom - 5);
}

static void memory(struct ah_buf *buf, const struct ah_svg_panel *panel, int y)
{
    struct scale scale;
    scale_init(&scale, panel, y);
    memory_axis(buf, &scale);
    double fixed = y_of(&scale, (double)panel->timeline->fixed_bytes), bottom = scale.y + scale.height;
    ah__buf_printf(buf, "<path fill=\"#93c5fd\" fill-opacity=\"0.75\" d=\"");
    outline(buf, panel, &scale);
    ah__buf_printf(buf,
                   "V%.2fH%dZ\"><title>buffers in use: parameters and gradients of blocks</title></path>\n"
                   "<rect x=\"%d\" y=\"%.2f\" width=\"%d\" height=\"%.2f\" fill=\"#cbd5e1\">"
                   "<title>always in use: optimizer states, activations, workspace</title></rect>\n"
                   "<path fill=\"none\" stroke=\"#2563eb\" stroke-width=\"1.3\" d=\"",
                   bottom, AH_SVG_LEFT, AH_SVG_LEFT, fixed, AH_SVG_PLOT, bottom - fixed);
    outline(buf, panel, &scale);
    ah__buf_printf(buf, "\"/>\n");
    memory_names(buf, panel, &scale);
    if (scale.shows_budget) {
        double line = y_of(&scale, (double)panel->budget_bytes);
        ah__buf_printf(buf, "<line class=\"budget\" x1=\"%d\" x2=\"%d\" y1=\"%.2f\" y2=\"%.2f\"/>\n", AH_SVG_LEFT,
                       AH_SVG_LEFT + AH_SVG_PLOT, line, line);
    }
}

/* ---- panel ------------------------------------------------------------------------------------------------------- */

static void memory_figures(struct ah_buf *buf, const struct ah_svg_panel *panel, int y)
{
    char text[24];
    const struct ah_svg_unit unit = panel->memory_unit;
    ah__buf_printf(buf, "<text class=\"end\" x=\"%d\" y=\"%d\">device memory: peak %s", AH_SVG_LEFT + AH_SVG_PLOT, y,
                   ah__svg_figure(text, (double)panel->timeline->device_peak_bytes / unit.size));
    if (panel->budget_bytes > 0)
        ah__buf_printf(buf, ", <tspan class=\"budget-text\">budget %s</tspan>",
                       ah__svg_figure(text, (double)panel->budget_bytes / unit.size));
    ah__buf_printf(buf, " %s</text>\n", unit.name);
}

static void heading(struct ah_buf *buf, const struct ah_svg_panel *panel, int y)
{
    char text[24];
    const struct ah_svg_unit unit = panel->time_unit;
    ah__buf_printf(buf,
                   "<text class=\"heading\" x=\"24\" y=\"%d\">%s</text>"
                   "<text x=\"24\" y=\"%d\">%s %s per step",
                   y + 18, panel->heading, y + 35, ah__svg_figure(text, (double)panel->view.step_ns / unit.size),
                   unit.name);
    if (panel->timeline->steps > 0)
        ah__buf_printf(buf, ", the median over %lld steps of the run", (long long)panel->timeline->steps);
    else if (panel->timeline->step_ns <= 0)
        ah__buf_printf(buf, ", the median over this record");
    ah__buf_printf(buf, "</text>\n");
    memory_figures(buf, panel, y + 35);
}

/* Draws pale what follows the two iterations. It fills the plot of the faster of two panels. */
static void beyond(struct ah_buf *buf, const struct ah_svg_panel *panel, int y, int end)
{
    double x = x_of(panel, panel->view.end_ns);
    if (x < AH_SVG_LEFT + AH_SVG_PLOT - 0.5)
        ah__buf_printf(buf,
                       "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"#ffffff\" fill-opacity=\"0.72\" "
                       "pointer-events=\"none\"/>\n",
                       x + 1, y, AH_SVG_LEFT + AH_SVG_PLOT - x, end - y);
}

static void boundaries(struct ah_buf *buf, const struct ah_svg_panel *panel, int y, int end)
{
    const struct ah_view *view = &panel->view;
    const int64_t edges[] = {view->start_ns, view->boundary_ns, view->end_ns};
    int shown = view->last > view->first ? 2 : 1;
    for (int i = 0; i <= shown; i++) {
        double x = x_of(panel, edges[i]);
        ah__buf_printf(buf, "<line class=\"boundary\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%d\" y2=\"%d\"/>\n", x, x, y, end);
        if (i < shown)
            ah__buf_printf(buf, "<text class=\"middle\" x=\"%.2f\" y=\"%d\">iteration %lld</text>\n",
                           (x + x_of(panel, edges[i + 1])) / 2, y + 8, (long long)(view->first + i));
    }
}

static void time_axis(struct ah_buf *buf, const struct ah_svg_panel *panel, const struct places *places, bool lines)
{
    double range = (double)panel->span_ns / panel->time_unit.size;
    struct ah_svg_ticks ticks = ah__svg_ticks(0, range, 10, 0);
    for (int i = 0; i < ticks.count; i++) {
        double at = ah__svg_tick(&ticks, i), x = AH_SVG_LEFT + at / range * AH_SVG_PLOT;
        if (lines)
            ah__buf_printf(buf, "<line class=\"grid\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%d\" y2=\"%d\"/>\n", x, x,
                           places->memory, places->memory_end + 5);
        else
            ah__buf_printf(buf, "<text class=\"small middle\" x=\"%.2f\" y=\"%d\">%g</text>\n", x,
                           places->memory_end + 19, at);
    }
    if (!lines)
        ah__buf_printf(buf, "<text class=\"small end\" x=\"%d\" y=\"%d\">time in %s</text>\n", AH_SVG_LEFT - 44,
                       places->memory_end + 19, panel->time_unit.name);
}

void ah__svg_panel(struct ah_buf *buf, const struct ah_svg_panel *panel, int y)
{
    struct places places;
    places_init(&places, panel, y);
    heading(buf, panel, y);
    time_axis(buf, panel, &places, true);
    lanes(buf, panel, &places);
    memory(buf, panel, places.memory);
    beyond(buf, panel, places.rows[AH_LANE_COMPUTE], places.memory_end);
    boundaries(buf, panel, y + LANES - 18, places.memory_end);
    time_axis(buf, panel, &places, false);
}
