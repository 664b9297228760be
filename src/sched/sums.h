/* Rules for sums of blocks, which are on the host between an iteration's rounds: when they are copied in and out.
 * Private to sched/. */
#ifndef AH_SCHED_SUMS_H
#define AH_SCHED_SUMS_H

#include "sched/next.h"

/* Returns true if a backward has a buffer for its sum: a free one, or in later rounds the one into which the sum is
 * copied; `next` waits for it. */
bool ah__sum_place_ready(const struct ah_sched *sched, struct ah_next *next);
/* Makes the item that copies the next sum in for a backward. */
bool ah__sums_in_next(const struct ah_sched *sched, struct ah_next *next);
/* Makes the item that copies the next sum out; `arrived_only`: not if the lane would have to wait for its backward. */
bool ah__sums_out_next(const struct ah_sched *sched, struct ah_next *next, bool arrived_only);

#endif
