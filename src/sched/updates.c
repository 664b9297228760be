#include "sched/updates.h"

/* Whether a group's update may be tried before its iteration's norm is known. After a step that was clipped the next
 * one probably is too. */
static bool may_update_ahead(const struct ah_sched *sched, const struct group *group)
{
    int64_t before = group->ready_for - 1;
    if (group->shadow >= 0)
        return true;
    bool calm = before < sched->first || (sched->norms_known > before && !sched->clipped[ah__sched_ring(before)]);
    return group->pooled && sched->shadow_count > 0 && calm && !sched->config.policy->delay;
}

static bool may_update(const struct ah_sched *sched, int index)
{
    const struct group *group = &sched->groups[index];
    return group->updating < group->offloaded && sched->config.policy->may_update(sched, index) &&
           (ah__sched_norm_known(sched, group->ready_for) || may_update_ahead(sched, group));
}

void ah__update_due(struct ah_sched *sched, int index)
{
    const struct group *group = &sched->groups[index];
    bool held = group->shadow < 0 && !ah__sched_norm_known(sched, group->ready_for);
    ah__group_set_add(held ? &sched->held[group->staged] : &sched->updating[group->staged], index);
}

static void choose_from(const struct ah_sched *sched, struct choice *best, const struct group_set *set)
{
    best->settled = false;
    for (int i = 0; i < set->count && !best->settled; i++) {
        int g = set->groups[i];
        const struct group *group = &sched->groups[g];
        if (may_update(sched, g))
            consider(sched, best, g, &group->offload[group->updating], sched->config.policy->update_key,
                     put_behind(sched, AH_ITEM_UPDATE_HOST, g, group->updating));
    }
}

/* The best candidate: of those that the host updates, or of those that stream. */
struct choice ah__update_choose(const struct ah_sched *sched, bool streams)
{
    struct choice best = {.group = -1};
    choose_from(sched, &best, &sched->updating[streams]);
    if (sched->shadow_count > 0)
        choose_from(sched, &best, &sched->held[streams]);
    return best;
}

/* The next chunk's update, speculative while the norm is not known. */
bool ah__update_next(const struct ah_sched *sched, struct ah_next *next, bool streams)
{
    struct choice best = ah__update_choose(sched, streams);
    if (best.group < 0 || (streams && !best.arrived))
        return false;
    const struct group *group = &sched->groups[best.group];
    bool final = ah__sched_norm_known(sched, group->ready_for) && (group->shadow < 0 || group->void_chunks);
    enum ah_item_kind kind = streams ? AH_ITEM_STATES_IN : final ? AH_ITEM_UPDATE_HOST : AH_ITEM_UPDATE_SPECULATIVE;
    next_init(next, kind, ah__item_lanes[kind], best.group, group->ready_for);
    next->item.set = group->set;
    if (!final)
        next->item.shadow_set = group->shadow >= 0 ? group->shadow : sched->shadow_sets[sched->shadow_count - 1];
    next->item.chunk = group->updating;
    next->item.chunks = sched->config.switches.chunks;
    wait_for(sched, next, &group->offload[group->updating]);
    return true;
}

/* States stream while nothing else is to be fetched: one piece at a time, into a stage that will be free. */
bool ah__states_next(const struct ah_sched *sched, struct ah_next *next)
{
    int64_t begun = sched->pieces_begun, staged = begun - sched->pieces_ended;
    const struct piece *before = &sched->pieces[(begun + AH_STAGING_BUFFERS - 1) % AH_STAGING_BUFFERS];
    bool comes = staged > 0 && !ah__sched_passed(sched, &before->arrived);
    if (staged >= AH_STAGING_BUFFERS || comes || !ah__update_next(sched, next, true))
        return false;
    next->item.stage = (int)(begun % AH_STAGING_BUFFERS);
    wait_for(sched, next, &sched->stage_left[next->item.stage]);
    return true;
}

/* The oldest piece in a stage, once it is there. */
bool ah__streamed_next(const struct ah_sched *sched, struct ah_next *next)
{
    const struct piece *piece = &sched->pieces[sched->pieces_ended % AH_STAGING_BUFFERS];
    if (sched->pieces_ended == sched->pieces_begun || !ah__sched_passed(sched, &piece->arrived))
        return false;
    next_init(next, AH_ITEM_UPDATE_STAGED, AH_LANE_D2H, piece->item.partition, piece->item.iteration);
    next->item = piece->item;
    return true;
}
