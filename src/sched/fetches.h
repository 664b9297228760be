/* Chooses the parameters that are fetched next: those needed first, or others that are ready and may overtake them.
 * Private to sched/. */
#ifndef AH_SCHED_FETCHES_H
#define AH_SCHED_FETCHES_H

#include "sched/next.h"

/* Makes the next prefetch or re-fetch, or a chunk of one; false: none is possible now. */
bool ah__fetch_next(const struct ah_sched *sched, struct ah_next *next);

#endif
