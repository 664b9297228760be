/* A panel of the SVG image: one timeline with its lanes, memory and time axis. The page around panels is svg.c. */
#ifndef AH_TIMELINE_SVG_PANEL_H
#define AH_TIMELINE_SVG_PANEL_H

#include "base/buf.h"
#include "timeline/svg_colour.h"
#include "timeline/view.h"

/* Pixels. The plot, where time runs, has the same left edge and width in every panel. */
enum {
    AH_SVG_WIDTH = 1280,
    AH_SVG_LEFT = 148,
    AH_SVG_RIGHT = 32,
    AH_SVG_PLOT = AH_SVG_WIDTH - AH_SVG_LEFT - AH_SVG_RIGHT
};

struct ah_svg_panel {
    const struct ah_timeline *timeline;
    struct ah_view view;
    const char *heading;
    int64_t span_ns;      /* time across the plot, the same in every panel */
    int64_t budget_bytes; /* 0: none */
};

/* Height of the panel in pixels; ah__svg_panel draws it with its top at y. */
int ah__svg_panel_height(const struct ah_svg_panel *panel);
void ah__svg_panel(struct ah_buf *buf, const struct ah_svg_panel *panel, int y);

#endif
