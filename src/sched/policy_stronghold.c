/* StrongHold (SC 2022): a window of W blocks on the device. Embedding, head and the first W blocks are updated on the
 * device, the others on the host. Forward: block i+W is fetched before block i runs and block i leaves after it; the
 * last W stay. Backward likewise downwards; each gradient then goes home and is updated, first come first served, and
 * block i's update must be over before block i-W's backward starts. Nothing crosses the end of the iteration. W is the
 * number of blocks on the device. */
#include "sched/internal.h"

static int window(const struct ah_sched *sched)
{
    return sched->config.switches.layers - sched->config.switches.offload_optimizer;
}

static bool back_pressure(const struct ah_sched *sched, const struct ah_item *item)
{
    int above = item->partition + window(sched);
    if (item->kind != AH_ITEM_BACKWARD || item->partition < 1 || above > sched->config.switches.layers)
        return true;
    const struct group *group = &sched->groups[above];
    return !group->on_host || ah__sched_update_over(sched, above);
}

static bool window_reached(const struct ah_sched *sched, const struct ah_item *item)
{
    if (item->kind == AH_ITEM_REFETCH || !sched->groups[item->partition].pooled)
        return true;
    const struct step *next = ah__step_next(&sched->compute);
    int forwards = 0;
    if (sched->compute.iteration >= item->iteration)
        forwards = sched->compute.iteration > item->iteration || next->phase == AH_PHASE_BACKWARD ? sched->partitions
                                                                                                  : next->partition;
    return item->partition - window(sched) <= forwards;
}

static bool windows(struct ah_switches *out, int layers, int index)
{
    int blocks = index / 2 + 1, on_host = layers - blocks;
    *out = (struct ah_switches){.checkpoint = index % 2 ? layers : 0,
                                 .offload_params = on_host > blocks ? on_host - blocks : 0,
                                 .offload_optimizer = on_host,
                                 .slots = on_host ? 2 * (blocks + 1) : 1,
                                 .refetch_ahead = blocks};
    return blocks <= layers;
}

const struct ah_policy ah__policy_stronghold = {
    .name = "stronghold",
    .description = "a window of blocks moves over the model",
    .keeps_semantics = true,
    .barrier = true,
    .all_at_once = false,
    .overtakes = false,
    .delay = 0,
    .offload_key = ah__key_first_come,
    .update_key = ah__key_first_come,
    .may_compute = back_pressure,
    .may_fetch = window_reached,
    .may_offload = ah__gate_open_group,
    .may_update = ah__gate_open_group,
    .first_fit = false,
    .placement = windows,
};
