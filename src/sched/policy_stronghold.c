/* StrongHold (SC 2022): a window of W blocks on the device. Embedding, head and the first W blocks are updated on the
 * device, the others on the host. Forward: block i+W is fetched before block i runs and block i is released after it;
 * the last W stay. Backward does the same downwards; each gradient is then offloaded and updated, first come first
 * served, and block i's update must be over before block i-W's backward starts. Nothing crosses the end of the
 * iteration. W is the number of blocks on the device: by its own rule the smallest that hides transfers behind W blocks
 * of compute, else the largest that fits; `stronghold-best` uses the W that makes the step shortest, which its authors
 * do not. Each micro-batch runs through the whole model, and the window moves over it each time. The sums of the first
 * W blocks stay on the device; those of the others return to the host as gradients do. */
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
    if (!ah__ends_iteration(sched, item->round)) /* the places of sums limit how many are on their way */
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
    if (sched->compute.round >= item->round)
        forwards = sched->compute.round > item->round || next->phase == AH_PHASE_BACKWARD ? sched->partitions
                                                                                          : next->partition;
    return item->partition - window(sched) <= forwards;
}

/* Buffers in use at the same time: parameters of the window and of the next block, a gradient that is being written and
 * one that is being offloaded. If memory is short, gradients take the buffers of parameters that are not needed any
 * more. */
enum { NEXT = 1, GRADIENTS = 2, PLACEMENTS_OF_WINDOW = 2 * (GRADIENTS + 1) };

/* Placements: windows from one block up; each with ever fewer buffers for gradients; each without and with
 * checkpointing. */
static bool windows(struct ah_switches *out, int layers, int index)
{
    int blocks = index / PLACEMENTS_OF_WINDOW + 1, on_host = layers - blocks;
    int gradients = GRADIENTS - index % PLACEMENTS_OF_WINDOW / 2;
    *out = (struct ah_switches){.checkpoint = index % 2 ? layers : 0,
                                .offload_params = on_host > blocks ? on_host - blocks : 0,
                                .offload_optimizer = on_host,
                                .buffers = on_host ? blocks + NEXT + gradients : 1,
                                .prefetch_distance = blocks,
                                .device_sums = blocks};
    return blocks <= layers;
}

/* Returns true if a block arrives while W others are computed, in forward and in backward, and its gradient is
 * offloaded in that time too. */
static bool hides_transfers(const struct ah_switches *placement, const struct ah_costs *costs)
{
    int64_t blocks = placement->layers - placement->offload_optimizer;
    int64_t forward = costs->ns[AH_ITEM_FORWARD][AH_CLASS_BLOCK];
    int64_t backward = costs->ns[AH_ITEM_BACKWARD][AH_CLASS_BLOCK];
    if (placement->checkpoint == placement->layers)
        backward += costs->recompute_ns[AH_CLASS_BLOCK];
    return blocks * forward >= costs->ns[AH_ITEM_PREFETCH][AH_CLASS_BLOCK] &&
           blocks * backward >= costs->ns[AH_ITEM_REFETCH][AH_CLASS_BLOCK] &&
           blocks * backward >= costs->ns[AH_ITEM_OFFLOAD][AH_CLASS_BLOCK];
}

const struct ah_policy ah__policy_stronghold = {
    .name = "stronghold",
    .description = "a window of blocks moves over the model",
    .barrier = true,
    .accumulates = true,
    .leaves_each_round = true,
    .may_compute = back_pressure,
    .may_fetch = window_reached,
    .first_fit = true,
    .suffices = hides_transfers,
    .placement = windows,
};

const struct ah_policy ah__policy_stronghold_best = {
    .name = "stronghold-best",
    .description = "stronghold with the fastest window instead of its rule's",
    .barrier = true,
    .accumulates = true,
    .leaves_each_round = true,
    .may_compute = back_pressure,
    .may_fetch = window_reached,
    .placement = windows,
};
