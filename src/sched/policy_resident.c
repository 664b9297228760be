/* Everything on the device: the reference for exactness and the upper bound for speed. The plan offloads nothing, so the queues
 * never hold anything. */
#include "sched/sched.h"

static int64_t first_come(int group, int64_t arrival)
{
    (void)group;
    return arrival;
}

const struct ah_policy ah__policy_resident = {
    .name = "resident",
    .description = "everything stays on the device",
    .keeps_semantics = true,
    .barrier = false,
    .offload_key = first_come,
    .update_key = first_come,
};
