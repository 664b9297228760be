/* The search for the best plan, scored by the simulator with the real scheduler.
 *
 * Seeds (seeds.c) are plans of different kinds, completed by the cost model. The best of each kind are simulated, and
 * from the fastest of them, and from a warm start, local searches (walk.c) go downhill over the table of switches
 * (space.c), in phases: from many plans a little, from few further. All cores take part. Models of few blocks are
 * searched exhaustively after that. Effort counts simulated items, not time, so that the same question has the same
 * answer on any machine. bench/search compares the result with a random search, bench/monotone counts how often more
 * memory or speed leads to a slower plan. */
#include "plan/search.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/format.h"
#include "plan/exhaust.h"
#include "plan/fit.h"
#include "plan/placed.h"
#include "plan/space.h"
#include "plan/trim.h"
#include "plan/walk.h"
#include "plan/warm_start.h"
#include "sched/switches.h"

/* Simulated items for an effort of 1: ITEMS_PER_BLOCK for each block of the model, for BLOCKS_LEAST blocks at least.
 * Blocks beyond BLOCKS_WHOLE count one part of DEEP_PARTS, since simulating a deep model also costs more. */
enum { ITEMS_PER_BLOCK = 50000, BLOCKS_LEAST = 20, BLOCKS_WHOLE = 36, DEEP_PARTS = 3 };
/* More rounds must shorten the step by at least one part of ROUNDS_GAIN. */
enum { ROUNDS_GAIN = 200 };
/* Phases of local searches: how many searches run at the same time, the share of the effort for each (one of `parts`),
 * and after how many perturbations in a row without gain each ends. */
enum { PHASES = 3, PLANS_MOST = 8 };
static const struct phase {
    int plans, parts, in_vain;
} phases[PHASES] = {{PLANS_MOST, 24, 0}, {4, 8, 400}, {2, 5, 10000}};

/* Reports the plan that lacks least memory. If more of either memory would suffice, it is the plan whose lack is the
 * smaller share of its budget. */
static void report_least(struct ah_search_report *report, const struct ah_least *least, const struct ah_budget *budget)
{
    const struct ah_plan *device = &least->device, *host = &least->within;
    const struct ah_plan *plan = host->switches.layers ? host : &least->host;
    if (device->switches.layers && host->switches.layers) {
        double device_excess = (double)device->device_peak_bytes / (double)budget->device_bytes;
        double host_excess = (double)host->host_peak_bytes / (double)budget->host_bytes;
        plan = device_excess <= host_excess ? device : host;
        bool disk_lacks = device_excess <= 1 && host_excess <= 1; /* no other memory would do */
        if (disk_lacks)
            plan = &least->disk;
        else if (plan == host)
            report->or_device_over_bytes = device->device_peak_bytes - budget->device_bytes;
        else
            report->or_host_over_bytes = host->host_peak_bytes - budget->host_bytes;
    } else if (device->switches.layers) {
        plan = device;
    }
    report->least = *plan;
    report->least.switches.prefetch_distance =
        plan->switches.prefetch_distance < 1 ? 1 : plan->switches.prefetch_distance;
    if (budget->device_bytes && plan->device_peak_bytes > budget->device_bytes)
        report->least_device_over_bytes = plan->device_peak_bytes - budget->device_bytes;
    if (budget->host_bytes && plan->host_peak_bytes > budget->host_bytes)
        report->least_host_over_bytes = plan->host_peak_bytes - budget->host_bytes;
    if (budget->disk_bytes && plan->disk_peak_bytes > budget->disk_bytes)
        report->least_disk_over_bytes = plan->disk_peak_bytes - budget->disk_bytes;
}

/* Refuses the budget: says how much memory the plan that lacks least needs and how fast it is, and how much of the
 * other memory would suffice. */
static int too_small(const struct ah_search_report *report, const struct ah_predictor *predictor,
                     const struct ah_budget *budget)
{
    char what[192], size[32];
    struct ah_plan plan = report->least;
    bool other_is_device = report->or_device_over_bytes > 0;
    int64_t other = other_is_device                  ? budget->device_bytes + report->or_device_over_bytes
                    : report->or_host_over_bytes > 0 ? budget->host_bytes + report->or_host_over_bytes
                                                     : 0;
    AH_TRY(ah__plan_predict(&plan, predictor));
    ah__snprintf(what, sizeof what, ", which would run c=%d p=%d o=%d at %.1f ms a step", plan.switches.checkpoint,
                 plan.switches.offload_params, plan.switches.offload_optimizer, (double)plan.step_ns / 1e6);
    size_t used = strlen(what);
    if (other)
        snprintf(what + used, sizeof what - used, ", or %s memory of at least %lld bytes (%s)",
                 other_is_device ? "device" : "host", (long long)other, ah_size_format(size, sizeof size, other));
    return ah__plan_over_budget(&plan, budget, what);
}

/* Returns the compute lane's least work under any plan, forward and backward: no step is shorter. */
static int64_t compute_floor_ns(const struct ah_predictor *predictor)
{
    struct ah_switches on_host = ah__predictor_lowest(predictor);
    on_host.offload_optimizer = on_host.layers;
    on_host.offload_params = ah__trained_on_host(&on_host);
    on_host.embedding_on_host = on_host.head_on_host = true;
    return ah__plan_lane_ns(&on_host, predictor, AH_LANE_COMPUTE);
}

/* ---- phases ------------------------------------------------------------------------------------------------------ */

/* The state of a search. */
struct search {
    struct ah_trials *trials;
    struct ah_workers *workers;
    struct ah_search_report *report;
    const struct ah_least *least;
    struct ah_plan *plans; /* the fastest first */
    int count;
    int64_t items, enough_ns; /* the effort, in simulated items; a step that is fast enough */
};

/* Sorts a few plans by time, stably. */
static void fastest_first(struct ah_plan *plans, int count)
{
    for (int i = 1; i < count; i++) {
        struct ah_plan plan = plans[i];
        int at = i;
        for (; at > 0 && ah__trial_score_ns(&plans[at - 1]) > ah__trial_score_ns(&plan); at--)
            plans[at] = plans[at - 1];
        plans[at] = plan;
    }
}

/* A batch of seeds, which are simulated at the same time. */
enum { BATCH = 16 };
struct batch {
    struct ah_plan *plans;
    int64_t below_ns; /* slower seeds are dropped */
    bool descends;
};

/* Simulates a seed with one chunk and with CHUNKS, and keeps the faster plan; step_ns 0: too slow. */
static int simulate_seed(void *context, int index, struct ah_trials *trials)
{
    enum { CHUNKS = 4, COST_TRIALS = 500 };
    const struct batch *batch = context;
    struct ah_plan *seed = &batch->plans[index], best = {.step_ns = 0};
    if (batch->descends)
        AH_TRY(ah__walk_by_cost(seed, trials, COST_TRIALS));
    for (int chunks = 1; chunks <= CHUNKS; chunks += CHUNKS - 1) {
        struct ah_plan plan = *seed;
        bool below;
        plan.switches.chunks = chunks;
        int64_t below_ns = best.step_ns ? ah__trial_below_ns(&plan, ah__trial_score_ns(&best)) : batch->below_ns;
        if (!ah__space_complete(&plan, AH_COMPLETES_RECOMPUTATION, trials->predictor, trials->budget))
            continue;
        ah__plan_bound(&plan, trials->predictor);
        if (ah__plan_policy_bound(&plan, trials->predictor) >= below_ns) {
            trials->bounded++;
            continue;
        }
        AH_TRY(ah__trial(&below, &plan.step_ns, trials, &plan, below_ns));
        if (below)
            best = plan;
    }
    *seed = best;
    return AH_OK;
}

/* Adds the seeds that are not much slower than the fastest so far. */
static int simulate_seeds(struct search *search, const struct ah_plan *seeds, int count, bool descends)
{
    enum { SLOWER_PARTS = 8, EFFORT_PARTS = 4 };
    int64_t most_items = search->trials->items + search->items / EFFORT_PARTS;
    for (int from = 0; from < count; from += BATCH) {
        struct ah_plan plans[BATCH];
        int batch_count = count - from < BATCH ? count - from : BATCH;
        int64_t fastest_ns = search->count ? search->plans[0].step_ns : INT64_MAX / 2;
        struct batch batch = {plans, fastest_ns + fastest_ns / SLOWER_PARTS, descends};
        if (search->trials->items >= most_items) {
            search->report->unseen += count - from;
            break;
        }
        for (int i = 0; i < batch_count; i++)
            plans[i] = seeds[from + i];
        AH_TRY(ah__workers_each(search->workers, simulate_seed, &batch, batch_count, search->trials));
        for (int i = 0; i < batch_count; i++)
            if (plans[i].step_ns)
                search->plans[search->count++] = plans[i];
        fastest_first(search->plans, search->count);
    }
    return AH_OK;
}

/* Returns how many blocks differ between two plans. The embedding counts as all blocks. */
static int distance(const struct ah_switches *a, const struct ah_switches *b)
{
    int embedding = a->embedding_on_host == b->embedding_on_host ? 0 : a->layers;
    return embedding + abs(a->checkpoint - b->checkpoint) + abs(a->offload_params - b->offload_params) +
           abs(a->offload_optimizer - b->offload_optimizer) + abs(a->staged - b->staged) +
           abs(a->offload_activations - b->offload_activations);
}

static bool is_close(const struct ah_plan *plan, const struct ah_plan *others, int count)
{
    enum { CLOSE_PARTS = 6 };
    const struct ah_switches *switches = &plan->switches;
    for (int i = 0; i < count; i++)
        if (distance(switches, &others[i].switches) <= switches->layers / CLOSE_PARTS)
            return true;
    return false;
}

/* Keeps the fastest plans, at most `most`; of plans that are close together, which mostly lead to the same result, only
 * one. */
static void choose(struct search *search, int most)
{
    int chosen = 0;
    fastest_first(search->plans, search->count);
    for (int i = 0; i < search->count && chosen < most; i++)
        if (!is_close(&search->plans[i], search->plans, chosen))
            search->plans[chosen++] = search->plans[i];
    search->count = chosen;
}

struct way {
    struct ah_plan *plans;
    struct ah_walk_options options;
};

static int walk_one(void *context, int index, struct ah_trials *trials)
{
    const struct way *way = context;
    struct ah_walk_options options = way->options;
    options.stream += (uint64_t)index;
    return ah__walk(&way->plans[index], trials, &options);
}

static int run_phase(struct search *search, const struct phase *phase)
{
    struct way way = {
        search->plans,
        {.items = search->items / phase->parts, .enough_ns = search->enough_ns, .in_vain = phase->in_vain}};
    way.options.stream = 1 + (uint64_t)(PLANS_MOST * (phase - phases));
    choose(search, phase->plans);
    AH_TRY(ah__workers_each(search->workers, walk_one, &way, search->count, search->trials));
    fastest_first(search->plans, search->count);
    return AH_OK;
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static int64_t items_of(const struct ah_predictor *predictor)
{
    int layers = predictor->partition->layers, effort = predictor->effort > 1 ? predictor->effort : 1;
    int blocks = layers > BLOCKS_WHOLE ? BLOCKS_WHOLE + (layers - BLOCKS_WHOLE) / DEEP_PARTS : layers;
    return (int64_t)effort * ITEMS_PER_BLOCK * (blocks > BLOCKS_LEAST ? blocks : BLOCKS_LEAST);
}

/* Finds the best plan from seeds and the warm start (layers 0: no warm start). */
static int find_from(struct ah_plan *best, struct search *search, const struct ah_plan *seeds, int count,
                     const struct ah_plan *warm)
{
    const struct ah_predictor *predictor = search->trials->predictor;
    AH_TRY(simulate_seeds(search, seeds, count < 32 ? count : 32, true));
    AH_TRY(simulate_seeds(search, seeds, count, false));
    if (search->count == 0) { /* only the smallest plan fits */
        bool below;
        search->plans[search->count++] = search->least->disk;
        ah__space_settle(&search->plans[0].switches, predictor);
        AH_TRY(ah__trial(&below, &search->plans[0].step_ns, search->trials, &search->plans[0], INT64_MAX));
    }
    if (warm->switches.layers)
        search->plans[search->count++] = *warm;
    for (int i = 0; i < PHASES; i++)
        AH_TRY(run_phase(search, &phases[i]));
    *best = search->plans[0];
    if (warm->switches.layers && warm->step_ns < best->step_ns)
        *best = *warm;
    if (predictor->partition->layers <= AH_EXHAUSTED_LAYERS)
        AH_TRY(ah__exhaust(&search->report->exhausted, best, search->workers, search->trials));
    return ah__trim(best, search->trials, warm->switches.layers ? warm->step_ns : INT64_MAX);
}

static int find(struct ah_plan *best, struct search *search, const struct ah_plan *warm)
{
    enum { MUST_GAIN = 2000 };
    struct ah_plan *seeds = NULL;
    int count;
    int64_t floor_ns = compute_floor_ns(search->trials->predictor);
    AH_TRY(ah__seeds_find(&seeds, &count, &search->report->seeds, search->workers, search->trials));
    search->enough_ns = floor_ns + floor_ns / MUST_GAIN;
    int status = ah__new(&search->plans, 2 * (size_t)count + 1, sizeof *search->plans);
    if (status == AH_OK)
        status = find_from(best, search, seeds, count, warm);
    ah__free(search->plans);
    ah__free(seeds);
    return status;
}

static int search_all(struct ah_plan *best, struct ah_search_report *report, struct ah_trials *trials,
                      const struct ah_least *least, const struct ah_search_options *options)
{
    struct search search = {.trials = trials, .report = report, .least = least, .items = items_of(trials->predictor)};
    struct ah_plan warm;
    bool below;
    AH_TRY(ah__warm_start_find(&warm, options ? options->warm_start : NULL, trials->predictor, trials->budget));
    if (warm.switches.layers)
        AH_TRY(ah__trial(&below, &warm.step_ns, trials, &warm, INT64_MAX));
    AH_TRY(ah__workers_new(&search.workers, trials->predictor));
    int status = find(best, &search, &warm);
    ah__workers_free(search.workers);
    return status;
}

static void find_least(struct ah_least *least, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    if (ah__policy_is_placed(predictor->policy))
        ah__placed_least(least, predictor, budget);
    else
        ah__least_find(least, predictor, budget);
}

int ah__plan_any_fits(bool *fits, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    struct ah_least least;
    find_least(&least, predictor, budget);
    *fits = ah__least_fits(&least, budget);
    return AH_OK;
}

static int no_plan(const struct ah_predictor *predictor)
{
    char text[AH_SWITCHES_TEXT];
    ah__fixed_text(text, &predictor->fixed);
    return ah__fail(AH_EINPUT, "--plan: found %s, which no plan of policy %s has", text, predictor->policy->name);
}

/* Finds the best plan with the predictor's number of rounds, or with any. AH_EBUDGET: no plan fits. */
static int answer(struct ah_plan *best, struct ah_search_report *report, const struct ah_predictor *predictor,
                  const struct ah_budget *budget, const struct ah_search_options *options)
{
    struct ah_trials trials = {.predictor = predictor, .budget = budget};
    struct ah_least least;
    find_least(&least, predictor, budget);
    if (predictor->fixed.mask && !least.host.switches.layers)
        return no_plan(predictor);
    if (!ah__least_fits(&least, budget)) {
        report_least(report, &least, budget);
        return too_small(report, predictor, budget);
    }
    int status = ah__policy_is_placed(predictor->policy) ? ah__placed_search(best, &report->seeds, &trials)
                                                         : search_all(best, report, &trials, &least, options);
    report->simulated += trials.simulated;
    report->bounded += trials.bounded;
    ah__trials_fini(&trials);
    return status == AH_OK ? ah__plan_predict(best, predictor) : status;
}

/* Returns true if a step of `ns` is longer than `other_ns` by at least one part of ROUNDS_GAIN. */
static bool is_longer(int64_t ns, int64_t other_ns)
{
    return ns > other_ns + other_ns / ROUNDS_GAIN;
}

/* Returns the time of all programs with nothing recomputed and nothing updated on the device: no step is shorter. */
static int64_t programs_ns(const struct ah_predictor *predictor)
{
    struct ah_switches switches = ah__predictor_lowest(predictor);
    switches.offload_optimizer = switches.layers;
    switches.embedding_on_host = switches.head_on_host = true;
    return ah__plan_lane_ns(&switches, predictor, AH_LANE_COMPUTE);
}

/* Searches among plans of one number of rounds, and replaces *best if the found plan gains enough. *step_ns: its step,
 * INT64_MAX if no plan fits. */
static int answer_rounds(struct ah_plan *best, int64_t *step_ns, struct ah_search_report *report,
                         const struct ah_predictor *predictor, const struct ah_budget *budget,
                         const struct ah_search_options *options, int passes)
{
    struct ah_predictor fixed = *predictor;
    struct ah_plan plan = {.step_ns = 0};
    bool fits;
    ah__fix(&fixed.fixed, AH_SWITCH_passes, passes);
    *step_ns = INT64_MAX;
    AH_TRY(ah__plan_any_fits(&fits, &fixed, budget));
    if (!fits)
        return AH_OK;
    AH_TRY(answer(&plan, report, &fixed, budget, options));
    *step_ns = ah__trial_score_ns(&plan);
    if (!best->switches.layers || is_longer(ah__trial_score_ns(best), *step_ns))
        *best = plan;
    return AH_OK;
}

/* Searches with one round, then twice as many until that is slower, or until even the programs alone are hardly faster:
 * each round adds transfers, and a smaller share of the activations gains nothing once little is recomputed. Also
 * searches with the number of rounds of a warm start. */
static int answer_any_rounds(struct ah_plan *best, struct ah_search_report *report,
                             const struct ah_predictor *predictor, const struct ah_budget *budget,
                             const struct ah_search_options *options)
{
    int most = ah__plan_most_passes(predictor), warm = 0;
    int64_t least_ns = programs_ns(predictor), before_ns, step_ns = INT64_MAX;
    if (options && options->warm_start)
        warm = ah__rounds(&options->warm_start->switches, most);
    if (warm > 0)
        AH_TRY(answer_rounds(best, &step_ns, report, predictor, budget, options, warm));
    step_ns = INT64_MAX;
    for (int passes = 1;; passes = 2 * passes < most ? 2 * passes : most) {
        before_ns = step_ns;
        if (passes != warm)
            AH_TRY(answer_rounds(best, &step_ns, report, predictor, budget, options, passes));
        bool slower = passes > warm && before_ns < INT64_MAX && step_ns >= before_ns;
        bool enough = best->switches.layers && !is_longer(best->step_ns, least_ns);
        if (slower || enough || passes == most)
            break;
    }
    report->exhausted = false; /* not every number of rounds was tried */
    return AH_OK;
}

int ah__plan_search_with(struct ah_plan *out, struct ah_search_report *report, const struct ah_predictor *predictor,
                         const struct ah_budget *budget, const struct ah_search_options *options)
{
    struct ah_plan best = {.step_ns = 0};
    *report = (struct ah_search_report){0};
    bool several = !ah__is_fixed(&predictor->fixed, AH_SWITCH_passes) && ah__plan_most_passes(predictor) > 1 &&
                   !ah__policy_is_placed(predictor->policy);
    bool fits = true;
    if (several)
        AH_TRY(ah__plan_any_fits(&fits, predictor, budget));
    int status = several && fits ? answer_any_rounds(&best, report, predictor, budget, options)
                                 : answer(&best, report, predictor, budget, options);
    if (status == AH_OK)
        *out = best;
    return status;
}

int ah__plan_search(struct ah_plan *out, struct ah_search_report *report, const struct ah_predictor *predictor,
                    const struct ah_budget *budget)
{
    return ah__plan_search_with(out, report, predictor, budget, NULL);
}

/* Simulates the resident plan, if it would fit, for a plan that offloads: the user should know the gain. */
static int compare_resident(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    struct ah_predictor any = *predictor;
    struct ah_plan resident = {
        .switches = ah__predictor_lowest(predictor),
        .workspace_bytes = plan->workspace_bytes,
    };
    any.fixed.mask = 0;
    if (!ah__offloads(&plan->switches) || ah__policy_is_placed(predictor->policy) ||
        !ah__plan_fit(&resident, &any, budget))
        return AH_OK;
    return ah__plan_step_ns(&plan->resident_ns, &resident, &any, AH_PREDICT_ITERATIONS);
}

int ah__plan_search_fixed(struct ah_plan *out, const struct ah_predictor *predictor, const struct ah_budget *budget,
                          const struct ah_search_options *options)
{
    struct ah_search_report report;
    struct ah_plan plan;
    AH_TRY(ah__plan_search_with(&plan, &report, predictor, budget, options));
    AH_TRY(compare_resident(&plan, predictor, budget));
    *out = plan;
    return AH_OK;
}

int ah_plan_search(struct ah_plan *out, const struct ah_partition *partition, const struct ah_profile *profile,
                   const struct ah_budget *budget, const char *policy, const struct ah_search_options *options)
{
    struct ah_predictor predictor;
    AH_TRY(ah__predictor_init(&predictor, partition, profile, policy));
    predictor.effort = options ? options->effort : 0;
    int status = ah__plan_fixed(&predictor.fixed, options ? options->fixed : NULL, partition->layers);
    if (status == AH_OK)
        status = ah__plan_check_fixed(&predictor);
    if (status == AH_OK)
        status = ah__plan_search_fixed(out, &predictor, budget, options);
    ah__predictor_fini(&predictor);
    return status;
}
