/* Frozen lowest blocks use buffers of their own in turn, each until its forward is over. Nothing here claims a pool
 * buffer, and each use waits for the end of the use before it, so this cannot deadlock. */
#include "sched/below.h"

bool ah__below_ready(const struct ah_sched *sched, struct ah_next *next)
{
    int64_t use = ah__below_use(sched, &next->item);
    if (sched->below.count == 0)
        return true; /* these blocks came with the embedding, or stay on the device */
    next->item.stage = (int)(use % AH_BELOW_PLACES);
    wait_for(sched, next, &sched->below_places[next->item.stage].fetched);
    return sched->below_fetched > use;
}

/* Not before the buffer is free, so that the lane never waits for it. */
bool ah__below_in_next(const struct ah_sched *sched, struct ah_next *next, bool needed)
{
    const struct step_list *list = &sched->below;
    bool (*may)(const struct ah_sched *, const struct ah_item *) = sched->config.policy->may_fetch;
    if (list->count == 0 || barred(sched, list->round) || (needed && list->round > sched->compute.round))
        return false;
    next_init(sched, next, AH_ITEM_PREFETCH, AH_LANE_H2D, 0, list->round);
    next->item.below = ah__step_next(list)->below;
    int64_t use = ah__below_use(sched, &next->item);
    next->item.stage = (int)(use % AH_BELOW_PLACES);
    return use < sched->below_left + AH_BELOW_PLACES &&
           ah__sched_passed(sched, &sched->below_places[next->item.stage].left) && (!may || may(sched, &next->item));
}
