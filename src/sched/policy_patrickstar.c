/* PatrickStar (IEEE TPDS 2023), in its steady state: one chunk a block. A chunk that is not on the device is fetched
 * when its block is entered, while nothing else runs. Chunks needed last are evicted first: in forward the earliest
 * blocks, in backward the gradients of the latest. A chunk is in one memory at a time, so evicting is a copy, even of
 * parameters that have not changed. Gradients replace parameters. After the whole backward the chunks are updated, on
 * the device if their states fit there, else on the host: gradient to the host, update, parameters back, of one chunk
 * during the update of another. Its code has no accumulation of gradients, since they replace parameters; here each
 * micro-batch runs through the whole model, with sums as in ZeRO-Offload. */
#include "sched/internal.h"

/* The next forward begins when all updates are over; by then the parameters of all chunks but the last are back.
 * Computing waits for evictions, which are copies that make room. */
static bool computes_alone(const struct ah_sched *sched, const struct ah_item *item)
{
    bool leaving = sched->evicting.count > 0 || !ah__sched_idle(sched, AH_LANE_D2H);
    if (leaving && (item->kind == AH_ITEM_BACKWARD || item->kind == AH_ITEM_FORWARD))
        return false;
    for (int g = 0; item->kind == AH_ITEM_FORWARD && item->partition == 0 && g < sched->partitions; g++)
        if (sched->groups[g].on_host && sched->groups[g].ready_for < item->iteration)
            return false;
    return true;
}

/* Fetches a block on demand, when the compute lane has come to it; blocks that stay are fetched right after their
 * update. */
static bool fetch_on_demand(const struct ah_sched *sched, const struct ah_item *item)
{
    if (item->kind == AH_ITEM_PREFETCH && !sched->groups[item->partition].releases)
        return true;
    return ah__sched_entered(sched, item) && ah__sched_idle(sched, AH_LANE_COMPUTE);
}

/* Gradients are offloaded after backward, or earlier if no buffer is free. */
static bool leaves_when_it_must(const struct ah_sched *sched, int group)
{
    return ah__sched_backward_over(sched, group) || sched->free_buffers == 0;
}

/* Index 0 .. 2*(2*layers+1)-1: without and with checkpointing; from all chunks on the device with their states to ever
 * fewer states, then ever fewer parameters there. */
static bool chunks(struct ah_switches *out, int layers, int index)
{
    int level = index / 2, evicted = level > layers ? level - layers : 0;
    int on_host = level > layers ? layers : level;
    *out = (struct ah_switches){.checkpoint = index % 2 ? layers : 0,
                                .offload_params = evicted,
                                .offload_optimizer = on_host,
                                .embedding_on_host = true,
                                .head_on_host = true,
                                .buffers = on_host - evicted + (evicted ? 2 : 1),
                                .prefetch_distance = 1};
    return level <= 2 * layers - 1;
}

const struct ah_policy ah__policy_patrickstar = {
    .name = "patrickstar",
    .description = "chunks fetched on demand and evicted by copies, updated after backward",
    .overtakes = true, /* chunks that stay return right after their update, before evicted ones are fetched */
    .evicts = true,
    .accumulates = true,
    .earliest_gradient = true,
    .earliest_update = true,
    .may_compute = computes_alone,
    .may_fetch = fetch_on_demand,
    .may_offload = leaves_when_it_must,
    .may_update = ah__sched_backward_over,
    .first_fit = true,
    .placement = chunks,
};
