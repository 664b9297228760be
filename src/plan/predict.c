#include "plan/predict.h"

#include <math.h>
#include <string.h>

#include "base/format.h"
#include "layout/layout.h"
#include "plan/config.h"

/* Sets the transfer times of activations and sums from bytes, at the rates of a block's parameters and gradient. */
static void price_transfers(struct ah_predictor *predictor)
{
    const struct ah_partition *partition = predictor->partition;
    struct ah_costs *costs = &predictor->costs;
    const struct ah_group *block = ah__block_group(partition);
    int64_t count = ah__part_count(block->count, ah__predictor_world_size(predictor));
    double of_block = (double)(count * ah__dtype_bytes(partition->compute));
    double sums = (double)(block->trained * (int64_t)sizeof(float)) / of_block;
    int64_t in_ns = costs->ns[AH_ITEM_PREFETCH][AH_CLASS_BLOCK], out_ns = costs->ns[AH_ITEM_OFFLOAD][AH_CLASS_BLOCK];
    if (ah__blocks_keep_gradients(partition))
        out_ns = in_ns; /* such gradients are too small to tell the link's rate */
    costs->sums_in_ns = llround(sums * (double)in_ns);
    costs->sums_out_ns = llround(sums * (double)out_ns);
    for (int keeping = 0; keeping < AH_KEEPING_COUNT; keeping++) {
        double blocks = (double)ah__layout_activation_bytes(partition, (enum ah_keeping)keeping) / of_block;
        costs->in_ns[keeping] = llround(blocks * (double)in_ns);
        costs->out_ns[keeping] = llround(blocks * (double)out_ns);
    }
}

static int64_t disk_time(int64_t bytes, int64_t bytes_per_s)
{
    return llround((double)bytes * 1e9 / (double)bytes_per_s);
}

/* Sets the times of a disk's lane from bytes, at the rates of the profile's drive. */
static void price_disk(struct ah_predictor *predictor)
{
    const struct ah_profile_drive *drive = &predictor->profile->drive;
    struct ah_costs *costs = &predictor->costs;
    struct ah_switches whole = ah__predictor_lowest(predictor);
    if (drive->read_bytes_per_s == 0)
        return;
    struct ah_disk_traffic traffic = ah__layout_disk_traffic(predictor->partition, &whole);
    costs->disk_params_ns = disk_time(traffic.fetched, drive->read_bytes_per_s);
    costs->disk_gradient_ns = disk_time(traffic.gradient, drive->write_bytes_per_s);
    costs->disk_read_ns = disk_time(traffic.states + traffic.gradient, drive->read_bytes_per_s);
    costs->disk_write_ns = disk_time(traffic.states, drive->write_bytes_per_s);
    costs->lanes.launch_ns[AH_LANE_DISK] = drive->latency_ns;
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
            "profile: found one of another model, batch, micro-batch, sequence length, dtype, packing, clipping or "
            "version (signature %016llx), expected %016llx",
            (unsigned long long)profile->partition_signature, (unsigned long long)partition->signature);
    predictor.costs.layers = partition->layers;
    predictor.costs.class_of = partition->class_of;
    predictor.costs.micro_batches = ah__micro_batches(partition);
    price_transfers(&predictor);
    price_disk(&predictor);
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
    const int64_t(*ns)[AH_CLASSES_MOST] = predictor->costs.ns;
    return ah__policy_uses(predictor->policy, AH_SWITCH_staged) && !ah__blocks_keep_gradients(predictor->partition) &&
           ns[AH_ITEM_STATES_IN][AH_CLASS_BLOCK] > 0 && ns[AH_ITEM_UPDATE_STAGED][AH_CLASS_BLOCK] > 0;
}

bool ah__predictor_spills(const struct ah_predictor *predictor)
{
    return ah__policy_uses(predictor->policy, AH_SWITCH_disk_blocks) && !predictor->count_bytes &&
           predictor->profile->drive.read_bytes_per_s > 0;
}

int ah__plan_fetches(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    int rounds = ah__plan_rounds(switches, predictor), kept = ah__trained_on_host(switches) - switches->offload_params;
    if (predictor->policy->leaves_each_round)
        kept = 0;
    return rounds * (switches->offload_optimizer - kept) + kept;
}

int ah__plan_disk_fetches(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    int above = ah__trained_on_host(switches) - ah__trained_on_disk(switches);
    int again = switches->offload_params > above ? switches->offload_params - above : 0;
    int kept = ah__trained_on_disk(switches) - again;
    return ah__plan_rounds(switches, predictor) * (2 * again + ah__frozen_on_disk(switches)) + kept;
}

struct ah_switches ah__predictor_lowest(const struct ah_predictor *predictor)
{
    const struct ah_partition *partition = predictor->partition;
    return ah__switches_lowest(partition->layers, partition->frozen_blocks, ah__predictor_world_size(predictor));
}

int ah__predictor_world_size(const struct ah_predictor *predictor)
{
    return predictor->profile->world_size > 1 ? predictor->profile->world_size : 1;
}

/* ---- simulation -------------------------------------------------------------------------------------------------- */

static int64_t max_ns(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Watches a simulation: when each iteration's last compute item ended, and if the rest of the simulation matters. */
struct watch {
    int64_t end_ns[AH_PREDICT_ITERATIONS];
    int from, to, at;         /* the step is measured between the ends of iterations from and to; at: the current
                               * iteration */
    int64_t below_ns;         /* when the step cannot be below this any more, the rest does not matter */
    int64_t work_ns, left_ns; /* the compute lane's least work in an iteration; the part of it that is left */
    int iterations;           /* iterations simulated */
    bool first_step;          /* the first step is watched; the steady one is next */
    int64_t first_items;      /* items completed in the first step */
    const struct ah_costs *costs;
};

/* Watches the steady step. The first iterations fill the lanes, and the last one, which fetches nothing for a next
 * iteration, ends early. */
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
    watch->first_items += watch->first_step && iteration <= watch->to + 1; /* without the input of the next iteration */
    if (span->lane != AH_LANE_COMPUTE)
        return AH_OK;
    if (iteration > watch->to && !watch->first_step)
        return AH_DRIVE_ENOUGH;
    if (iteration > watch->to)
        watch_steady(watch, watch->iterations);
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
    watch->iterations = iterations;
    AH_TRY(simulate(&drive, plan, predictor, iterations));
    *step_ns = watched_ns(watch);
    return AH_OK;
}

/* Returns the most iterations to simulate. With several rounds fewer steps suffice, since lanes and buffers fill in the
 * first few rounds. */
static int most_iterations(const struct ah_plan *plan, const struct ah_predictor *predictor)
{
    enum { OF_SEVERAL_ROUNDS = 4 };
    return ah__plan_rounds(&plan->switches, predictor) > 1 ? OF_SEVERAL_ROUNDS : AH_PREDICT_ITERATIONS;
}

int ah__plan_step_below(int64_t *step_ns, int64_t *items, const struct ah_plan *plan,
                        const struct ah_predictor *predictor, int64_t below_ns)
{
    struct watch watch = {.to = 1, .first_step = true, .below_ns = below_ns};
    AH_TRY(simulate_watched(step_ns, &watch, plan, predictor, most_iterations(plan, predictor)));
    *items += watch.first_items;
    return AH_OK;
}

int ah__plan_step_ns(int64_t *step_ns, const struct ah_plan *plan, const struct ah_predictor *predictor, int iterations)
{
    struct watch watch = {.below_ns = INT64_MAX};
    int most = most_iterations(plan, predictor);
    iterations = iterations < most ? iterations : most;
    watch_steady(&watch, iterations);
    return simulate_watched(step_ns, &watch, plan, predictor, iterations);
}

/* Computes what a plan has on disk, and what a step reads and writes. */
static void measure_disk(struct ah_plan *plan, const struct ah_predictor *predictor)
{
    const struct ah_switches *switches = &plan->switches;
    plan->disk_peak_bytes = plan->disk_read_bytes = plan->disk_written_bytes = plan->disk_endurance_bytes = 0;
    if (switches->disk_blocks == 0)
        return;
    struct ah_disk_traffic traffic = ah__layout_disk_traffic(predictor->partition, switches);
    int frozen = ah__plan_rounds(switches, predictor) * ah__frozen_on_disk(switches);
    plan->disk_peak_bytes = ah__layout_disk_bytes(predictor->partition, switches);
    plan->disk_endurance_bytes = predictor->profile->drive.endurance_bytes;
    plan->disk_written_bytes = ah__trained_on_disk(switches) * (traffic.states + traffic.gradient);
    plan->disk_read_bytes = plan->disk_written_bytes + frozen * traffic.fetched_frozen +
                            (ah__plan_disk_fetches(switches, predictor) - frozen) * traffic.fetched;
}

void ah__plan_measure(struct ah_plan *plan, const struct ah_predictor *predictor)
{
    const struct ah_partition *partition = predictor->partition;
    measure_disk(plan, predictor);
    if (predictor->count_bytes)
        predictor->count_bytes(&plan->device_peak_bytes, &plan->host_peak_bytes, partition, &plan->switches,
                               predictor->policy);
    else
        ah__layout_bytes(&plan->device_peak_bytes, &plan->host_peak_bytes, partition, &plan->switches,
                         plan->workspace_bytes);
}

static bool is_frozen(const struct ah_group *group)
{
    return group->count > 0 && group->trained == 0;
}

/* Notes which parts are frozen, for readers of the plan: frozen parts have no gradients and no states. */
static void note_frozen(struct ah_plan *plan, const struct ah_partition *partition)
{
    const struct ah_group *block = ah__block_group(partition);
    plan->embedding_frozen = is_frozen(&partition->groups[0]);
    plan->blocks_frozen = is_frozen(block);
    plan->blocks_adapted = block->trained > 0 && block->trained < block->count;
    plan->head_frozen = is_frozen(&partition->groups[partition->layers + 1]);
}

int ah__plan_predict(struct ah_plan *plan, const struct ah_predictor *predictor)
{
    AH_TRY(ah__plan_step_ns(&plan->step_ns, plan, predictor, AH_PREDICT_ITERATIONS));
    ah__plan_bound(plan, predictor);
    ah__plan_measure(plan, predictor);
    ah__snprintf(plan->policy, sizeof plan->policy, "%s", predictor->policy->name);
    plan->signature = predictor->partition->signature;
    note_frozen(plan, predictor->partition);
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
    char text[AH_SWITCHES_TEXT], passes[24] = "";
    int rounds = ah__rounds(&plan->switches, ah__micro_batches(partition));
    ah__switches_text(text, &plan->switches, ' ', false);
    if (rounds > 1)
        ah__snprintf(passes, sizeof passes, ", %d passes", rounds);
    ah__snprintf(timeline->title, sizeof timeline->title, "%s, %s, %d buffer%s%s", plan->policy, text,
                 plan->switches.buffers, plan->switches.buffers == 1 ? "" : "s", passes);
}

/* Writes a caption from the partition and the profile; callers that know the names of model and machine write a better
 * one. */
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
    AH_TRY(ah__timeline_new(&timeline, plan->switches.layers, ah__chunks(&plan->switches),
                            iterations * ah__rounds(&plan->switches, ah__micro_batches(predictor->partition))));
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
