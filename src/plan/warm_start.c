#include "plan/warm_start.h"

#include "plan/fit.h"

/* Returns true if a search of the policy could have found these switches, which are within their bounds. */
static bool is_possible(const struct ah_switches *s, const struct ah_predictor *predictor)
{
    uint32_t unused = ah__policy_unused(predictor->policy);
    bool shadows = predictor->partition->step.clips && !predictor->no_shadows;
    unused |= shadows ? 0 : 1U << AH_SWITCH_shadows;
    unused |= ah__predictor_stages(predictor) ? 0 : 1U << AH_SWITCH_staged;
    unused |= ah__plan_shares_ends(predictor) ? 0 : 1U << AH_SWITCH_share_embedding_head;
    for (int i = 0; i < AH_SWITCH_COUNT; i++)
        if (unused >> i & 1 && ah__switch_get(s, i) > ah__switch_table[i].low)
            return false;
    return ah__world_size(s) == ah__predictor_world_size(predictor) && ah__fixed_holds(&predictor->fixed, s) &&
           s->buffers >= ah__plan_min_buffers(s, predictor) &&
           ah__rounds(s, ah__micro_batches(predictor->partition)) == ah__plan_passes(predictor) &&
           s->offload_activations <= ah__plan_most_leaving(predictor) &&
           s->unsharded <= ah__plan_most_unsharded(s, predictor);
}

int ah__warm_start_find(struct ah_plan *out, const struct ah_plan *given, const struct ah_predictor *predictor,
                        const struct ah_budget *budget)
{
    out->switches.layers = 0;
    if (!given)
        return AH_OK;
    int status = ah__plan_check(given, predictor->partition);
    if (status != AH_OK)
        return ah__fail_prefix(status, "warm start");
    if (ah__policy_is_placed(predictor->policy) || !is_possible(&given->switches, predictor))
        return AH_OK;
    struct ah_plan plan = *given;
    plan.workspace_bytes = predictor->profile->workspace_bytes;
    ah__plan_measure(&plan, predictor);
    if (ah__plan_within(&plan, budget))
        *out = plan;
    return AH_OK;
}
