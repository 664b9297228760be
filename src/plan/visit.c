#include "plan/visit.h"

#include <stdlib.h>

#include "sched/switches.h"

/* So many are simulated at once: on up to so many cores all have work, and few are simulated that the others of the
 * same batch would have told to be too slow. */
enum { TOGETHER = 16 };

struct batch {
    const struct ah_candidate *candidates[TOGETHER];
    int kinds[TOGETHER];
    struct ah_plan best[TOGETHER]; /* of the kind: before, and then with the candidate */
    int count;
};

struct visit {
    struct ah_starts *starts;
    struct ah_candidates *candidates;
    struct ah_trials *trials;
    struct ah_descents *descents;
    int64_t most_items;
    int64_t fastest_ns;    /* of what was visited before the batch */
    int64_t open_bound_ns; /* nonzero: a candidate was left out because of most_items */
    struct batch batch;
};

static int by_bound(const void *left, const void *right)
{
    const struct ah_candidate *a = left, *b = right;
    if (a->bound_ns != b->bound_ns)
        return a->bound_ns < b->bound_ns ? -1 : 1;
    int64_t a_bytes = a->plan.device_peak_bytes, b_bytes = b->plan.device_peak_bytes;
    if (a_bytes != b_bytes)
        return a_bytes < b_bytes ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number); /* sorting keeps no order where memory is short */
}

static int kind_of(const struct ah_switches *switches)
{
    int staged = switches->staged, on_host = switches->offload_optimizer;
    int streams = staged == 0 ? 0 : staged == on_host ? 3 : 2 * staged <= on_host ? 1 : 2;
    bool few_pieces = staged > 0 && switches->chunks == AH_CANDIDATES_FEW_PIECES;
    int leaving = (3 * switches->offload_activations + switches->layers - 1) / switches->layers;
    return switches->embedding_on_host + 2 * switches->head_on_host + 4 * (switches->offload_params > 0) + 8 * streams +
           32 * leaving + 128 * switches->share_embedding_head + 256 * few_pieces + 512 * ah__gathers_ahead(switches);
}

/* With fetches that overtake each other or not, as is better. */
static int visit_one(void *context, int index, struct ah_trials *trials)
{
    struct batch *batch = context;
    const struct ah_policy *policy = trials->predictor->policy;
    struct ah_plan plan = batch->candidates[index]->plan, *best = &batch->best[index];
    bool placed = ah__policy_is_placed(policy), overtakes = policy->overtakes && plan.switches.offload_optimizer > 0;
    for (int out_of_order = placed ? overtakes : 0; out_of_order <= overtakes; out_of_order++) {
        bool below, first = best->switches.layers == 0;
        plan.switches.out_of_order = out_of_order ? plan.switches.buffers : 0;
        AH_TRY(ah__trial(&below, &plan.step_ns, trials, &plan,
                         first ? INT64_MAX : ah__trial_below_ns(&plan, ah__trial_score_ns(best))));
        if (below)
            *best = plan;
    }
    return AH_OK;
}

const struct ah_plan *ah__starts_fastest(const struct ah_starts *starts)
{
    const struct ah_plan *best = NULL;
    for (int kind = 0; kind < AH_KINDS; kind++) {
        const struct ah_plan *plan = &starts->best[kind];
        if (plan->switches.layers && (!best || ah__trial_score_ns(plan) < ah__trial_score_ns(best)))
            best = plan;
    }
    return best;
}

/* Simulates the batch and empties it; of two that are equally fast the one that came first is taken. */
static int batch_run(struct visit *visit)
{
    struct batch *batch = &visit->batch;
    for (int i = 0; i < batch->count; i++)
        batch->best[i] = visit->starts->best[batch->kinds[i]];
    AH_TRY(ah__descents_each(visit->descents, visit_one, batch, batch->count, visit->trials));
    for (int i = 0; i < batch->count; i++) {
        struct ah_plan *best = &visit->starts->best[batch->kinds[i]];
        const struct ah_plan *found = &batch->best[i];
        if (!best->switches.layers || ah__trial_score_ns(found) < ah__trial_score_ns(best))
            *best = *found;
    }
    batch->count = 0;
    visit->fastest_ns = ah__starts_fastest(visit->starts)->step_ns;
    return AH_OK;
}

/* Adds a candidate, and simulates the batch when that is full. */
static int batch_add(struct visit *visit, struct ah_candidate *candidate, int kind)
{
    struct batch *batch = &visit->batch;
    candidate->visited = true;
    visit->starts->visited[kind]++;
    batch->candidates[batch->count] = candidate;
    batch->kinds[batch->count++] = kind;
    return batch->count == TOGETHER ? batch_run(visit) : AH_OK;
}

/* One more of each kind of which `visited` were, or (-1) whichever come next, in the order of their bounds. */
static int visit_some(struct visit *visit, int visited)
{
    for (size_t i = 1; i < visit->candidates->count && !visit->open_bound_ns; i++) {
        struct ah_candidate *candidate = &visit->candidates->list[i];
        if (candidate->bound_ns >= visit->fastest_ns)
            break;
        int kind = kind_of(&candidate->plan.switches);
        if (candidate->visited || (visited >= 0 && visit->starts->visited[kind] != visited))
            continue;
        if (visit->trials->items >= visit->most_items)
            visit->open_bound_ns = candidate->bound_ns;
        else
            AH_TRY(batch_add(visit, candidate, kind));
    }
    return visit->batch.count ? batch_run(visit) : AH_OK;
}

/* Brings the candidate with the lowest bound to the front. */
static void lowest_first(struct ah_candidates *candidates)
{
    struct ah_candidate *list = candidates->list, *lowest = list, first = *list;
    for (size_t i = 1; i < candidates->count; i++)
        lowest = by_bound(&list[i], lowest) < 0 ? &list[i] : lowest;
    *list = *lowest;
    *lowest = first;
}

/* Forgets what cannot be faster than `best_ns`, all but the first. */
static void forget_slower(struct ah_candidates *candidates, int64_t best_ns)
{
    size_t kept = 1;
    for (size_t i = 1; i < candidates->count; i++)
        if (candidates->list[i].bound_ns < best_ns)
            candidates->list[kept++] = candidates->list[i];
    candidates->count = kept;
}

/* Few are left to be put in order when the first has been simulated. One of each kind, then another of each, and so on:
 * those of one batch are of different kinds, so that each need only be simulated as far as the best of its kind. */
int ah__visit(struct ah_starts *starts, struct ah_search_report *report, struct ah_candidates *candidates,
              struct ah_trials *trials, struct ah_descents *descents, int64_t most_items)
{
    enum { OF_EACH_KIND = 12 };
    struct visit visit = {
        .starts = starts, .candidates = candidates, .trials = trials, .descents = descents, .most_items = most_items};
    report->candidates = (int64_t)candidates->count;
    lowest_first(candidates);
    AH_TRY(batch_add(&visit, &candidates->list[0], kind_of(&candidates->list[0].plan.switches)));
    AH_TRY(batch_run(&visit));
    forget_slower(candidates, visit.fastest_ns);
    qsort(candidates->list + 1, candidates->count - 1, sizeof *candidates->list, by_bound);
    for (int visited = 0; visited < OF_EACH_KIND; visited++)
        AH_TRY(visit_some(&visit, visited));
    AH_TRY(visit_some(&visit, -1));
    report->open_bound_ns = visit.open_bound_ns;
    return AH_OK;
}
