#include "plan/trim.h"

#include "plan/fit.h"
#include "plan/space.h"

/* Sets the best plan's switches to `switches` if they fit (fewer chunks are larger and may not fit), if their buffers
 * suffice (with fewer unsharded blocks they may not) and if the step is no longer than most_ns. *kept: they were
 * set. */
static int keep(bool *kept, struct ah_plan *best, struct ah_trials *trials, const struct ah_switches *switches,
                int64_t most_ns)
{
    struct ah_plan plan = *best;
    plan.switches = *switches;
    ah__space_settle(&plan.switches, trials->predictor);
    ah__plan_measure(&plan, trials->predictor);
    *kept = ah__plan_within(&plan, trials->budget) &&
            plan.switches.buffers >= ah__plan_min_buffers(&plan.switches, trials->predictor);
    if (!*kept)
        return AH_OK;
    AH_TRY(ah__trial(kept, &plan.step_ns, trials, &plan, most_ns + 1));
    if (*kept)
        *best = plan;
    return AH_OK;
}

/* Sets a switch to the least value with which the step is no longer than most_ns, assuming that less is never
 * faster. */
static int trim_row(struct ah_plan *best, struct ah_trials *trials, const struct ah_row *row, int least,
                    int64_t most_ns)
{
    if (ah__is_fixed(&trials->predictor->fixed, row->at))
        return AH_OK;
    int low = least, high = ah__switch_get(&best->switches, row->at), value = low;
    while (low < high) {
        struct ah_switches tried = best->switches;
        bool kept;
        ah__switch_set(&tried, row->at, value);
        AH_TRY(keep(&kept, best, trials, &tried, most_ns));
        low = kept ? low : value + 1;
        high = kept ? value : high;
        value = low + (high - low) / 2;
    }
    return AH_OK;
}

int ah__trim(struct ah_plan *best, struct ah_trials *trials, int64_t warm_ns)
{
    enum { MUST_GAIN = 5000 };
    struct ah_plan plan;
    bool kept;
    for (int i = 0; i < ah__row_count(trials->predictor); i++)
        if (ah__rows[i].at == AH_SWITCH_buffers)
            AH_TRY(trim_row(best, trials, &ah__rows[i], ah__plan_min_buffers(&best->switches, trials->predictor),
                            best->step_ns));
    plan = *best;
    ah__plan_fill(&plan, trials->predictor, trials->budget);
    if (plan.switches.unsharded > best->switches.unsharded || plan.switches.device_sums > best->switches.device_sums)
        AH_TRY(keep(&kept, best, trials, &plan.switches, best->step_ns - 1));
    int64_t step_ns = best->step_ns, longer_ns = step_ns + step_ns / MUST_GAIN;
    longer_ns = longer_ns < warm_ns ? longer_ns : warm_ns;
    for (int i = 0; i < ah__row_count(trials->predictor); i++) {
        const struct ah_row *row = &ah__rows[i];
        bool shadows = row->at == AH_SWITCH_shadows;
        if (row->role == AH_ROLE_ORDER || row->role == AH_ROLE_REST)
            AH_TRY(trim_row(best, trials, row, ah__switch_table[row->at].low, shadows ? longer_ns : best->step_ns));
    }
    return AH_OK;
}
