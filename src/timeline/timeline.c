#include "timeline/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Most items of a partition: forward, backward, two casts, two gathers, reduction, update, prefetch, refetch, offload,
 * states in, update on the host or staged, activations and sums out and in, two reads of parameters from disk, reads
 * and writes of states. Prefetch, states in and update run a second time after a speculative update that did not count,
 * and so do reads and writes for it. */
enum { ITEMS_PER_PARTITION = 26, ITEMS_IN_CHUNKS = 14, ITEMS_PER_ITERATION = 3 };

int ah__timeline_new(struct ah_timeline **out, int layers, int chunks, int rounds)
{
    struct ah_timeline *timeline;
    AH_TRY(ah__new(&timeline, 1, sizeof *timeline));
    timeline->layers = layers;
    int items = (layers + 2) * (ITEMS_PER_PARTITION + ITEMS_IN_CHUNKS * (chunks - 1)) + ITEMS_PER_ITERATION;
    timeline->span_capacity = (size_t)rounds * (size_t)items;
    timeline->sample_capacity = 2 * timeline->span_capacity;
    if (ah__new(&timeline->spans, timeline->span_capacity, sizeof *timeline->spans) ||
        ah__new(&timeline->samples, timeline->sample_capacity, sizeof *timeline->samples)) {
        ah_timeline_free(timeline);
        return AH_ENOMEM;
    }
    *out = timeline;
    return AH_OK;
}

void ah_timeline_free(struct ah_timeline *timeline)
{
    if (!timeline)
        return;
    ah__free(timeline->spans);
    ah__free(timeline->samples);
    ah__free(timeline);
}

int ah__timeline_copy(struct ah_timeline **out, const struct ah_timeline *timeline)
{
    struct ah_timeline *copy;
    AH_TRY(ah__new(&copy, 1, sizeof *copy));
    *copy = *timeline;
    copy->spans = NULL;
    copy->samples = NULL;
    copy->span_capacity = timeline->span_count;
    copy->sample_capacity = timeline->sample_count;
    if (ah__new(&copy->spans, copy->span_capacity, sizeof *copy->spans) ||
        ah__new(&copy->samples, copy->sample_capacity, sizeof *copy->samples)) {
        ah_timeline_free(copy);
        return AH_ENOMEM;
    }
    memcpy(copy->spans, timeline->spans, timeline->span_count * sizeof *copy->spans);
    memcpy(copy->samples, timeline->samples, timeline->sample_count * sizeof *copy->samples);
    *out = copy;
    return AH_OK;
}

void ah__timeline_caption(struct ah_timeline *timeline, const char *text)
{
    snprintf(timeline->caption, sizeof timeline->caption, "%s", text);
}

void ah__timeline_clear(struct ah_timeline *timeline)
{
    timeline->span_count = timeline->sample_count = 0;
}

void ah__timeline_span(struct ah_timeline *timeline, const struct ah_span *span)
{
    if (timeline->span_count < timeline->span_capacity)
        timeline->spans[timeline->span_count++] = *span;
}

void ah__timeline_sample(struct ah_timeline *timeline, int64_t time_ns, int buffers_used)
{
    if (timeline->sample_count < timeline->sample_capacity)
        timeline->samples[timeline->sample_count++] = (struct ah_sample){time_ns, buffers_used};
}

void ah__timeline_observe(const struct ah_span *span, int64_t now_ns, int buffers_used, void *context)
{
    if (span)
        ah__timeline_span(context, span);
    ah__timeline_sample(context, now_ns, buffers_used);
}

static int compare_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Returns the end of the compute lane's last item of an iteration, or -1 if the iteration is not in the record. */
static int64_t iteration_end(const struct ah_timeline *timeline, int64_t iteration)
{
    int64_t end = -1;
    for (size_t i = 0; i < timeline->span_count; i++) {
        const struct ah_span *span = &timeline->spans[i];
        if (span->lane == AH_LANE_COMPUTE && span->item.iteration == iteration && span->end_ns > end)
            end = span->end_ns;
    }
    return end;
}

int64_t ah__timeline_step_ns(const struct ah_timeline *timeline, int skip)
{
    enum { MOST = 64 };
    int64_t distance[MOST];
    size_t count = 0;
    if (timeline->span_count == 0)
        return 0;
    int64_t first = timeline->spans[0].item.iteration + skip;
    int64_t before = iteration_end(timeline, first);
    for (int64_t k = first + 1; before >= 0 && count < MOST; k++) {
        int64_t end = iteration_end(timeline, k);
        if (end < 0)
            break;
        distance[count++] = end - before;
        before = end;
    }
    if (count == 0)
        return 0;
    qsort(distance, count, sizeof distance[0], compare_int64);
    return distance[count / 2];
}

void ah__timeline_busy(double busy[AH_LANE_COUNT], const struct ah_timeline *timeline, int64_t first, int64_t last)
{
    int64_t from = iteration_end(timeline, first), to = iteration_end(timeline, last);
    for (int lane = 0; lane < AH_LANE_COUNT; lane++)
        busy[lane] = 0;
    if (from < 0 || to <= from)
        return;
    for (size_t i = 0; i < timeline->span_count; i++) {
        const struct ah_span *span = &timeline->spans[i];
        int64_t start = span->start_ns > from ? span->start_ns : from, end = span->end_ns < to ? span->end_ns : to;
        if (end > start)
            busy[span->lane] += (double)(end - start) / (double)(to - from);
    }
}
