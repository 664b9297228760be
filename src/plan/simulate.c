/* Timelines of a plan: how a record gets its byte scale, and ah_plan_simulate. */
#include "plan/predict.h"

void ah__timeline_describe(struct ah_timeline *timeline, const struct ah_partition *partition, const struct ah_plan *plan,
                           bool predicted)
{
    int64_t host;
    struct ah_plan without_slots = *plan;
    without_slots.slots = 0;
    timeline->predicted = predicted;
    ah__layout_bytes(&timeline->device_peak_bytes, &host, partition, plan);
    ah__layout_bytes(&timeline->fixed_bytes, &host, partition, &without_slots);
    timeline->slot_bytes = (timeline->device_peak_bytes - timeline->fixed_bytes) / plan->slots;
    snprintf(timeline->title, sizeof timeline->title, "%s, c=%d p=%d o=%d, %d slots", plan->policy, plan->checkpoint,
             plan->offload_params, plan->offload_optimizer, plan->slots);
}

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
