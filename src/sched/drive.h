/* The one loop that runs a scheduler on a device: next, bind, submit, wait, complete. The same for simulated and real
 * devices. */
#ifndef AH_SCHED_DRIVE_H
#define AH_SCHED_DRIVE_H

#include "sched/sched.h"

struct ah_drive {
    struct ah_sched *sched;
    struct ah_dev *dev;
    /* Adds the item's tasks to work, whose label, lane and waits are set. */
    int (*bind)(struct ah_work *work, const struct ah_item *item, void *context);
    void *bind_context;
    /* Called before each search for items to submit; may call ah__sched_extend. May be null. */
    void (*extend)(void *context);
    void *extend_context;
    /* Called with every completed item. On a simulated device it may return AH_DRIVE_ENOUGH; then items in flight are
     * left in flight. May be null. */
    int (*completed)(const struct ah_span *span, void *context);
    void *completed_context;
    /* Called after every submission (span null) and completion with the number of buffers in use. May be null. */
    void (*observe)(const struct ah_span *span, int64_t now_ns, int buffers_used, void *context);
    void *observe_context;
};

/* Returned by `completed`, besides AH_OK and failures, to end the simulation. */
enum { AH_DRIVE_ENOUGH = 1 };

/* Runs until the scheduler is drained up to its limit. On failure waits first for everything in flight. */
int ah__drive(const struct ah_drive *drive);

#endif
