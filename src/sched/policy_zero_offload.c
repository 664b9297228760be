/* ZeRO-Offload (USENIX ATC 2021): all compute parameters on the device, all optimizer states on the host. Gradients are
 * offloaded in backward order while backward runs. After the whole backward the host updates all groups in order, one
 * group's update during the return of the one before; the next forward starts when the last parameters have arrived.
 * Each micro-batch runs through the whole model: parameters stay, the sum of its gradients so far comes from the host,
 * is added to on the device and returns, as DeepSpeed does it (async_accumulate_grad_in_cpu_via_gpu). */
#include "sched/internal.h"

enum { BUCKETS = 2 }; /* gradients on the device: one being written, one being offloaded */

static bool all_states_on_the_host(struct ah_switches *out, int layers, int index)
{
    *out = (struct ah_switches){.checkpoint = index == 0 ? 0 : layers,
                                .offload_optimizer = layers,
                                .embedding_on_host = true,
                                .head_on_host = true,
                                .buffers = layers + BUCKETS,
                                .prefetch_distance = 1};
    return index < 2;
}

const struct ah_policy ah__policy_zero_offload = {
    .name = "zero-offload",
    .description = "parameters on the device, optimizer on the host after the whole backward",
    .all_at_once = true,
    .accumulates = true,
    .earliest_update = true,
    .may_update = ah__sched_backward_over,
    .placement = all_states_on_the_host,
};
