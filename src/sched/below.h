/* Frozen blocks between embedding and blocks, which never change: when they may come from the host, and run. Private to
 * sched/. */
#ifndef AH_SCHED_BELOW_H
#define AH_SCHED_BELOW_H

#include "sched/next.h"

/* The forward of one has its parameters. */
bool ah__below_ready(const struct ah_sched *sched, struct ah_next *next);
/* The next one that comes; `needed`: only if the compute lane is in the round it is for. */
bool ah__below_in_next(const struct ah_sched *sched, struct ah_next *next, bool needed);

#endif
