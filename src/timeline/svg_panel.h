/* A panel of the SVG image: one timeline with its lanes, memory and time axis. svg.c draws the page around panels. */
#ifndef AH_TIMELINE_SVG_PANEL_H
#define AH_TIMELINE_SVG_PANEL_H

#include "base/buf.h"
#include "timeline/svg_colour.h"
#include "timeline/view.h"

/* Pixels. The plot, whose horizontal axis is time, has the same left edge and width in every panel. */
enum {
    AH_SVG_WIDTH = 880, /* the width that pages with README files give a picture: a wider one would be scaled down */
    AH_SVG_LEFT = 124,
    AH_SVG_RIGHT = 20,
    AH_SVG_PLOT = AH_SVG_WIDTH - AH_SVG_LEFT - AH_SVG_RIGHT
};

/* The unit of all figures of one kind in a picture, so that they can be compared: "ms" for times about 10 ms. */
struct ah_svg_unit {
    const char *name;
    double size; /* in nanoseconds or bytes */
};
struct ah_svg_unit ah__svg_time_unit(int64_t ns);
struct ah_svg_unit ah__svg_memory_unit(int64_t bytes);
/* Writes the value with at least three digits: "8.13", "119.3". Returns text. */
char *ah__svg_figure(char text[24], double value);
/* The ticks of an axis: `count` multiples of `step` (1, 2 or 5 times a power of ten) from the `first`-th on. */
struct ah_svg_ticks {
    double step, first;
    int count; /* at most 64 */
};
/* Returns about `about` ticks from low to high, no closer than `least`. Returns no tick if the range is below 1e-12 of
 * the values, since adding a step would then not change them. */
struct ah_svg_ticks ah__svg_ticks(double low, double high, int about, double least);
double ah__svg_tick(const struct ah_svg_ticks *ticks, int index);

struct ah_svg_panel {
    const struct ah_timeline *timeline;
    struct ah_view view;
    const char *heading;
    int64_t span_ns;                           /* time across the plot, the same in every panel */
    int64_t budget_bytes;                      /* 0: no budget */
    struct ah_svg_unit time_unit, memory_unit; /* the same in every panel */
};

/* Appends the image that ah_timeline_save_svg writes to a file. */
int ah__timeline_svg(struct ah_buf *buf, const struct ah_timeline *predicted, const struct ah_timeline *measured,
                     int64_t budget_bytes);

/* Returns the height of the panel in pixels. ah__svg_panel draws the panel with its top at y. */
int ah__svg_panel_height(const struct ah_svg_panel *panel);
void ah__svg_panel(struct ah_buf *buf, const struct ah_svg_panel *panel, int y);

#endif
