/* Published systems bring their own placements; of those the fastest that fits is taken, or the first that their own
 * rule takes. */
#ifndef AH_PLAN_PLACED_H
#define AH_PLAN_PLACED_H

#include "plan/seeds.h"

/* The index-th placement with all its switches but out_of_order and both peaks, within a budget or not; false: there
 * are fewer. */
bool ah__placed_get(struct ah_plan *out, const struct ah_predictor *predictor, int index);

/* The smallest placements, and whether one may run: those that fit, of a system that takes the first fit only that. */
void ah__placed_least(struct ah_least *out, const struct ah_predictor *predictor, const struct ah_budget *budget);
/* The fastest of those that may run; layers 0: none. Adds how many there are to *considered. AH_ENOMEM. */
int ah__placed_search(struct ah_plan *out, int64_t *considered, struct ah_trials *trials);

/* The simulated step time of a plan with its better rule for out_of_order: as many buffers as it has, or none; sets
 * plan->switches.out_of_order. */
int ah__plan_choose_out_of_order(int64_t *step_ns, struct ah_plan *plan, const struct ah_predictor *predictor);

#endif
