/* Records which item ran when, and how much device memory was in use. The simulator and a real run make the same
 * record. */
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
    char caption[200];    /* model, batch, machine; "": unknown */
    int64_t step_ns;      /* the step time that pictures show; 0: the median over this record */
    int64_t steps;        /* number of steps whose median step_ns is; 0: the steps of this record, or predicted */
    int64_t fixed_bytes;  /* device bytes in use all the time */
    int64_t buffer_bytes; /* device bytes that each claimed buffer adds */
    int64_t device_peak_bytes, device_budget_bytes;
    struct ah_span *spans;     /* in order of completion */
    struct ah_sample *samples; /* after every submit and completion */
    size_t span_count, sample_count, span_capacity,
        sample_capacity; /* at capacity recording stops; nothing grows while a run records */
};

/* Makes a record with room for `rounds` (equal to iterations if each has one round) of a model with `layers` blocks and
 * transfers in `chunks` chunks. Freed by ah_timeline_free. AH_ENOMEM. */
int ah__timeline_new(struct ah_timeline **out, int layers, int chunks, int rounds);
/* Makes a copy, freed by ah_timeline_free. AH_ENOMEM. */
int ah__timeline_copy(struct ah_timeline **out, const struct ah_timeline *timeline);
/* Sets the text that pictures show under their title: model, batch, machine. Cut to 199 bytes. */
void ah__timeline_caption(struct ah_timeline *timeline, const char *text);
/* Saves two timelines as ah_timeline_save does: each is a process of its own, both start at time 0. Either may be null,
 * but not both (AH_EINPUT). */
int ah__timeline_save_both(const struct ah_timeline *predicted, const struct ah_timeline *measured, const char *path);
/* Reads a file that ah__timeline_save_both wrote. A timeline that is not in the file is set to null. Freed with
 * ah_timeline_free. AH_EINPUT names file and key; AH_EIO, AH_ENOMEM. */
int ah__timeline_load(struct ah_timeline **predicted, struct ah_timeline **measured, const char *path);
void ah__timeline_clear(struct ah_timeline *timeline);
void ah__timeline_span(struct ah_timeline *timeline, const struct ah_span *span);
void ah__timeline_sample(struct ah_timeline *timeline, int64_t time_ns, int buffers_used);
/* Adds the span, if there is one, and a sample: the observe hook of sched/drive.h. `context` is the timeline. */
void ah__timeline_observe(const struct ah_span *span, int64_t now_ns, int buffers_used, void *context);

/* Returns the step time in ns: the median distance between the ends of consecutive iterations' last compute items,
 * without the first `skip` iterations. 0: the record has no two ends. */
int64_t ah__timeline_step_ns(const struct ah_timeline *timeline, int skip);
/* Computes the busy fraction of each lane between the ends of iterations `first` and `last`, which are the ends of the
 * compute lane's last items. */
void ah__timeline_busy(double busy[AH_LANE_COUNT], const struct ah_timeline *timeline, int64_t first, int64_t last);

#endif
