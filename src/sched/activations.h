/* Rules for when activations may be offloaded and fetched back. Private to sched/. */
#ifndef AH_SCHED_ACTIVATIONS_H
#define AH_SCHED_ACTIVATIONS_H

#include "sched/next.h"

/* Returns true if the staging buffer is free into which a forward writes the next block's input: the offload of its
 * last content was submitted, and `next` waits for it. Also true if the input is not in a staging buffer. */
bool ah__stage_left(const struct ah_sched *sched, struct ah_next *next);
/* Returns true if a backward's activations stay on the device, or their fetch was submitted; `next` waits for it. */
bool ah__activations_here(const struct ah_sched *sched, struct ah_next *next);
/* Returns the block whose activations are the next to be offloaded and whose forward was submitted; null: there is
 * none. */
const struct group *ah__activations_leaving(const struct ah_sched *sched);
/* Makes the item that offloads the activations of ah__activations_leaving. */
void ah__activations_out(const struct ah_sched *sched, struct ah_next *next);
/* Makes the item that fetches the next activations back, into a staging buffer that the block above has finished with.
 * False: not yet. */
bool ah__activations_in_next(const struct ah_sched *sched, struct ah_next *next);

#endif
