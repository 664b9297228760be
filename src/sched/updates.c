#include "sched/updates.h"

/* Returns true if a group may have a speculative update before its iteration's norm is known. After a step that was
 * clipped the next one probably is too. */
static bool may_update_ahead(const struct ah_sched *sched, const struct group *group)
{
    int64_t before = group->ready_for - 1;
    if (group->shadow >= 0)
        return true;
    bool calm = before < sched->first || (sched->norms_known > before && !sched->clipped[ah__sched_ring(before)]);
    return group->pooled && (group->on_disk || sched->shadow_count > 0) && calm;
}

static bool may_update(const struct ah_sched *sched, int index)
{
    const struct group *group = &sched->groups[index];
    bool (*may)(const struct ah_sched *, int) = sched->config.policy->may_update;
    return group->updating < ah__gradient_chunks(group) && (!may || may(sched, index)) &&
           (ah__sched_norm_known(sched, group->ready_for) || may_update_ahead(sched, group));
}

static void choose_from(const struct ah_sched *sched, struct choice *best, const struct group_set *set)
{
    best->settled = false;
    for (int i = 0; i < set->count && !best->settled; i++) {
        int g = set->groups[i];
        const struct group *group = &sched->groups[g];
        if (may_update(sched, g))
            consider(sched, best, g, &group->offload[group->updating], sched->config.policy->earliest_update);
    }
}

struct choice ah__update_choose(const struct ah_sched *sched, enum updated_in in)
{
    struct choice best = {.group = -1};
    choose_from(sched, &best, &sched->updating[in]);
    if (sched->shadow_count > 0 || in == UPDATED_FROM_DISK)
        choose_from(sched, &best, &sched->held[in]);
    return best;
}

bool ah__update_next(const struct ah_sched *sched, struct ah_next *next, enum updated_in in)
{
    struct choice best = ah__update_choose(sched, in);
    if (best.group < 0 || (in == UPDATED_STAGED && !best.arrived))
        return false;
    const struct group *group = &sched->groups[best.group];
    bool final = ah__sched_norm_known(sched, group->ready_for) && (group->shadow < 0 || group->void_chunks);
    enum ah_item_kind kind = in == UPDATED_STAGED      ? AH_ITEM_STATES_IN
                             : in == UPDATED_FROM_DISK ? AH_ITEM_DISK_READ
                             : final                   ? AH_ITEM_UPDATE_HOST
                                                       : AH_ITEM_UPDATE_SPECULATIVE;
    next_init(sched, next, kind, ah__item_lanes[kind], best.group, ah__last_round(sched, group->ready_for));
    next->item.set = group->set;
    if (!final)
        next->item.shadow_set = group->shadow >= 0 ? group->shadow
                                : group->on_disk   ? 1 - group->set
                                                   : sched->shadow_sets[sched->shadow_count - 1];
    next->item.chunk = group->updating;
    next->item.chunks = sched->config.switches.chunks;
    wait_for(sched, next, &group->offload[group->updating]);
    return true;
}

/* States are staged while nothing else is to be fetched: a chunk at a time, into a staging buffer that will be free. */
bool ah__states_next(const struct ah_sched *sched, struct ah_next *next)
{
    int64_t begun = sched->staged_begun, in_use = begun - sched->staged_ended;
    const struct staged_chunk *before = &sched->staged_chunks[(begun + AH_STAGING_BUFFERS - 1) % AH_STAGING_BUFFERS];
    bool comes = in_use > 0 && !ah__sched_passed(sched, &before->arrived);
    if (in_use >= AH_STAGING_BUFFERS || comes || !ah__update_next(sched, next, UPDATED_STAGED))
        return false;
    next->item.stage = (int)(begun % AH_STAGING_BUFFERS);
    wait_for(sched, next, &sched->stage_left[next->item.stage]);
    return true;
}

/* Chooses the oldest chunk in a staging buffer, after it has arrived. */
bool ah__staged_next(const struct ah_sched *sched, struct ah_next *next)
{
    const struct staged_chunk *chunk = &sched->staged_chunks[sched->staged_ended % AH_STAGING_BUFFERS];
    if (sched->staged_ended == sched->staged_begun || !ah__sched_passed(sched, &chunk->arrived))
        return false;
    next_init(sched, next, AH_ITEM_UPDATE_STAGED, AH_LANE_D2H, chunk->item.partition, chunk->item.round);
    next->item = chunk->item;
    return true;
}
