/* Local search: descends from a plan along the rows of the switch table, then from perturbations of the best plan.
 * Takes plans within the budget, gives faster ones. */
#ifndef AH_PLAN_WALK_H
#define AH_PLAN_WALK_H

#include "plan/trial.h"

struct ah_walk_options {
    int64_t items;     /* limit: so many more simulated items */
    int64_t enough_ns; /* limit: a step no longer than this */
    int in_vain;       /* limit: so many perturbations in a row without gain */
    uint64_t stream;   /* stream of random numbers for perturbations */
};

/* Returns the cost model's estimate of the step, without simulation: the longest lane's time, slowed by lanes that run
 * at the same time, or the bound if that is longer, and a share of all work for waiting. */
int64_t ah__walk_cost_ns(struct ah_plan *plan, const struct ah_predictor *predictor);
/* Descends by that cost over the rows of AH_ROLE_PLACE, with at most `most` trials; step_ns is then the cost. */
int ah__walk_by_cost(struct ah_plan *best, struct ah_trials *trials, int most);

/* Searches from `best`, which is completed and simulated, and replaces it by a faster plan. AH_ENOMEM. */
int ah__walk(struct ah_plan *best, struct ah_trials *trials, const struct ah_walk_options *options);

#endif
