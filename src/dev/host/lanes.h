/* The lanes of a device as seen from the host: queues of submitted work, events between them, completions in order.
 *
 * A lane either has a thread here, on which a function of the device's does its work (a host lane, or any lane of a
 * device that is the host itself), or its work is done elsewhere (a stream of an accelerator) and reported with
 * ah__lanes_finish(). Both kinds wait for each other through the same events. One mutex guards all queues and counters;
 * a lane holds it only between two pieces of work. Does not look into work. */
#ifndef AH_DEV_HOST_LANES_H
#define AH_DEV_HOST_LANES_H

#include "dev/dev.h"
#include "dev/host/pool.h"

enum { AH_LANE_RING = 256 }; /* works of one lane between submit and wait_any */

enum ah_lane_kind { AH_LANE_ABSENT, AH_LANE_THREAD, AH_LANE_ELSEWHERE };

struct ah_lanes_config {
    const char *device; /* for messages; static text */
    enum ah_lane_kind kind[AH_LANE_COUNT];
    /* Lanes with a thread: the pool it enters, or null and the core it is bound to, -1: none. */
    struct ah_pool *pool[AH_LANE_COUNT];
    int core[AH_LANE_COUNT];
    /* On the lane's thread, once the work's waits have passed: does it, fills start_ns and end_ns. The message of a
     * failure gets the lane and the work's label in front. */
    int (*run)(void *context, const struct ah_work *work, struct ah_done *done);
    /* Null, or called on the lane's thread after each of its works has completed, also those that a failure skipped: to
     * release what waits elsewhere, on a flag that a stream watches. */
    void (*passed)(void *context, struct ah_event event);
    /* Null, or called on the driver's thread ten times a second while it waits in vain: to see whether what does the
     * work elsewhere is still there, and to finish what it owes if it is not. */
    void (*look)(void *context);
    void *context;
};

struct ah_lanes;
/* Starts the threads. `config` is copied. AH_ENOMEM. */
int ah__lanes_new(struct ah_lanes **out, const struct ah_lanes_config *config);
/* Waits for what the threads are doing; what is queued is forgotten. Work elsewhere must be over. Null is fine. */
void ah__lanes_free(struct ah_lanes *lanes);

/* As the members of struct ah_dev_ops. A lane elsewhere: the caller then starts the work itself. */
int ah__lanes_submit(struct ah_lanes *lanes, const struct ah_work *work, struct ah_event *done);
int ah__lanes_wait_any(struct ah_lanes *lanes, struct ah_done *done);
/* Forgets an earlier failure. AH_EINTERNAL while work is in flight. */
int ah__lanes_settle(struct ah_lanes *lanes);

/* For work elsewhere, from any thread. */
/* The oldest unfinished work of done->lane is over; a failure's message is that of the calling thread. */
void ah__lanes_finish(struct ah_lanes *lanes, const struct ah_done *done);
/* Blocks until the event has passed, or until there are no more lanes to wait for: false. */
bool ah__lanes_wait(struct ah_lanes *lanes, struct ah_event event);
/* The status of the first failure since the last settle, after which nothing is to run any more; AH_OK. */
int ah__lanes_failed(struct ah_lanes *lanes);

#endif
