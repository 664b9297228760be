#include "plan/exhaust.h"

#include "plan/fit.h"
#include "plan/space.h"
#include "sched/switches.h"

/* Simulated items after which one part of the exhaustive search ends, for an effort of 1: about a second of a core. */
enum { ITEMS_MOST = 4000000 };

/* The plans with one number of blocks on the host. */
struct part {
    struct ah_plan best;
    struct ah_trials *trials;
    int64_t most_items;
    bool cut; /* the part ended before all its plans were tried */
};
struct exhaustion {
    const struct ah_plan *fastest;
    struct part part[AH_EXHAUSTED_LAYERS + 1];
};

/* Tries every number of buffers and every prefetch distance, in order and out of order. */
static int exhaust_order(struct part *part, struct ah_plan plan)
{
    struct ah_trials *trials = part->trials;
    struct ah_plan *best = &part->best;
    struct ah_switches *switches = &plan.switches;
    const struct ah_predictor *predictor = trials->predictor;
    int most = switches->buffers, farthest = ah__plan_farthest_refetch(switches);
    bool overtakes = predictor->policy->overtakes && switches->offload_optimizer > 0;
    for (switches->buffers = ah__plan_min_buffers(switches, predictor); switches->buffers <= most;
         switches->buffers++) {
        ah__plan_fill(&plan, predictor, trials->budget);
        for (int i = 0; i < 2 * farthest; i++) {
            int64_t step_ns;
            if (i % 2 && !overtakes)
                continue;
            switches->prefetch_distance = 1 + i / 2;
            switches->out_of_order = i % 2 ? switches->buffers : 0;
            if (ah__is_fixed(&predictor->fixed, AH_SWITCH_out_of_order))
                switches->out_of_order = predictor->fixed.at.out_of_order;
            if (!ah__fixed_holds(&predictor->fixed, switches))
                continue;
            AH_TRY(ah__plan_step_below(&step_ns, &trials->items, &plan, predictor, best->step_ns));
            trials->simulated++;
            if (step_ns >= best->step_ns)
                continue;
            *best = plan;
            best->step_ns = step_ns;
        }
    }
    return AH_OK;
}

/* Tries every value of the rows from `index` on that place memory. */
static int exhaust_places(struct part *part, const struct ah_plan *from, int index)
{
    struct ah_trials *trials = part->trials;
    struct ah_plan *best = &part->best;
    const struct ah_predictor *predictor = trials->predictor;
    struct ah_plan plan = *from;
    if (index == ah__row_count(predictor)) {
        ah__plan_spill(&plan, predictor, trials->budget);
        if (!ah__switches_valid(&plan.switches) || !ah__plan_fit(&plan, predictor, trials->budget))
            return AH_OK;
        ah__plan_bound(&plan, predictor);
        if (ah__plan_policy_bound(&plan, predictor) < best->step_ns)
            return exhaust_order(part, plan);
        trials->bounded++;
        return AH_OK;
    }
    const struct ah_row *row = &ah__rows[index];
    bool place = row->role == AH_ROLE_FLAG || (row->role == AH_ROLE_PLACE && row->at != AH_SWITCH_buffers);
    int most = place ? row->most(&plan.switches, predictor) : ah__switch_table[row->at].low;
    int least = ah__switch_table[row->at].low;
    if (ah__is_fixed(&predictor->fixed, row->at)) {
        least = ah__switch_get(&predictor->fixed.at, row->at);
        most = place && most < least ? most : least;
    }
    for (int value = least; value <= most; value++) {
        ah__switch_set(&plan.switches, row->at, value);
        if (trials->items >= part->most_items) {
            part->cut = true;
            return AH_OK;
        }
        AH_TRY(exhaust_places(part, &plan, index + 1));
    }
    return AH_OK;
}

/* Tries the plans with `index` blocks on the host, which is the value of the first row. */
static int exhaust_one(void *context, int index, struct ah_trials *trials)
{
    struct exhaustion *exhaustion = context;
    struct ah_plan plan = {.switches = ah__predictor_lowest(trials->predictor),
                           .workspace_bytes = trials->predictor->profile->workspace_bytes};
    plan.switches.passes = ah__plan_passes(trials->predictor);
    struct part *part = &exhaustion->part[index];
    int effort = trials->predictor->effort > 1 ? trials->predictor->effort : 1;
    *part = (struct part){*exhaustion->fastest, trials, trials->items + (int64_t)effort * ITEMS_MOST, false};
    if (ah__is_fixed(&trials->predictor->fixed, ah__rows[0].at) &&
        ah__switch_get(&trials->predictor->fixed.at, ah__rows[0].at) != index)
        return AH_OK;
    ah__switch_set(&plan.switches, ah__rows[0].at, index);
    return exhaust_places(part, &plan, 1);
}

int ah__exhaust(bool *whole, struct ah_plan *best, struct ah_workers *workers, struct ah_trials *trials)
{
    struct exhaustion exhaustion = {.fastest = best};
    int count = best->switches.layers + 1;
    AH_TRY(ah__workers_each(workers, exhaust_one, &exhaustion, count, trials));
    *whole = true;
    for (int i = 0; i < count; i++) {
        const struct part *part = &exhaustion.part[i];
        *whole = *whole && !part->cut;
        if (ah__trial_score_ns(&part->best) < ah__trial_score_ns(best))
            *best = part->best;
    }
    return AH_OK;
}
