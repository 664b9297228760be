/* A timeline as a Chrome trace: one row per lane, a memory counter, arrows for dependencies. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "timeline/timeline.h"

/* Dependencies between items of one partition or group: `from` hands `what` to `to`. An edge with `crosses` leads into
 * the next iteration and is joined by time. Each span hands something on once: a gradient that is summed over ranks
 * goes to the host from the reduction. */
static const struct edge {
    enum ah_item_kind from, to;
    bool crosses;
    const char *what;
} edges[] = {
    {AH_ITEM_INPUT, AH_ITEM_FORWARD, false, "tokens"},
    {AH_ITEM_BACKWARD, AH_ITEM_REDUCE, false, "gradient"},
    {AH_ITEM_BACKWARD, AH_ITEM_OFFLOAD, false, "gradient"},
    {AH_ITEM_BACKWARD, AH_ITEM_UPDATE_DEVICE, false, "gradient"},
    {AH_ITEM_REDUCE, AH_ITEM_OFFLOAD, false, "gradient"},
    {AH_ITEM_REDUCE, AH_ITEM_UPDATE_DEVICE, false, "gradient"},
    {AH_ITEM_OFFLOAD, AH_ITEM_UPDATE_HOST, false, "gradient"},
    {AH_ITEM_OFFLOAD, AH_ITEM_UPDATE_SPECULATIVE, false, "gradient"},
    {AH_ITEM_OFFLOAD, AH_ITEM_STATES_IN, false, "gradient"},
    {AH_ITEM_STATES_IN, AH_ITEM_UPDATE_STAGED, false, "states"},
    {AH_ITEM_UPDATE_SPECULATIVE, AH_ITEM_UPDATE_HOST, false, "parameters"},
    {AH_ITEM_UPDATE_SPECULATIVE, AH_ITEM_PREFETCH, true, "parameters"},
    {AH_ITEM_UPDATE_STAGED, AH_ITEM_PREFETCH, true, "parameters"},
    {AH_ITEM_UPDATE_HOST, AH_ITEM_PREFETCH, true, "parameters"},
    {AH_ITEM_UPDATE_DEVICE, AH_ITEM_CAST, true, "parameters"},
    {AH_ITEM_UPDATE_DEVICE, AH_ITEM_GATHER, true, "parameters"},
    {AH_ITEM_UPDATE_DEVICE, AH_ITEM_FORWARD, true, "parameters"},
    {AH_ITEM_CAST, AH_ITEM_GATHER, false, "parameters"},
    {AH_ITEM_CAST, AH_ITEM_FORWARD, true, "parameters"},
    {AH_ITEM_PREFETCH, AH_ITEM_GATHER, false, "parameters"},
    {AH_ITEM_PREFETCH, AH_ITEM_FORWARD, true, "parameters"},
    {AH_ITEM_REFETCH, AH_ITEM_GATHER, false, "parameters"},
    {AH_ITEM_REFETCH, AH_ITEM_BACKWARD, false, "parameters"},
    {AH_ITEM_GATHER, AH_ITEM_FORWARD, false, "parameters"},
    {AH_ITEM_GATHER, AH_ITEM_BACKWARD, false, "parameters"},
    {AH_ITEM_FORWARD, AH_ITEM_REFETCH, false, "released"},
    {AH_ITEM_FORWARD, AH_ITEM_ACTIVATIONS_OUT, false, "activations"},
    {AH_ITEM_ACTIVATIONS_OUT, AH_ITEM_ACTIVATIONS_IN, false, "activations"},
    {AH_ITEM_ACTIVATIONS_IN, AH_ITEM_BACKWARD, false, "activations"},
};

/* Times in the trace are microseconds. */
#define US_FORMAT "%lld.%03lld"
#define US(ns) (long long)((ns) / 1000), (long long)((ns) % 1000)

/* A timeline as one process of the trace. */
struct part {
    const struct ah_timeline *timeline;
    int pid;
    int64_t origin_ns; /* the time that is 0 in the trace */
};

static const char *source_of(const struct ah_timeline *timeline)
{
    return timeline->predicted ? "predicted" : "measured";
}

/* Writes the fields of a timeline that no event carries. src/timeline/load.c reads them again. */
static void about(struct ah_buf *buf, const struct part *part)
{
    const struct ah_timeline *timeline = part->timeline;
    ah__buf_printf(buf, "\"%s\": {\"pid\": %d, \"title\": \"", source_of(timeline), part->pid);
    ah__buf_json(buf, timeline->title);
    ah__buf_printf(buf, "\", \"caption\": \"");
    ah__buf_json(buf, timeline->caption);
    ah__buf_printf(buf,
                   "\", \"layers\": %d, \"step_ns\": %lld, \"median_of_steps\": %lld, \"fixed_bytes\": %lld, "
                   "\"buffer_bytes\": %lld, \"device_peak_bytes\": %lld, \"device_budget_bytes\": %lld}",
                   timeline->layers, (long long)timeline->step_ns, (long long)timeline->steps,
                   (long long)timeline->fixed_bytes, (long long)timeline->buffer_bytes,
                   (long long)timeline->device_peak_bytes, (long long)timeline->device_budget_bytes);
}

static void header(struct ah_buf *buf, const struct part *parts, int count)
{
    ah__buf_printf(buf, "{\"displayTimeUnit\": \"ms\",\n\"otherData\": {");
    for (int i = 0; i < count; i++) {
        ah__buf_printf(buf, i ? ",\n" : "");
        about(buf, &parts[i]);
    }
    ah__buf_printf(buf, "},\n\"traceEvents\": [\n");
}

static void process(struct ah_buf *buf, const struct part *part)
{
    ah__buf_printf(buf,
                   "{\"ph\": \"M\", \"pid\": %d, \"name\": \"process_name\", \"args\": {\"name\": \"%s: ", part->pid,
                   source_of(part->timeline));
    ah__buf_json(buf, part->timeline->title);
    ah__buf_printf(buf, "\"}}");
}

static void rows(struct ah_buf *buf, const struct part *part)
{
    bool used[AH_LANE_COUNT] = {false};
    for (size_t i = 0; i < part->timeline->span_count; i++)
        used[part->timeline->spans[i].lane] = true;
    for (int lane = 0; lane < AH_LANE_COUNT; lane++) {
        if (!used[lane])
            continue;
        ah__buf_printf(buf,
                       ",\n{\"ph\": \"M\", \"pid\": %d, \"tid\": %d, \"name\": \"thread_name\", \"args\": "
                       "{\"name\": \"%s\"}}",
                       part->pid, lane, ah_lane_name((enum ah_lane)lane));
        ah__buf_printf(buf,
                       ",\n{\"ph\": \"M\", \"pid\": %d, \"tid\": %d, \"name\": \"thread_sort_index\", \"args\": "
                       "{\"sort_index\": %d}}",
                       part->pid, lane, lane);
    }
}

static void span_name(char name[32], const struct ah_timeline *timeline, const struct ah_item *item)
{
    const char *kind = ah__item_short_names[item->kind];
    if (item->partition == 0)
        snprintf(name, 32, "%s embedding", kind);
    else if (item->partition == timeline->layers + 1)
        snprintf(name, 32, "%s head", kind);
    else
        snprintf(name, 32, "%s %d", kind, item->partition);
}

static void spans(struct ah_buf *buf, const struct part *part)
{
    const struct ah_timeline *timeline = part->timeline;
    for (size_t i = 0; i < timeline->span_count; i++) {
        const struct ah_span *span = &timeline->spans[i];
        char name[32];
        span_name(name, timeline, &span->item);
        ah__buf_printf(buf,
                       ",\n{\"ph\": \"X\", \"pid\": %d, \"tid\": %d, \"name\": \"%s\", \"cat\": \"%s\", "
                       "\"ts\": " US_FORMAT ", \"dur\": " US_FORMAT ", \"args\": {\"iteration\": %lld, "
                       "\"partition\": %d, \"recompute\": %s, \"selective\": %s}}",
                       part->pid, (int)span->lane, name, ah__item_names[span->item.kind],
                       US(span->start_ns - part->origin_ns), US(span->end_ns - span->start_ns),
                       (long long)span->item.iteration, span->item.partition,
                       span->item.recompute && span->item.kind == AH_ITEM_BACKWARD ? "true" : "false",
                       span->item.selective && span->item.kind == AH_ITEM_BACKWARD ? "true" : "false");
    }
}

static void memory(struct ah_buf *buf, const struct part *part)
{
    const struct ah_timeline *timeline = part->timeline;
    int before = -1;
    for (size_t i = 0; i < timeline->sample_count; i++) {
        const struct ah_sample *sample = &timeline->samples[i];
        if (sample->buffers_used == before || sample->time_ns < part->origin_ns)
            continue;
        before = sample->buffers_used;
        ah__buf_printf(buf,
                       ",\n{\"ph\": \"C\", \"pid\": %d, \"name\": \"device memory\", \"ts\": " US_FORMAT
                       ", \"args\": {\"bytes\": %lld}}",
                       part->pid, US(sample->time_ns - part->origin_ns),
                       (long long)(timeline->fixed_bytes + before * timeline->buffer_bytes));
    }
}

/* A span and its start or its end, to sort by. */
struct order {
    int64_t time_ns;
    size_t span;
};

static int by_time(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->span > y->span) - (x->span < y->span);
}

static void arrow(struct ah_buf *buf, const struct part *part, const struct edge *edge, const struct ah_span *from,
                  const struct ah_span *to, int id)
{
    /* Viewers bind the tail to the slice that covers its time, and a slice does not cover its own end. */
    int64_t tail_ns = from->end_ns > from->start_ns ? from->end_ns - 1 : from->end_ns;
    ah__buf_printf(buf,
                   ",\n{\"ph\": \"s\", \"pid\": %d, \"tid\": %d, \"name\": \"%s\", \"cat\": \"dependency\", "
                   "\"id\": %d, \"ts\": " US_FORMAT "}",
                   part->pid, (int)from->lane, edge->what, id, US(tail_ns - part->origin_ns));
    ah__buf_printf(buf,
                   ",\n{\"ph\": \"f\", \"bp\": \"e\", \"pid\": %d, \"tid\": %d, \"name\": \"%s\", \"cat\": "
                   "\"dependency\", \"id\": %d, \"ts\": " US_FORMAT "}",
                   part->pid, (int)to->lane, edge->what, id, US(to->start_ns - part->origin_ns));
}

static size_t tails(const struct ah_timeline *timeline)
{
    return (size_t)timeline->layers + 2;
}

/* Returns the entry of `latest` for the newest possible tail of an edge. An edge inside an iteration has two entries,
 * since two iterations may run at once. */
static size_t *tail_of(size_t *latest, const struct ah_timeline *timeline, size_t edge, const struct ah_item *item)
{
    size_t parity = edges[edge].crosses ? 0 : (size_t)(item->iteration & 1);
    return &latest[(edge * tails(timeline) + (size_t)item->partition) * 2 + parity];
}

/* Removes span `tail - 1` from all edges of the same kind and name as `edge`, since it has handed on its result. */
static void hand_on(size_t *latest, const struct ah_timeline *timeline, const struct edge *edge, size_t tail)
{
    for (size_t e = 0; e < AH_LENGTH(edges); e++) {
        size_t *other = tail_of(latest, timeline, e, &timeline->spans[tail - 1].item);
        if (edges[e].from == edge->from && strcmp(edges[e].what, edge->what) == 0 && *other == tail)
            *other = 0;
    }
}

/* Writes the arrows, walking spans by start. `latest` holds the newest possible tails that have ended and have no arrow
 * yet. */
static void arrows(struct ah_buf *buf, const struct part *part, const struct order *starts, const struct order *ends,
                   size_t *latest, int *id)
{
    const struct ah_timeline *timeline = part->timeline;
    size_t ended = 0;
    for (size_t i = 0; i < timeline->span_count; i++) {
        const struct ah_span *to = &timeline->spans[starts[i].span];
        for (; ended < timeline->span_count && ends[ended].time_ns <= to->start_ns; ended++) {
            const struct ah_item *item = &timeline->spans[ends[ended].span].item;
            for (size_t e = 0; e < AH_LENGTH(edges); e++)
                if (edges[e].from == item->kind)
                    *tail_of(latest, timeline, e, item) = ends[ended].span + 1;
        }
        for (size_t e = 0; e < AH_LENGTH(edges); e++) {
            size_t *tail = tail_of(latest, timeline, e, &to->item);
            if (edges[e].to != to->item.kind || *tail == 0)
                continue;
            arrow(buf, part, &edges[e], &timeline->spans[*tail - 1], to, (*id)++);
            hand_on(latest, timeline, &edges[e], *tail);
        }
    }
}

static int dependencies(struct ah_buf *buf, const struct part *part, int *id)
{
    const struct ah_timeline *timeline = part->timeline;
    size_t count = timeline->span_count;
    struct order *starts;
    AH_TRY(ah__new(&starts, 2 * count, sizeof *starts));
    size_t *latest;
    int status = ah__new(&latest, 2 * AH_LENGTH(edges) * tails(timeline), sizeof *latest);
    if (status == AH_OK) {
        struct order *ends = starts + count;
        for (size_t i = 0; i < count; i++) {
            starts[i] = (struct order){timeline->spans[i].start_ns, i};
            ends[i] = (struct order){timeline->spans[i].end_ns, i};
        }
        qsort(starts, count, sizeof *starts, by_time);
        qsort(ends, count, sizeof *ends, by_time);
        arrows(buf, part, starts, ends, latest, id);
        ah__free(latest);
    }
    ah__free(starts);
    return status;
}

static int write_parts(const struct part *parts, int count, const char *path)
{
    struct ah_buf buf = {0};
    int status = AH_OK, id = 1;
    header(&buf, parts, count);
    for (int i = 0; i < count && status == AH_OK; i++) {
        ah__buf_printf(&buf, i ? ",\n" : "");
        process(&buf, &parts[i]);
        rows(&buf, &parts[i]);
        spans(&buf, &parts[i]);
        memory(&buf, &parts[i]);
        status = dependencies(&buf, &parts[i], &id);
    }
    ah__buf_printf(&buf, "\n]}\n");
    if (status == AH_OK)
        status = buf.status;
    if (status == AH_OK)
        status = ah__file_write(path, buf.text, buf.length);
    ah__buf_free(&buf);
    return status;
}

int ah_timeline_save(const struct ah_timeline *timeline, const char *path)
{
    struct part part = {timeline, 1, 0};
    return write_parts(&part, 1, path);
}

static int64_t first_start(const struct ah_timeline *timeline)
{
    int64_t first = timeline->span_count ? timeline->spans[0].start_ns : 0;
    for (size_t i = 1; i < timeline->span_count; i++)
        first = timeline->spans[i].start_ns < first ? timeline->spans[i].start_ns : first;
    return first;
}

int ah__timeline_save_both(const struct ah_timeline *predicted, const struct ah_timeline *measured, const char *path)
{
    const struct ah_timeline *given[] = {predicted, measured};
    struct part parts[AH_LENGTH(given)];
    int count = 0;
    for (int i = 0; i < (int)AH_LENGTH(given); i++)
        if (given[i])
            parts[count++] = (struct part){given[i], i + 1, first_start(given[i])};
    if (count == 0)
        return ah__fail(AH_EINPUT, "%s: found no timeline to save, expected a predicted or a measured one", path);
    return write_parts(parts, count, path);
}
