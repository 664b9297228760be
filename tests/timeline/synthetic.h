/* A made-up timeline with everything a real one can hold, so that its SVG can be tested without a scheduler:
 * block 1 keeps its optimizer on the device, blocks 2..layers, embedding and head on the host; blocks up to layers/2
 * recompute; blocks 2..layers/3+1 give their parameters back after forward. */
#ifndef AH_TESTS_TIMELINE_SYNTHETIC_H
#define AH_TESTS_TIMELINE_SYNTHETIC_H

#include <stdlib.h>

#include "test.h"
#include "timeline/timeline.h"

enum { SYNTHETIC_MAX = 66, SYNTHETIC_MIB = 1048576 };

struct synthetic {
    struct ah_timeline *timeline;
    int64_t block_ns, free_ns[AH_LANE_COUNT], ready_ns[SYNTHETIC_MAX], updated_ns[SYNTHETIC_MAX];
    struct {
        int64_t time_ns;
        int delta;
    } claims[SYNTHETIC_MAX * 64];
    size_t claim_count;
    int layers;
};

/* Runs an item as soon as its lane is free and `after` has passed; gives its end. */
static int64_t synthetic_run(struct synthetic *s, enum ah_lane lane, struct ah_item item, int64_t after, double blocks)
{
    struct ah_span span = {.item = item, .lane = lane};
    span.start_ns = s->free_ns[lane] > after ? s->free_ns[lane] : after;
    span.end_ns = s->free_ns[lane] = span.start_ns + (int64_t)(blocks * (double)s->block_ns);
    ah__timeline_span(s->timeline, &span);
    return span.end_ns;
}

static void synthetic_claim(struct synthetic *s, int64_t time_ns, int delta)
{
    s->claims[s->claim_count].time_ns = time_ns;
    s->claims[s->claim_count++].delta = delta;
}

static void synthetic_forward(struct synthetic *s, int64_t k)
{
    int head = s->layers + 1;
    for (int g = 0; g <= head; g++) {
        struct ah_item item = {.partition = g, .iteration = k};
        bool released = g >= 2 && g <= s->layers / 3 + 1;
        if (g != 1 && k > 0) {
            item.kind = AH_ITEM_PREFETCH;
            s->ready_ns[g] = synthetic_run(s, AH_LANE_H2D, item, s->updated_ns[g], 0.5);
            synthetic_claim(s, s->ready_ns[g], g > 1 && g < head);
        }
        item.kind = AH_ITEM_FORWARD;
        int64_t end = synthetic_run(s, AH_LANE_COMPUTE, item, s->ready_ns[g], g == head ? 1.5 : g ? 1 : 0.3);
        if (released && k > 0)
            synthetic_claim(s, end, -1);
    }
}

static void synthetic_backward(struct synthetic *s, int64_t k, int64_t offloaded_ns[])
{
    int head = s->layers + 1;
    for (int g = head; g >= 0; g--) {
        struct ah_item item = {.partition = g, .iteration = k};
        bool released = g >= 2 && g <= s->layers / 3 + 1, block = g > 0 && g < head;
        int64_t after = 0;
        if (released) {
            item.kind = AH_ITEM_REFETCH;
            after = synthetic_run(s, AH_LANE_H2D, item, s->free_ns[AH_LANE_COMPUTE] - 2 * s->block_ns, 0.5);
            synthetic_claim(s, after, k > 0);
        }
        item.kind = AH_ITEM_BACKWARD;
        item.recompute = block && g <= s->layers / 2;
        int64_t end = synthetic_run(s, AH_LANE_COMPUTE, item, after, g == 0 ? 0.3 : item.recompute ? 3 : 2);
        item.recompute = false;
        item.kind = g == 1 ? AH_ITEM_UPDATE_DEVICE : AH_ITEM_OFFLOAD;
        if (g == 1) {
            synthetic_run(s, AH_LANE_COMPUTE, item, end, 0.4);
            continue;
        }
        synthetic_claim(s, end - s->block_ns, block);
        offloaded_ns[g] = synthetic_run(s, AH_LANE_D2H, item, end, 0.6);
        synthetic_claim(s, offloaded_ns[g], block ? (k > 0 ? -2 : -1) : 0);
    }
}

/* The host takes the lowest group whose gradient has arrived. */
static void synthetic_updates(struct synthetic *s, int64_t k, int64_t offloaded_ns[])
{
    for (int done = 0; done < s->layers + 1; done++) {
        int best = -1;
        for (int g = 0; g <= s->layers + 1; g++) {
            bool early = best >= 0 && offloaded_ns[g] <= s->free_ns[AH_LANE_HOST] && g < best;
            if (g != 1 && offloaded_ns[g] &&
                (best < 0 || early ||
                 (offloaded_ns[best] > s->free_ns[AH_LANE_HOST] && offloaded_ns[g] < offloaded_ns[best])))
                best = g;
        }
        struct ah_item item = {.kind = AH_ITEM_UPDATE_HOST, .partition = best, .iteration = k};
        s->updated_ns[best] = synthetic_run(s, AH_LANE_HOST, item, offloaded_ns[best], 2.6);
        offloaded_ns[best] = 0;
    }
}

static int synthetic_by_end(const void *a, const void *b)
{
    const struct ah_span *x = a, *y = b;
    return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static int synthetic_by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The caller frees it with ah_timeline_free. */
static struct ah_timeline *synthetic_timeline(int layers, int iterations, bool predicted)
{
    struct synthetic *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->layers = layers;
    s->block_ns = predicted ? 1000000 : 1043210;
    assert_ok(ah__timeline_new(&s->timeline, layers, 1, iterations));
    struct ah_timeline *timeline = s->timeline;
    timeline->predicted = predicted;
    snprintf(timeline->title, sizeof timeline->title, "gpt2 <%d blocks>, c=%d p=%d o=%d", layers, layers / 2,
             layers / 3, layers - 1);
    timeline->fixed_bytes = 36 * SYNTHETIC_MIB;
    timeline->buffer_bytes = 7 * SYNTHETIC_MIB / layers + 2;
    for (int64_t k = 0; k < iterations; k++) {
        int64_t offloaded_ns[SYNTHETIC_MAX] = {0};
        /* tokens travel one iteration early */
        for (int64_t next = k ? k + 1 : 0; next <= k + 1 && next < iterations; next++) {
            struct ah_item input = {.kind = AH_ITEM_INPUT, .iteration = next};
            s->ready_ns[0] = synthetic_run(s, AH_LANE_H2D, input, 0, 0.05);
        }
        synthetic_forward(s, k);
        synthetic_backward(s, k, offloaded_ns);
        synthetic_updates(s, k, offloaded_ns);
        synthetic_run(s, AH_LANE_D2H, (struct ah_item){.kind = AH_ITEM_RESULT, .iteration = k}, 0, 0.05);
    }
    qsort(timeline->spans, timeline->span_count, sizeof timeline->spans[0], synthetic_by_end);
    qsort(s->claims, s->claim_count, sizeof s->claims[0], synthetic_by_time);
    int buffers = layers, most = 0;
    for (size_t i = 0; i < s->claim_count; i++) {
        buffers += s->claims[i].delta;
        most = buffers > most ? buffers : most;
        ah__timeline_sample(timeline, s->claims[i].time_ns, buffers);
    }
    timeline->device_peak_bytes = timeline->fixed_bytes + most * timeline->buffer_bytes;
    timeline->device_budget_bytes = 54 * SYNTHETIC_MIB;
    free(s);
    return timeline;
}

#endif
