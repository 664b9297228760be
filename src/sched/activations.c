/* Activation offload: the saved activations of some blocks are on the host between forward and backward. They pass
 * through a few staging buffers, each for every AH_ACTIVATION_BUFFERS-th of the blocks that use them. In forward a
 * block's activations leave their staging buffer before the next block's are written there; in backward the next
 * block's come when they have been read. Nothing here claims a buffer, so it cannot deadlock: a forward waits for lower
 * blocks' activations to leave, a backward for work of higher blocks. */
#include "sched/activations.h"

/* Returns the block that used the same staging buffer before this one (or, in backward, uses it next); null: there is
 * none. */
static const struct group *below_in_stage(const struct ah_sched *sched, const struct group *group)
{
    int index = group->passing - AH_ACTIVATION_BUFFERS;
    return index < 0 ? NULL : &sched->groups[ah__passing_block(&sched->config.switches, index)];
}

bool ah__stage_left(const struct ah_sched *sched, struct ah_next *next)
{
    int writes = next->item.partition + 1; /* the block whose input is written; the item's own staging buffer was free
                                            * when its own input was written */
    const struct group *group = writes < sched->partitions ? &sched->groups[writes] : NULL;
    if (!group || group->passing < AH_ACTIVATION_BUFFERS || sched->forward_only)
        return true;
    const struct group *before = below_in_stage(sched, group);
    if (!before->activations_out.submitted || before->activations_out.round != next->item.round)
        return false;
    wait_for(sched, next, &before->activations_out);
    return true;
}

bool ah__activations_here(const struct ah_sched *sched, struct ah_next *next)
{
    const struct group *group = &sched->groups[next->item.partition];
    if (!group->leaves)
        return true;
    if (!group->activations_in.submitted || group->activations_in.round != next->item.round)
        return false;
    wait_for(sched, next, &group->activations_in);
    return true;
}

const struct group *ah__activations_leaving(const struct ah_sched *sched)
{
    const struct step_list *list = &sched->out;
    if (list->count == 0 || sched->forward_only)
        return NULL;
    const struct group *group = &sched->groups[ah__step_next(list)->partition];
    return group->forward.submitted && group->forward.round == list->round ? group : NULL;
}

static void activations_init(const struct ah_sched *sched, struct ah_next *next, enum ah_item_kind kind,
                             const struct step_list *list)
{
    int block = ah__step_next(list)->partition;
    next_init(sched, next, kind, ah__item_lanes[kind], block, list->round);
    if (sched->rounds > 1)
        next->item.micro_batches = ah__round_most(sched->config.micro_batches, sched->rounds);
    next->item.recompute = sched->groups[block].keeping == AH_KEEPS_INPUT;
    next->item.selective = sched->groups[block].keeping == AH_KEEPS_PRODUCTS;
}

void ah__activations_out(const struct ah_sched *sched, struct ah_next *next)
{
    activations_init(sched, next, AH_ITEM_ACTIVATIONS_OUT, &sched->out);
    wait_for(sched, next, &sched->groups[next->item.partition].forward);
}

/* Not before the staging buffer is free, so that the lane never waits for it. */
bool ah__activations_in_next(const struct ah_sched *sched, struct ah_next *next)
{
    const struct step_list *list = &sched->in;
    bool backward = sched->lowest_backward < sched->partitions && sched->compute.round == list->round;
    if (list->count == 0 || sched->forward_only || !backward)
        return false;
    int above = sched->groups[ah__step_next(list)->partition].passing + AH_ACTIVATION_BUFFERS;
    const struct item_event *reader = &sched->groups[ah__passing_block(&sched->config.switches, above)].backward;
    if (reader->round != list->round || !ah__sched_completed(sched, reader))
        return false;
    activations_init(sched, next, AH_ITEM_ACTIVATIONS_IN, list);
    return true;
}
