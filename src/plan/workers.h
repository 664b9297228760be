/* Work with simulations on all cores, with the same results on any number of them. */
#ifndef AH_PLAN_WORKERS_H
#define AH_PLAN_WORKERS_H

#include "plan/trial.h"

struct ah_workers;
/* A thread, with a simulated device, for each core of the process, or its share of them where ranks share a machine.
 * `predictor` is that of the trials given later; it is borrowed. AH_ENOMEM. */
int ah__workers_new(struct ah_workers **out, const struct ah_predictor *predictor);
void ah__workers_free(struct ah_workers *workers);

/* work(context, index, own) for index 0..count-1, in any order. Each knows what the trials knew before and what it
 * simulates itself, nothing of the others; afterwards the trials know everything. The first failure, in the order of
 * the indices. */
int ah__workers_each(struct ah_workers *workers, int (*work)(void *context, int index, struct ah_trials *own),
                     void *context, int count, struct ah_trials *trials);

#endif
