/* Sums of blocks between an iteration's rounds: out after a backward, in before the backward of the next round.
 * Backwards use the sum buffers on the device in turn. Nothing here claims a pool buffer, and each use waits for the
 * end of the use before it, so this cannot deadlock. */
#include "sched/sums.h"

static const struct sum_place *place_for(const struct ah_sched *sched, const struct ah_item *item, int *index)
{
    *index = (int)(ah__sum_use(sched, item->partition, item->round) % AH_SUM_PLACES);
    return &sched->sum_places[*index];
}

bool ah__sum_place_ready(const struct ah_sched *sched, struct ah_next *next)
{
    struct ah_item *item = &next->item;
    const struct group *group = &sched->groups[item->partition];
    if (sched->sums_in.count == 0 || !group->pooled || group->sum_stays)
        return true;
    const struct sum_place *place = place_for(sched, item, &item->sum);
    if (item->adds) {
        wait_for(sched, next, &group->sums_in);
        return group->sums_in.submitted && group->sums_in.round == item->round;
    }
    wait_for(sched, next, &place->left);
    return place->next == ah__sum_use(sched, item->partition, item->round);
}

static void sums_init(const struct ah_sched *sched, struct ah_next *next, enum ah_item_kind kind,
                      const struct step_list *list)
{
    next_init(sched, next, kind, ah__item_lanes[kind], ah__step_next(list)->partition, list->round);
    place_for(sched, &next->item, &next->item.sum);
}

/* Not before the sum buffer is free, so that the lane never waits for it. */
bool ah__sums_in_next(const struct ah_sched *sched, struct ah_next *next)
{
    const struct step_list *list = &sched->sums_in;
    if (list->count == 0 || sched->forward_only)
        return false;
    const struct group *group = &sched->groups[ah__step_next(list)->partition];
    if (group->sums_out.round != list->round - 1 || !ah__sched_completed(sched, &group->sums_out))
        return false;
    sums_init(sched, next, AH_ITEM_SUMS_IN, list);
    const struct sum_place *place = &sched->sum_places[next->item.sum];
    return place->next == ah__sum_use(sched, next->item.partition, list->round) &&
           ah__sched_passed(sched, &place->left);
}

bool ah__sums_out_next(const struct ah_sched *sched, struct ah_next *next, bool arrived_only)
{
    const struct step_list *list = &sched->sums_out;
    if (list->count == 0 || sched->forward_only)
        return false;
    const struct item_event *backward = &sched->groups[ah__step_next(list)->partition].backward;
    if (!backward->submitted || backward->round != list->round || (arrived_only && !ah__sched_passed(sched, backward)))
        return false;
    sums_init(sched, next, AH_ITEM_SUMS_OUT, list);
    wait_for(sched, next, backward);
    return true;
}
