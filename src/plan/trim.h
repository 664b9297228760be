/* Trims a plan: lowers switches that do not make the step shorter. */
#ifndef AH_PLAN_TRIM_H
#define AH_PLAN_TRIM_H

#include "plan/trial.h"

/* Lowers buffers to the fewest, and uses the freed memory for more unsharded blocks as far as they make the step
 * shorter; then lowers every switch of order and rest. Shadow states are the fewest with which the step is at most one
 * part of 5000 longer, and no longer than warm_ns, the step of the warm start (INT64_MAX: there is none). `best` was
 * simulated before. AH_ENOMEM. */
int ah__trim(struct ah_plan *best, struct ah_trials *trials, int64_t warm_ns);

#endif
