/* A panel of the SVG image: one timeline with its lanes, memory and time axis. The page around panels is svg.c. */
#ifndef AH_TIMELINE_SVG_PANEL_H
#define AH_TIMELINE_SVG_PANEL_H

#include "base/buf.h"
#include "timeline/svg_colour.h"
#include "timeline/view.h"

/* Pixels. The plot, where time runs, has the same left edge and width in every panel. */
enum {
    AH_SVG_WIDTH = 880, /* what pages that show README files give a picture: more would be scaled down */
    AH_SVG_LEFT = 124,
    AH_SVG_RIGHT = 20,
    AH_SVG_PLOT = AH_SVG_WIDTH - AH_SVG_LEFT - AH_SVG_RIGHT
};

/* A unit for all figures of one kind in a picture, so that they can be compared: "ms" for times about 10 ms. */
struct ah_svg_unit {
    const char *name;
    double size; /* in nanoseconds or bytes */
};
struct ah_svg_unit ah__svg_time_unit(int64_t ns);
struct ah_svg_unit ah__svg_memory_unit(int64_t bytes);
/* A value with so many digits that it has three or more: "8.13", "119.3". Returns text. */
char *ah__svg_figure(char text[24], double value);
/* The ticks of an axis: `count` multiples of `step` (1, 2 or 5 times a power of ten) from the `first`-th on. */
struct ah_svg_ticks {
    double step, first;
    int count; /* at most 64 */
};
/* About `about` ticks from low to high, no closer than `least`. None where the range is below 1e-12 of the values: no
 * step of it changes them. */
struct ah_svg_ticks ah__svg_ticks(double low, double high, int about, double least);
double ah__svg_tick(const struct ah_svg_ticks *ticks, int index);

struct ah_svg_panel {
    const struct ah_timeline *timeline;
    struct ah_view view;
    const char *heading;
    int64_t span_ns;                           /* time across the plot, the same in every panel */
    int64_t budget_bytes;                      /* 0: none */
    struct ah_svg_unit time_unit, memory_unit; /* the same in every panel */
};

/* What ah_timeline_save_svg writes. */
int ah__timeline_svg(struct ah_buf *buf, const struct ah_timeline *predicted, const struct ah_timeline *measured,
                     int64_t budget_bytes);

/* Height of the panel in pixels; ah__svg_panel draws it with its top at y. */
int ah__svg_panel_height(const struct ah_svg_panel *panel);
void ah__svg_panel(struct ah_buf *buf, const struct ah_svg_panel *panel, int y);

#endif
