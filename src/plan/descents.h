/* Several ways down, or other work with simulations, at once, on all cores. */
#ifndef AH_PLAN_DESCENTS_H
#define AH_PLAN_DESCENTS_H

#include "plan/improve.h"

struct ah_descents;
/* Threads for as many ways down at once as the process has cores, or its share of them where ranks share a machine.
 * `predictor` is that of the trials given later; it is borrowed. AH_ENOMEM. */
int ah__descents_new(struct ah_descents **out, const struct ah_predictor *predictor);
void ah__descents_free(struct ah_descents *descents);

/* work(context, index, own) for index 0..count-1, at most 16 of them, in any order. Each knows what the trials knew
 * before and what it simulates itself, nothing of the others; afterwards the trials know everything. The first failure,
 * in the order of the indices. */
int ah__descents_each(struct ah_descents *descents, int (*work)(void *context, int index, struct ah_trials *own),
                      void *context, int count, struct ah_trials *trials);

/* ah__plan_improve for each of the plans. Each draws numbers of its own: the same plans come out for any number
 * of threads. */
int ah__descents_run(struct ah_descents *descents, struct ah_plan *plans, int count, struct ah_trials *trials,
                     const struct ah_predictor *predictor, int64_t floor_ns, const struct ah_effort *effort);

#endif
