/* What the pickers share: how an item to be submitted is begun and what it waits for. Private to sched/. */
#ifndef AH_SCHED_NEXT_H
#define AH_SCHED_NEXT_H

#include "base/hash.h"
#include "sched/internal.h"

static inline void wait_for(const struct ah_sched *sched, struct ah_next *next, const struct mark *mark)
{
    if (mark->submitted && !ah__sched_passed(sched, mark))
        next->wait[next->waits++] = mark->event;
}

static inline void next_init(struct ah_next *next, enum ah_item_kind kind, enum ah_lane lane, int partition,
                             int64_t iteration)
{
    next->item = (struct ah_item){.kind = kind,
                                  .partition = partition,
                                  .iteration = iteration,
                                  .param_buffer = -1,
                                  .grad_buffer = -1,
                                  .shadow_set = -1};
    next->lane = lane;
    next->waits = 0;
}

/* A free buffer, preferring one that nobody still reads, or else the one that frees first; -1: none. */
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

/* Whether one is free that nobody still reads. */
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

/* Iterations that may not begin yet, or at all. */
static inline bool barred(const struct ah_sched *sched, int64_t iteration)
{
    bool one_at_a_time = sched->config.policy->barrier || sched->forward_only;
    return iteration >= sched->limit || (one_at_a_time && iteration > sched->iterations_complete);
}

/* The candidates of a priority queue: what has arrived, best key first; when nothing has arrived yet, what arrives
 * first. */
struct choice {
    int group; /* -1: none */
    bool arrived;
    int64_t key;
    bool settled; /* groups are considered in order, and no later one can be better */
};

/* The plan has an order of its own of what goes first. */
static inline bool reorders(const struct ah_sched *sched)
{
    return sched->config.switches.order % AH_ORDERS != 0 && sched->config.policy->reorders;
}

/* A number that is drawn for a piece of a group, one in every iteration and on every machine. */
static inline unsigned piece_draw(int seed, enum ah_item_kind kind, int group, int chunk)
{
    uint64_t index = ((uint64_t)kind << 32) + (uint64_t)group * AH_SCHED_MOST_CHUNKS + (uint64_t)chunk;
    return (unsigned)(ah__random_bits((uint64_t)seed, index) >> 33);
}

/* The plan's order draws it. */
static inline unsigned order_draw(const struct ah_sched *sched, enum ah_item_kind kind, int group, int chunk)
{
    return piece_draw(sched->config.switches.order % AH_ORDERS, kind, group, chunk);
}

/* By how many blocks the order puts a piece behind others: up to a quarter of them, and one. */
static inline int64_t put_behind(const struct ah_sched *sched, enum ah_item_kind kind, int group, int chunk)
{
    return reorders(sched) ? order_draw(sched, kind, group, chunk) % (2 + (unsigned)sched->config.switches.layers / 4)
                           : 0;
}

/* `behind`: what the order adds to the key. */
static inline void consider(const struct ah_sched *sched, struct choice *best, int group, const struct mark *arrival,
                            int64_t (*key)(int group, int64_t arrival), int64_t behind)
{
    bool arrived = ah__sched_passed(sched, arrival);
    int64_t value = arrived ? key(group, arrival->arrival) + behind : arrival->arrival;
    if (best->group >= 0 && (best->arrived > arrived || (best->arrived == arrived && best->key <= value)))
        return;
    *best = (struct choice){group, arrived, value, arrived && key == ah__key_earliest_block && !reorders(sched)};
}

#endif
