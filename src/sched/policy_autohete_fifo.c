/* The paper's "without priority scheduling": first come, first served, and a barrier at the end of each iteration. */
#include "sched/sched.h"

static int64_t first_come(int group, int64_t arrival)
{
    (void)group;
    return arrival;
}

const struct ah_policy ah__policy_autohete_fifo = {
    .name = "autohete-fifo",
    .description = "first come, first served, iterations do not overlap",
    .keeps_semantics = true,
    .barrier = true,
    .offload_key = first_come,
    .update_key = first_come,
};
