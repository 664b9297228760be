#include "plan/predict.h"

#include <math.h>
#include <string.h>

#include "base/format.h"
#include "plan/config.h"
#include "plan/layout.h"

/* Activations go as fast as parameters come and gradients leave. */
static void price_activations(struct ah_predictor *predictor)
{
    const struct ah_partition *partition = predictor->partition;
    struct ah_costs *costs = &predictor->costs;
    int64_t count = ah__part_count(partition->groups[1].count, ah__predictor_world_size(predictor));
    double of_block = (double)(count * ah__dtype_bytes(partition->compute));
    for (int keeping = 0; keeping < AH_KEEPING_COUNT; keeping++) {
        double blocks = (double)ah__layout_activation_bytes(partition, (enum ah_keeping)keeping) / of_block;
        costs->in_ns[keeping] = llround(blocks * (double)costs->ns[AH_ITEM_PREFETCH][AH_CLASS_BLOCK]);
        /* Gradients beside frozen parameters are too small to tell. */
        costs->out_ns[keeping] = partition->frozen
                                     ? costs->in_ns[keeping]
                                     : llround(blocks * (double)costs->ns[AH_ITEM_OFFLOAD][AH_CLASS_BLOCK]);
    }
}

int ah__predictor_init(struct ah_predictor *out, const struct ah_partition *partition, const struct ah_profile *profile,
                       const char *policy)
{
    struct ah_predictor predictor = {
        .partition = partition, .profile = profile, .policy = ah__policy_find(policy), .costs = profile->costs};
    if (!predictor.policy)
        return ah__fail(AH_EINPUT, "--policy: found '%s', expected %s", policy, ah__policy_names());
    if (profile->partition_signature != partition->signature)
        return ah__fail(
            AH_ESTALE,
            "profile: found one of another model, batch, micro-batch, sequence length, dtype, packing or clipping "
            "(signature %016llx), expected %016llx",
            (unsigned long long)profile->partition_signature, (unsigned long long)partition->signature);
    predictor.costs.layers = partition->layers;
    predictor.costs.others_from = partition->others_from;
    price_activations(&predictor);
    for (int class = 0; class < AH_CLASS_COUNT; class ++) {
        int group = ah__class_representative((enum ah_class) class, partition->layers);
        predictor.costs.gathers_part[class] = ah__frozen_count(&partition->groups[group]) > 0;
    }
    AH_TRY(ah__dev_sim_open(&predictor.sim, &predictor.costs.lanes));
    *out = predictor;
    return AH_OK;
}

void ah__predictor_fini(struct ah_predictor *predictor)
{
    ah_dev_close(predictor->sim);
    predictor->sim = NULL;
}

bool ah__predictor_stages(const struct ah_predictor *predictor)
{
    const int64_t(*ns)[AH_CLASS_COUNT] = predictor->costs.ns;
    return ah__policy_uses(predictor->policy, AH_SWITCH_staged) && !predictor->partition->frozen &&
           ns[AH_ITEM_STATES_IN][AH_CLASS_BLOCK] > 0 && ns[AH_ITEM_UPDATE_STAGED][AH_CLASS_BLOCK] > 0;
}

int ah__predictor_world_size(const struct ah_predictor *predictor)
{
    return predictor->profile->world_size > 1 ? predictor->profile->world_size : 1;
}

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

/* Times of one item kind for embedding, block and head. */
struct triple {
    int64_t e, b, h;
};

static struct triple times(const struct ah_predictor *predictor, enum ah_item_kind kind)
{
    const int64_t *ns = predictor->profile->costs.ns[kind];
    return (struct triple){ns[AH_CLASS_EMBEDDING], ns[AH_CLASS_BLOCK], ns[AH_CLASS_HEAD]};
}

/* Blocks of the other kind among [first, last]. */
static int64_t others(const struct ah_predictor *predictor, int64_t first, int64_t last)
{
    const int *from = predictor->partition->others_from;
    return from && first <= last ? from[first] - from[last + 1] : 0;
}

/* One of forward and backward, of blocks [first, layers]. */
static int64_t blocks_ns(const struct ah_predictor *predictor, enum ah_item_kind kind, int64_t first)
{
    const struct ah_costs *costs = &predictor->profile->costs;
    int64_t layers = predictor->partition->layers, of_other = others(predictor, first, layers);
    int64_t other_ns = kind == AH_ITEM_FORWARD ? costs->other.forward_ns : costs->other.backward_ns;
    return (layers - first + 1 - of_other) * costs->ns[kind][AH_CLASS_BLOCK] + of_other * other_ns;
}

/* The same of both. */
static int64_t both_ns(const struct ah_predictor *predictor, int64_t first)
{
    return blocks_ns(predictor, AH_ITEM_FORWARD, first) + blocks_ns(predictor, AH_ITEM_BACKWARD, first);
}

static int64_t max_ns(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t min_ns(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* An item kind over all groups whose optimizer is on the host. */
static int64_t on_host_ns(const struct ah_switches *switches, struct triple t)
{
    return (switches->embedding_on_host ? t.e : 0) + switches->offload_optimizer * t.b +
           (switches->head_on_host ? t.h : 0);
}

/* Updates that the host does: those of its blocks that do not stream. */
static int64_t host_updates_ns(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    struct triple update = times(predictor, AH_ITEM_UPDATE_HOST);
    return on_host_ns(switches, update) - switches->staged * update.b;
}

static int64_t on_device_ns(const struct ah_switches *switches, struct triple t)
{
    return (switches->embedding_on_host ? 0 : t.e) + (switches->layers - switches->offload_optimizer) * t.b +
           (switches->head_on_host ? 0 : t.h);
}

/* Of several ranks each block whose part stays on the device is cast for forward and for backward unless it stays
 * unsharded; embedding and head optimized there once where they share a place. */
static int64_t casts_ns(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    struct triple cast = times(predictor, AH_ITEM_CAST);
    int64_t ends = 0;
    if (ah__world_size(switches) == 1)
        return 0;
    if (switches->share_embedding_head)
        ends = (switches->embedding_on_host ? 0 : cast.e) + (switches->head_on_host ? 0 : cast.h);
    return 2 * (switches->layers - switches->offload_params - switches->unsharded) * cast.b + ends;
}

static int64_t comm_ns(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    struct triple gather = times(predictor, AH_ITEM_GATHER), reduce = times(predictor, AH_ITEM_REDUCE);
    const struct ah_costs *costs = &predictor->costs;
    int64_t stays = ah__costs_gather_ns(costs, AH_CLASS_BLOCK, true);
    if (ah__world_size(switches) == 1)
        return 0;
    if (!switches->share_embedding_head) {
        gather.e = ah__costs_gather_ns(costs, AH_CLASS_EMBEDDING, !switches->embedding_on_host);
        gather.h = ah__costs_gather_ns(costs, AH_CLASS_HEAD, !switches->head_on_host);
    }
    return gather.e + gather.h + reduce.e + reduce.h + switches->layers * (2 * gather.b + reduce.b) +
           switches->unsharded * (stays - 2 * gather.b);
}

/* Recomputation of one block, whole or selectively. */
static int64_t block_again_ns(const struct ah_switches *switches, const struct ah_predictor *predictor, int block)
{
    struct ah_block_costs costs = ah__costs_block(&predictor->profile->costs, others(predictor, block, block) > 0);
    if (ah__recomputes(switches, block))
        return costs.recompute_ns;
    return ah__recomputes_selectively(switches, block) ? costs.selective_ns : 0;
}

/* What blocks from `first` on recompute. */
static int64_t again_ns(const struct ah_switches *switches, const struct ah_predictor *predictor, int64_t first)
{
    const struct ah_costs *costs = &predictor->profile->costs;
    int64_t sum = 0, whole = switches->checkpoint, end = whole + switches->selective;
    if (switches->offload_activations > 0 && (first > 1 || predictor->partition->others_from)) {
        for (int block = (int)first; block <= switches->layers; block++)
            sum += block_again_ns(switches, predictor, block);
        return sum;
    }
    int64_t from = max_ns(first, whole + 1), of_other = others(predictor, first, whole);
    int64_t of_other_selective = others(predictor, from, end);
    return (max_ns(0, whole - first + 1) - of_other) * costs->recompute_ns[AH_CLASS_BLOCK] +
           of_other * costs->other.recompute_ns +
           (max_ns(0, end - from + 1) - of_other_selective) * costs->selective_ns[AH_CLASS_BLOCK] +
           of_other_selective * costs->other.selective_ns;
}

/* Activations that leave, or come back. */
static int64_t activations_ns(const struct ah_switches *switches, const int64_t ns[AH_KEEPING_COUNT])
{
    int64_t sum = 0;
    for (int keeping = 0; switches->offload_activations > 0 && keeping < AH_KEEPING_COUNT; keeping++)
        sum +=
            ns[keeping] * ah__keeping_count(switches, (enum ah_keeping)keeping, false, switches->offload_activations);
    return sum;
}

int64_t ah__plan_lane_ns(const struct ah_switches *switches, const struct ah_predictor *predictor, enum ah_lane lane)
{
    struct triple f = times(predictor, AH_ITEM_FORWARD), b = times(predictor, AH_ITEM_BACKWARD);
    switch (lane) {
    case AH_LANE_COMPUTE:
        return f.e + f.h + b.e + b.h + both_ns(predictor, 1) + again_ns(switches, predictor, 1) +
               casts_ns(switches, predictor) + on_device_ns(switches, times(predictor, AH_ITEM_UPDATE_DEVICE));
    case AH_LANE_H2D:
        return on_host_ns(switches, times(predictor, AH_ITEM_PREFETCH)) +
               switches->offload_params * times(predictor, AH_ITEM_REFETCH).b + times(predictor, AH_ITEM_INPUT).e +
               switches->staged * times(predictor, AH_ITEM_STATES_IN).b +
               activations_ns(switches, predictor->costs.in_ns);
    case AH_LANE_D2H:
        return on_host_ns(switches, times(predictor, AH_ITEM_OFFLOAD)) + times(predictor, AH_ITEM_RESULT).e +
               times(predictor, AH_ITEM_RESULT).h + switches->staged * times(predictor, AH_ITEM_UPDATE_STAGED).b +
               activations_ns(switches, predictor->costs.out_ns);
    case AH_LANE_HOST:
        return host_updates_ns(switches, predictor);
    default:
        return comm_ns(switches, predictor);
    }
}

/* What parameters take to the device and gradients from it: over the link, of which only the last (the first) chunk
 * counts where chunks follow each other, and between the ranks. */
static struct triple transfer(const struct ah_switches *switches, const struct ah_predictor *predictor,
                              enum ah_item_kind link, enum ah_item_kind ranks)
{
    struct triple t = times(predictor, link), u = times(predictor, ranks);
    int64_t chunks = ah__chunks(switches);
    t = (struct triple){t.e / chunks, t.b / chunks, t.h / chunks};
    return ah__world_size(switches) > 1 ? (struct triple){t.e + u.e, t.b + u.b, t.h + u.h} : t;
}

/* The lowest block on the host that streams, or that does not; layers + 1: none. It has the longest round. */
static int first_updated(const struct ah_switches *switches, bool streams)
{
    int block = ah__first_on_host(switches);
    while (block <= switches->layers && ah__staged(switches, block) != streams)
        block++;
    return block;
}

/* The highest one, or 0. */
static int last_updated(const struct ah_switches *switches, bool streams)
{
    int block = switches->layers;
    while (block > 0 && (!ah__on_host(switches, block) || ah__staged(switches, block) != streams))
        block--;
    return block;
}

/* Between the last host update of one iteration and the first of the next the host has nothing to do: that update's
 * parameters travel, the remaining forward runs, then the backward up to the first gradient that goes to the host, and
 * that one travels. */
static int64_t host_cycle_ns(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    struct triple f = times(predictor, AH_ITEM_FORWARD), b = times(predictor, AH_ITEM_BACKWARD);
    struct triple fetch = transfer(switches, predictor, AH_ITEM_PREFETCH, AH_ITEM_GATHER);
    struct triple offload = transfer(switches, predictor, AH_ITEM_OFFLOAD, AH_ITEM_REDUCE);
    int64_t blocks = switches->layers, bring = INT64_MAX, leave;
    int64_t of_host = switches->offload_optimizer - switches->staged;
    int64_t above = of_host ? blocks - last_updated(switches, false) : 0;
    if (host_updates_ns(switches, predictor) == 0)
        return 0;
    if (switches->head_on_host)
        bring = fetch.h + f.h;
    if (of_host)
        bring = min_ns(bring, fetch.b + blocks_ns(predictor, AH_ITEM_FORWARD, blocks - above) + f.h);
    if (switches->embedding_on_host)
        bring = min_ns(bring, fetch.e + f.e + blocks_ns(predictor, AH_ITEM_FORWARD, 1) + f.h);
    if (switches->head_on_host)
        leave = b.h + offload.h;
    else if (of_host)
        leave = b.h + blocks_ns(predictor, AH_ITEM_BACKWARD, blocks - above) +
                again_ns(switches, predictor, blocks - above) + offload.b;
    else
        leave = b.h + blocks_ns(predictor, AH_ITEM_BACKWARD, 1) + again_ns(switches, predictor, 1) + b.e + offload.e;
    return ah__plan_lane_ns(switches, predictor, AH_LANE_HOST) + bring + leave;
}

/* The same of the stages through which states are staged. */
static int64_t stream_cycle_ns(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    struct triple f = times(predictor, AH_ITEM_FORWARD), b = times(predictor, AH_ITEM_BACKWARD);
    struct triple fetch = transfer(switches, predictor, AH_ITEM_PREFETCH, AH_ITEM_GATHER);
    struct triple offload = transfer(switches, predictor, AH_ITEM_OFFLOAD, AH_ITEM_REDUCE);
    int64_t in = times(predictor, AH_ITEM_STATES_IN).b, out = times(predictor, AH_ITEM_UPDATE_STAGED).b;
    if (switches->staged == 0)
        return 0;
    int64_t last = last_updated(switches, true);
    return switches->staged * max_ns(in, out) + fetch.b + both_ns(predictor, last) + f.h + b.h +
           again_ns(switches, predictor, last) + offload.b;
}

/* A group's own round: fetch, the forward from it on, the backward down to it, its gradient's transfer home, its
 * update. */
static int64_t round_ns(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    struct triple f = times(predictor, AH_ITEM_FORWARD), b = times(predictor, AH_ITEM_BACKWARD);
    struct triple fetch = transfer(switches, predictor, AH_ITEM_PREFETCH, AH_ITEM_GATHER);
    struct triple offload = transfer(switches, predictor, AH_ITEM_OFFLOAD, AH_ITEM_REDUCE);
    struct triple update = times(predictor, AH_ITEM_UPDATE_HOST);
    int64_t longest = 0, staged = switches->staged;
    int64_t first = first_updated(switches, false), stream = staged ? first_updated(switches, true) : 0;
    if (switches->embedding_on_host)
        longest = fetch.e + offload.e + update.e + f.e + f.h + b.e + b.h + both_ns(predictor, 1) +
                  again_ns(switches, predictor, 1);
    if (switches->offload_optimizer > staged)
        longest = max_ns(longest, fetch.b + offload.b + update.b + f.h + b.h + both_ns(predictor, first) +
                                      again_ns(switches, predictor, first));
    if (staged)
        longest = max_ns(longest, fetch.b + offload.b + times(predictor, AH_ITEM_STATES_IN).b + f.h + b.h +
                                      both_ns(predictor, stream) + again_ns(switches, predictor, stream));
    return longest;
}

/* Of several ranks, where nothing is gathered ahead: the compute lane waits for the parameters of each block that is
 * cast, twice. */
static int64_t gathered_ns(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    if (ah__world_size(switches) == 1 || ah__gathers_ahead(switches, predictor->partition->frozen))
        return 0;
    return ah__plan_lane_ns(switches, predictor, AH_LANE_COMPUTE) +
           2 * (switches->layers - switches->offload_params - switches->unsharded) * times(predictor, AH_ITEM_GATHER).b;
}

/* The longest of the cycles that updates on the host make, and stages. */
static int64_t updates_cycle_ns(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    return max_ns(max_ns(host_cycle_ns(switches, predictor), round_ns(switches, predictor)),
                  stream_cycle_ns(switches, predictor));
}

void ah__plan_bound(struct ah_plan *plan, const struct ah_predictor *predictor)
{
    const struct ah_switches *switches = &plan->switches;
    plan->bound_lane_ns = 0;
    for (int lane = 0; lane < AH_LANE_COUNT; lane++) {
        int64_t ns = ah__plan_lane_ns(switches, predictor, (enum ah_lane)lane);
        if (ns <= plan->bound_lane_ns)
            continue;
        plan->bound_lane_ns = ns;
        plan->bound_lane = (enum ah_lane)lane;
    }
    plan->bound_cycle_ns = ah__offloads(switches) ? updates_cycle_ns(switches, predictor) : plan->bound_lane_ns;
    plan->bound_cycle_ns = max_ns(plan->bound_cycle_ns, gathered_ns(switches, predictor));
    plan->bound_ns = max_ns(plan->bound_lane_ns, plan->bound_cycle_ns);
}

/* With a barrier, the host can begin only after the first gradient has arrived, and the device only ends after the
 * lowest group's gradient has gone through the host. */
int64_t ah__plan_policy_bound(const struct ah_plan *plan, const struct ah_predictor *predictor)
{
    const struct ah_switches *switches = &plan->switches;
    if (!predictor->policy->barrier || switches->offload_optimizer == 0)
        return plan->bound_ns;
    struct triple f = times(predictor, AH_ITEM_FORWARD), b = times(predictor, AH_ITEM_BACKWARD);
    struct triple fetch = times(predictor, AH_ITEM_PREFETCH);
    int64_t host = ah__plan_lane_ns(switches, predictor, AH_LANE_HOST) + f.e + f.h +
                   blocks_ns(predictor, AH_ITEM_FORWARD, 1) + b.h +
                   (switches->head_on_host ? 0 : blocks_ns(predictor, AH_ITEM_BACKWARD, switches->layers));
    int64_t link = switches->offload_optimizer * fetch.b + blocks_ns(predictor, AH_ITEM_FORWARD, switches->layers) +
                   f.h + b.h + blocks_ns(predictor, AH_ITEM_BACKWARD, 1);
    return max_ns(plan->bound_ns, max_ns(host, link));
}

/* ---- simulation -------------------------------------------------------------------------------------------------- */

/* When each iteration's last compute item ended, and whether the rest matters. */
struct watch {
    int64_t end_ns[AH_PREDICT_ITERATIONS];
    int from, to, at;         /* a step is what lies between the ends of the first two; the iteration it is in */
    int64_t below_ns;         /* once it cannot be below that, the rest does not matter */
    int64_t work_ns, left_ns; /* the least that the compute lane has to do in an iteration; what is left of it */
    bool first_step;          /* the one that is watched; then comes the steady one */
    int64_t first_items;      /* completed until then */
    const struct ah_costs *costs;
};

/* The first iterations fill the lanes, and the last one, which fetches nothing for a next, ends early. */
static void watch_steady(struct watch *watch, int iterations)
{
    watch->from = iterations / 2 - 1;
    watch->to = iterations - 2;
    watch->first_step = false;
}

static int64_t watched_ns(const struct watch *watch)
{
    return (watch->end_ns[watch->to] - watch->end_ns[watch->from]) / (watch->to - watch->from);
}

static int watch_compute(const struct ah_span *span, void *context)
{
    struct watch *watch = context;
    int iteration = (int)span->item.iteration;
    watch->first_items += watch->first_step && iteration <= watch->to + 1; /* without the input of the one after */
    if (span->lane != AH_LANE_COMPUTE)
        return AH_OK;
    if (iteration > watch->to && !watch->first_step)
        return AH_DRIVE_ENOUGH;
    if (iteration > watch->to)
        watch_steady(watch, AH_PREDICT_ITERATIONS);
    if (iteration > watch->at)
        watch->left_ns = watch->work_ns;
    watch->at = iteration;
    watch->left_ns -= ah__costs_item_ns(watch->costs, &span->item);
    watch->end_ns[iteration] = span->end_ns;
    if (iteration <= watch->from)
        return AH_OK;
    watch->end_ns[watch->to] = span->end_ns + max_ns(watch->left_ns, 0) + (watch->to - iteration) * watch->work_ns;
    return watched_ns(watch) < watch->below_ns ? AH_OK : AH_DRIVE_ENOUGH;
}

static int simulate(struct ah_drive *drive, const struct ah_plan *plan, const struct ah_predictor *predictor,
                    int iterations)
{
    struct ah_sched_config config;
    ah__sched_config_of(&config, &plan->switches, predictor->partition, predictor->policy);
    config.queue_depth = predictor->costs.lanes.queue_depth;
    AH_TRY(ah__sched_new(&drive->sched, &config));
    ah__dev_sim_reset(predictor->sim);
    drive->dev = predictor->sim;
    drive->bind = ah__costs_bind;
    drive->bind_context = (void *)(uintptr_t)&predictor->costs; /* only read */
    ah__sched_limit(drive->sched, iterations, false);
    int status = ah__drive(drive);
    ah__sched_free(drive->sched);
    return status;
}

static int simulate_watched(int64_t *step_ns, struct watch *watch, const struct ah_plan *plan,
                            const struct ah_predictor *predictor, int iterations)
{
    struct ah_drive drive = {.completed = watch_compute, .completed_context = watch};
    watch->work_ns = ah__plan_lane_ns(&plan->switches, predictor, AH_LANE_COMPUTE);
    watch->costs = &predictor->costs;
    AH_TRY(simulate(&drive, plan, predictor, iterations));
    *step_ns = watched_ns(watch);
    return AH_OK;
}

int ah__plan_step_below(int64_t *step_ns, int64_t *items, const struct ah_plan *plan,
                        const struct ah_predictor *predictor, int64_t below_ns)
{
    struct watch watch = {.to = 1, .first_step = true, .below_ns = below_ns};
    AH_TRY(simulate_watched(step_ns, &watch, plan, predictor, AH_PREDICT_ITERATIONS));
    *items += watch.first_items;
    return AH_OK;
}

int ah__plan_step_ns(int64_t *step_ns, const struct ah_plan *plan, const struct ah_predictor *predictor, int iterations)
{
    struct watch watch = {.below_ns = INT64_MAX};
    iterations = iterations < AH_PREDICT_ITERATIONS ? iterations : AH_PREDICT_ITERATIONS;
    watch_steady(&watch, iterations);
    return simulate_watched(step_ns, &watch, plan, predictor, iterations);
}

void ah__plan_measure(struct ah_plan *plan, const struct ah_predictor *predictor)
{
    const struct ah_partition *partition = predictor->partition;
    if (predictor->count_bytes)
        predictor->count_bytes(&plan->device_peak_bytes, &plan->host_peak_bytes, partition, &plan->switches,
                               predictor->policy);
    else
        ah__layout_bytes(&plan->device_peak_bytes, &plan->host_peak_bytes, partition, &plan->switches,
                         plan->workspace_bytes);
}

int ah__plan_predict(struct ah_plan *plan, const struct ah_predictor *predictor)
{
    AH_TRY(ah__plan_step_ns(&plan->step_ns, plan, predictor, AH_PREDICT_ITERATIONS));
    ah__plan_bound(plan, predictor);
    ah__plan_measure(plan, predictor);
    ah__snprintf(plan->policy, sizeof plan->policy, "%s", predictor->policy->name);
    plan->signature = predictor->partition->signature;
    return AH_OK;
}

void ah__timeline_describe(struct ah_timeline *timeline, const struct ah_partition *partition,
                           const struct ah_plan *plan, bool predicted)
{
    int64_t host;
    struct ah_switches without_buffers = plan->switches;
    without_buffers.buffers = 0;
    timeline->predicted = predicted;
    ah__layout_bytes(&timeline->device_peak_bytes, &host, partition, &plan->switches, plan->workspace_bytes);
    ah__layout_bytes(&timeline->fixed_bytes, &host, partition, &without_buffers, plan->workspace_bytes);
    if (plan->switches.buffers > 0)
        timeline->buffer_bytes = (timeline->device_peak_bytes - timeline->fixed_bytes) / plan->switches.buffers;
    char text[AH_SWITCHES_TEXT];
    ah__switches_text(text, &plan->switches, ' ', false);
    ah__snprintf(timeline->title, sizeof timeline->title, "%s, %s, %d buffer%s", plan->policy, text,
                 plan->switches.buffers, plan->switches.buffers == 1 ? "" : "s");
}

/* Who knows the model's and the machine's names says more. */
static void caption_make(char text[200], const struct ah_predictor *predictor)
{
    const struct ah_partition *partition = predictor->partition;
    int micro_batches = ah__micro_batches(partition);
    char params[32], types[AH_PARTITION_TYPES_SIZE];
    ah_count_format(params, sizeof params, ah__partition_params(partition));
    ah__snprintf(text, 200, "%d blocks, %s parameters; batch %lld x %lld tokens, %s; on %s", partition->layers, params,
                 (long long)(micro_batches * partition->batch), (long long)partition->seq,
                 ah__partition_types(types, partition), predictor->profile->device);
}

int ah__plan_timeline(struct ah_timeline **out, const struct ah_plan *plan, const struct ah_predictor *predictor,
                      int iterations)
{
    struct ah_timeline *timeline;
    AH_TRY(ah__timeline_new(&timeline, plan->switches.layers, ah__chunks(&plan->switches), iterations));
    struct ah_drive drive = {.observe = ah__timeline_observe, .observe_context = timeline};
    int status = simulate(&drive, plan, predictor, iterations);
    if (status != AH_OK) {
        ah_timeline_free(timeline);
        return status;
    }
    ah__timeline_describe(timeline, predictor->partition, plan, true);
    timeline->step_ns = plan->step_ns;
    caption_make(timeline->caption, predictor);
    *out = timeline;
    return AH_OK;
}
