/* Simulations of plans during a search: no plan is simulated again if its time is known, none longer than it matters,
 * and all are counted.
 *
 * Takes plans that fit, gives step times. Counts work in simulated items, so that a limit takes about the same time for
 * models of any depth and is reached at the same plan on any machine. */
#ifndef AH_PLAN_TRIAL_H
#define AH_PLAN_TRIAL_H

#include "plan/predict.h"

/* The known time of a plan that was simulated. */
struct ah_tried {
    uint64_t key; /* hash of its switches; 0: empty entry */
    int64_t step_ns;
    bool exact; /* else the step is no shorter than step_ns */
};

struct ah_trials {
    const struct ah_predictor *predictor;
    const struct ah_budget *budget;
    int64_t simulated, bounded; /* plans simulated; plans skipped because their bound is no better than the best */
    int64_t items;              /* items in the first steps of the simulated plans */
    struct ah_tried *tried;     /* by key, open addressing */
    size_t count, capacity;     /* a power of two, or 0 */
    /* other trials of the same predictor, whose times may be read; or null */
    const struct ah_trials *known;
};

void ah__trials_fini(struct ah_trials *trials);
/* Adds the times and counts of other trials. AH_ENOMEM. */
int ah__trials_add(struct ah_trials *trials, const struct ah_trials *other);

/* Returns the score by which plans are compared: the step, and a little for each doubling of the chunks, which costs
 * kernel launches that no profile shows. */
int64_t ah__trial_score_ns(const struct ah_plan *plan);
/* Returns the step time below which a plan with these chunks has a lower score than score_ns. */
int64_t ah__trial_below_ns(const struct ah_plan *plan, int64_t score_ns);

/* Sets *below to true if the plan's step is below below_ns, its first step included; then *step_ns is the predicted
 * step, else it is unchanged. AH_ENOMEM. */
int ah__trial(bool *below, int64_t *step_ns, struct ah_trials *trials, const struct ah_plan *plan, int64_t below_ns);

#endif
