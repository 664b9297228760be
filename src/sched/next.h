/* Shared by the pickers: how an item to be submitted is begun, and its waits. Private to sched/. */
#ifndef AH_SCHED_NEXT_H
#define AH_SCHED_NEXT_H

#include "sched/internal.h"

static inline void wait_for(const struct ah_sched *sched, struct ah_next *next, const struct item_event *of)
{
    if (of->submitted && !ah__sched_passed(sched, of))
        next->wait[next->waits++] = of->event;
}

static inline void next_init(const struct ah_sched *sched, struct ah_next *next, enum ah_item_kind kind,
                             enum ah_lane lane, int partition, int64_t round)
{
    next->item = ah__item_none;
    next->item.kind = kind;
    next->item.partition = partition;
    next->item.iteration = ah__iteration_of(sched, round);
    next->item.round = round;
    next->lane = lane;
    next->waits = 0;
}

/* Returns a free buffer, preferably one that nobody still reads, or else the one that becomes free first; -1: no
 * buffer. */
static inline int buffer_choose(const struct ah_sched *sched)
{
    int best = -1;
    for (int s = 0; s < sched->config.switches.buffers; s++) {
        const struct buffer *buffer = &sched->buffers[s];
        if (buffer->claimed)
            continue;
        if (ah__sched_passed(sched, &buffer->release))
            return s;
        if (best < 0 || buffer->release.arrival < sched->buffers[best].release.arrival)
            best = s;
    }
    return best;
}

/* Returns true if a buffer is free that nobody still reads. */
static inline bool buffer_is_left(const struct ah_sched *sched)
{
    int best = sched->free_buffers > 0 ? buffer_choose(sched) : -1;
    return best >= 0 && ah__sched_passed(sched, &sched->buffers[best].release);
}

static inline bool buffer_take(const struct ah_sched *sched, struct ah_next *next, int *buffer)
{
    *buffer = buffer_choose(sched);
    if (*buffer < 0)
        return false;
    wait_for(sched, next, &sched->buffers[*buffer].release);
    return true;
}

/* Returns true for rounds of iterations that may not begin yet, or at all. */
static inline bool barred(const struct ah_sched *sched, int64_t round)
{
    int64_t iteration = ah__iteration_of(sched, round);
    bool one_at_a_time = sched->config.policy->barrier || sched->forward_only;
    return iteration >= sched->limit || (one_at_a_time && iteration > sched->iterations_complete);
}

/* The best candidate of a priority queue: of candidates that have arrived the one with the best key; if none has
 * arrived, the one that arrives first. */
struct choice {
    int group; /* -1: no candidate */
    bool arrived;
    int64_t key;
    bool settled; /* groups are considered in order, and no later one can be better */
};

/* Keeps the better of `best` and a group whose data `arrival` brings: of groups that have arrived the earliest
 * (`earliest`), else the one that arrived first. Groups are considered in ascending order. */
static inline void consider(const struct ah_sched *sched, struct choice *best, int group,
                            const struct item_event *arrival, bool earliest)
{
    bool arrived = ah__sched_passed(sched, arrival);
    int64_t value = arrived && earliest ? group : arrival->arrival;
    if (best->group >= 0 && (best->arrived > arrived || (best->arrived == arrived && best->key <= value)))
        return;
    *best = (struct choice){group, arrived, value, arrived && earliest};
}

#endif
