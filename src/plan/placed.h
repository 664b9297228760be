/* Searches the placements of published systems: the fastest that fits is chosen, or the first that the system's own
 * rule chooses. */
#ifndef AH_PLAN_PLACED_H
#define AH_PLAN_PLACED_H

#include "plan/seeds.h"

/* Computes the index-th placement with all its switches but out_of_order and both peaks, within a budget or not. False:
 * there are fewer placements. */
bool ah__placed_get(struct ah_plan *out, const struct ah_predictor *predictor, int index);

/* Returns the passes of a system's plans: as many as micro-batches, if it runs each through the whole model, or the
 * number that is fixed. */
int ah__placed_passes(const struct ah_predictor *predictor);

/* Finds the smallest placements. */
void ah__placed_least(struct ah_least *out, const struct ah_predictor *predictor, const struct ah_budget *budget);
/* Finds the fastest placement that may run: any that fits, or of a system that takes the first that fits only that one.
 * layers 0: there is no such placement. Adds the number of placements that may run to *considered. AH_ENOMEM. */
int ah__placed_search(struct ah_plan *out, int64_t *considered, struct ah_trials *trials);

/* Simulates a plan with each rule for out_of_order, as many buffers as it has or none, and sets
 * plan->switches.out_of_order to the faster; for published systems to their own rule. *step_ns: the step time. */
int ah__plan_choose_out_of_order(int64_t *step_ns, struct ah_plan *plan, const struct ah_predictor *predictor);

#endif
