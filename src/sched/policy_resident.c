/* Everything on the device: the reference for exactness and the upper bound for speed. The queues are always empty. */
#include "sched/internal.h"

static bool everything_on_the_device(struct ah_switches *out, int layers, int index)
{
    (void)layers;
    *out = (struct ah_switches){.prefetch_distance = 1};
    return index == 0;
}

const struct ah_policy ah__policy_resident = {
    .name = "resident",
    .description = "everything stays on the device",
    .placement = everything_on_the_device,
};
