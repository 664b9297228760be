/* The one loop that turns a scheduler on a device: next, bind, submit, wait, complete. The same for simulated and real
 * devices. */
#ifndef AH_SCHED_DRIVE_H
#define AH_SCHED_DRIVE_H

#include "sched/sched.h"

struct ah_drive {
    struct ah_sched *sched;
    struct ah_dev *dev;
    /* Gives the item's tasks to work, whose label, lane and waits are set. */
    int (*bind)(struct ah_work *work, const struct ah_item *item, void *context);
    void *bind_context;
    /* Called before each look for items to submit; may call ah__sched_extend. May be null. */
    void (*extend)(void *context);
    void *extend_context;
    /* Hears of every completed item; on a simulated device it may say that this was enough, and what is in flight stays
     * there. May be null. */
    int (*completed)(const struct ah_span *span, void *context);
    void *completed_context;
    /* Hears after every submission (span null) and completion how many buffers are in use. May be null. */
    void (*observe)(const struct ah_span *span, int64_t now_ns, int buffers_used, void *context);
    void *observe_context;
};

/* What `completed` may return beside AH_OK and failures. */
enum { AH_DRIVE_ENOUGH = 1 };

/* Runs until the scheduler is drained up to its limit. On failure everything in flight is waited for first. */
int ah__drive(const struct ah_drive *drive);

#endif
