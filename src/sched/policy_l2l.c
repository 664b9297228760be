/* L2L (2020): one block on the device at a time, everything in series, all optimizer states on the host. A block runs
 * all micro-batches before the next block runs, as published, so a step has one pass. */
#include "sched/internal.h"

static bool nothing_runs(const struct ah_sched *sched)
{
    for (int lane = 0; lane < AH_LANE_COUNT; lane++)
        if (!ah__sched_idle(sched, (enum ah_lane)lane))
            return false;
    return true;
}

static bool alone_item(const struct ah_sched *sched, const struct ah_item *item)
{
    (void)item;
    return nothing_runs(sched);
}

/* Returns true if nothing runs and the compute lane has come to the block. */
static bool entered_alone(const struct ah_sched *sched, const struct ah_item *item)
{
    return nothing_runs(sched) && ah__sched_entered(sched, item);
}

static bool alone_group(const struct ah_sched *sched, int group)
{
    (void)group;
    return nothing_runs(sched);
}

static bool one_block(struct ah_switches *out, int layers, int index)
{
    *out = (struct ah_switches){.checkpoint = index == 0 ? 0 : layers,
                                .offload_params = layers,
                                .offload_optimizer = layers,
                                .embedding_on_host = true,
                                .head_on_host = true,
                                .buffers = 2,
                                .prefetch_distance = 1};
    return index < 2;
}

const struct ah_policy ah__policy_l2l = {
    .name = "l2l",
    .description = "one block at a time, nothing overlaps",
    .barrier = true,
    .may_compute = alone_item,
    .may_fetch = entered_alone,
    .may_offload = alone_group,
    .may_update = alone_group,
    .placement = one_block,
};
