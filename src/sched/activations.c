/* Activations that spend the time between forward and backward on the host: through a few stages, each the place of
 * every so many-th of the blocks that pass. On the way up a block's activations leave their stage before the next one's
 * are written there; on the way down they come when those have been read. Nothing here claims a buffer, so it cannot
 * deadlock: a forward waits for activations of blocks below to leave, a backward for what blocks above are done
 * with. */
#include "sched/activations.h"

/* What passed the same stage before (or, going down, passes it afterwards); null: nothing that leaves. */
static const struct group *below_in_stage(const struct ah_sched *sched, const struct group *group)
{
    int index = group->passing - AH_ACTIVATION_BUFFERS;
    return index < 0 ? NULL : &sched->groups[ah__passing_block(&sched->config.switches, index)];
}

bool ah__stage_left(const struct ah_sched *sched, struct ah_next *next)
{
    int writes = next->item.partition + 1; /* whose input; its own stage is free since that was written */
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

/* Not before the stage is free, so that the lane never waits for it. */
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
