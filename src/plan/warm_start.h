/* Warm starts: plans from which a search starts. Takes a plan that is not checked against this machine, budget and
 * policy; gives the same plan if it can run. */
#ifndef AH_PLAN_WARM_START_H
#define AH_PLAN_WARM_START_H

#include "plan/predict.h"

/* Sets *out to `given` (null: no plan) with the workspace of the predictor's profile and both peaks; layers 0 if the
 * budget or the policy does not allow it. AH_ESTALE: it is for another model or step. */
int ah__warm_start_find(struct ah_plan *out, const struct ah_plan *given, const struct ah_predictor *predictor,
                        const struct ah_budget *budget);

#endif
