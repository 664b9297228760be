/* The paper's priority scheduling: gradients leave, and groups are updated, earliest block first, because the next iteration
 * needs them in that order; the next iteration starts while this one's updates still run. */
#include "sched/internal.h"

const struct ah_policy ah__policy_autohete = {
    .name = "autohete",
    .description = "earliest block first, iterations overlap",
    .keeps_semantics = true,
    .barrier = false,
    .delay = 0,
    .offload_key = ah__key_earliest_block,
    .update_key = ah__key_earliest_block,
    .may_compute = ah__gate_open_item,
    .may_fetch = ah__gate_open_item,
    .may_offload = ah__gate_open_group,
    .may_update = ah__gate_open_group,
    .first_fit = false,
    .placement = ah__placement_search,
};
