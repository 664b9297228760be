/* From a plan downhill over all switches together, and by small leaps out of where that ends. */
#ifndef AH_PLAN_IMPROVE_H
#define AH_PLAN_IMPROVE_H

#include "plan/predict.h"

/* Replaces `best`, whose step_ns is simulated, by the fastest plan within the budget that it finds by changing a few
 * switches at a time, until nothing helps, `most` more plans were simulated or hardly anything is left to gain over
 * floor_ns, which no plan can beat; adds to *simulated. The same input gives the same plan. */
int ah__plan_improve(struct ah_plan *best, int64_t *simulated, const struct ah_predictor *predictor,
                     const struct ah_budget *budget, int64_t floor_ns, int64_t most);

#endif
