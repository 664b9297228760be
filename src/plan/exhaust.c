#include "plan/exhaust.h"

#include "plan/fit.h"
#include "plan/space.h"
#include "sched/switches.h"

struct exhaustion {
    const struct ah_plan *fastest;
    struct ah_plan best[AH_EXHAUSTED_LAYERS + 1]; /* with so many blocks on the host */
};

/* Every number of buffers, every prefetch distance, in order or not. */
static int exhaust_order(struct ah_plan *best, struct ah_plan plan, struct ah_trials *trials)
{
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

/* Every value of the places from this row on. */
static int exhaust_places(struct ah_plan *best, const struct ah_plan *from, int index, struct ah_trials *trials)
{
    const struct ah_predictor *predictor = trials->predictor;
    struct ah_plan plan = *from;
    if (index == ah__row_count) {
        if (!ah__switches_valid(&plan.switches) || !ah__plan_fit(&plan, predictor, trials->budget))
            return AH_OK;
        ah__plan_bound(&plan, predictor);
        if (ah__plan_policy_bound(&plan, predictor) < best->step_ns)
            return exhaust_order(best, plan, trials);
        trials->bounded++;
        return AH_OK;
    }
    const struct ah_row *row = &ah__rows[index];
    bool place = row->role == AH_ROLE_FLAG || (row->role == AH_ROLE_PLACE && row->at != AH_SWITCH_buffers);
    int most = place ? row->most(&plan.switches, predictor) : ah__switch_table[row->at].low;
    for (int value = ah__switch_table[row->at].low; value <= most; value++) {
        ah__switch_set(&plan.switches, row->at, value);
        AH_TRY(exhaust_places(best, &plan, index + 1, trials));
    }
    return AH_OK;
}

/* The first row is how many blocks are on the host. */
static int exhaust_one(void *context, int index, struct ah_trials *trials)
{
    struct exhaustion *exhaustion = context;
    struct ah_plan plan = {.switches = {.layers = trials->predictor->partition->layers,
                                        .world_size = ah__predictor_world_size(trials->predictor)},
                           .workspace_bytes = trials->predictor->profile->workspace_bytes};
    exhaustion->best[index] = *exhaustion->fastest;
    ah__switch_set(&plan.switches, ah__rows[0].at, index);
    return exhaust_places(&exhaustion->best[index], &plan, 1, trials);
}

int ah__exhaust(struct ah_plan *best, struct ah_workers *workers, struct ah_trials *trials)
{
    struct exhaustion exhaustion = {.fastest = best};
    int count = best->switches.layers + 1;
    AH_TRY(ah__workers_each(workers, exhaust_one, &exhaustion, count, trials));
    for (int i = 0; i < count; i++)
        if (ah__trial_score_ns(&exhaustion.best[i]) < ah__trial_score_ns(best))
            *best = exhaustion.best[i];
    return AH_OK;
}
