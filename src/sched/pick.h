/* What the pickers share: how an item to be submitted is begun and what it waits for. Private to sched/. */
#ifndef AH_SCHED_PICK_H
#define AH_SCHED_PICK_H

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
                                  .param_slot = -1,
                                  .grad_slot = -1,
                                  .spare_set = -1};
    next->lane = lane;
    next->waits = 0;
}

/* The candidates of a priority queue: what has arrived, best key first; when nothing has arrived yet, what arrives
 * first. */
struct choice {
    int group; /* -1: none */
    bool arrived;
    int64_t key;
    bool settled; /* groups are considered in order, and no later one can be better */
};

static inline void consider(const struct ah_sched *sched, struct choice *best, int group, const struct mark *arrival,
                     int64_t (*key)(int group, int64_t arrival))
{
    bool arrived = ah__sched_passed(sched, arrival);
    int64_t value = arrived ? key(group, arrival->arrival) : arrival->arrival;
    if (best->group >= 0 && (best->arrived > arrived || (best->arrived == arrived && best->key <= value)))
        return;
    *best = (struct choice){group, arrived, value, arrived && key == ah__key_earliest_block};
}

/* ---- updates.c ---- */

/* The best group to be updated: of those that the host updates, or of those whose states stream. */
struct choice ah__update_choose(const struct ah_sched *sched, bool streams);
/* The next tile's update, provisional while the norm is not known; false: nothing can be updated now. */
bool ah__update_next(const struct ah_sched *sched, struct ah_next *next, bool streams);
/* The next piece of states to come to a stage on the device, and the next one there to be updated and go home. */
bool ah__states_next(const struct ah_sched *sched, struct ah_next *next);
bool ah__streamed_next(const struct ah_sched *sched, struct ah_next *next);

/* ---- activations.c ---- */

/* A forward writes its own activations and the input of the next block, each of which may lie in a stage: whether what
 * passed that before has been sent home, for which it then waits. */
bool ah__stage_left(const struct ah_sched *sched, struct ah_next *next);
/* A backward's activations have been sent for, and it waits for them; or they never left. */
bool ah__activations_here(const struct ah_sched *sched, struct ah_next *next);
/* The next activations in order to leave, whose forward was submitted; null: there are none. */
const struct group *ah__activations_leaving(const struct ah_sched *sched);
/* They do. */
void ah__activations_out(const struct ah_sched *sched, struct ah_next *next);
/* The next ones to come back, into a stage that the block above is done with; false: not yet. */
bool ah__activations_in_next(const struct ah_sched *sched, struct ah_next *next);

#endif
