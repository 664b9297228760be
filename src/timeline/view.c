#include "timeline/view.h"

enum { ITERATIONS_MOST = 1 << 20 }; /* most iterations from the first to the last of a record */

/* The time in which the compute lane ran one iteration of the record. */
struct extent {
    int64_t start_ns, end_ns;
    bool seen, complete;
};

struct extents {
    struct extent *at;
    int64_t lowest, count;
};

static int extents_new(struct extents *out, const struct ah_timeline *timeline)
{
    int64_t lowest = INT64_MAX, highest = INT64_MIN;
    for (size_t i = 0; i < timeline->span_count; i++) {
        int64_t iteration = timeline->spans[i].item.iteration;
        lowest = iteration < lowest ? iteration : lowest;
        highest = iteration > highest ? iteration : highest;
    }
    *out = (struct extents){NULL, lowest, timeline->span_count ? highest - lowest + 1 : 0};
    if (out->count > ITERATIONS_MOST)
        return ah__fail(AH_EINPUT, "timeline '%s': found iterations %lld to %lld, expected at most %d", timeline->title,
                        (long long)lowest, (long long)highest, ITERATIONS_MOST);
    AH_TRY(ah__new(&out->at, (size_t)out->count, sizeof out->at[0]));
    for (size_t i = 0; i < timeline->span_count; i++) {
        const struct ah_span *span = &timeline->spans[i];
        struct extent *extent = &out->at[span->item.iteration - lowest];
        if (span->lane != AH_LANE_COMPUTE)
            continue;
        if (!extent->seen || span->start_ns < extent->start_ns)
            extent->start_ns = span->start_ns;
        if (!extent->seen || span->end_ns > extent->end_ns)
            extent->end_ns = span->end_ns;
        extent->seen = true;
        /* The embedding's backward is the last item of a training iteration. An evaluation has no backward. */
        if (span->item.kind == AH_ITEM_BACKWARD && span->item.partition == 0)
            extent->complete = true;
    }
    return AH_OK;
}

static bool is_complete(const struct extents *extents, int64_t index)
{
    return index >= 0 && index < extents->count && extents->at[index].complete;
}

/* Returns the index of the last iteration to show, -1: no iteration is complete. *pair: the iteration before is shown
 * too. */
static int64_t choose(const struct extents *extents, bool *pair)
{
    int64_t complete = 0, single = -1, any_pair = -1;
    for (int64_t i = 0; i < extents->count; i++)
        complete += is_complete(extents, i);
    for (int64_t i = extents->count - 1; i >= 0; i--) {
        if (!is_complete(extents, i))
            continue;
        single = single < 0 ? i : single;
        if (!is_complete(extents, i - 1))
            continue;
        any_pair = any_pair < 0 ? i : any_pair;
        if (complete >= 4 && !(i + 1 < extents->count && extents->at[i + 1].seen))
            continue;
        *pair = true;
        return i;
    }
    *pair = any_pair >= 0;
    return *pair ? any_pair : single;
}

int ah__view_init(struct ah_view *out, const struct ah_timeline *timeline)
{
    struct extents extents;
    AH_TRY(extents_new(&extents, timeline));
    bool pair;
    int64_t last = choose(&extents, &pair), first = last - pair;
    if (last < 0) {
        ah__free(extents.at);
        return ah__fail(AH_EINPUT, "timeline '%s': found no complete iteration, expected at least one",
                        timeline->title);
    }
    struct ah_view view = {.first = extents.lowest + first,
                           .last = extents.lowest + last,
                           .start_ns = extents.at[first].start_ns,
                           .boundary_ns = extents.at[first].end_ns,
                           .end_ns = extents.at[last].end_ns};
    if (is_complete(&extents, first - 1))
        view.start_ns = extents.at[first - 1].end_ns;
    ah__free(extents.at);
    view.step_ns = timeline->step_ns > 0 ? timeline->step_ns : ah__timeline_step_ns(timeline, 1);
    if (view.step_ns <= 0)
        view.step_ns = (view.end_ns - view.start_ns) / (1 + pair);
    *out = view;
    return AH_OK;
}

void ah__view_lane(struct ah_view_lane *out, const struct ah_timeline *timeline, const struct ah_view *view,
                   enum ah_lane lane)
{
    *out = (struct ah_view_lane){0};
    int64_t idle_since = view->start_ns;
    /* Items of one lane complete, and are recorded, in the order in which they start. */
    for (size_t i = 0; i < timeline->span_count; i++) {
        const struct ah_span *span = &timeline->spans[i];
        if (span->lane != lane || span->end_ns <= view->start_ns || span->start_ns >= view->end_ns)
            continue;
        int64_t start = span->start_ns > view->start_ns ? span->start_ns : view->start_ns;
        int64_t end = span->end_ns < view->end_ns ? span->end_ns : view->end_ns;
        if (start - idle_since > out->longest_gap_ns)
            out->longest_gap_ns = start - idle_since;
        idle_since = end;
        out->busy_ns += end - start;
        out->items++;
    }
    if (view->end_ns - idle_since > out->longest_gap_ns)
        out->longest_gap_ns = view->end_ns - idle_since;
}
