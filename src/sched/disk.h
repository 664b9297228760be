/* Chooses what a disk's lane does next, and when chunks of blocks on disk are updated. Private to sched/. */
#ifndef AH_SCHED_DISK_H
#define AH_SCHED_DISK_H

#include "sched/next.h"

/* Returns true unless the fetch is of a block on disk and its next chunk has not been read; sets the item's slot. */
bool ah__disk_arrived(const struct ah_sched *sched, struct ah_next *next);
/* Returns a free host buffer for a chunk, which nobody still reads or writes; -1: there is none. */
int ah__disk_slot(const struct ah_sched *sched);
/* Makes the update of the oldest chunk of states that has arrived from disk. */
bool ah__disk_update_next(const struct ah_sched *sched, struct ah_next *next);
bool ah__disk_next(const struct ah_sched *sched, struct ah_next *next);

#endif
