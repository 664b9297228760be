/* The bounds of predict.h, which no schedule of a plan can beat: each lane's work in a step, and cycles between
 * steps. */
#include <math.h>

#include "plan/predict.h"
#include "sched/switches.h"

/* Times of one item kind for embedding, block and head, in ns. */
struct triple {
    int64_t e, b, h;
};

/* Returns the times of an item kind. */
static struct triple times(const struct ah_predictor *predictor, enum ah_item_kind kind)
{
    const int64_t *ns = predictor->profile->costs.ns[kind];
    return (struct triple){ns[AH_CLASS_EMBEDDING], ns[AH_CLASS_BLOCK], ns[AH_CLASS_HEAD]};
}

static int64_t max_ns(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns the sum of the times of blocks [first, last], by class. */
static int64_t sum_ns(const struct ah_predictor *predictor, const int64_t ns[AH_CLASSES_MOST], int64_t first,
                      int64_t last)
{
    const struct ah_partition *partition = predictor->partition;
    int64_t sum = max_ns(0, last - first + 1) * ns[AH_CLASS_BLOCK];
    for (int class = AH_CLASS_COUNT; class < partition->class_count; class ++)
        sum += ah__blocks_of(partition, class, first, last) * (ns[class] - ns[AH_CLASS_BLOCK]);
    return sum;
}

/* Returns the time of forward, or of backward, of blocks [first, layers]. */
static int64_t blocks_ns(const struct ah_predictor *predictor, enum ah_item_kind kind, int64_t first)
{
    return sum_ns(predictor, predictor->profile->costs.ns[kind], first, predictor->partition->layers);
}

/* Returns the time of forward and backward of blocks [first, layers]. */
static int64_t both_ns(const struct ah_predictor *predictor, int64_t first)
{
    return blocks_ns(predictor, AH_ITEM_FORWARD, first) + blocks_ns(predictor, AH_ITEM_BACKWARD, first);
}

static int64_t min_ns(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Returns the time of an item kind over so many blocks, and over embedding and head if they are on the host. */
static int64_t on_host_ns(const struct ah_switches *switches, struct triple t, int64_t blocks)
{
    return (switches->embedding_on_host ? t.e : 0) + blocks * t.b + (switches->head_on_host ? t.h : 0);
}

/* Returns the time of updates on the host: of all groups there but the blocks that are staged. */
static int64_t host_updates_ns(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    struct triple update = times(predictor, AH_ITEM_UPDATE_HOST);
    return on_host_ns(switches, update, ah__trained_on_host(switches) - switches->staged);
}

static int64_t on_device_ns(const struct ah_switches *switches, struct triple t)
{
    return (switches->embedding_on_host ? 0 : t.e) + ah__trained_on_device(switches) * t.b +
           (switches->head_on_host ? 0 : t.h);
}

/* Returns, with several ranks, how many casts all blocks have in a step. A block is cast for forward and for backward,
 * unless it is fetched or unsharded. */
static int64_t casts(const struct ah_switches *switches)
{
    int64_t frozen = switches->frozen_blocks - ah__frozen_on_host(switches) - ah__unsharded_frozen(switches);
    int64_t trained = ah__trained_blocks(switches) - switches->offload_params;
    return frozen + 2 * (trained - (switches->unsharded - ah__unsharded_frozen(switches)));
}

/* Returns the time of casts. With several ranks each block whose shard stays on the device is cast for forward and for
 * backward, unless it is unsharded. Embedding and head optimized on the device are cast once if they share a buffer. */
static int64_t casts_ns(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    struct triple cast = times(predictor, AH_ITEM_CAST);
    int64_t ends = 0;
    if (ah__world_size(switches) == 1)
        return 0;
    if (switches->share_embedding_head)
        ends = (switches->embedding_on_host ? 0 : cast.e) + (switches->head_on_host ? 0 : cast.h);
    return casts(switches) * cast.b + ends;
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
    int64_t unsharded = switches->unsharded - ah__unsharded_frozen(switches);
    int64_t gathers = casts(switches) + 2 * switches->offload_params + ah__frozen_on_host(switches);
    return gather.e + gather.h + reduce.e + reduce.h + ah__trained_blocks(switches) * reduce.b + gathers * gather.b +
           unsharded * stays;
}

/* Returns the recomputation time of blocks [first, layers]. */
static int64_t again_ns(const struct ah_switches *switches, const struct ah_predictor *predictor, int64_t first)
{
    const struct ah_costs *costs = &predictor->profile->costs;
    int64_t sum = 0, whole = switches->frozen_blocks + switches->checkpoint, end = whole + switches->selective;
    bool alike = predictor->partition->class_count <= AH_CLASS_COUNT;
    first = max_ns(first, switches->frozen_blocks + 1);
    if (switches->offload_activations > 0 && (first > switches->frozen_blocks + 1 || !alike)) {
        for (int block = (int)first; block <= switches->layers; block++)
            sum += ah__costs_again_ns(&predictor->costs, block, ah__recomputes(switches, block),
                                      ah__recomputes_selectively(switches, block));
        return sum;
    }
    return sum_ns(predictor, costs->recompute_ns, first, whole) +
           sum_ns(predictor, costs->selective_ns, max_ns(first, whole + 1), end);
}

/* Returns the largest number of micro-batches in a round, as a share of the step's. */
static double round_share(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    int micro_batches = ah__micro_batches(predictor->partition);
    return (double)ah__round_most(micro_batches, ah__plan_rounds(switches, predictor)) / micro_batches;
}

/* Returns the time in which blocks' sums are copied out, or in, between the rounds of a step. */
static int64_t sums_ns(const struct ah_switches *switches, const struct ah_predictor *predictor, int64_t ns)
{
    bool sums = ah__block_group(predictor->partition)->trained > 0;
    int rounds = ah__plan_rounds(switches, predictor);
    return sums ? (rounds - 1) * (ah__trained_blocks(switches) - ah__staying_sums(switches, rounds)) * ns : 0;
}

/* Returns true if the embedding stays on the device after its first fetch. */
static bool embedding_stays(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    return ah__embedding_stays(switches, predictor->partition->groups[0].trained == 0);
}

/* Returns the time of prefetches for forward: of embedding and head in each round only if they share a buffer. */
static int64_t prefetches_ns(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    struct triple fetch = times(predictor, AH_ITEM_PREFETCH);
    int64_t rounds = ah__plan_rounds(switches, predictor), ends = switches->share_embedding_head ? rounds : 1;
    if (embedding_stays(switches, predictor))
        fetch.e = 0;
    fetch = (struct triple){ends * fetch.e, fetch.b, ends * fetch.h};
    return on_host_ns(switches, fetch, ah__plan_fetches(switches, predictor));
}

/* Returns the time in which activations are offloaded, or fetched back. */
static int64_t activations_ns(const struct ah_switches *switches, const struct ah_predictor *predictor,
                              const int64_t ns[AH_KEEPING_COUNT])
{
    int64_t sum = 0;
    for (int keeping = 0; switches->offload_activations > 0 && keeping < AH_KEEPING_COUNT; keeping++)
        sum +=
            ns[keeping] * ah__keeping_count(switches, (enum ah_keeping)keeping, false, switches->offload_activations);
    return (int64_t)((double)sum * round_share(switches, predictor) * ah__plan_rounds(switches, predictor));
}

static int64_t disk_ns(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    const struct ah_costs *costs = &predictor->costs;
    return ah__plan_disk_fetches(switches, predictor) * costs->disk_params_ns +
           ah__trained_on_disk(switches) * (costs->disk_gradient_ns + costs->disk_read_ns + costs->disk_write_ns);
}

int64_t ah__plan_lane_ns(const struct ah_switches *switches, const struct ah_predictor *predictor, enum ah_lane lane)
{
    struct triple f = times(predictor, AH_ITEM_FORWARD), b = times(predictor, AH_ITEM_BACKWARD);
    switch (lane) {
    case AH_LANE_COMPUTE:
        return f.e + f.h + b.e + b.h + both_ns(predictor, 1) + again_ns(switches, predictor, 1) +
               2 * (ah__plan_rounds(switches, predictor) - 1) * ah__trained_blocks(switches) *
                   predictor->costs.widen_ns +
               casts_ns(switches, predictor) + on_device_ns(switches, times(predictor, AH_ITEM_UPDATE_DEVICE));
    case AH_LANE_H2D:
        return prefetches_ns(switches, predictor) +
               ah__plan_rounds(switches, predictor) * switches->offload_params * times(predictor, AH_ITEM_REFETCH).b +
               times(predictor, AH_ITEM_INPUT).e + switches->staged * times(predictor, AH_ITEM_STATES_IN).b +
               activations_ns(switches, predictor, predictor->costs.in_ns) +
               sums_ns(switches, predictor, predictor->costs.sums_in_ns);
    case AH_LANE_D2H:
        return on_host_ns(switches, times(predictor, AH_ITEM_OFFLOAD), ah__trained_on_host(switches)) +
               times(predictor, AH_ITEM_RESULT).e + times(predictor, AH_ITEM_RESULT).h +
               switches->staged * times(predictor, AH_ITEM_UPDATE_STAGED).b +
               activations_ns(switches, predictor, predictor->costs.out_ns) +
               sums_ns(switches, predictor, predictor->costs.sums_out_ns);
    case AH_LANE_HOST:
        return host_updates_ns(switches, predictor);
    case AH_LANE_DISK:
        return disk_ns(switches, predictor);
    default:
        return comm_ns(switches, predictor);
    }
}

/* Returns the transfer times of parameters to the device, or of gradients from it: over the link, of which only the
 * last (the first) chunk counts if there are several, and between the ranks. */
static struct triple transfer(const struct ah_switches *switches, const struct ah_predictor *predictor,
                              enum ah_item_kind link, enum ah_item_kind ranks)
{
    struct triple t = times(predictor, link), u = times(predictor, ranks);
    int64_t chunks = ah__chunks(switches);
    if (link == AH_ITEM_PREFETCH && embedding_stays(switches, predictor))
        t.e = 0;
    t = (struct triple){t.e / chunks, t.b / chunks, t.h / chunks};
    return ah__world_size(switches) > 1 ? (struct triple){t.e + u.e, t.b + u.b, t.h + u.h} : t;
}

/* Returns the lowest block on the host that is staged, or that is not; layers + 1: no such block. Its cycle is the
 * longest. */
static int first_updated(const struct ah_switches *switches, bool streams)
{
    int block = ah__first_trained_on_host(switches);
    while (block <= switches->layers && ah__staged(switches, block) != streams)
        block++;
    return block;
}

/* Returns the highest block on the host that is staged, or that is not; 0: no such block. */
static int last_updated(const struct ah_switches *switches, bool streams)
{
    int block = switches->layers;
    while (block > switches->frozen_blocks && (!ah__on_host(switches, block) || ah__staged(switches, block) != streams))
        block--;
    return block;
}

/* Lower bound on the compute lane's time between an item of the first round and one of the last. One round: part_ns.
 * More: the whole step but at most one round's share of the rest. */
static int64_t in_rounds_ns(const struct ah_switches *switches, const struct ah_predictor *predictor, int64_t part_ns)
{
    if (ah__plan_rounds(switches, predictor) == 1)
        return part_ns;
    int64_t all = times(predictor, AH_ITEM_FORWARD).h + times(predictor, AH_ITEM_BACKWARD).h + both_ns(predictor, 1) +
                  again_ns(switches, predictor, 1);
    return part_ns >= all ? all : all - (int64_t)ceil((double)(all - part_ns) * round_share(switches, predictor));
}

/* Returns the length of the host's cycle between steps. After the last host update of one iteration and before the
 * first of the next the host is idle: the updated parameters are transferred, the remaining forward runs, then backward
 * until the first gradient for the host, which is transferred. */
static int64_t host_cycle_ns(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    struct triple f = times(predictor, AH_ITEM_FORWARD), b = times(predictor, AH_ITEM_BACKWARD);
    struct triple fetch = transfer(switches, predictor, AH_ITEM_PREFETCH, AH_ITEM_GATHER);
    struct triple offload = transfer(switches, predictor, AH_ITEM_OFFLOAD, AH_ITEM_REDUCE);
    int64_t blocks = switches->layers, shortest = INT64_MAX;
    int64_t of_host = ah__trained_on_host(switches) - switches->staged;
    int64_t above = of_host ? blocks - last_updated(switches, false) : 0;
    if (host_updates_ns(switches, predictor) == 0)
        return 0;
    int64_t leave, leave_ns; /* the compute lane's work until the first gradient, and its transfer */
    if (switches->head_on_host) {
        leave = b.h;
        leave_ns = offload.h;
    } else if (of_host) {
        leave = b.h + blocks_ns(predictor, AH_ITEM_BACKWARD, blocks - above) +
                again_ns(switches, predictor, blocks - above);
        leave_ns = offload.b;
    } else {
        leave = b.h + blocks_ns(predictor, AH_ITEM_BACKWARD, 1) + again_ns(switches, predictor, 1) + b.e;
        leave_ns = offload.e;
    }
    if (switches->head_on_host)
        shortest = fetch.h + in_rounds_ns(switches, predictor, f.h + leave);
    if (of_host) {
        int64_t forward = blocks_ns(predictor, AH_ITEM_FORWARD, blocks - above) + f.h;
        shortest = min_ns(shortest, fetch.b + in_rounds_ns(switches, predictor, forward + leave));
    }
    if (switches->embedding_on_host) {
        int64_t forward = f.e + blocks_ns(predictor, AH_ITEM_FORWARD, 1) + f.h;
        shortest = min_ns(shortest, fetch.e + in_rounds_ns(switches, predictor, forward + leave));
    }
    return ah__plan_lane_ns(switches, predictor, AH_LANE_HOST) + shortest + leave_ns;
}

/* Returns the length of the same cycle for staged updates, with the staging buffers instead of the host. */
static int64_t stream_cycle_ns(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    struct triple f = times(predictor, AH_ITEM_FORWARD), b = times(predictor, AH_ITEM_BACKWARD);
    struct triple fetch = transfer(switches, predictor, AH_ITEM_PREFETCH, AH_ITEM_GATHER);
    struct triple offload = transfer(switches, predictor, AH_ITEM_OFFLOAD, AH_ITEM_REDUCE);
    int64_t in = times(predictor, AH_ITEM_STATES_IN).b, out = times(predictor, AH_ITEM_UPDATE_STAGED).b;
    if (switches->staged == 0)
        return 0;
    int64_t last = last_updated(switches, true);
    int64_t compute = both_ns(predictor, last) + f.h + b.h + again_ns(switches, predictor, last);
    return switches->staged * max_ns(in, out) + fetch.b + in_rounds_ns(switches, predictor, compute) + offload.b;
}

/* Returns the longest cycle of one group: fetch, forward from the group on, backward down to it, offload of its
 * gradient, its update. */
static int64_t round_ns(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    struct triple f = times(predictor, AH_ITEM_FORWARD), b = times(predictor, AH_ITEM_BACKWARD);
    struct triple fetch = transfer(switches, predictor, AH_ITEM_PREFETCH, AH_ITEM_GATHER);
    struct triple offload = transfer(switches, predictor, AH_ITEM_OFFLOAD, AH_ITEM_REDUCE);
    struct triple update = times(predictor, AH_ITEM_UPDATE_HOST);
    int64_t longest = 0, staged = switches->staged;
    int64_t first = first_updated(switches, false), stream = staged ? first_updated(switches, true) : 0;
    if (switches->embedding_on_host)
        longest = fetch.e + offload.e + update.e +
                  in_rounds_ns(switches, predictor,
                               f.e + f.h + b.e + b.h + both_ns(predictor, 1) + again_ns(switches, predictor, 1));
    if (ah__trained_on_host(switches) > staged)
        longest = max_ns(
            longest, fetch.b + offload.b + update.b +
                         in_rounds_ns(switches, predictor,
                                      f.h + b.h + both_ns(predictor, first) + again_ns(switches, predictor, first)));
    if (staged)
        longest = max_ns(
            longest, fetch.b + offload.b + times(predictor, AH_ITEM_STATES_IN).b +
                         in_rounds_ns(switches, predictor,
                                      f.h + b.h + both_ns(predictor, stream) + again_ns(switches, predictor, stream)));
    return longest;
}

/* Returns the compute lane's time with several ranks if nothing is gathered ahead: it waits twice for the parameters of
 * each block that is cast. 0 if parameters are gathered ahead. */
static int64_t gathered_ns(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    if (ah__world_size(switches) == 1 || ah__gathers_ahead(switches, ah__blocks_keep_gradients(predictor->partition)))
        return 0;
    return ah__plan_lane_ns(switches, predictor, AH_LANE_COMPUTE) +
           casts(switches) * times(predictor, AH_ITEM_GATHER).b;
}

/* Returns the longest of the cycles through updates on the host and staged updates. */
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

/* With a barrier, the host can begin only after the first gradient has arrived, and the device can end only after the
 * lowest group's gradient has been updated on the host. */
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
