/* Plans given by hand: completes what they leave open, checks and predicts them. */
#include <string.h>

#include "base/file.h"
#include "plan/config.h"
#include "plan/fit.h"
#include "plan/placed.h"
#include "plan/plan_internal.h"
#include "plan/search.h"

static bool is_given(unsigned given, enum ah_switch index)
{
    return given >> index & 1;
}

static int over_budget(const struct ah_plan *plan, const struct ah_budget *budget)
{
    char what[64];
    snprintf(what, sizeof what, " for plan c=%d p=%d o=%d", plan->switches.checkpoint, plan->switches.offload_params,
             plan->switches.offload_optimizer);
    return ah__plan_over_budget(plan, budget, what);
}

/* Makes the plan that needs least memory: with the given buffers, shadow states and unsharded blocks, and the fewest of
 * those that are not given. */
static void least_of(struct ah_plan *least, unsigned given, const struct ah_predictor *predictor)
{
    struct ah_switches *switches = &least->switches;
    int fewest = ah__plan_min_buffers(switches, predictor), most = ah__plan_max_buffers(switches, predictor);
    int overtaken = switches->out_of_order < most ? switches->out_of_order : most;
    if (!is_given(given, AH_SWITCH_buffers))
        switches->buffers = overtaken > fewest ? overtaken : fewest;
    ah__plan_measure(least, predictor);
}

/* Sets switches that are not given: embedding and head go to the host if blocks do; the others take values that cost
 * nothing. */
static void places_fill(struct ah_switches *switches, unsigned given, const struct ah_predictor *predictor)
{
    if (!is_given(given, AH_SWITCH_embedding_on_host))
        switches->embedding_on_host =
            switches->offload_optimizer == switches->layers && predictor->partition->groups[0].trained > 0;
    if (!is_given(given, AH_SWITCH_head_on_host))
        switches->head_on_host = switches->offload_optimizer > 0;
    if (!is_given(given, AH_SWITCH_passes))
        switches->passes = ah__placed_passes(predictor);
    if (!is_given(given, AH_SWITCH_device_sums) && predictor->policy->accumulates && switches->passes > 1)
        switches->device_sums = ah__trained_on_device(switches);
    if (!is_given(given, AH_SWITCH_prefetch_distance))
        switches->prefetch_distance = ah__plan_farthest_refetch(switches);
    if (!is_given(given, AH_SWITCH_chunks))
        switches->chunks = 1;
}

/* Decides what a spec leaves open: embedding and head, then the most buffers, shadow states and unsharded blocks that
 * fit. A plan that would be wrong with any memory is refused before one that needs more memory. */
static int complete(struct ah_plan *plan, unsigned given, const struct ah_predictor *predictor,
                    const struct ah_budget *budget)
{
    int status = ah__plan_check_passes(&plan->switches, predictor->partition);
    if (status != AH_OK)
        return ah__fail_prefix(status, "--plan");
    places_fill(&plan->switches, given, predictor);
    struct ah_plan fitted = *plan, least = *plan;
    least_of(&least, given, predictor);
    AH_TRY(ah__plan_check_policy(&least, predictor));
    if (!ah__plan_within(&least, budget))
        return over_budget(&least, budget);
    ah__plan_fit(&fitted, predictor, budget);
    if (is_given(given, AH_SWITCH_buffers))
        fitted.switches.buffers = plan->switches.buffers;
    if (is_given(given, AH_SWITCH_shadows))
        fitted.switches.shadows = plan->switches.shadows;
    ah__plan_fill(&fitted, predictor, budget);
    if (is_given(given, AH_SWITCH_device_sums) || predictor->policy->accumulates)
        fitted.switches.device_sums = plan->switches.device_sums;
    if (is_given(given, AH_SWITCH_unsharded)) {
        fitted.switches.unsharded = plan->switches.unsharded;
        if (!is_given(given, AH_SWITCH_buffers))
            ah__plan_buffers_fit(&fitted, predictor, budget);
    }
    *plan = fitted;
    return AH_OK;
}

bool ah__plan_is_file(const char *text)
{
    return text && strcmp(text, "auto") != 0 && strcmp(text, "resident") != 0 && !strchr(text, '=');
}

static int from_file(struct ah_plan *plan, const char *path, const struct ah_partition *partition)
{
    AH_TRY(ah__plan_read(plan, path));
    int status = ah__plan_check(plan, partition);
    return status == AH_OK ? AH_OK : ah__fail_prefix(status, "%s", path);
}

static int parse(struct ah_plan *plan, const char *text, const struct ah_predictor *predictor,
                 const struct ah_budget *budget)
{
    unsigned given = 0;
    bool spec = !ah__plan_is_file(text);
    if (spec)
        AH_TRY(ah__plan_spec(plan, &given, text, predictor->partition->layers));
    else
        AH_TRY(from_file(plan, text, predictor->partition));
    if (spec) {
        plan->switches.world_size = ah__predictor_world_size(predictor);
        plan->switches.frozen_blocks = predictor->partition->frozen_blocks;
        ah__switches_clamp(&plan->switches);
        plan->workspace_bytes = predictor->profile->workspace_bytes;
    }
    if (plan->workspace_bytes != predictor->profile->workspace_bytes)
        return ah__fail(AH_ESTALE,
                        "%s: key 'workspace_bytes': found %lld, expected %lld, what this device's programs need", text,
                        (long long)plan->workspace_bytes, (long long)predictor->profile->workspace_bytes);
    if (spec)
        AH_TRY(complete(plan, given, predictor, budget));
    AH_TRY(ah__plan_check_policy(plan, predictor));
    int64_t step_ns;
    if (spec && !is_given(given, AH_SWITCH_out_of_order))
        AH_TRY(ah__plan_choose_out_of_order(&step_ns, plan, predictor));
    AH_TRY(ah__plan_predict(plan, predictor));
    return ah__plan_within(plan, budget) ? AH_OK : over_budget(plan, budget);
}

int ah_plan_check(const char *text, int layers)
{
    struct ah_plan plan = {0};
    unsigned given;
    if (strcmp(text, "auto") == 0)
        return AH_OK;
    if (!ah__plan_is_file(text))
        return ah__plan_spec(&plan, &given, text, layers);
    AH_TRY(ah__plan_read(&plan, text));
    if (plan.switches.layers != layers)
        return ah__fail(AH_ESTALE, "%s: key 'layers': found %d, expected %d: the plan is for another model", text,
                        plan.switches.layers, layers);
    return AH_OK;
}

int ah_plan_parse(struct ah_plan *out, const char *text, const struct ah_partition *partition,
                  const struct ah_profile *profile, const struct ah_budget *budget, const char *policy)
{
    struct ah_predictor predictor;
    struct ah_plan plan = {0};
    if (ah_plan_is_open(text))
        return ah_plan_search(out, partition, profile, budget, policy, &(struct ah_search_options){.fixed = text});
    AH_TRY(ah__predictor_init(&predictor, partition, profile, policy));
    int status = parse(&plan, text, &predictor, budget);
    ah__predictor_fini(&predictor);
    if (status == AH_OK)
        *out = plan;
    return status;
}

int ah__plan_make(struct ah_plan *out, const char *text, const struct ah_partition *partition,
                  const struct ah_profile *profile, const struct ah_budget *budget, const char *policy,
                  const struct ah_search_options *options)
{
    struct ah_search_options search = options ? *options : (struct ah_search_options){.effort = 0};
    search.fixed = text;
    return ah_plan_is_open(text) ? ah_plan_search(out, partition, profile, budget, policy, &search)
                                 : ah_plan_parse(out, text, partition, profile, budget, policy);
}
