/* The paper's "without priority scheduling": first come, first served, and a barrier at the end of each iteration. */
#include "sched/internal.h"

const struct ah_policy ah__policy_autohete_fifo = {
    .name = "autohete-fifo",
    .description = "first come, first served, iterations do not overlap",
    .keeps_semantics = true,
    .barrier = true,
    .all_at_once = false,
    .overtakes = false,
    .waits_off_lane = true,
    .finishes = false,
    .reorders = false,
    .gathers_ahead = false,
    .evicts = false,
    .delay = 0,
    .offload_key = ah__key_first_come,
    .update_key = ah__key_first_come,
    .may_compute = ah__gate_open_item,
    .may_fetch = ah__gate_open_item,
    .may_offload = ah__gate_open_group,
    .may_update = ah__gate_open_group,
    .first_fit = false,
    .plain = false,
    .suffices = ah__placement_suffices,
    .placement = ah__placement_search,
    .host_bytes = 14,
    .bucket_elements = 0,
};
