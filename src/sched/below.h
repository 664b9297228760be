/* Rules for frozen lowest blocks, between the embedding and the other blocks: when they may be fetched from the host,
 * and run. Their parameters never change. Private to sched/. */
#ifndef AH_SCHED_BELOW_H
#define AH_SCHED_BELOW_H

#include "sched/next.h"

/* Returns true if the parameters for a frozen lowest block's forward are there, or their fetch was submitted; `next`
 * waits for it. */
bool ah__below_ready(const struct ah_sched *sched, struct ah_next *next);
/* Makes the next fetch of a frozen lowest block; `needed`: only if it is for the compute lane's current round. */
bool ah__below_in_next(const struct ah_sched *sched, struct ah_next *next, bool needed);

#endif
