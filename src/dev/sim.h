/* The simulated device: no data, virtual time, lanes whose speeds depend on which other lanes are busy.
 *
 * Takes a cost per (item kind, partition class) at full speed and a slowdown for each pair of lanes. A lane that runs while the
 * lanes S are busy progresses at rate 1 / (1 + sum over s in S of (slowdown[lane][s] - 1)); rates change at every start and
 * completion (a fluid model). Deterministic: ties break by lane number. */
#ifndef AH_DEV_SIM_H
#define AH_DEV_SIM_H

#include "dev/dev.h"

enum ah_class { AH_CLASS_EMBEDDING, AH_CLASS_BLOCK, AH_CLASS_HEAD, AH_CLASS_COUNT };
extern const char *const ah__class_names[AH_CLASS_COUNT];
enum ah_class ah__class_of(int partition, int layers);

struct ah_costs {
    int layers;
    int64_t ns[AH_ITEM_COUNT][AH_CLASS_COUNT]; /* of an item alone on the machine */
    int64_t recompute_ns[AH_CLASS_COUNT];      /* added to BACKWARD where the item says recompute */
    int64_t launch_ns[AH_LANE_COUNT];          /* lane idle time between two items that wait for nothing */
    int64_t notify_ns;                         /* from a completion until the driver has heard of it and submitted more */
    double slowdown[AH_LANE_COUNT][AH_LANE_COUNT]; /* >= 1; [a][b]: how much longer a takes while b is busy */
};

/* `costs` is copied. */
int ah__dev_sim_open(struct ah_dev **out, const struct ah_costs *costs);
/* Back to time zero with nothing in flight, so that one device can score many plans. */
void ah__dev_sim_reset(struct ah_dev *dev);

#endif
