/* The lanes of a device as seen from the host: queues of submitted work, events between them, completions in order.
 *
 * A lane either has a thread here, on which a function of the device runs its works (a host lane, or any lane of a
 * device that is the host itself), or its works run elsewhere (a stream of an accelerator) and are reported with
 * ah__lanes_finish(). Both kinds wait for each other through the same events. One mutex protects all queues and
 * counters; a lane holds it only between two works. Does not look into work. */
#ifndef AH_DEV_HOST_LANES_H
#define AH_DEV_HOST_LANES_H

#include "dev/dev.h"
#include "dev/host/pool.h"

enum { AH_LANE_RING = 256 }; /* works of one lane between submit and wait_any */

enum ah_lane_kind { AH_LANE_ABSENT, AH_LANE_THREAD, AH_LANE_ELSEWHERE };

struct ah_lanes_config {
    const char *device; /* for messages; static text */
    enum ah_lane_kind kind[AH_LANE_COUNT];
    /* Lanes with a thread: the pool that it enters, or null and the core to which it is bound, -1: no core. */
    struct ah_pool *pool[AH_LANE_COUNT];
    int core[AH_LANE_COUNT];
    /* Runs a work on the lane's thread, once its waits have passed, and fills start_ns and end_ns. The lane and the
     * work's label are put before the message of a failure. */
    int (*run)(void *context, const struct ah_work *work, struct ah_done *done);
    /* Null, or called on the lane's thread after each of its works has completed, also if a failure skipped it: to
     * release waits elsewhere, such as a stream's for a flag. */
    void (*passed)(void *context, struct ah_event event);
    /* Null, or called on the driver's thread ten times a second while it waits in vain: to check that the device still
     * runs, and to complete its works if it does not. */
    void (*look)(void *context);
    void *context;
};

struct ah_lanes;
/* Starts the threads. `config` is copied. AH_ENOMEM. */
int ah__lanes_new(struct ah_lanes **out, const struct ah_lanes_config *config);
/* Waits for the works that the threads run; drops queued works. Work elsewhere must be over. Null is fine. */
void ah__lanes_free(struct ah_lanes *lanes);

/* The members of struct ah_dev_ops. For a lane elsewhere the caller then starts the work itself. */
int ah__lanes_submit(struct ah_lanes *lanes, const struct ah_work *work, struct ah_event *done);
int ah__lanes_wait_any(struct ah_lanes *lanes, struct ah_done *done);
/* Clears an earlier failure. AH_EINTERNAL while work is in flight. */
int ah__lanes_settle(struct ah_lanes *lanes);

/* The functions below are for work elsewhere, from any thread. */
/* Completes the oldest unfinished work of done->lane; a failure's message is that of the calling thread. */
void ah__lanes_finish(struct ah_lanes *lanes, const struct ah_done *done);
/* Blocks until the event has passed. False: the lanes stop. */
bool ah__lanes_wait(struct ah_lanes *lanes, struct ah_event event);
/* Returns the status of the first failure since the last settle, after which nothing may run; AH_OK: none. */
int ah__lanes_failed(struct ah_lanes *lanes);

#endif
