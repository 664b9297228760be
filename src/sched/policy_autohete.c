/* The paper's priority scheduling: gradients leave, and groups are updated, earliest block first, because the next iteration
 * needs them in that order; the next iteration starts while this one's updates still run. */
#include "sched/sched.h"

static int64_t earliest_block(int group, int64_t arrival)
{
    (void)arrival;
    return group;
}

const struct ah_policy ah__policy_autohete = {
    .name = "autohete",
    .description = "earliest block first, iterations overlap",
    .keeps_semantics = true,
    .barrier = false,
    .offload_key = earliest_block,
    .update_key = earliest_block,
};
