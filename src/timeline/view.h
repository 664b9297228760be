/* Selects the part of a timeline that a reader wants to see: two consecutive iterations of the steady state, and what
 * the lanes did then. Returns numbers; draws and prints nothing. */
#ifndef AH_TIMELINE_VIEW_H
#define AH_TIMELINE_VIEW_H

#include "timeline/timeline.h"

struct ah_view {
    int64_t first,
        last;         /* the iterations shown: two consecutive ones, or the same one twice if there is no such pair */
    int64_t start_ns; /* end of the last compute item of iteration first - 1, or the start of iteration `first` */
    int64_t boundary_ns; /* end of the last compute item of iteration `first` */
    int64_t end_ns;      /* end of the last compute item of iteration `last` */
    int64_t step_ns;     /* as the timeline says; else the median over the record, or of the view if the record is
                          * short */
};

struct ah_view_lane {
    int64_t busy_ns;        /* time with an item on the lane, inside the view */
    int64_t longest_gap_ns; /* longest time with no item on the lane, inside the view */
    int items;              /* items that ran, wholly or partly, inside the view */
};

/* Selects the last two complete iterations that are followed by another one. The very last iteration of a run
 * prefetches nothing, so it is shown only if the record is short. AH_EINPUT: no iteration is complete. */
int ah__view_init(struct ah_view *out, const struct ah_timeline *timeline);
void ah__view_lane(struct ah_view_lane *out, const struct ah_timeline *timeline, const struct ah_view *view,
                   enum ah_lane lane);

#endif
