/* Several ways down at once, on all cores. */
#ifndef AH_PLAN_DESCENTS_H
#define AH_PLAN_DESCENTS_H

#include "plan/improve.h"

struct ah_descents;
/* Threads for as many ways down at once as the process has cores, or its share of them where ranks share a machine.
 * `predictor` is that of the trials given later; it is borrowed. AH_ENOMEM. */
int ah__descents_new(struct ah_descents **out, const struct ah_predictor *predictor);
void ah__descents_free(struct ah_descents *descents);

/* ah__plan_improve for each of the plans. Each knows what the trials knew before and what it simulates itself, nothing
 * of the others, and draws numbers of its own: the same plans come out for any number of threads. Afterwards the trials
 * know everything. */
int ah__descents_run(struct ah_descents *descents, struct ah_plan *plans, int count, struct ah_trials *trials,
                     const struct ah_predictor *predictor, int64_t floor_ns, const struct ah_effort *effort);

#endif
