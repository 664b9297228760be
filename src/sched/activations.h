/* When activations may leave for the host and come back. Private to sched/. */
#ifndef AH_SCHED_ACTIVATIONS_H
#define AH_SCHED_ACTIVATIONS_H

#include "sched/next.h"

/* A forward writes its own activations and the input of the next block, each of which may lie in a stage: whether what
 * passed that before has been sent home, for which it then waits. */
bool ah__stage_left(const struct ah_sched *sched, struct ah_next *next);
/* A backward's activations have been sent for, and it waits for them; or they never left. */
bool ah__activations_here(const struct ah_sched *sched, struct ah_next *next);
/* The next activations in order to leave, whose forward was submitted; null: there are none. */
const struct group *ah__activations_leaving(const struct ah_sched *sched);
/* They do. */
void ah__activations_out(const struct ah_sched *sched, struct ah_next *next);
/* The next ones to come back, into a stage that the block above is done with; false: not yet. */
bool ah__activations_in_next(const struct ah_sched *sched, struct ah_next *next);

#endif
