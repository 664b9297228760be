/* Which parameters are fetched next: those that are needed first, or others that are ready and may overtake them.
 * Private to sched/. */
#ifndef AH_SCHED_FETCHES_H
#define AH_SCHED_FETCHES_H

#include "sched/next.h"

/* The next prefetch or re-fetch, or chunk of one; false: none can go now. */
bool ah__fetch_next(const struct ah_sched *sched, struct ah_next *next);

#endif
