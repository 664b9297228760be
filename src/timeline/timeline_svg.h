/* Inside of the SVG writer: the page (timeline_svg.c) draws panels (timeline_svg_panel.c), one for each timeline. */
#ifndef AH_SCHED_TIMELINE_SVG_H
#define AH_SCHED_TIMELINE_SVG_H

#include "base/buf.h"
#include "timeline/timeline_view.h"

/* Pixels. The plot, where time runs, has the same left edge and width in every panel. */
enum {
    AH_SVG_WIDTH = 1280,
    AH_SVG_LEFT = 148,
    AH_SVG_RIGHT = 32,
    AH_SVG_PLOT = AH_SVG_WIDTH - AH_SVG_LEFT - AH_SVG_RIGHT
};

/* What is done to a block's own colour so that kinds of work can be told apart. */
enum ah_svg_shade { AH_SVG_LIGHT, AH_SVG_SOLID, AH_SVG_AGAIN, AH_SVG_DARK, AH_SVG_GREY };

struct ah_svg_panel {
    const struct ah_timeline *timeline;
    struct ah_view view;
    const char *heading;
    int64_t span_ns;      /* time across the plot, the same in every panel */
    int64_t budget_bytes; /* 0: none */
};

/* "#rrggbb" of a partition's work into text. */
void ah__svg_colour(char text[8], int partition, int layers, enum ah_svg_shade shade);

/* Height of the panel in pixels; ah__svg_panel draws it with its top at y. */
int ah__svg_panel_height(const struct ah_svg_panel *panel);
void ah__svg_panel(struct ah_buf *buf, const struct ah_svg_panel *panel, int y);

#endif
