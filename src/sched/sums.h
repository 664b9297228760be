/* Sums of blocks, which are on the host between an iteration's rounds: when they may come and leave. Private to
 * sched/. */
#ifndef AH_SCHED_SUMS_H
#define AH_SCHED_SUMS_H

#include "sched/next.h"

/* A backward has a place for its sum: a free one, or in later rounds the one that the sum has come to. */
bool ah__sum_place_ready(const struct ah_sched *sched, struct ah_next *next);
/* The next sum that comes for a backward. */
bool ah__sums_in_next(const struct ah_sched *sched, struct ah_next *next);
/* The next sum that leaves; `arrived_only`: not if the lane would have to wait for its backward. */
bool ah__sums_out_next(const struct ah_sched *sched, struct ah_next *next, bool arrived_only);

#endif
