#include "plan/placed.h"

#include "plan/fit.h"
#include "sched/switch_table.h"

enum { GATHERED_AHEAD = 2 };

int ah__placed_passes(const struct ah_predictor *predictor)
{
    int most = ah__micro_batches(predictor->partition);
    if (ah__is_fixed(&predictor->fixed, AH_SWITCH_passes))
        return predictor->fixed.at.passes;
    if (!predictor->policy->accumulates || ah__predictor_world_size(predictor) > 1)
        return 1;
    return most < AH_SCHED_MOST_PASSES ? most : AH_SCHED_MOST_PASSES;
}

bool ah__placed_get(struct ah_plan *out, const struct ah_predictor *predictor, int index)
{
    struct ah_plan plan = {.workspace_bytes = predictor->profile->workspace_bytes};
    struct ah_switches *switches = &plan.switches;
    if (!predictor->policy->placement(switches, predictor->partition->layers, index))
        return false;
    switches->layers = predictor->partition->layers;
    switches->frozen_blocks = predictor->partition->frozen_blocks;
    ah__switches_clamp(switches);
    switches->world_size = ah__predictor_world_size(predictor);
    switches->chunks = 1;
    switches->passes = ah__placed_passes(predictor);
    switches->device_sums = switches->passes > 1 ? switches->device_sums : 0;
    int least = ah__plan_min_buffers(switches, predictor);
    if (switches->world_size > 1) /* no block is unsharded: buffers that gathering needs, and one block ahead */
        switches->buffers = least + GATHERED_AHEAD;
    switches->buffers = switches->buffers > least ? switches->buffers : least; /* half-precision copies */
    ah__plan_measure(&plan, predictor);
    *out = plan;
    return true;
}

int ah__plan_choose_out_of_order(int64_t *step_ns, struct ah_plan *plan, const struct ah_predictor *predictor)
{
    int64_t with;
    struct ah_plan out_of_order = *plan;
    bool placed = ah__policy_is_placed(predictor->policy); /* the published rule, better or not */
    plan->switches.out_of_order = placed && predictor->policy->overtakes ? plan->switches.buffers : 0;
    AH_TRY(ah__plan_step_ns(step_ns, plan, predictor, AH_PREDICT_ITERATIONS));
    if (placed || !predictor->policy->overtakes || plan->switches.offload_optimizer == 0)
        return AH_OK;
    out_of_order.switches.out_of_order = out_of_order.switches.buffers;
    AH_TRY(ah__plan_step_ns(&with, &out_of_order, predictor, AH_PREDICT_ITERATIONS));
    if (with < *step_ns) {
        plan->switches.out_of_order = plan->switches.buffers;
        *step_ns = with;
    }
    return AH_OK;
}

void ah__placed_least(struct ah_least *out, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    struct ah_plan plan;
    *out = (struct ah_least){.device = {.step_ns = 0}};
    for (int i = 0; ah__placed_get(&plan, predictor, i); i++)
        if (ah__fixed_holds(&predictor->fixed, &plan.switches))
            ah__least_note(out, &plan, budget);
}

static int try_placement(struct ah_plan *best, int64_t *considered, struct ah_trials *trials, struct ah_plan plan)
{
    ++*considered;
    ah__plan_bound(&plan, trials->predictor);
    if (best->switches.layers && ah__plan_policy_bound(&plan, trials->predictor) >= best->step_ns) {
        trials->bounded++;
        return AH_OK;
    }
    AH_TRY(ah__plan_choose_out_of_order(&plan.step_ns, &plan, trials->predictor));
    trials->simulated++;
    if (!best->switches.layers || plan.step_ns < best->step_ns)
        *best = plan;
    return AH_OK;
}

/* For plans with and without recomputation: the first that suffices by the system's own rule, else the last that fits.
 * If plans differ only in buffers, the one with the most counts. */
int ah__placed_search(struct ah_plan *out, int64_t *considered, struct ah_trials *trials)
{
    struct ah_plan plan, last[2] = {0};
    bool found[2] = {false, false};
    const struct ah_switches *switches = &plan.switches;
    const struct ah_predictor *predictor = trials->predictor;
    out->switches.layers = 0;
    for (int i = 0; ah__placed_get(&plan, predictor, i); i++) {
        int recomputes = switches->checkpoint > 0;
        if (!ah__plan_within(&plan, trials->budget) || !ah__fixed_holds(&predictor->fixed, switches))
            continue;
        bool suffices = !predictor->policy->suffices || predictor->policy->suffices(switches, &predictor->costs);
        if (!predictor->policy->first_fit || (suffices && !found[recomputes])) {
            found[recomputes] = true;
            AH_TRY(try_placement(out, considered, trials, plan));
        } else if (!found[recomputes] && (!last[recomputes].switches.layers ||
                                          last[recomputes].switches.offload_optimizer != switches->offload_optimizer)) {
            last[recomputes] = plan;
        }
    }
    for (int recomputes = 0; recomputes < 2; recomputes++)
        if (!found[recomputes] && last[recomputes].switches.layers)
            AH_TRY(try_placement(out, considered, trials, last[recomputes]));
    return AH_OK;
}
