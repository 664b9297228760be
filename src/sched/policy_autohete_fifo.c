/* The paper's "without priority scheduling": first come, first served, and a barrier at the end of each iteration. */
#include "sched/internal.h"

const struct ah_policy ah__policy_autohete_fifo = {
    .name = "autohete-fifo",
    .description = "first come, first served, iterations do not overlap",
    .barrier = true,
    .waits_off_lane = true,
    .gathers_late = true,
};
