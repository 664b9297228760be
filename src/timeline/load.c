/* Reads a timeline back from the trace that json.c writes. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "timeline/timeline.h"

enum { LAYERS_MOST = 1000000, PIDS_MOST = 1000 };
static const int64_t MOST = INT64_C(1) << 53;
static const double US_MOST = 1e15;

static int about_read(struct ah_timeline *timeline, int64_t *pid, const struct ah_json *about)
{
    int64_t layers;
    const char *title, *caption;
    AH_TRY(ah__json_int(pid, about, "pid", 1, PIDS_MOST));
    AH_TRY(ah__json_string(&title, about, "title"));
    AH_TRY(ah__json_string(&caption, about, "caption"));
    AH_TRY(ah__json_int(&layers, about, "layers", 1, LAYERS_MOST));
    AH_TRY(ah__json_int(&timeline->step_ns, about, "step_ns", 0, MOST));
    AH_TRY(ah__json_int(&timeline->steps, about, "median_of_steps", 0, MOST));
    AH_TRY(ah__json_int(&timeline->fixed_bytes, about, "fixed_bytes", 0, MOST));
    AH_TRY(ah__json_int(&timeline->buffer_bytes, about, "buffer_bytes", 0, MOST));
    AH_TRY(ah__json_int(&timeline->device_peak_bytes, about, "device_peak_bytes", 0, MOST));
    AH_TRY(ah__json_int(&timeline->device_budget_bytes, about, "device_budget_bytes", 0, MOST));
    timeline->layers = (int)layers;
    snprintf(timeline->title, sizeof timeline->title, "%s", title);
    ah__timeline_caption(timeline, caption);
    return AH_OK;
}

/* Returns true if the event is of this process and phase: 'X' carries spans, 'C' the memory. */
static bool event_is(const struct ah_json *event, const char *phase, int64_t pid)
{
    const cJSON *ph = cJSON_GetObjectItemCaseSensitive(event->node, "ph");
    const cJSON *process = cJSON_GetObjectItemCaseSensitive(event->node, "pid");
    return cJSON_IsString(ph) && strcmp(ph->valuestring, phase) == 0 && cJSON_IsNumber(process) &&
           process->valuedouble == (double)pid;
}

static int64_t ns_of(double us)
{
    return (int64_t)llround(us * 1000);
}

static int kind_read(enum ah_item_kind *out, const struct ah_json *event)
{
    const char *name;
    AH_TRY(ah__json_string(&name, event, "cat"));
    for (int kind = 0; kind < AH_ITEM_COUNT; kind++)
        if (strcmp(name, ah__item_names[kind]) == 0) {
            *out = (enum ah_item_kind)kind;
            return AH_OK;
        }
    return ah__fail(AH_EINPUT, "%s: key 'cat': found '%.40s', expected a kind of work", event->path, name);
}

static int span_read(struct ah_span *out, const struct ah_json *event, int layers)
{
    struct ah_json args;
    struct ah_span span = {0};
    int64_t lane, partition;
    double start, length;
    AH_TRY(kind_read(&span.item.kind, event));
    AH_TRY(ah__json_int(&lane, event, "tid", 0, AH_LANE_COUNT - 1));
    AH_TRY(ah__json_double(&start, event, "ts", -US_MOST, US_MOST));
    AH_TRY(ah__json_double(&length, event, "dur", 0, US_MOST));
    AH_TRY(ah__json_object(&args, event, "args"));
    AH_TRY(ah__json_int(&span.item.iteration, &args, "iteration", 0, MOST));
    AH_TRY(ah__json_int(&partition, &args, "partition", 0, layers + 1));
    AH_TRY(ah__json_bool(&span.item.recompute, &args, "recompute"));
    if (ah__json_has(&args, "selective"))
        AH_TRY(ah__json_bool(&span.item.selective, &args, "selective"));
    span.item.partition = (int)partition;
    span.lane = (enum ah_lane)lane;
    span.start_ns = ns_of(start);
    span.end_ns = span.start_ns + ns_of(length);
    *out = span;
    return AH_OK;
}

static int sample_read(struct ah_sample *out, const struct ah_json *event, const struct ah_timeline *timeline)
{
    struct ah_json args;
    double time;
    int64_t bytes;
    AH_TRY(ah__json_double(&time, event, "ts", -US_MOST, US_MOST));
    AH_TRY(ah__json_object(&args, event, "args"));
    AH_TRY(ah__json_int(&bytes, &args, "bytes", timeline->fixed_bytes, MOST));
    int64_t buffers = timeline->buffer_bytes ? (bytes - timeline->fixed_bytes) / timeline->buffer_bytes : 0;
    if (buffers > INT32_MAX)
        return ah__fail(AH_EINPUT, "%s: key 'bytes': found %lld buffers, expected at most %d", event->path,
                        (long long)buffers, INT32_MAX);
    *out = (struct ah_sample){ns_of(time), (int)buffers};
    return AH_OK;
}

static int events_read(struct ah_timeline *timeline, const cJSON *events, int64_t pid, const char *path)
{
    size_t count = (size_t)cJSON_GetArraySize(events);
    AH_TRY(ah__new(&timeline->spans, count, sizeof *timeline->spans));
    timeline->span_capacity = count;
    AH_TRY(ah__new(&timeline->samples, count, sizeof *timeline->samples));
    timeline->sample_capacity = count;
    for (cJSON *node = events->child; node; node = node->next) {
        struct ah_json event = {.node = node, .path = path, .where = "traceEvents"};
        if (event_is(&event, "X", pid))
            AH_TRY(span_read(&timeline->spans[timeline->span_count++], &event, timeline->layers));
        else if (event_is(&event, "C", pid))
            AH_TRY(sample_read(&timeline->samples[timeline->sample_count++], &event, timeline));
    }
    return AH_OK;
}

/* Leaves *out as it is if the file has no timeline of that name. */
static int one_read(struct ah_timeline **out, const struct ah_json *json, const cJSON *events, const char *name)
{
    struct ah_json other, about;
    struct ah_timeline *timeline;
    int64_t pid;
    AH_TRY(ah__json_object(&other, json, "otherData"));
    if (!ah__json_has(&other, name))
        return AH_OK;
    AH_TRY(ah__json_object(&about, &other, name));
    AH_TRY(ah__new(&timeline, 1, sizeof *timeline));
    timeline->predicted = strcmp(name, "predicted") == 0;
    int status = about_read(timeline, &pid, &about);
    if (status == AH_OK)
        status = events_read(timeline, events, pid, json->path);
    if (status == AH_OK)
        *out = timeline;
    else
        ah_timeline_free(timeline);
    return status;
}

int ah__timeline_load(struct ah_timeline **predicted, struct ah_timeline **measured, const char *path)
{
    struct ah_json json;
    struct ah_timeline *both[2] = {NULL, NULL};
    AH_TRY(ah__json_load(&json, path));
    const cJSON *events = cJSON_GetObjectItemCaseSensitive(json.node, "traceEvents");
    int status = cJSON_IsArray(events) ? AH_OK : ah__fail(AH_EINPUT, "%s: key 'traceEvents': expected an array", path);
    if (status == AH_OK)
        status = one_read(&both[0], &json, events, "predicted");
    if (status == AH_OK)
        status = one_read(&both[1], &json, events, "measured");
    ah__json_free(&json);
    if (status != AH_OK) {
        ah_timeline_free(both[0]);
        ah_timeline_free(both[1]);
        return status;
    }
    *predicted = both[0];
    *measured = both[1];
    return AH_OK;
}
