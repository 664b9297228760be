/* What buys nothing is given back. */
#ifndef AH_PLAN_TRIM_H
#define AH_PLAN_TRIM_H

#include "plan/trial.h"

/* The fewest buffers, and with the room for them more unsharded blocks as far as those make the step shorter; then the
 * least of everything else that places nothing. Of shadow states the fewest without which the step would be longer by
 * one part of 5000, or than warm_ns, that of the warm start (INT64_MAX: there is none). `best` is simulated before.
 * AH_ENOMEM. */
int ah__trim(struct ah_plan *best, struct ah_trials *trials, int64_t warm_ns);

#endif
