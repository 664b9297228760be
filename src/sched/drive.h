/* The one loop that turns a scheduler on a device: next, bind, submit, wait, complete. */
#ifndef AH_SCHED_DRIVE_H
#define AH_SCHED_DRIVE_H

#include "sched/sched.h"
#include "sched/timeline.h"

struct ah_drive {
    struct ah_sched *sched;
    struct ah_dev *dev;
    /* Fills work->task for work->item; null on a simulated device. */
    int (*bind)(struct ah_work *work, void *context);
    /* Hears of every completed item; may call ah__sched_stop. May be null. */
    int (*completed)(const struct ah_done *done, void *context);
    void *context;
    struct ah_timeline *timeline; /* null: not recorded */
};

/* Runs until the scheduler is drained up to its limit. On failure everything in flight is waited for first. */
int ah__drive(struct ah_drive *drive);

#endif
