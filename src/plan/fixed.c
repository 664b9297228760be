/* Checks of what a plan by hand fixes: against model, policy and machine. */
#include <string.h>

#include "plan/config.h"
#include "plan/fit.h"
#include "plan/plan_internal.h"
#include "plan/search.h"

int ah__plan_passes_check(int passes, const struct ah_policy *policy, int world_size, int64_t micro_batches)
{
    if (passes > 1 && !ah__policy_uses(policy, AH_SWITCH_passes))
        return ah__fail(AH_EINPUT, "passes=%d: found policy %s, expected autohete", passes, policy->name);
    if (passes > 1 && world_size > 1)
        return ah__fail(AH_EINPUT, "passes=%d: found %d ranks, expected passes=1", passes, world_size);
    if (passes > micro_batches)
        return ah__fail(AH_EINPUT, "passes=%d: found %d, expected at most %lld, the micro-batches of a step", passes,
                        passes, (long long)micro_batches);
    return AH_OK;
}

int ah__plan_check_policy(const struct ah_plan *plan, const struct ah_predictor *predictor)
{
    if (predictor->policy == &ah__policy_resident && ah__offloads(&plan->switches))
        return ah__fail(AH_EINPUT,
                        "--policy: found resident with a plan that offloads, expected autohete or autohete-fifo");
    int status = ah__switches_check(&plan->switches);
    if (status == AH_OK)
        status = ah__plan_check_ends(&plan->switches, predictor->partition);
    if (status != AH_OK)
        return ah__fail_prefix(status, "--plan");
    if (plan->switches.share_embedding_head && !ah__policy_uses(predictor->policy, AH_SWITCH_share_embedding_head))
        return ah__fail(AH_EINPUT, "--plan: embedding_head=shared: found policy %s, expected autohete",
                        predictor->policy->name);
    if (plan->switches.staged > 0 && ah__blocks_keep_gradients(predictor->partition))
        return ah__fail(AH_EINPUT, "--plan: staged=%d: found frozen parameters, expected staged=0",
                        plan->switches.staged);
    if (plan->switches.staged > 0 && predictor->costs.ns[AH_ITEM_STATES_IN][AH_CLASS_BLOCK] <= 0)
        return ah__fail(AH_EINPUT,
                        "--plan: staged=%d: found a profile without times of '%s', expected one of this "
                        "version",
                        plan->switches.staged, ah__item_names[AH_ITEM_STATES_IN]);
    status = ah__plan_passes_check(plan->switches.passes, predictor->policy, ah__world_size(&plan->switches),
                                   ah__micro_batches(predictor->partition));
    if (status != AH_OK)
        return ah__fail_prefix(status, "--plan");
    if (plan->switches.unsharded > 0 && ah__world_size(&plan->switches) == 1)
        return ah__fail(AH_EINPUT,
                        "--plan: unsharded=%d: found one rank that computes with what stays there anyway, expected "
                        "unsharded=0",
                        plan->switches.unsharded);
    if (plan->switches.device_sums > 0 && ah__plan_rounds(&plan->switches, predictor) == 1)
        return ah__fail(AH_EINPUT, "--plan: sums=%d: found one pass, which has no sums between passes, expected sums=0",
                        plan->switches.device_sums);
    struct ah_sched_config config;
    ah__sched_config_of(&config, &plan->switches, predictor->partition, predictor->policy);
    if (plan->switches.buffers < ah__sched_min_buffers(&config))
        return ah__fail(AH_EINPUT, "--plan: buffers=%d: found %d, expected at least %d for p=%d o=%d",
                        plan->switches.buffers, plan->switches.buffers, ah__sched_min_buffers(&config),
                        plan->switches.offload_params, plan->switches.offload_optimizer);
    return AH_OK;
}

int ah__plan_fixed(struct ah_fixed *fixed, const char *text, int layers)
{
    struct ah_plan plan = {0};
    unsigned given = 0;
    *fixed = (struct ah_fixed){0};
    if (text && strcmp(text, "auto") != 0 && ah_plan_is_open(text))
        AH_TRY(ah__plan_spec(&plan, &given, text, layers));
    *fixed = (struct ah_fixed){given, plan.switches};
    return AH_OK;
}

/* Some plan with the fixed switches, for what can be told without a search. */
int ah__plan_check_fixed(const struct ah_predictor *predictor)
{
    struct ah_plan plan = {.switches = ah__predictor_lowest(predictor),
                           .workspace_bytes = predictor->profile->workspace_bytes};
    if (!predictor->fixed.mask)
        return AH_OK;
    ah__fixed_set(&plan.switches, &predictor->fixed);
    int status = ah__plan_check_passes(&plan.switches, predictor->partition);
    if (status != AH_OK)
        return ah__fail_prefix(status, "--plan");
    int most = ah__plan_max_buffers(&plan.switches, predictor); /* how few suffice depends on what is free */
    plan.switches.buffers = plan.switches.buffers > most ? plan.switches.buffers : most;
    return ah__plan_check_policy(&plan, predictor);
}
