/* Local search: from a plan downhill along the rows of the switch table, then from perturbations of the best plan.
 * Takes plans within the budget, gives faster ones. */
#ifndef AH_PLAN_WALK_H
#define AH_PLAN_WALK_H

#include "plan/trial.h"

struct ah_walk_options {
    int64_t items;     /* ends when so many more were simulated */
    int64_t enough_ns; /* and at a step no longer than this */
    int in_vain;       /* and after so many perturbations in a row that gained nothing */
    uint64_t stream;   /* of the random numbers of perturbations */
};

/* The cost model: the longest lane, each as much slower as those that run beside it make it, or the bound, and a part
 * of all work for what waits. A guess at the step without simulation. */
int64_t ah__walk_cost_ns(struct ah_plan *plan, const struct ah_predictor *predictor);
/* Downhill by that cost, over the rows of places, with so many trials at most; step_ns is the cost then. */
int ah__walk_by_cost(struct ah_plan *best, struct ah_trials *trials, int most);

/* `best` is completed and simulated before. AH_ENOMEM. */
int ah__walk(struct ah_plan *best, struct ah_trials *trials, const struct ah_walk_options *options);

#endif
