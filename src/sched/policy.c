#include <string.h>

#include "sched/internal.h"

const struct ah_policy *const ah__policies[] = {
    &ah__policy_autohete,
    &ah__policy_autohete_paper,
    &ah__policy_autohete_fifo,
    &ah__policy_stronghold,
    &ah__policy_stronghold_best,
    &ah__policy_patrickstar,
    &ah__policy_zero_offload,
    &ah__policy_zero_offload_dpu,
    &ah__policy_l2l,
    &ah__policy_resident,
    NULL,
};

const struct ah_policy *ah__policy_find(const char *name)
{
    for (int i = 0; ah__policies[i]; i++)
        if (strcmp(ah__policies[i]->name, name) == 0)
            return ah__policies[i];
    return NULL;
}

bool ah__policy_is_placed(const struct ah_policy *policy)
{
    struct ah_switches placement;
    return policy->placement(&placement, 1, 0);
}

const char *ah__policy_names(void)
{
    return "autohete, autohete-paper, autohete-fifo, stronghold, stronghold-best, patrickstar, zero-offload, "
           "zero-offload-dpu, l2l or resident";
}

/* The next iteration needs blocks in this order. */
int64_t ah__key_earliest_block(int group, int64_t arrival)
{
    (void)arrival;
    return group;
}

int64_t ah__key_first_come(int group, int64_t arrival)
{
    (void)group;
    return arrival;
}

bool ah__gate_open_item(const struct ah_sched *sched, const struct ah_item *item)
{
    (void)sched, (void)item;
    return true;
}

bool ah__gate_open_group(const struct ah_sched *sched, int group)
{
    (void)sched, (void)group;
    return true;
}

bool ah__placement_search(struct ah_switches *out, int layers, int index)
{
    (void)out, (void)layers, (void)index;
    return false;
}

bool ah__placement_suffices(const struct ah_switches *placement, const struct ah_costs *costs)
{
    (void)placement, (void)costs;
    return true;
}

bool ah__sched_backward_over(const struct ah_sched *sched, int group)
{
    int64_t iteration = sched->groups[group].ready_for;
    return iteration < sched->compute.iteration &&
           ah__sched_passed(sched, &sched->last_compute[ah__sched_ring(iteration)]);
}

bool ah__sched_entered(const struct ah_sched *sched, const struct ah_item *fetch)
{
    const struct step *next = ah__step_next(&sched->compute);
    if (sched->compute.iteration != fetch->iteration)
        return false;
    if (fetch->kind == AH_ITEM_PREFETCH)
        return next->phase == AH_PHASE_BACKWARD || next->partition >= fetch->partition;
    return next->phase == AH_PHASE_BACKWARD && next->partition <= fetch->partition;
}

bool ah__sched_update_over(const struct ah_sched *sched, int group)
{
    const struct group *g = &sched->groups[group];
    if (!g->backward.submitted || g->ready_for > g->backward.iteration)
        return true;
    return !ah__sched_norm_known(sched, g->backward.iteration); /* it cannot be: the norm waits for what asks */
}

bool ah__sched_all_fetched(const struct ah_sched *sched)
{
    for (int g = 0; g < sched->partitions; g++)
        if (sched->groups[g].on_host && !ah__sched_complete_mark(sched, &sched->groups[g].fetch))
            return false;
    return true;
}
