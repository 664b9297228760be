/* Queries and changes of the scheduler's state that several of its files share. Calls none of them. */
#include "sched/internal.h"

#include <string.h>

/* ---- groups ------------------------------------------------------------------------------------------------------ */

void ah__group_set_add(struct group_set *set, int group)
{
    int at = set->count;
    while (at > 0 && set->groups[at - 1] >= group)
        at--;
    if (at < set->count && set->groups[at] == group)
        return;
    memmove(&set->groups[at + 1], &set->groups[at], (size_t)(set->count - at) * sizeof *set->groups);
    set->groups[at] = group;
    set->count++;
}

void ah__group_set_remove(struct group_set *set, int group)
{
    int kept = 0;
    for (int i = 0; i < set->count; i++)
        if (set->groups[i] != group)
            set->groups[kept++] = set->groups[i];
    set->count = kept;
}

void ah__events_clear(struct group *group)
{
    group->fetch = group->refetch = group->forward = group->backward = (struct item_event){0};
    group->reduce = group->update = group->evict = (struct item_event){0};
    group->activations_out = group->activations_in = group->sums_out = group->sums_in = (struct item_event){0};
    group->fetched = group->offloaded = group->stored = group->updating = group->updated = 0;
    group->void_chunks = 0;
    group->cast[0] = group->cast[1] = group->gather[0] = group->gather[1] = (struct item_event){0};
}

void ah__update_due(struct ah_sched *sched, int index)
{
    const struct group *group = &sched->groups[index];
    bool held = group->shadow < 0 && !ah__sched_norm_known(sched, group->ready_for);
    ah__group_set_add(&(held ? sched->held : sched->updating)[group->updated_in], index);
}

/* ---- counts ------------------------------------------------------------------------------------------------------ */

/* Returns how many buffers several ranks need at the same time: for the parameters of this block and the next, if any
 * block is cast, and in backward for gradients, unless they have memory of their own. */
static int rank_buffers(const struct ah_sched_config *config, bool backward)
{
    const struct ah_switches *switches = &config->switches;
    bool ahead = !config->policy->gathers_late || ah__gathers_ahead(switches, config->own_gradients);
    int fetched = switches->offload_params + ah__frozen_on_host(switches);
    int kept = config->own_gradients ? switches->unsharded : 0;
    if (fetched + kept == switches->layers)
        return 0;
    return (ahead ? 2 : 1) + (backward && !config->own_gradients ? AH_BUFFERS_OF_GRADIENTS : 0);
}

bool ah__sched_own_gradients(const struct ah_sched_config *config)
{
    int staying = ah__staying_sums(&config->switches, config->rounds);
    return config->own_gradients || (staying > 0 && staying == ah__trained_blocks(&config->switches));
}

int ah__sched_device_gradients(const struct ah_sched_config *config)
{
    int in_buffers = ah__trained_on_device(&config->switches) - ah__staying_sums(&config->switches, config->rounds);
    return config->own_gradients || in_buffers < 0 ? 0 : in_buffers;
}

int ah__sched_device_buffers(const struct ah_sched_config *config, bool backward)
{
    int on_device = ah__sched_device_gradients(config);
    int gradients = config->clips ? on_device : 0; /* held until the norm is known */
    if (config->switches.world_size > 1)
        return rank_buffers(config, backward);
    if (on_device == 0 || !backward)
        return 0;
    return gradients > 1 ? gradients : 1;
}

bool ah__step_runs(const struct ah_sched *sched, const struct step *step, int64_t round)
{
    switch (step->rounds) {
    case ROUNDS_FIRST:
        return ah__begins_iteration(sched, round);
    case ROUNDS_KEPT:
        return sched->forward_only || ah__begins_iteration(sched, round);
    case ROUNDS_LAST:
        return ah__ends_iteration(sched, round);
    case ROUNDS_BUT_FIRST:
        return !ah__begins_iteration(sched, round);
    case ROUNDS_BUT_LAST:
        return !ah__ends_iteration(sched, round);
    default:
        return true;
    }
}

/* Returns the number of a list's items in all rounds of an iteration. */
static int list_items(const struct ah_sched *sched, const struct step_list *list)
{
    int count = 0, length = ah__list_length(sched, list);
    for (int64_t round = 0; round < sched->rounds; round++)
        for (int at = 0; at < length; at++)
            if (ah__step_runs(sched, &list->steps[at], round))
                count += list->steps[at].chunks > 1 ? list->steps[at].chunks : 1;
    return count;
}

int ah__sched_count_items(const struct ah_sched *sched)
{
    const struct step_list *lists[] = {&sched->compute, &sched->fetch,    &sched->out,    &sched->in,
                                       &sched->comm,    &sched->sums_out, &sched->sums_in};
    int listed = 0;
    for (size_t i = 0; i < AH_LENGTH(lists); i++)
        listed += list_items(sched, lists[i]);
    if (sched->forward_only)
        return 2 + listed; /* input, loss */
    /* input, loss, norms; an offload and an update for each group on the host; evictions */
    int evictions = ah__sched_evicts(sched) ? sched->rounds * sched->config.switches.offload_params : 0;
    int updated = sched->fetch.forward_count - ah__frozen_on_host(&sched->config.switches);
    return 3 + evictions + listed + 2 * sched->config.switches.chunks * updated;
}

/* ---- what policies look at --------------------------------------------------------------------------------------- */

bool ah__sched_backward_over(const struct ah_sched *sched, int group)
{
    int64_t iteration = sched->groups[group].ready_for;
    return iteration < ah__iteration_of(sched, sched->compute.round) &&
           ah__sched_passed(sched, &sched->last_compute[ah__sched_ring(iteration)]);
}

bool ah__sched_entered(const struct ah_sched *sched, const struct ah_item *fetch)
{
    const struct step *next = ah__step_next(&sched->compute);
    if (sched->compute.round != fetch->round)
        return false;
    if (fetch->kind == AH_ITEM_PREFETCH)
        return next->phase == AH_PHASE_BACKWARD || next->partition >= fetch->partition;
    return next->phase == AH_PHASE_BACKWARD && next->partition <= fetch->partition;
}

bool ah__sched_update_over(const struct ah_sched *sched, int group)
{
    const struct group *g = &sched->groups[group];
    int64_t iteration = ah__iteration_of(sched, g->backward.round);
    if (!g->backward.submitted || g->ready_for > iteration)
        return true;
    return !ah__sched_norm_known(sched, iteration); /* it cannot be over: the norm waits for the caller */
}

bool ah__sched_all_fetched(const struct ah_sched *sched)
{
    for (int g = 0; g < sched->partitions; g++)
        if (sched->groups[g].on_host && !ah__sched_completed(sched, &sched->groups[g].fetch))
            return false;
    return true;
}
