/* Chooses the group whose states are updated next: on the host, staged through the device, or from disk. Private to
 * sched/. */
#ifndef AH_SCHED_UPDATES_H
#define AH_SCHED_UPDATES_H

#include "sched/next.h"

/* Returns the best group to update of those that are updated there. */
struct choice ah__update_choose(const struct ah_sched *sched, enum updated_in in);
/* Makes the update of the next chunk, speculative while the norm is not known, or what brings its states; false:
 * nothing can be updated now. */
bool ah__update_next(const struct ah_sched *sched, struct ah_next *next, enum updated_in in);
/* ah__states_next makes the item that copies the next chunk of states into a staging buffer; ah__staged_next the item
 * that updates the next chunk there and copies it back. */
bool ah__states_next(const struct ah_sched *sched, struct ah_next *next);
bool ah__staged_next(const struct ah_sched *sched, struct ah_next *next);

#endif
