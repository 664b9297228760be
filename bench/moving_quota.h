/* PatrickStar with a quota for chunks that changes with the moment: how short its step could be at most. A bound that
 * favours it, not a policy: nothing trains by it.
 *
 * What is no model data, a plan's activations and scratch, has its place all the time here; a moving quota would let
 * chunks in while it is not alive. No quota of any moment is larger than one without any of it, so the policy's plans
 * are given that much memory more for buffers, all the time; but at the peak, where the quota is what it was, no more
 * chunks than before. Blocks that are evicted may come back after their update instead of on demand, and gradients stay
 * for longer, in each case as is fastest. A quota that moves gives no more than this. What does not fit as it is does
 * not fit with one either.
 *
 * Simulated by the real scheduler. Prints nothing. */
#ifndef AH_BENCH_MOVING_QUOTA_H
#define AH_BENCH_MOVING_QUOTA_H

#include "plan/predict.h"

#define MOVING_QUOTA_NAME "patrickstar-moving" /* beside the names of policies; it is none */

/* A plan with more buffers than there is memory for, its step, and how it goes: blocks 1 to `early` come back after
 * their update although they are evicted, gradients leave as if `hidden` buffers were not there. Its peaks are those of
 * the plan it was made from: at the peak nothing has changed. */
struct moving_quota {
    struct ah_plan plan; /* step_ns 0: none yet */
    int early, hidden;
};

/* Of a plan's device memory what is no model data, under the predictor's rule. AH_ENOMEM. */
int moving_quota_room_bytes(int64_t *bytes, const struct ah_plan *plan, const struct ah_predictor *predictor);

/* What no step of it is below, whatever gradients make room for: updates on the host begin when backward is over and
 * end before forward begins, and nothing computes while a block is fetched on demand, so that the times of these add
 * up. */
int64_t moving_quota_least_ns(const struct moving_quota *quota, const struct ah_predictor *predictor);

/* Takes for *best whatever is faster: `plan`, predicted and patrickstar's, or the fastest with more buffers, as many as
 * there is room for, at most one for each block that is evicted and two. */
int moving_quota_find(struct moving_quota *best, const struct ah_plan *plan, const struct ah_predictor *predictor);

/* What ah_plan_evaluate would give for such a quota; `fixed` is what it gives for patrickstar. Where that evicts no
 * block, with or without recomputation, the same but for the name, and nothing is simulated. */
int moving_quota_evaluate(struct ah_evaluation *out, const struct ah_evaluation *fixed,
                          const struct ah_partition *partition, const struct ah_profile *profile,
                          const struct ah_budget *budget);

#endif
