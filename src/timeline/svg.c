/* Timelines as an SVG image: title, legend, and a panel for each timeline on one time scale. */
#include "timeline/svg_panel.h"

#include <string.h>

#include "base/file.h"

enum { HEADER = 142, GAP = 14, FOOT = 10 };

static void prologue(struct ah_buf *buf, int height, int layers)
{
    ah__buf_printf(buf,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"timeline\" width=\"%d\" height=\"%d\" "
                   "viewBox=\"0 0 %d %d\">\n"
                   "<style>\n"
                   ".timeline text { font-family: Inter, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', "
                   "sans-serif; font-size: 12px; fill: #475569; }\n"
                   ".timeline .title { font-size: 18px; font-weight: 600; fill: #0f172a; }\n"
                   ".timeline .heading { font-size: 14px; font-weight: 600; fill: #0f172a; }\n"
                   ".timeline .lane { font-size: 12px; fill: #1e293b; text-anchor: end; }\n"
                   ".timeline .small { font-size: 11px; fill: #64748b; }\n"
                   ".timeline .band { font-size: 11px; fill: #1e293b; pointer-events: none; }\n"
                   ".timeline .end { text-anchor: end; } .timeline .middle { text-anchor: middle; }\n"
                   ".timeline .on-light, .timeline .on-dark { font-size: 10.5px; text-anchor: middle; "
                   "pointer-events: none; }\n"
                   ".timeline .on-light { fill: #0f172a; } .timeline .on-dark { fill: #ffffff; }\n"
                   ".timeline .again { fill: url(#again); pointer-events: none; }\n"
                   ".timeline .late { fill: #0f172a; pointer-events: none; }\n"
                   ".timeline .grid { stroke: #e2e8f0; stroke-width: 1; }\n"
                   ".timeline .boundary { stroke: #0f172a; stroke-width: 1.2; }\n"
                   ".timeline .budget { stroke: #dc2626; stroke-width: 1.5; stroke-dasharray: 6 4; fill: none; }\n"
                   ".timeline .budget-text { fill: #dc2626; }\n"
                   "</style>\n<defs>\n"
                   "<pattern id=\"again\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
                   "patternTransform=\"rotate(45)\"><rect width=\"1.8\" height=\"5\" fill=\"#ffffff\" "
                   "fill-opacity=\"0.5\"/></pattern>\n<linearGradient id=\"ramp\">",
                   AH_SVG_WIDTH, height, AH_SVG_WIDTH, height);
    /* hard steps, one for each block as long as the eye can tell them apart */
    int steps = layers < 48 ? layers : 48;
    for (int i = 0; i < steps; i++) {
        char colour[8];
        ah__svg_colour(colour, 1 + i * layers / steps, layers, AH_SVG_SOLID);
        ah__buf_printf(buf, "<stop offset=\"%.4f\" stop-color=\"%s\"/><stop offset=\"%.4f\" stop-color=\"%s\"/>",
                       (double)i / steps, colour, (double)(i + 1) / steps, colour);
    }
    ah__buf_printf(buf, "</linearGradient>\n</defs>\n<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#ffffff\"/>\n",
                   AH_SVG_WIDTH, height);
}

static void swatch(struct ah_buf *buf, double x, int y, const char *fill, bool again)
{
    ah__buf_printf(buf, "<rect x=\"%.1f\" y=\"%d\" width=\"18\" height=\"12\" rx=\"2\" fill=\"%s\"/>", x, y, fill);
    if (again)
        ah__buf_printf(buf, "<rect class=\"again\" x=\"%.1f\" y=\"%d\" width=\"18\" height=\"12\" rx=\"2\"/>", x, y);
}

/* The kind of swatch in the legend. */
enum mark { MARK_WORK, MARK_RAMP, MARK_LATE, MARK_SLOTS, MARK_ALWAYS };

static void mark(struct ah_buf *buf, enum mark mark, const char *colour, bool again, double x, int y)
{
    switch (mark) {
    case MARK_WORK:
        swatch(buf, x, y - 10, colour, again);
        break;
    case MARK_RAMP:
        ah__buf_printf(buf, "<rect x=\"%.1f\" y=\"%d\" width=\"72\" height=\"12\" rx=\"2\" fill=\"url(#ramp)\"/>", x,
                       y - 10);
        break;
    case MARK_LATE:
        swatch(buf, x, y - 11, "#cbd5e1", false);
        ah__buf_printf(buf, "<rect class=\"late\" x=\"%.1f\" y=\"%d\" width=\"18\" height=\"3\" rx=\"1\"/>", x, y + 2);
        break;
    case MARK_SLOTS:
        swatch(buf, x, y - 10, "#93c5fd", false);
        break;
    case MARK_ALWAYS:
        swatch(buf, x, y - 10, "#cbd5e1", false);
        break;
    }
}

static void legend(struct ah_buf *buf, int layers, int y)
{
    char blocks[32];
    snprintf(blocks, sizeof blocks, "blocks 1 to %d", layers);
    /* the entries of a row in order, each with its width in pixels */
    const struct {
        const char *text;
        enum mark mark;
        int row, partition;
        enum ah_svg_shade shade;
        double width;
    } entries[] = {
        {"embedding", MARK_WORK, 0, 0, AH_SVG_SOLID, 106},
        {blocks, MARK_RAMP, 0, 0, AH_SVG_SOLID, 188},
        {"head", MARK_WORK, 0, layers + 1, AH_SVG_SOLID, 76},
        {"forward, prefetch", MARK_WORK, 0, 1, AH_SVG_LIGHT, 146},
        {"backward, gradient", MARK_WORK, 0, 1, AH_SVG_SOLID, 156},
        {"optimizer", MARK_WORK, 0, 1, AH_SVG_DARK, 100},
        {"recompute, re-fetch", MARK_WORK, 1, 1, AH_SVG_AGAIN, 160},
        {"of the iteration before", MARK_LATE, 1, 0, AH_SVG_SOLID, 178},
        {"activations, sums", MARK_WORK, 1, 1, AH_SVG_GREY, 146},
        {"memory: buffers in use", MARK_SLOTS, 1, 0, AH_SVG_SOLID, 180},
        {"memory: always in use", MARK_ALWAYS, 1, 0, AH_SVG_SOLID, 160},
    };
    double x[2] = {24, 24};
    for (size_t i = 0; i < AH_LENGTH(entries); i++) {
        char colour[8];
        double *at = &x[entries[i].row];
        int line = y + 20 * entries[i].row;
        ah__svg_colour(colour, entries[i].partition, layers, entries[i].shade);
        mark(buf, entries[i].mark, colour, entries[i].shade == AH_SVG_AGAIN, *at, line);
        ah__buf_printf(buf, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", *at + (entries[i].mark == MARK_RAMP ? 78 : 24),
                       line, entries[i].text);
        *at += entries[i].width;
    }
}

/* Writes a line of text. A long line gets smaller letters, so that it ends within the picture. */
static void line(struct ah_buf *buf, const char *text, int y)
{
    enum { USUAL = 12, FITS = 130 }; /* pixels; characters */
    size_t length = strlen(text);
    double size = length > FITS ? (double)USUAL * FITS / (double)length : USUAL;
    ah__buf_printf(buf, "<text x=\"24\" y=\"%d\"", y);
    if (size < USUAL)
        ah__buf_printf(buf, " style=\"font-size: %.1fpx\"", size);
    ah__buf_printf(buf, ">");
    ah__buf_xml(buf, text);
    ah__buf_printf(buf, "</text>\n");
}

static void title(struct ah_buf *buf, const struct ah_svg_panel *panels, int count)
{
    const struct ah_timeline *shown = panels[0].timeline;
    const struct ah_svg_unit unit = panels[0].time_unit;
    double step = (double)panels[count - 1].view.step_ns, predicted = (double)panels[0].view.step_ns;
    char text[24];
    ah__buf_printf(buf, "<text class=\"title\" x=\"24\" y=\"34\">AutoHete: %s %s per step",
                   ah__svg_figure(text, step / unit.size), unit.name);
    if (count > 1)
        ah__buf_printf(buf, " measured, %s %s predicted (%+.1f%%)", ah__svg_figure(text, predicted / unit.size),
                       unit.name, 100 * (predicted - step) / step);
    ah__buf_printf(buf, "</text>\n");
    line(buf, shown->caption[0] ? shown->caption : shown->title, 56);
    if (shown->caption[0])
        line(buf, shown->title, 74);
}

static void page(struct ah_buf *buf, const struct ah_svg_panel *panels, int count)
{
    int layers = panels[0].timeline->layers, height = HEADER + FOOT;
    for (int i = 0; i < count; i++)
        height += ah__svg_panel_height(&panels[i]) + (i ? GAP : 0);
    prologue(buf, height, layers);
    title(buf, panels, count);
    legend(buf, layers, 102);
    for (int i = 0, y = HEADER; i < count; i++) {
        ah__svg_panel(buf, &panels[i], y);
        y += ah__svg_panel_height(&panels[i]) + GAP;
    }
    ah__buf_printf(buf, "</svg>\n");
}

int ah__timeline_svg(struct ah_buf *buf, const struct ah_timeline *predicted, const struct ah_timeline *measured,
                     int64_t budget_bytes)
{
    struct ah_svg_panel panels[2] = {
        {.timeline = predicted, .heading = "Predicted by the simulator", .budget_bytes = budget_bytes},
        {.timeline = measured, .heading = "Measured on the device", .budget_bytes = budget_bytes},
    };
    int count = 0;
    int64_t span_ns = 1;
    for (int i = 0; i < 2; i++) {
        if (!panels[i].timeline)
            continue;
        panels[count] = panels[i];
        AH_TRY(ah__view_init(&panels[count].view, panels[count].timeline));
        int64_t shown_ns = panels[count].view.end_ns - panels[count].view.start_ns;
        span_ns = shown_ns > span_ns ? shown_ns : span_ns;
        count++;
    }
    if (count == 0)
        return ah__fail(AH_EINPUT, "found no timeline to draw, expected a predicted or a measured one");
    for (int i = 0; i < count; i++) {
        panels[i].span_ns = span_ns;
        panels[i].time_unit = ah__svg_time_unit(span_ns);
        panels[i].memory_unit = ah__svg_memory_unit(panels[0].timeline->device_peak_bytes);
    }
    page(buf, panels, count);
    return buf->status;
}

int ah_timeline_save_svg(const struct ah_timeline *predicted, const struct ah_timeline *measured, int64_t budget_bytes,
                         const char *path)
{
    struct ah_buf buf = {0};
    int status = ah__timeline_svg(&buf, predicted, measured, budget_bytes);
    status = status == AH_OK ? ah__file_write(path, buf.text, buf.length) : ah__fail_prefix(status, "%s", path);
    ah__buf_free(&buf);
    return status;
}
