/* Which group's states are updated next: by the host, or visiting the device. Private to sched/. */
#ifndef AH_SCHED_UPDATES_H
#define AH_SCHED_UPDATES_H

#include "sched/next.h"

/* The best group to be updated: of those that the host updates, or of those whose states are staged. */
struct choice ah__update_choose(const struct ah_sched *sched, bool staged);
/* The next chunk's update, speculative while the norm is not known; false: nothing can be updated now. */
bool ah__update_next(const struct ah_sched *sched, struct ah_next *next, bool staged);
/* The next chunk of states to be staged, and the next one in a staging buffer to be updated and copied back. */
bool ah__states_next(const struct ah_sched *sched, struct ah_next *next);
bool ah__staged_next(const struct ah_sched *sched, struct ah_next *next);

#endif
