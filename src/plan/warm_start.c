#include "plan/warm_start.h"

#include <limits.h>

#include "plan/fit.h"
#include "sched/switches.h"

/* Whether a search of the policy could have found these switches. */
static bool is_possible(const struct ah_switches *s, const struct ah_predictor *predictor)
{
    const struct ah_policy *policy = predictor->policy;
    int ranks = ah__predictor_world_size(predictor), least_buffers = ah__plan_min_buffers(s, predictor);
    bool shadows = predictor->partition->step.clips && !predictor->no_shadows;
    bool shares = ah__plan_shares_ends(predictor);
    const struct {
        int found, least, most;
    } limits[] = {
        {ah__world_size(s), ranks, ranks},
        {ah__chunks(s), 1, policy->plain ? 1 : AH_SCHED_MOST_CHUNKS},
        {s->buffers, least_buffers, INT_MAX},
        {s->out_of_order, 0, policy->overtakes ? s->buffers : 0},
        {s->finishing, 0, policy->finishes ? s->buffers : 0},
        {s->order, 0, policy->reorders ? AH_ORDER_MOST : 0},
        {s->prefetch_distance, 1, INT_MAX},
        {s->shadows, 0, shadows ? s->offload_optimizer : 0},
        {s->selective, 0, policy->selective ? s->layers - s->checkpoint : 0},
        {s->staged, 0, ah__predictor_stages(predictor) ? s->offload_optimizer : 0},
        {s->offload_activations, 0, ah__plan_most_leaving(predictor)},
        {s->unsharded, 0, ah__plan_most_unsharded(s, predictor)},
        {s->embedding_on_host, 0, !policy->plain},
        {s->head_on_host, 0, !policy->plain},
        {s->share_embedding_head, 0, shares},
    };
    for (size_t i = 0; i < AH_LENGTH(limits); i++)
        if (limits[i].found < limits[i].least || limits[i].found > limits[i].most)
            return false;
    return true;
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
