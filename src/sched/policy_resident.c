/* Everything on the device: the reference for exactness and the upper bound for speed. The queues never hold anything.
 */
#include "sched/internal.h"

static bool everything_on_the_device(struct ah_switches *out, int layers, int index)
{
    (void)layers;
    *out = (struct ah_switches){.buffers = 1, .prefetch_distance = 1};
    return index == 0;
}

const struct ah_policy ah__policy_resident = {
    .name = "resident",
    .description = "everything stays on the device",
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
    .offload_key = ah__key_first_come,
    .update_key = ah__key_first_come,
    .may_compute = ah__gate_open_item,
    .may_fetch = ah__gate_open_item,
    .may_offload = ah__gate_open_group,
    .may_update = ah__gate_open_group,
    .first_fit = false,
    .plain = false,
    .suffices = ah__placement_suffices,
    .placement = everything_on_the_device,
    .host_bytes = 14,
    .bucket_elements = 0,
};
