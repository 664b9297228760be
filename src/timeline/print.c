/* A timeline as a text table. */
#include "base/format.h"
#include "timeline/view.h"

static double ms(int64_t ns)
{
    return (double)ns / 1e6;
}

int ah_timeline_print(const struct ah_timeline *timeline, FILE *to)
{
    struct ah_view view;
    AH_TRY(ah__view_init(&view, timeline));
    int64_t width_ns = view.end_ns - view.start_ns;
    fprintf(to, "%s timeline: %s\n", timeline->predicted ? "predicted" : "measured", timeline->title);
    ah__fprintf(to, "step time %.3f ms; iterations %lld to %lld, %.3f ms:\n", ms(view.step_ns), (long long)view.first,
                (long long)view.last, ms(width_ns));
    fprintf(to, "  %-8s %8s %8s %15s\n", "lane", "busy", "items", "longest gap");
    for (int lane = 0; lane < AH_LANE_COUNT; lane++) {
        struct ah_view_lane sum;
        ah__view_lane(&sum, timeline, &view, (enum ah_lane)lane);
        if (sum.items > 0)
            ah__fprintf(to, "  %-8s %6.1f %% %8d %12.3f ms\n", ah_lane_name((enum ah_lane)lane),
                        100.0 * (double)sum.busy_ns / (double)width_ns, sum.items, ms(sum.longest_gap_ns));
    }
    char peak[32], budget[32];
    fprintf(to, "  device peak %s", ah_size_format(peak, sizeof peak, timeline->device_peak_bytes));
    if (timeline->device_budget_bytes > 0)
        fprintf(to, " of %s", ah_size_format(budget, sizeof budget, timeline->device_budget_bytes));
    fputc('\n', to);
    return ferror(to) ? ah__fail(AH_EIO, "timeline: writing failed") : AH_OK;
}
