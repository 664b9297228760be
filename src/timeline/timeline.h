/* What ran when, and how much memory was in use: the same record from the simulator and from a real run. */
#ifndef AH_TIMELINE_TIMELINE_H
#define AH_TIMELINE_TIMELINE_H

#include "base/alloc.h"
#include "sched/item.h"

struct ah_sample {
    int64_t time_ns;
    int buffers_used;
};

struct ah_timeline {
    int layers;
    bool predicted;       /* by the simulator */
    char title[160];      /* the plan */
    char caption[200];    /* model, batch, machine; "": nobody said */
    int64_t step_ns;      /* the step time that pictures tell; 0: the median over this record */
    int64_t steps;        /* it is the median over so many steps of a run; 0: of this record, or predicted */
    int64_t fixed_bytes;  /* device bytes in use all the time */
    int64_t buffer_bytes; /* each claimed buffer adds this */
    int64_t device_peak_bytes, device_budget_bytes;
    struct ah_span *spans;     /* in order of completion */
    struct ah_sample *samples; /* after every submit and completion */
    size_t span_count, sample_count, span_capacity,
        sample_capacity; /* full: recording stops, nothing grows while running */
};

/* Room for `rounds`, the same as iterations where each is one, of a model with `layers` blocks and `below` frozen ones
 * that go with the embedding, transfers in `chunks` pieces. */
int ah__timeline_new(struct ah_timeline **out, int layers, int below, int chunks, int rounds);
/* A copy, to be freed with ah_timeline_free. AH_ENOMEM. */
int ah__timeline_copy(struct ah_timeline **out, const struct ah_timeline *timeline);
/* What pictures of it say under their title: model, batch, machine. Cut to 199 bytes. */
void ah__timeline_caption(struct ah_timeline *timeline, const char *text);
/* As ah_timeline_save, of two: each a process of its own, both from time 0 on; either may be null. */
int ah__timeline_save_both(const struct ah_timeline *predicted, const struct ah_timeline *measured, const char *path);
/* Reads what ah__timeline_save_both wrote; each is null where the file has none. Freed with
 * ah_timeline_free. AH_EINPUT names file and key; AH_EIO, AH_ENOMEM. */
int ah__timeline_load(struct ah_timeline **predicted, struct ah_timeline **measured, const char *path);
void ah__timeline_clear(struct ah_timeline *timeline);
void ah__timeline_span(struct ah_timeline *timeline, const struct ah_span *span);
void ah__timeline_sample(struct ah_timeline *timeline, int64_t time_ns, int buffers_used);
/* Both: the observe hook of sched/drive.h; `context` is the timeline. */
void ah__timeline_observe(const struct ah_span *span, int64_t now_ns, int buffers_used, void *context);

/* The step time: median distance between the ends of consecutive iterations' last compute items, the first `skip` left
 * out. */
int64_t ah__timeline_step_ns(const struct ah_timeline *timeline, int skip);
/* Busy fraction of each lane between the ends of iterations first and last (compute lane's last items). */
void ah__timeline_busy(double busy[AH_LANE_COUNT], const struct ah_timeline *timeline, int64_t first, int64_t last);

#endif
