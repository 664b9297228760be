/* The simulated device: no data, virtual time, lanes whose speeds depend on which other lanes are busy.
 *
 * Takes work whose tasks are delays (AH_TASK_DELAY, time at full speed) and a slowdown for each pair of lanes. A lane
 * that runs while the lanes S are busy progresses at rate 1 / (1 + sum over s in S of (slowdown[lane][s] - 1)); rates
 * change at every start and completion (a fluid model). Deterministic: ties break by lane number. Knows no items, no
 * model, no plan. */
#ifndef AH_DEV_SIM_H
#define AH_DEV_SIM_H

#include "dev/dev.h"

struct ah_sim_lanes {
    int64_t launch_ns[AH_LANE_COUNT]; /* idle time of a lane between two works that wait for nothing */
    int64_t notify_ns;                /* from a completion until the driver knows of it and has submitted more */
    int queue_depth;                  /* queue depth of the simulated device (struct ah_dev_info); for the scheduler */
    double slowdown[AH_LANE_COUNT][AH_LANE_COUNT]; /* >= 1; [a][b]: factor of a's time while b is busy */
};

/* Opens a simulated device. `lanes` is copied. */
int ah__dev_sim_open(struct ah_dev **out, const struct ah_sim_lanes *lanes);
/* Resets the device to time zero with nothing in flight, so that one device can score many plans. */
void ah__dev_sim_reset(struct ah_dev *dev);

#endif
