/* Blocks on disk. A chunk passes through a host buffer: of parameters, until it is fetched to the device; of a
 * gradient, from its offload until it is written; of states with their gradient, until they are updated and written
 * back. A gradient stays on disk until its update counts, so that an update that was made ahead of the norm can be made
 * again. The disk's lane never waits for another.
 *
 * This cannot deadlock. Parameters are read in the order of the fetches, and only when their update is over, so the
 * buffers that wait belong to the fetches that come next. At least one buffer is left to gradients and states, which
 * need nothing else: a gradient takes a buffer when it has arrived in device memory, states when their gradient is
 * written or on its way there. */
#include "sched/disk.h"

#include "sched/updates.h"

int ah__disk_slot(const struct ah_sched *sched)
{
    int slots = ah__disk_slots(&sched->config.switches);
    for (int i = 0; i < slots; i++)
        if (!sched->disk_slots[i].claimed && ah__sched_passed(sched, &sched->disk_slots[i].release))
            return i;
    return -1;
}

bool ah__disk_arrived(const struct ah_sched *sched, struct ah_next *next)
{
    const struct group *group = &sched->groups[next->item.partition];
    if (!group->on_disk)
        return true;
    next->item.slot = group->slot[group->fetched];
    return group->read > group->fetched && ah__sched_passed(sched, &group->arrived[group->fetched]);
}

/* Returns true if a block's parameters for the fetch are on disk: for forward, since its update is over; for backward,
 * once those for forward are fetched. */
static bool params_due(const struct ah_sched *sched, const struct step *step, int64_t round)
{
    const struct group *group = &sched->groups[step->partition];
    if (sched->disk_at == 0 && group->read > 0)
        return false; /* read for the fetch before, which is to come */
    if (step->phase == AH_PHASE_BACKWARD)
        return group->fetch.submitted && group->fetch.round == round;
    return group->frozen || group->ready_for == ah__iteration_of(sched, round);
}

static bool params_next(const struct ah_sched *sched, struct ah_next *next, int slot)
{
    const struct step_list *list = &sched->disk;
    if (barred(sched, list->round) || sched->disk_params >= ah__disk_slots(&sched->config.switches) - 1)
        return false;
    const struct step *step = ah__step_next(list);
    if (!params_due(sched, step, list->round))
        return false;
    next_init(sched, next, AH_ITEM_DISK_PARAMS, AH_LANE_DISK, step->partition, list->round);
    next->item.phase = step->phase;
    next->item.set = sched->groups[step->partition].set;
    next->item.chunk = sched->disk_at;
    next->item.chunks = step->chunks;
    next->item.slot = slot;
    return true;
}

static void chunk_next(struct ah_next *next, const struct disk_chunk *chunk, enum ah_item_kind kind)
{
    next->item = chunk->item;
    next->item.kind = kind;
    next->lane = ah__item_lanes[kind];
    next->waits = 0;
}

static const struct disk_chunk *chunk_at(const struct ah_sched *sched, int64_t number)
{
    return &sched->disk_chunks[(uint64_t)number % AH_LENGTH(sched->disk_chunks)];
}

bool ah__disk_update_next(const struct ah_sched *sched, struct ah_next *next)
{
    const struct disk_chunk *chunk = chunk_at(sched, sched->disk_updated);
    if (sched->disk_updated == sched->disk_begun || !ah__sched_passed(sched, &chunk->arrived))
        return false;
    chunk_next(next, chunk, chunk->item.shadow_set >= 0 ? AH_ITEM_UPDATE_SPECULATIVE : AH_ITEM_UPDATE_HOST);
    return true;
}

static bool write_next(const struct ah_sched *sched, struct ah_next *next)
{
    const struct disk_chunk *chunk = chunk_at(sched, sched->disk_ended);
    if (sched->disk_ended == sched->disk_updated || !ah__sched_passed(sched, &chunk->updated))
        return false;
    chunk_next(next, chunk, AH_ITEM_DISK_WRITE);
    return true;
}

static bool gradient_next(const struct ah_sched *sched, struct ah_next *next)
{
    const struct disk_chunk *chunk =
        &sched->disk_gradients[(uint64_t)sched->disk_stored % AH_LENGTH(sched->disk_gradients)];
    if (sched->disk_stored == sched->disk_offloaded || !ah__sched_passed(sched, &chunk->arrived))
        return false;
    chunk_next(next, chunk, AH_ITEM_DISK_GRADIENT);
    return true;
}

/* Chooses the lane's next item: parameters and gradients, for which the compute lane may wait; then updated states,
 * which free a buffer; then states. */
bool ah__disk_next(const struct ah_sched *sched, struct ah_next *next)
{
    if (sched->disk.count == 0 || sched->in_flight[AH_LANE_DISK] >= DISK_DEPTH)
        return false;
    int slot = ah__disk_slot(sched);
    if (slot >= 0 && params_next(sched, next, slot))
        return true;
    if (gradient_next(sched, next) || write_next(sched, next))
        return true;
    if (slot < 0 || !ah__update_next(sched, next, UPDATED_FROM_DISK))
        return false;
    next->item.slot = slot;
    next->waits = 0; /* this lane has written the gradient */
    return true;
}
