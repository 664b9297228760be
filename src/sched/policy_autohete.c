/* Priority scheduling: gradients leave, and groups are updated, earliest block first, because the next iteration needs
 * them in that order; the next iteration starts while this one's updates still run.
 *
 * One step beyond the paper: parameters are fetched for the next iteration in forward order, but when the next in order
 * is not updated yet, one that is may overtake it, memory permitting. Backward finishes the last blocks first, so
 * without this the link to the device lies idle through backward and is the bottleneck in forward. `autohete-paper` is
 * the system without it, and with the paper's switches only. */
#include "sched/internal.h"

const struct ah_policy ah__policy_autohete = {
    .name = "autohete",
    .description = "earliest block first, fetches overtake, iterations overlap",
    .keeps_semantics = true,
    .barrier = false,
    .all_at_once = false,
    .overtakes = true,
    .waits_off_lane = true,
    .finishes = true,
    .reorders = true,
    .selective = true,
    .staged = true,
    .activations = true,
    .unsharded = true,
    .shares_ends = true,
    .gathers_ahead = false,
    .evicts = false,
    .delay = 0,
    .offload_key = ah__key_earliest_block,
    .update_key = ah__key_earliest_block,
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

const struct ah_policy ah__policy_autohete_paper = {
    .name = "autohete-paper",
    .description = "as published: the paper's switches, fetches in forward order",
    .keeps_semantics = true,
    .barrier = false,
    .all_at_once = false,
    .overtakes = false,
    .waits_off_lane = false,
    .finishes = false,
    .reorders = false,
    .gathers_ahead = true,
    .evicts = false,
    .delay = 0,
    .offload_key = ah__key_earliest_block,
    .update_key = ah__key_earliest_block,
    .may_compute = ah__gate_open_item,
    .may_fetch = ah__gate_open_item,
    .may_offload = ah__gate_open_group,
    .may_update = ah__gate_open_group,
    .first_fit = false,
    .plain = true,
    .suffices = ah__placement_suffices,
    .placement = ah__placement_search,
    .host_bytes = 14,
    .bucket_elements = 0,
};
