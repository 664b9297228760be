/* Implements ah_plan_simulate. */
#include "plan/predict.h"

int ah_plan_simulate(struct ah_timeline **out, const struct ah_plan *plan, const struct ah_partition *partition,
                     const struct ah_profile *profile, int iterations)
{
    struct ah_predictor predictor;
    AH_TRY(ah__predictor_init(&predictor, partition, profile, plan->policy));
    int status = ah__plan_check(plan, partition);
    if (status == AH_OK)
        status = ah__plan_timeline(out, plan, &predictor, iterations);
    ah__predictor_fini(&predictor);
    return status;
}
