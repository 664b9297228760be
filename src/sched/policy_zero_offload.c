/* ZeRO-Offload (USENIX ATC 2021): all compute parameters on the device, all optimizer states on the host. Gradients
 * leave in backward order while backward goes on. After the whole backward the host updates all groups in order, one
 * group's update beside the return of the one before; the next forward starts when the last parameters have arrived.
 *
 * With the delayed parameter update (its section 5.2) the host updates during the next iteration's forward and
 * backward, which compute with the parameters of the update before: other semantics. Draining (a checkpoint, an
 * evaluation, the end) makes up for the delay. */
#include "sched/internal.h"

enum { BUCKETS = 2 };                 /* gradients on the device: one being written, one leaving */
enum { BUCKET_ELEMENTS = 500000000 }; /* DeepSpeed's reduce_bucket_size unless its user says otherwise */

static bool is_over(const struct ah_sched *sched, const struct mark *mark, int64_t iteration)
{
    return ah__sched_complete_mark(sched, mark) && mark->iteration == iteration;
}

/* The host's parameters may change once the next iteration has copied them for the last time, or has no need of them
 * any more: so that every copy of an iteration is the same version, whatever the timing. When there is no next one, at
 * once. */
static bool update_when_copied(const struct ah_sched *sched, int group)
{
    const struct group *g = &sched->groups[group];
    int64_t next = g->ready_for + 1;
    bool copied = is_over(sched, &g->backward, next) || is_over(sched, g->refetches ? &g->refetch : &g->fetch, next);
    return ah__sched_backward_over(sched, group) && (copied || next >= sched->limit);
}

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
    .keeps_semantics = true,
    .barrier = false, /* parameters return while others are updated */
    .all_at_once = true,
    .overtakes = false,
    .waits_off_lane = false,
    .finishes = false,
    .reorders = false,
    .gathers_ahead = true,
    .evicts = false,
    .delay = 0,
    .offload_key = ah__key_first_come,
    .update_key = ah__key_earliest_block,
    .may_compute = ah__gate_open_item,
    .may_fetch = ah__gate_open_item,
    .may_offload = ah__gate_open_group,
    .may_update = ah__sched_backward_over,
    .first_fit = false,
    .plain = false,
    .suffices = ah__placement_suffices,
    .placement = all_states_on_the_host,
    .host_bytes = 18, /* states, fp32 gradient, fp16 parameter */
    .bucket_elements = BUCKET_ELEMENTS,
};

const struct ah_policy ah__policy_zero_offload_dpu = {
    .name = "zero-offload-dpu",
    .description = "zero-offload with updates one iteration late (not the same training)",
    .keeps_semantics = false,
    .barrier = false,
    .all_at_once = true,
    .overtakes = false,
    .waits_off_lane = false,
    .finishes = false,
    .reorders = false,
    .gathers_ahead = true,
    .evicts = false,
    .delay = 1,
    .offload_key = ah__key_first_come,
    .update_key = ah__key_earliest_block,
    .may_compute = ah__gate_open_item,
    .may_fetch = ah__gate_open_item,
    .may_offload = ah__gate_open_group,
    .may_update = update_when_copied,
    .first_fit = false,
    .plain = false,
    .suffices = ah__placement_suffices,
    .placement = all_states_on_the_host,
    .host_bytes = 18, /* states, fp32 gradient, fp16 parameter */
    .bucket_elements = BUCKET_ELEMENTS,
};
