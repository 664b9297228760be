/* The search for the best plan, scored by the simulator with the real scheduler.
 *
 * Candidates (candidates.c) are visited (visit.c) in the order of their lower bounds: some of each kind first, then
 * whichever come next, until no bound left is better than the best simulated time, so that what is skipped could not
 * have won, or until a limit. List scheduling has anomalies (more room can make a schedule longer) and deep models'
 * candidates are thinned, so better plans may lie between them: from the best plans of several kinds, and from a warm
 * start, those first that lie apart, the search goes some way downhill over all switches (improve.c, on all
 * cores by descents.c), and from the best few of those to the end, with leaps. All of that happens first without states
 * that stream, activations that leave and a place that embedding and head share, then with the second of these, then
 * also with the first, then with all three. Limits count simulated items, not time, so that the same input gives the
 * same plan. How far it stays behind a random search is measured by bench/search, how often more of something leads to
 * a slower plan by bench/monotone: both happen. */
#include "plan/search.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "plan/fit.h"
#include "plan/visit.h"
#include "plan/warm_start.h"
#include "sched/switches.h"

/* Items of candidates that are simulated at most. */
enum { VISIT_ITEMS = 250000 };
/* Rounds of going downhill: from how many plans, the fastest so far, and how far from each. */
enum { ROUNDS = 3 };
struct round {
    int plans;
    struct ah_effort effort;
};
/* Up to SHALLOW blocks: as few from the start as with which bench/search finds what it found with more, and many leaps,
 * so that bench/monotone finds little, of as many items as the deepest need for them: with a third of those one of the
 * 66 cases of bench/results/search-60s.txt was 1.8% behind. Up to DEEP blocks less, so that planning 96 takes no longer
 * than a person notices (bench/results/search.txt); of what was tried the least with steps about 0.1% or less behind
 * the best of them. Beyond that, where 500 may take seconds, further. */
enum { SHALLOW = 48, DEEP = 100, DEEPEST = 160 };
static const struct round rounds_shallow[ROUNDS] = {{12, {.items = 40000}},
                                                    {4, {.items = 160000}},
                                                    {4, {.items = 1800000, .leaps = 3200, .stream = 1}}},
                          rounds[ROUNDS] = {{6, {.items = 20000}},
                                            {2, {.items = 100000}},
                                            {2, {.items = 250000, .leaps = 1600, .stream = 1}}},
                          rounds_deep[ROUNDS] = {{12, {.items = 40000}},
                                                 {8, {.items = 160000}},
                                                 {4, {.items = 350000, .leaps = 1600, .stream = 1}}};

/* Plans of deep models are more, and each takes longer: so many more simulations, up to where that would take too
 * long. */
static int64_t items_of(const struct ah_predictor *predictor, int64_t items)
{
    int64_t layers = predictor->partition->layers;
    layers = layers < DEEP ? DEEP : layers > DEEPEST ? DEEPEST : layers;
    return items * layers * layers / (DEEP * DEEP);
}

static const struct round *rounds_of(const struct ah_predictor *predictor)
{
    int layers = predictor->partition->layers;
    return layers > DEEP ? rounds_deep : layers > SHALLOW ? rounds : rounds_shallow;
}

int ah__plan_choose_out_of_order(int64_t *step_ns, struct ah_plan *plan, const struct ah_predictor *predictor)
{
    int64_t with;
    struct ah_plan out_of_order = *plan;
    bool placed = ah__policy_is_placed(predictor->policy); /* the published rule, be it better or not */
    plan->switches.out_of_order = placed && predictor->policy->overtakes ? plan->switches.buffers : 0;
    AH_TRY(ah__plan_step_ns(step_ns, plan, predictor, AH_PREDICT_ITERATIONS));
    if (placed || !predictor->policy->overtakes || plan->switches.offload_optimizer == 0)
        return AH_OK;
    out_of_order.switches.out_of_order = out_of_order.switches.buffers;
    AH_TRY(ah__plan_step_ns(&with, &out_of_order, predictor, AH_PREDICT_ITERATIONS));
    if (with < *step_ns) {
        plan->switches.out_of_order = plan->switches.buffers;
        *step_ns = with;
    }
    return AH_OK;
}

/* Takes these switches for the best ones if the step is no longer than most_ns. */
static int keep(bool *kept, struct ah_plan *best, struct ah_trials *trials, const struct ah_switches *switches,
                int64_t most_ns)
{
    struct ah_plan plan = *best;
    plan.switches = *switches;
    if (plan.switches.out_of_order > plan.switches.buffers)
        plan.switches.out_of_order = plan.switches.buffers;
    AH_TRY(ah__trial(kept, &plan.step_ns, trials, &plan, most_ns + 1));
    if (*kept)
        *best = plan;
    return AH_OK;
}

/* The least of *value, one of `tried`, from `low` on with which the step is no longer than most_ns, if less is never
 * faster. */
static int trim_switch(struct ah_plan *best, struct ah_trials *trials, struct ah_switches *tried, int *value, int low,
                       int64_t most_ns)
{
    int high = *value;
    while (low < high) {
        bool kept;
        *value = low + (high - low) / 2;
        AH_TRY(keep(&kept, best, trials, tried, most_ns));
        if (kept)
            high = *value;
        else
            low = *value + 1;
    }
    *tried = best->switches;
    return AH_OK;
}

/* The same among powers of two. */
static int trim_by_doubling(struct ah_plan *best, struct ah_trials *trials, struct ah_switches *tried, int *value,
                            int64_t most_ns)
{
    bool kept = false;
    for (int power = 1, most = *value; power < most && !kept; power *= 2) {
        *value = power;
        AH_TRY(keep(&kept, best, trials, tried, most_ns));
    }
    *tried = best->switches;
    return AH_OK;
}

/* Buffers that are given back are room for more unsharded blocks, as far as those make the step shorter. */
static int trim_whole(struct ah_plan *best, struct ah_trials *trials, struct ah_switches *tried)
{
    struct ah_plan plan = *best;
    bool kept;
    ah__plan_fill(&plan, trials->predictor, trials->budget);
    if (plan.switches.unsharded > best->switches.unsharded)
        AH_TRY(keep(&kept, best, trials, &plan.switches, best->step_ns - 1));
    *tried = best->switches;
    return trim_switch(best, trials, tried, &tried->unsharded, 0, best->step_ns);
}

/* The fewest buffers, the least out_of_order and the shortest refetch distance that keep the best time, and the fewest
 * shadow states without which the step would be longer by one part of so many, or than known_ns, which `best` is not:
 * memory that buys nothing is not taken. */
static int trim(struct ah_plan *best, struct ah_trials *trials, int64_t known_ns)
{
    enum { MUST_GAIN = 5000 };
    struct ah_switches tried = best->switches;
    int64_t most_ns = best->step_ns;
    AH_TRY(trim_switch(best, trials, &tried, &tried.buffers, ah__plan_min_buffers(&tried, trials->predictor), most_ns));
    AH_TRY(trim_whole(best, trials, &tried));
    most_ns = best->step_ns;
    int64_t longer_ns = most_ns + most_ns / MUST_GAIN;
    longer_ns = longer_ns < known_ns ? longer_ns : known_ns;
    AH_TRY(trim_by_doubling(best, trials, &tried, &tried.out_of_order, most_ns));
    AH_TRY(trim_switch(best, trials, &tried, &tried.shadows, 0, longer_ns));
    return trim_by_doubling(best, trials, &tried, &tried.prefetch_distance, best->step_ns);
}

/* The plan that lacks least: where both memories could be traded for each other, the one that lacks the smaller part of
 * its budget. */
static void report_least(struct ah_search_report *report, const struct ah_candidates *candidates,
                         const struct ah_budget *budget)
{
    const struct ah_plan *device = &candidates->least, *host = &candidates->least_within;
    const struct ah_plan *least = host->switches.layers ? host : &candidates->least_host;
    if (candidates->least_bytes && host->switches.layers) {
        double device_excess = (double)device->device_peak_bytes / (double)budget->device_bytes;
        double host_excess = (double)host->host_peak_bytes / (double)budget->host_bytes;
        least = device_excess <= host_excess ? device : host;
    } else if (candidates->least_bytes) {
        least = device;
    }
    report->least = *least;
    if (budget->device_bytes && least->device_peak_bytes > budget->device_bytes)
        report->least_device_over_bytes = least->device_peak_bytes - budget->device_bytes;
    if (budget->host_bytes && least->host_peak_bytes > budget->host_bytes)
        report->least_host_over_bytes = least->host_peak_bytes - budget->host_bytes;
}

static int too_small(const struct ah_candidates *candidates, const struct ah_predictor *predictor,
                     const struct ah_budget *budget)
{
    char have[32], need[32];
    if (!candidates->least_bytes) {
        ah_size_format(have, sizeof have, budget->host_bytes);
        ah_size_format(need, sizeof need, candidates->least_host_bytes);
        return ah__fail(AH_EBUDGET, "host memory: found %s, expected at least %lld bytes (%s) for this model%s", have,
                        (long long)candidates->least_host_bytes, need,
                        budget->device_bytes ? " within this device memory or any other" : "");
    }
    struct ah_plan least = candidates->least;
    least.switches.prefetch_distance = least.switches.prefetch_distance < 1 ? 1 : least.switches.prefetch_distance;
    AH_TRY(ah__plan_predict(&least, predictor));
    ah_size_format(have, sizeof have, budget->device_bytes);
    ah_size_format(need, sizeof need, candidates->least_bytes);
    return ah__fail(
        AH_EBUDGET,
        "device memory: found %s, expected at least %lld bytes (%s), which would run c=%d p=%d o=%d at %.1f ms a step",
        have, (long long)candidates->least_bytes, need, least.switches.checkpoint, least.switches.offload_params,
        least.switches.offload_optimizer, (double)least.step_ns / 1e6);
}

int ah__plan_any_fits(bool *fits, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    struct ah_candidates candidates = {0};
    int status = ah__candidates_list(&candidates, predictor, budget);
    *fits = candidates.count > 0;
    ah__free(candidates.list);
    return status;
}

/* Where a search may stop: the compute lane's work with all on the device and nothing recomputed. What is updated on
 * the host, or stays whole, takes less. */
static int64_t compute_floor_ns(const struct ah_predictor *predictor)
{
    struct ah_plan resident = {
        .switches = {.layers = predictor->partition->layers, .world_size = ah__predictor_world_size(predictor)}};
    ah__plan_bound(&resident, predictor);
    return resident.bound_lane_ns;
}

/* Stable, for few. */
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

/* From where and with what the search goes downhill. */
enum { PLANS_MOST = AH_KINDS + 2 };
struct ways {
    const struct ah_starts *starts;
    const struct ah_plan *warm; /* layers 0: none */
    struct ah_trials *trials;
    struct ah_descents *descents;
    int64_t floor_ns; /* a plan that takes so much is good enough */
};

/* Blocks that are elsewhere. The embedding is worth several, and no small step of theirs makes up for it. */
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

/* The fastest come first, at most so many; of those that lie close together, which mostly lead to the same end, only
 * one, unless there are too few others. */
static int choose(struct ah_plan *plans, int count, int most)
{
    struct ah_plan close[PLANS_MOST];
    int chosen = 0, left = 0;
    fastest_first(plans, count);
    for (int i = 0; i < count && chosen < most; i++)
        if (is_close(&plans[i], plans, chosen))
            close[left++] = plans[i];
        else
            plans[chosen++] = plans[i];
    for (int i = 0; i < left && chosen < most; i++)
        plans[chosen++] = close[i];
    return chosen;
}

/* Where embedding and head may share a place, the plans in which they do, else where states may stream, those in which
 * they do, else where activations may leave, those in which they do: the others have had their turn. */
static bool has_turn(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    if (ah__plan_shares_ends(predictor))
        return switches->share_embedding_head;
    if (ah__predictor_stages(predictor))
        return !switches->share_embedding_head && switches->staged > 0;
    bool leaves = ah__plan_most_leaving(predictor) > 0;
    return !switches->share_embedding_head && switches->staged == 0 && leaves == (switches->offload_activations > 0);
}

/* Downhill from the best plan of each kind and the known plans that have their turn, and from `best` unless its layers
 * are 0: of many a little, of few more, of fewer still to the end. */
static int improve(struct ah_plan *best, const struct ways *ways, const struct ah_predictor *predictor)
{
    struct ah_plan plans[PLANS_MOST];
    int count = 0;
    if (best->switches.layers)
        plans[count++] = *best;
    for (int kind = 0; kind < AH_KINDS; kind++) {
        const struct ah_plan *start = &ways->starts->best[kind];
        if (start->switches.layers && has_turn(&start->switches, predictor))
            plans[count++] = *start;
    }
    if (ways->warm->switches.layers && has_turn(&ways->warm->switches, predictor))
        plans[count++] = *ways->warm;
    for (int i = 0; i < ROUNDS; i++) {
        const struct round *round = &rounds_of(predictor)[i];
        count = choose(plans, count, round->plans);
        struct ah_effort effort = round->effort;
        effort.items = items_of(predictor, effort.items);
        AH_TRY(ah__descents_run(ways->descents, plans, count, ways->trials, predictor, ways->floor_ns, &effort));
    }
    fastest_first(plans, count);
    if (count)
        *best = plans[0];
    return AH_OK;
}

/* First with states and activations where they are, then with activations that leave, then also with states that
 * stream, then also with a place that embedding and head share: so that none of these makes a plan worse. */
static int improve_turns(struct ah_plan *best, const struct ways *ways)
{
    const struct ah_predictor *predictor = ways->trials->predictor;
    const struct ah_policy *policy = predictor->policy;
    const uint32_t staged = 1U << AH_SWITCH_staged, activations = 1U << AH_SWITCH_offload_activations;
    struct ah_policy without = *policy;
    struct ah_predictor still = *predictor;
    still.policy = &without;
    without.without |= staged | activations | 1U << AH_SWITCH_share_embedding_head;
    AH_TRY(improve(best, ways, &still));
    without.without &= ~activations | policy->without;
    if (ah__plan_most_leaving(&still) > 0)
        AH_TRY(improve(best, ways, &still));
    without.without &= ~staged | policy->without;
    if (ah__predictor_stages(&still))
        AH_TRY(improve(best, ways, &still));
    return ah__plan_shares_ends(predictor) ? improve(best, ways, predictor) : AH_OK;
}

/* From the warm start to the end, though others be faster: with a faster part a schedule may have an anomaly that a
 * small step mends. */
static int improve_warm(struct ah_plan *best, const struct ways *ways)
{
    if (!ways->warm->switches.layers)
        return AH_OK;
    struct ah_plan plan = *ways->warm;
    const struct ah_predictor *predictor = ways->trials->predictor;
    struct ah_effort effort = rounds_of(predictor)[ROUNDS - 1].effort;
    effort.items = items_of(predictor, effort.items);
    AH_TRY(ah__descents_run(ways->descents, &plan, 1, ways->trials, predictor, ways->floor_ns, &effort));
    if (!best->switches.layers || ah__trial_score_ns(&plan) < ah__trial_score_ns(best))
        *best = plan;
    return AH_OK;
}

/* The fastest of the candidates, which a published system brings, or what the search finds below them and below the
 * warm start: at worst that. */
static int find(struct ah_plan *best, struct ah_search_report *report, struct ah_candidates *candidates,
                struct ah_trials *trials, const struct ah_plan *warm, struct ah_descents *descents)
{
    struct ah_starts starts = {.visited = {0}};
    const struct ah_predictor *predictor = trials->predictor;
    AH_TRY(ah__candidates_find(candidates, trials, descents));
    if (candidates->count == 0 && !warm->switches.layers) {
        report_least(report, candidates, trials->budget);
        return too_small(candidates, predictor, trials->budget);
    }
    bool whole = predictor->partition->layers <= AH_CANDIDATES_WHOLE_LAYERS;
    if (candidates->count)
        AH_TRY(ah__visit(&starts, report, candidates, trials, descents,
                         whole ? INT64_MAX : items_of(predictor, VISIT_ITEMS)));
    if (ah__policy_is_placed(predictor->policy)) {
        *best = *ah__starts_fastest(&starts);
        return AH_OK;
    }
    struct ways ways = {.starts = &starts,
                        .warm = warm,
                        .trials = trials,
                        .descents = descents,
                        .floor_ns = compute_floor_ns(predictor)};
    if (candidates->count && candidates->list[0].bound_ns < ways.floor_ns)
        ways.floor_ns = candidates->list[0].bound_ns;
    AH_TRY(improve_turns(best, &ways));
    AH_TRY(improve_warm(best, &ways));
    if (warm->switches.layers && (!best->switches.layers || warm->step_ns < best->step_ns))
        *best = *warm;
    report->simulated = trials->simulated;
    return trim(best, trials, warm->switches.layers ? warm->step_ns : INT64_MAX);
}

static int search(struct ah_plan *best, struct ah_search_report *report, struct ah_candidates *candidates,
                  struct ah_trials *trials, const struct ah_plan *warm)
{
    struct ah_descents *descents;
    AH_TRY(ah__descents_new(&descents, trials->predictor));
    int status = find(best, report, candidates, trials, warm, descents);
    ah__descents_free(descents);
    return status;
}

/* From a warm start, if there is one. */
static int answer(struct ah_plan *best, struct ah_search_report *report, struct ah_trials *trials,
                  const struct ah_search_options *options)
{
    struct ah_candidates candidates = {0};
    struct ah_plan warm;
    bool below;
    AH_TRY(ah__warm_start_find(&warm, options ? options->warm_start : NULL, trials->predictor, trials->budget));
    if (warm.switches.layers)
        AH_TRY(ah__trial(&below, &warm.step_ns, trials, &warm, INT64_MAX));
    *best = (struct ah_plan){.step_ns = 0};
    int status = search(best, report, &candidates, trials, &warm);
    ah__free(candidates.list);
    return status == AH_OK ? ah__plan_predict(best, trials->predictor) : status;
}

int ah__plan_search_with(struct ah_plan *out, struct ah_search_report *report, const struct ah_predictor *predictor,
                         const struct ah_budget *budget, const struct ah_search_options *options)
{
    struct ah_trials trials = {.predictor = predictor, .budget = budget};
    struct ah_plan best;
    *report = (struct ah_search_report){0};
    int status = answer(&best, report, &trials, options);
    ah__trials_fini(&trials);
    if (status == AH_OK)
        *out = best;
    return status;
}

int ah__plan_search(struct ah_plan *out, struct ah_search_report *report, const struct ah_predictor *predictor,
                    const struct ah_budget *budget)
{
    return ah__plan_search_with(out, report, predictor, budget, NULL);
}

/* Who offloads although all of it would fit should know what that gains. */
static int compare_resident(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    struct ah_plan resident = {
        .switches = {.layers = plan->switches.layers,
                     .world_size = ah__predictor_world_size(predictor),
                     .chunks = 1,
                     .prefetch_distance = 1},
        .workspace_bytes = plan->workspace_bytes,
    };
    if (!ah__offloads(&plan->switches) || ah__policy_is_placed(predictor->policy) ||
        !ah__plan_fit(&resident, predictor, budget))
        return AH_OK;
    return ah__plan_step_ns(&plan->resident_ns, &resident, predictor, AH_PREDICT_ITERATIONS);
}

int ah_plan_search_with(struct ah_plan *out, const struct ah_partition *partition, const struct ah_profile *profile,
                        const struct ah_budget *budget, const char *policy, const struct ah_search_options *options)
{
    struct ah_predictor predictor;
    struct ah_search_report report;
    AH_TRY(ah__predictor_init(&predictor, partition, profile, policy));
    struct ah_plan plan;
    int status = ah__plan_search_with(&plan, &report, &predictor, budget, options);
    if (status == AH_OK)
        status = compare_resident(&plan, &predictor, budget);
    ah__predictor_fini(&predictor);
    if (status == AH_OK)
        *out = plan;
    return status;
}

int ah_plan_search(struct ah_plan *out, const struct ah_partition *partition, const struct ah_profile *profile,
                   const struct ah_budget *budget, const char *policy)
{
    return ah_plan_search_with(out, partition, profile, budget, policy, NULL);
}
