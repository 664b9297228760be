/* Runs simulations on all cores, with the same results on any number of them. */
#ifndef AH_PLAN_WORKERS_H
#define AH_PLAN_WORKERS_H

#include "plan/trial.h"

struct ah_workers;
/* Makes a thread, with a simulated device, for each core of the process, or for its share of the cores if ranks share a
 * machine. `predictor` is that of the trials given later; it is borrowed. AH_ENOMEM. */
int ah__workers_new(struct ah_workers **out, const struct ah_predictor *predictor);
void ah__workers_free(struct ah_workers *workers);

/* Calls work(context, index, own) for index 0..count-1, in any order. Each call can read the times that `trials` had
 * before and its own, none of other calls; afterwards `trials` has all of them. Returns the first failure, in the order
 * of the indices. */
int ah__workers_each(struct ah_workers *workers, int (*work)(void *context, int index, struct ah_trials *own),
                     void *context, int count, struct ah_trials *trials);

#endif
