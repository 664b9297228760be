/* Chooses the next item to submit, lane by lane: every rule that orders items of a lane, except which parameters are
 * fetched next (fetches.c), which group is updated next (updates.c), and when activations (activations.c),
 * sums (sums.c) and blocks on disk (disk.c) are moved. */
#include "sched/activations.h"
#include "sched/disk.h"
#include "sched/fetches.h"
#include "sched/sums.h"
#include "sched/updates.h"

/* ---- compute lane ------------------------------------------------------------------------------------------------ */

/* Waits for a group's parameters to be complete on this device; false while the item that brings them is not
 * submitted. */
static bool params_ready(const struct ah_sched *sched, struct ah_next *next, int index, bool backward)
{
    const struct group *group = &sched->groups[index];
    bool again = backward && (group->refetches || group->casts);
    const struct item_event *of;
    if (group->on_host && !group->frozen && !ah__sched_params_final(sched, next->item.round))
        return false;
    if (group->frozen && group->unsharded)
        return true;
    if (sched->config.switches.world_size > 1)
        of = &group->gather[again];
    else if (group->on_host)
        of = again ? &group->refetch : &group->fetch;
    else
        return true; /* the master is used itself, or this lane has cast it */
    bool in_buffer = group->pooled && !group->unsharded;
    int64_t fetched_in = ah__stays(sched, group) ? ah__first_round(sched, next->item.iteration) : next->item.round;
    if (!of->submitted || of->round != fetched_in || (in_buffer && group->param_buffer < 0))
        return false;
    wait_for(sched, next, of);
    return true;
}

static bool uses_embedding(const struct ah_sched *sched, int partition)
{
    return sched->config.shared_embedding && partition == sched->partitions - 1;
}

/* Returns true if an iteration's results were copied to the host. Iterations k and k + 2 use the same result buffer. */
static bool results_read(const struct ah_sched *sched, int64_t iteration)
{
    return iteration < sched->first || sched->forward_only ||
           (sched->norm_iteration > iteration && ah__sched_passed(sched, &sched->norms[ah__sched_ring(iteration)]));
}

/* Returns true if the embedding's gradient may be written to the memory it shares with the head's, which has been
 * offloaded or used. */
static bool head_gradient_over(const struct ah_sched *sched, struct ah_next *next)
{
    const struct group *head = &sched->groups[sched->partitions - 1];
    bool shares = ah__share_gradients(&sched->config.switches, sched->config.clips);
    if (!shares || next->item.partition > 0 || head->ready_for > next->item.iteration)
        return true;
    if (!head->on_host)
        return true; /* used by this lane */
    if (head->offloaded < sched->config.switches.chunks)
        return false;
    wait_for(sched, next, &head->offload[sched->config.switches.chunks - 1]);
    return true;
}

/* Sets the micro-batches that a forward or backward runs. */
static void share_of_round(const struct ah_sched *sched, struct ah_item *item)
{
    int rounds = sched->rounds, micro_batches = sched->config.micro_batches;
    int round = (int)(item->round - ah__first_round(sched, item->iteration));
    if (rounds == 1)
        return;
    item->unfinished = item->kind == AH_ITEM_BACKWARD && round < rounds - 1;
    if (item->kind == AH_ITEM_BACKWARD && item->partition == 0 && ah__embeds_late(sched))
        return;
    item->first_micro_batch = ah__round_first(micro_batches, rounds, round);
    item->micro_batches = ah__round_first(micro_batches, rounds, round + 1) - item->first_micro_batch;
    item->adds = round > 0;
}

static bool forward_ready(const struct ah_sched *sched, struct ah_next *next)
{
    struct ah_item *item = &next->item;
    if (item->partition == 0) {
        if (sched->config.policy->all_at_once && !ah__sched_all_fetched(sched))
            return false;
        if (sched->input_iteration <= item->iteration || !results_read(sched, item->iteration - 2))
            return false;
        wait_for(sched, next, &sched->input[ah__sched_ring(item->iteration)]);
    }
    const struct group *group = &sched->groups[item->partition];
    item->recompute = sched->forward_only || group->keeping == AH_KEEPS_INPUT;
    item->selective = !sched->forward_only && group->keeping == AH_KEEPS_PRODUCTS;
    item->param_buffer = group->param_buffer;
    share_of_round(sched, item);
    return params_ready(sched, next, item->partition, false) &&
           (!uses_embedding(sched, item->partition) || params_ready(sched, next, 0, false)) &&
           ah__stage_left(sched, next);
}

static bool backward_ready(const struct ah_sched *sched, struct ah_next *next)
{
    struct ah_item *item = &next->item;
    const struct group *group = &sched->groups[item->partition];
    item->recompute = group->keeping == AH_KEEPS_INPUT;
    item->selective = group->keeping == AH_KEEPS_PRODUCTS;
    if (group->pooled && !params_ready(sched, next, item->partition, true))
        return false;
    share_of_round(sched, item);
    if (!head_gradient_over(sched, next) || !ah__activations_here(sched, next) || !ah__sum_place_ready(sched, next))
        return false;
    item->param_buffer = group->param_buffer;
    return !group->pooled || item->unfinished || sched->config.own_gradients || group->sum_stays ||
           buffer_take(sched, next, &item->grad_buffer);
}

static bool update_ready(const struct ah_sched *sched, struct ah_next *next)
{
    const struct group *group = &sched->groups[next->item.partition];
    next->item.grad_buffer = group->grad_buffer;
    if (sched->config.switches.world_size == 1)
        return true;
    wait_for(sched, next, &group->reduce);
    if (!sched->config.clips)
        return group->reduce.submitted;
    const struct item_event *norm = &sched->groups[0].reduce; /* the embedding's comes last */
    wait_for(sched, next, norm);
    return norm->submitted && norm->round == next->item.round;
}

static bool cast_ready(const struct ah_sched *sched, struct ah_next *next)
{
    const struct group *group = &sched->groups[next->item.partition];
    if (group->on_host) { /* this rank's part, fetched once for forward and backward */
        if (!group->fetch.submitted || group->fetch.round != next->item.round ||
            !ah__sched_params_final(sched, next->item.round))
            return false;
        wait_for(sched, next, &group->fetch);
    }
    return !group->pooled || buffer_take(sched, next, &next->item.param_buffer);
}

/* Returns the most items in flight on compute and h2d, whose order is known long before; d2h has half as many. */
static int depth(const struct ah_sched *sched)
{
    return sched->config.queue_depth > QUEUE_DEPTH ? sched->config.queue_depth : QUEUE_DEPTH;
}

static bool compute_next(const struct ah_sched *sched, struct ah_next *next)
{
    static bool (*const ready[AH_ITEM_COUNT])(const struct ah_sched *, struct ah_next *) = {
        [AH_ITEM_FORWARD] = forward_ready,
        [AH_ITEM_BACKWARD] = backward_ready,
        [AH_ITEM_CAST] = cast_ready,
        [AH_ITEM_UPDATE_DEVICE] = update_ready,
    };
    const struct step *step = ah__step_next(&sched->compute);
    if (sched->in_flight[AH_LANE_COMPUTE] >= depth(sched) || barred(sched, sched->compute.round))
        return false;
    next_init(sched, next, step->kind, AH_LANE_COMPUTE, step->partition, sched->compute.round);
    next->item.phase = step->phase;
    bool (*may)(const struct ah_sched *, const struct ah_item *) = sched->config.policy->may_compute;
    return (!may || may(sched, &next->item)) && ready[step->kind](sched, next);
}

/* ---- host to device ---------------------------------------------------------------------------------------------- */

static bool input_next(const struct ah_sched *sched, struct ah_next *next)
{
    int64_t iteration = sched->input_iteration, computed = ah__iteration_of(sched, sched->compute.round);
    if (barred(sched, ah__first_round(sched, iteration)) || iteration > computed + 1)
        return false;
    /* With several ranks the stop and save flags are stored with the tokens until the results of the iteration are
     * summed. */
    if (sched->config.switches.world_size > 1 && !results_read(sched, iteration - 2))
        return false;
    if (iteration >= sched->first + 2) { /* its buffers are those of iteration - 2 */
        const struct item_event *reader = &sched->last_compute[ah__sched_ring(iteration - 2)];
        if (iteration - 2 >= computed || !ah__sched_passed(sched, reader))
            return false;
    }
    next_init(sched, next, AH_ITEM_INPUT, AH_LANE_H2D, 0, ah__first_round(sched, iteration));
    return true;
}

/* Returns true if activations come before a fetch: they are needed in backward, before the next iteration and before
 * lower blocks; and a fetch that would have to wait for its buffer does so off the lane. */
static bool activations_first(const struct ah_next *activations, const struct ah_next *fetch)
{
    return fetch->item.kind == AH_ITEM_PREFETCH || fetch->waits > 0 ||
           fetch->item.partition <= activations->item.partition;
}

static bool h2d_next(const struct ah_sched *sched, struct ah_next *next)
{
    struct ah_next activations;
    if (sched->in_flight[AH_LANE_H2D] >= depth(sched))
        return false;
    if (input_next(sched, next) || ah__sums_in_next(sched, next))
        return true;
    bool fetches = ah__fetch_next(sched, next);
    if (ah__activations_in_next(sched, &activations) && (!fetches || activations_first(&activations, next))) {
        *next = activations;
        return true;
    }
    if (sched->config.switches.staged == 0 || (fetches && next->waits == 0))
        return fetches;
    /* A fetch that waits for its buffer does not keep states from using the lane either. */
    return !fetches || ah__update_choose(sched, UPDATED_STAGED).arrived ? ah__states_next(sched, next) : true;
}

/* ---- device to host, host ---------------------------------------------------------------------------------------- */

/* Makes the next result: loss k, norms k, loss k+1, ... in this order; `arrived_only`: not if the lane would have to
 * wait for it. */
static bool result_next(const struct ah_sched *sched, struct ah_next *next, bool arrived_only)
{
    bool loss = sched->forward_only || sched->loss_iteration <= sched->norm_iteration;
    int64_t iteration = loss ? sched->loss_iteration : sched->norm_iteration;
    int ring = ah__sched_ring(iteration);
    const struct item_event *source = loss ? &sched->head[ring] : &sched->last_gradient[ring];
    if (loss ? iteration >= sched->head_iteration
             : !source->submitted || source->round != ah__last_round(sched, iteration))
        return false;
    if (arrived_only && !ah__sched_passed(sched, source))
        return false;
    next_init(sched, next, AH_ITEM_RESULT, AH_LANE_D2H, loss ? sched->partitions - 1 : 0,
              ah__last_round(sched, iteration));
    wait_for(sched, next, source);
    return true;
}

/* Returns the item after which a gradient may be offloaded: with several ranks it is then this rank's part of the
 * sum. */
static const struct item_event *gradient_source(const struct ah_sched *sched, const struct group *group)
{
    return sched->config.switches.world_size > 1 ? &group->reduce : &group->backward;
}

/* A gradient of a block on disk takes a host buffer, as late as possible, since others are waiting for it. */
static struct choice gradient_choose(const struct ah_sched *sched)
{
    const struct ah_policy *policy = sched->config.policy;
    struct choice best = {.group = -1};
    bool slot = ah__disk_slot(sched) >= 0;
    for (int i = 0; i < sched->leaving.count && !best.settled; i++) {
        int g = sched->leaving.groups[i];
        const struct group *group = &sched->groups[g];
        const struct item_event *source = gradient_source(sched, group);
        if (source->submitted && source->round == ah__last_round(sched, group->ready_for) &&
            (!group->on_disk || (slot && ah__sched_passed(sched, source))) &&
            (!policy->may_offload || policy->may_offload(sched, g)))
            consider(sched, &best, g, source, policy->earliest_gradient);
    }
    return best;
}

static void gradient_out(const struct ah_sched *sched, struct ah_next *next, int index)
{
    const struct group *group = &sched->groups[index];
    next_init(sched, next, AH_ITEM_OFFLOAD, AH_LANE_D2H, index, ah__last_round(sched, group->ready_for));
    next->item.grad_buffer = group->grad_buffer;
    next->item.set = group->set;
    next->item.chunk = group->offloaded;
    next->item.slot = group->on_disk ? ah__disk_slot(sched) : -1;
    next->item.chunks = sched->config.switches.chunks;
    wait_for(sched, next, gradient_source(sched, group));
}

/* Returns true if activations are offloaded before a gradient of the iteration before. If both have arrived, the one
 * that forward needs first goes first: activations block the next block that uses their staging buffer, a gradient its
 * own block. If neither has, the one that arrives first. */
static bool activations_leave_first(const struct ah_sched *sched, const struct group *activations,
                                    const struct choice *gradient)
{
    bool arrived = ah__sched_passed(sched, &activations->forward);
    if (gradient->group < 0 || arrived != gradient->arrived)
        return gradient->group < 0 || arrived;
    if (!arrived)
        return activations->forward.arrival < gradient->key;
    int above = activations->passing + AH_ACTIVATION_BUFFERS;
    return ah__passing_block(&sched->config.switches, above) <= gradient->group;
}

/* Makes the next offload, of a gradient or of activations. */
static bool offload_next(const struct ah_sched *sched, struct ah_next *next, bool arrived_only)
{
    struct choice gradient = gradient_choose(sched);
    const struct group *activations = ah__activations_leaving(sched);
    bool leave = activations && activations_leave_first(sched, activations, &gradient);
    if (leave ? arrived_only && !ah__sched_passed(sched, &activations->forward)
              : gradient.group < 0 || (arrived_only && !gradient.arrived))
        return false;
    if (leave)
        ah__activations_out(sched, next);
    else
        gradient_out(sched, next, gradient.group);
    return true;
}

/* Makes the next EVICT: of the lowest block whose forward was submitted. */
static bool evict_next(const struct ah_sched *sched, struct ah_next *next)
{
    if (sched->evicting.count == 0)
        return false;
    int index = sched->evicting.groups[0];
    const struct group *group = &sched->groups[index];
    next_init(sched, next, AH_ITEM_EVICT, AH_LANE_D2H, index, group->forward.round);
    next->item.param_buffer = group->param_buffer;
    next->item.set = group->set;
    wait_for(sched, next, &group->forward);
    return true;
}

/* Chooses the next item from device to host. Results are a few bytes that somebody waits for: they go first once they
 * have arrived, then sums and gradients, for whose memory backward waits. If states are staged too, the lane does not
 * wait for items that have not arrived. */
static bool d2h_next(const struct ah_sched *sched, struct ah_next *next)
{
    if (sched->in_flight[AH_LANE_D2H] >= depth(sched) / 2)
        return false;
    bool waits = sched->config.switches.staged == 0;
    return result_next(sched, next, true) || evict_next(sched, next) || ah__sums_out_next(sched, next, true) ||
           offload_next(sched, next, true) || ah__staged_next(sched, next) ||
           (waits && (ah__sums_out_next(sched, next, false) || offload_next(sched, next, false) ||
                      result_next(sched, next, false)));
}

/* Chooses the next update on the host: first of states from disk, which occupy a buffer. Staged updates are on other
 * lanes. */
static bool host_next(const struct ah_sched *sched, struct ah_next *next)
{
    return sched->in_flight[AH_LANE_HOST] < HOST_DEPTH &&
           (ah__disk_update_next(sched, next) || ah__update_next(sched, next, UPDATED_ON_HOST));
}

/* ---- between ranks ----------------------------------------------------------------------------------------------- */

/* Returns the item that a gather waits for: this rank's part is fetched, cast, or (unsharded blocks; embedding and head
 * on the device) updated. */
static const struct item_event *gather_source(const struct group *group, const struct step *step)
{
    if (group->casts || group->casts_once)
        return &group->cast[step->phase];
    if (group->on_host)
        return step->phase == AH_PHASE_BACKWARD ? &group->refetch : &group->fetch;
    return &group->update;
}

static bool gather_ready(const struct ah_sched *sched, struct ah_next *next, const struct step *step)
{
    const struct step_list *list = &sched->comm;
    const struct group *group = &sched->groups[step->partition];
    const struct item_event *source = gather_source(group, step);
    bool updated_in_place = !group->on_host && !group->casts && !group->casts_once;
    int64_t made_in = list->round - (updated_in_place ? 1 : 0);
    bool first = updated_in_place && (sched->forward_only || list->round == sched->first);
    if (group->on_host && !group->frozen && !ah__sched_params_final(sched, list->round))
        return false;
    if (!first && (!source->submitted || source->round != made_in))
        return false;
    next->item.phase = step->phase;
    next->item.param_buffer = group->param_buffer;
    next->item.stays = updated_in_place;
    wait_for(sched, next, source);
    return true;
}

static bool reduce_ready(const struct ah_sched *sched, struct ah_next *next, const struct step *step)
{
    const struct group *group = &sched->groups[step->partition];
    if (!group->backward.submitted || group->backward.round != sched->comm.round)
        return false;
    next->item.grad_buffer = group->grad_buffer;
    wait_for(sched, next, &group->backward);
    return true;
}

/* Chooses the next collective, in one order whatever the timing: all ranks must start the same one. */
static bool comm_next(const struct ah_sched *sched, struct ah_next *next)
{
    const struct step_list *list = &sched->comm;
    if (list->count == 0 || sched->in_flight[AH_LANE_COMM] >= COMM_DEPTH || barred(sched, list->round))
        return false;
    const struct step *step = ah__step_next(list);
    next_init(sched, next, step->kind, AH_LANE_COMM, step->partition, list->round);
    return step->kind == AH_ITEM_GATHER ? gather_ready(sched, next, step) : reduce_ready(sched, next, step);
}

bool ah__sched_next(struct ah_sched *sched, struct ah_next *next)
{
    if (sched->unsettled)
        ah__sched_settle(sched);
    return compute_next(sched, next) || h2d_next(sched, next) || comm_next(sched, next) || d2h_next(sched, next) ||
           host_next(sched, next) || ah__disk_next(sched, next);
}
