#include "plan/known.h"

#include <limits.h>

#include "plan/fit.h"
#include "sched/switches.h"

/* What the policy makes of each switch, as its search would. */
static int check_policy(const struct ah_switches *s, const struct ah_predictor *predictor)
{
    const struct ah_policy *policy = predictor->policy;
    int ranks = ah__predictor_world_size(predictor), least_buffers = ah__plan_min_buffers(s, predictor);
    bool shadows = predictor->partition->step.clips && !predictor->no_shadows;
    bool shares = ah__plan_shares_ends(predictor);
    const struct {
        const char *key;
        int found, least, most;
    } limits[] = {
        {"ranks", ah__world_size(s), ranks, ranks},
        {"chunks", ah__chunks(s), 1, policy->plain ? 1 : AH_SCHED_MOST_CHUNKS},
        {"buffers", s->buffers, least_buffers, INT_MAX},
        {"out_of_order", s->out_of_order, 0, policy->overtakes ? s->buffers : 0},
        {"finishing", s->finishing, 0, policy->finishes ? s->buffers : 0},
        {"order", s->order, 0, policy->reorders ? AH_ORDER_MOST : 0},
        {"prefetch_distance", s->prefetch_distance, 1, INT_MAX},
        {"shadows", s->shadows, 0, shadows ? s->offload_optimizer : 0},
        {"selective", s->selective, 0, policy->selective ? s->layers - s->checkpoint : 0},
        {"staged", s->staged, 0, ah__predictor_stages(predictor) ? s->offload_optimizer : 0},
        {"offload_activations", s->offload_activations, 0, ah__plan_most_leaving(predictor)},
        {"whole", s->unsharded, 0, ah__plan_most_unsharded(s, predictor)},
        {"embedding_on_host", s->embedding_on_host, 0, !policy->plain},
        {"head_on_host", s->head_on_host, 0, !policy->plain},
        {"share_embedding_head", s->share_embedding_head, 0, shares},
    };
    for (size_t i = 0; i < AH_LENGTH(limits); i++)
        if (limits[i].found < limits[i].least || limits[i].found > limits[i].most)
            return ah__fail(AH_EINPUT, "key '%s': found %d, expected at %s %d with policy %s", limits[i].key,
                            limits[i].found, limits[i].found < limits[i].least ? "least" : "most",
                            limits[i].found < limits[i].least ? limits[i].least : limits[i].most, policy->name);
    return AH_OK;
}

int ah__known_check(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    AH_TRY(ah__plan_check(plan, predictor->partition));
    if (ah__policy_is_placed(predictor->policy))
        return ah__fail(AH_EINPUT,
                        "policy: found %s, which brings its own placements, expected autohete or another "
                        "one that searches",
                        predictor->policy->name);
    AH_TRY(check_policy(&plan->switches, predictor));
    plan->workspace_bytes = predictor->profile->workspace_bytes;
    ah__plan_measure(plan, predictor);
    return ah__plan_within(plan, budget) ? AH_OK : ah__plan_over_budget(plan, budget);
}

/* Stable; of too many the last one is left out. */
static void insert(struct ah_known *known, const struct ah_plan *plan, int64_t promised_ns, int number)
{
    int at = known->count < AH_KNOWN_MOST ? known->count++ : AH_KNOWN_MOST;
    for (; at > 0 && known->plans[at - 1].step_ns > plan->step_ns; at--)
        if (at < AH_KNOWN_MOST) {
            known->plans[at] = known->plans[at - 1];
            known->promised_ns[at] = known->promised_ns[at - 1];
        }
    if (at < AH_KNOWN_MOST) {
        known->plans[at] = *plan;
        known->promised_ns[at] = promised_ns;
    }
    known->fastest = at == 0 ? number : known->fastest;
}

int ah__known_find(struct ah_known *out, struct ah_trials *trials, const struct ah_search_options *options)
{
    out->count = out->fastest = 0;
    for (int i = 0; options && i < options->known_count; i++) {
        bool below;
        struct ah_plan plan = options->known[i];
        int status = ah__known_check(&plan, trials->predictor, trials->budget);
        if (status == AH_ESTALE)
            return ah__fail_prefix(status, "known plan %d", i + 1);
        if (status != AH_OK)
            continue;
        AH_TRY(ah__trial(&below, &plan.step_ns, trials, &plan, INT64_MAX));
        insert(out, &plan, options->known[i].step_ns, i);
    }
    return AH_OK;
}
