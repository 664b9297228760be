/* Priority scheduling: gradients are offloaded, and groups updated, earliest block first, because the next iteration
 * needs them in that order; the next iteration starts while this one's updates still run.
 *
 * One addition to the paper: parameters are fetched for the next iteration in forward order, but if the next in order
 * is not updated yet, one that is may overtake it, memory permitting. Backward finishes the last blocks first, so
 * without this the link to the device is idle through backward and is the bottleneck in forward. `autohete-paper` is
 * the system without it, and with the paper's switches only. */
#include "sched/internal.h"

const struct ah_policy ah__policy_autohete = {
    .name = "autohete",
    .description = "earliest block first, fetches overtake, iterations overlap",
    .overtakes = true,
    .waits_off_lane = true,
    .uses = AH_USE_ALL,
    .gathers_late = true,
    .earliest_gradient = true,
    .earliest_update = true,
};

const struct ah_policy ah__policy_autohete_paper = {
    .name = "autohete-paper",
    .description = "as published: the paper's switches, fetches in forward order",
    .earliest_gradient = true,
    .earliest_update = true,
    .uses = AH_USE_PAPER,
};
