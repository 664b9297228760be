/* Timelines as an SVG image: title, legend, and a panel for each timeline on one time scale. */
#include "timeline/svg_panel.h"

#include <string.h>

#include "base/file.h"

enum { HEADER = 104, GAP = 12, FOOT = 18 };

static void prologue(struct ah_buf *buf, int height, int layers)
{
    ah__buf_printf(buf,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n"
                   "<style>\n"
                   "text { font-family: Inter, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif; "
                   "font-size: 11px; fill: #475569; }\n"
                   ".title { font-size: 19px; font-weight: 600; fill: #0f172a; }\n"
                   ".heading { font-size: 14px; font-weight: 600; fill: #0f172a; }\n"
                   ".lane { font-size: 12px; fill: #1e293b; text-anchor: end; }\n"
                   ".small { font-size: 10px; fill: #94a3b8; }\n"
                   ".end { text-anchor: end; } .middle { text-anchor: middle; }\n"
                   ".on-light { font-size: 10px; fill: #0f172a; text-anchor: middle; pointer-events: none; }\n"
                   ".on-dark { font-size: 10px; fill: #ffffff; text-anchor: middle; pointer-events: none; }\n"
                   ".again { fill: url(#again); pointer-events: none; }\n"
                   ".late { fill: #0f172a; pointer-events: none; }\n"
                   ".grid { stroke: #e2e8f0; stroke-width: 1; }\n"
                   ".boundary { stroke: #0f172a; stroke-width: 1.2; }\n"
                   ".budget { stroke: #dc2626; stroke-width: 1.5; stroke-dasharray: 6 4; fill: none; }\n"
                   ".budget-text { fill: #dc2626; }\n"
                   "</style>\n<defs>\n"
                   "<pattern id=\"again\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
                   "patternTransform=\"rotate(45)\"><rect width=\"1.8\" height=\"5\" fill=\"#ffffff\" "
                   "fill-opacity=\"0.5\"/></pattern>\n<linearGradient id=\"ramp\">",
                   AH_SVG_WIDTH, height, AH_SVG_WIDTH, height);
    /* hard steps, one for each block while they can be told apart */
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

static void legend(struct ah_buf *buf, int layers, int y)
{
    /* one entry after the other; an entry without a swatch is the ramp of blocks */
    const struct {
        const char *text;
        int partition;
        enum ah_svg_shade shade;
        double width;
    } entries[] = {
        {"embedding", 0, AH_SVG_SOLID, 106},
        {NULL, 0, AH_SVG_SOLID, 186},
        {"head", layers + 1, AH_SVG_SOLID, 84},
        {"forward, prefetch", 1, AH_SVG_LIGHT, 148},
        {"backward, gradient", 1, AH_SVG_SOLID, 156},
        {"once more: recompute, re-fetch", 1, AH_SVG_AGAIN, 224},
        {"optimizer", 1, AH_SVG_DARK, 100},
    };
    double x = 24;
    for (size_t i = 0; i < AH_LENGTH(entries); i++) {
        char colour[8];
        ah__svg_colour(colour, entries[i].partition, layers, entries[i].shade);
        if (entries[i].text) {
            swatch(buf, x, y - 10, colour, entries[i].shade == AH_SVG_AGAIN);
            ah__buf_printf(buf, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", x + 24, y, entries[i].text);
        } else {
            ah__buf_printf(buf, "<rect x=\"%.1f\" y=\"%d\" width=\"72\" height=\"12\" rx=\"2\" fill=\"url(#ramp)\"/>"
                                "<text x=\"%.1f\" y=\"%d\">blocks 1 to %d</text>\n",
                           x, y - 10, x + 78, y, layers);
        }
        x += entries[i].width;
    }
    ah__buf_printf(buf, "<rect x=\"%.1f\" y=\"%d\" width=\"18\" height=\"12\" rx=\"2\" fill=\"#cbd5e1\"/>"
                        "<rect class=\"late\" x=\"%.1f\" y=\"%d\" width=\"18\" height=\"3\" rx=\"1\"/>"
                        "<text x=\"%.1f\" y=\"%d\">of the iteration before</text>\n",
                   x, y - 11, x, y + 2, x + 24, y);
}

static void title(struct ah_buf *buf, const struct ah_svg_panel *panels, int count)
{
    const struct ah_timeline *shown = panels[0].timeline;
    ah__buf_printf(buf, "<text class=\"title\" x=\"24\" y=\"38\">AutoHete: %.2f ms per step",
                   (double)panels[count - 1].view.step_ns / 1e6);
    if (count > 1)
        ah__buf_printf(buf, " measured, %.2f ms predicted", (double)panels[0].view.step_ns / 1e6);
    ah__buf_printf(buf, "</text>\n<text x=\"24\" y=\"59\">");
    ah__buf_xml(buf, shown->title);
    ah__buf_printf(buf, "</text>\n");
}

static void page(struct ah_buf *buf, const struct ah_svg_panel *panels, int count)
{
    int layers = panels[0].timeline->layers, height = HEADER + FOOT;
    for (int i = 0; i < count; i++)
        height += ah__svg_panel_height(&panels[i]) + (i ? GAP : 0);
    prologue(buf, height, layers);
    title(buf, panels, count);
    legend(buf, layers, 87);
    for (int i = 0, y = HEADER; i < count; i++) {
        ah__svg_panel(buf, &panels[i], y);
        y += ah__svg_panel_height(&panels[i]) + GAP;
    }
    ah__buf_printf(buf, "</svg>\n");
}

int ah_timeline_save_svg(const struct ah_timeline *predicted, const struct ah_timeline *measured, int64_t budget_bytes,
                         const char *path)
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
        return ah__fail(AH_EINPUT, "%s: found no timeline to draw, expected a predicted or a measured one", path);
    for (int i = 0; i < count; i++)
        panels[i].span_ns = span_ns;
    struct ah_buf buf = {0};
    page(&buf, panels, count);
    int status = buf.status != AH_OK ? buf.status : ah__file_write(path, buf.text, buf.length);
    ah__buf_free(&buf);
    return status;
}
