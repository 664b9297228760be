/* Chooses the group whose states are updated next, on the host or staged through the device. Private to sched/. */
#ifndef AH_SCHED_UPDATES_H
#define AH_SCHED_UPDATES_H

#include "sched/next.h"

/* Returns the best group to update: of those updated on the host, or of those whose states are staged. */
struct choice ah__update_choose(const struct ah_sched *sched, bool staged);
/* Makes the update of the next chunk, speculative while the norm is not known; false: nothing can be updated now. */
bool ah__update_next(const struct ah_sched *sched, struct ah_next *next, bool staged);
/* ah__states_next makes the item that copies the next chunk of states into a staging buffer; ah__staged_next the item
 * that updates the next chunk there and copies it back. */
bool ah__states_next(const struct ah_sched *sched, struct ah_next *next);
bool ah__staged_next(const struct ah_sched *sched, struct ah_next *next);

#endif
