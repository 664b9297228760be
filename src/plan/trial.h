/* Simulations of plans during a search: none again whose time is known, none further than matters, all counted.
 *
 * Takes plans that fit, gives step times. Counts work in items that were simulated, so that a limit to it takes about
 * the same time for models of any depth and is reached at the same plan on any machine. */
#ifndef AH_PLAN_TRIAL_H
#define AH_PLAN_TRIAL_H

#include "plan/predict.h"

/* What is known of a plan that was simulated. */
struct ah_tried {
    uint64_t key; /* of its switches; 0: none */
    int64_t step_ns;
    bool exact; /* else the step is no shorter than that */
};

struct ah_trials {
    const struct ah_predictor *predictor;
    const struct ah_budget *budget;
    int64_t simulated, bounded;    /* plans; those passed over because their bound is no better than the best */
    int64_t items;                 /* of the first steps of those that were simulated */
    struct ah_tried *tried;        /* by key, open addressing */
    size_t count, capacity;        /* a power of two, or 0 */
    const struct ah_trials *known; /* what others simulated, of the same predictor, or null: only read */
};

void ah__trials_fini(struct ah_trials *trials);
/* Adds what the other ones simulated. AH_ENOMEM. */
int ah__trials_add(struct ah_trials *trials, const struct ah_trials *other);

/* By what plans are compared: the step, and a little for each doubling of the pieces, which costs launches that no
 * profile shows. */
int64_t ah__trial_score_ns(const struct ah_plan *plan);
/* A plan of these pieces whose step is below this has a lower score. */
int64_t ah__trial_below_ns(const struct ah_plan *plan, int64_t score_ns);

/* Whether the plan's step is below below_ns, the first one too, and if so *step_ns, as it is predicted; else that is
 * left alone. AH_ENOMEM. */
int ah__trial(bool *below, int64_t *step_ns, struct ah_trials *trials, const struct ah_plan *plan, int64_t below_ns);

#endif
