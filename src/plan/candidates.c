#include "plan/candidates.h"

#include "base/alloc.h"
#include "plan/fit.h"
#include "plan/levels.h"
#include "sched/switches.h"

enum { GATHERED_AHEAD = 2 };
enum { MANY = 40 }; /* blocks: deeper models have fewer candidates */

static int candidate_add(struct ah_candidates *candidates, const struct ah_plan *plan,
                         const struct ah_predictor *predictor)
{
    AH_TRY(ah__grow(&candidates->list, &candidates->capacity, candidates->count + 1, sizeof *candidates->list));
    struct ah_candidate *added = &candidates->list[candidates->count++];
    added->plan = *plan;
    added->number = candidates->count;
    added->visited = false;
    ah__plan_bound(&added->plan, predictor);
    added->bound_ns = ah__plan_policy_bound(&added->plan, predictor);
    return AH_OK;
}

/* Every number of buffers up to the plan's, every refetch distance. */
static int candidates_whole(struct ah_candidates *candidates, const struct ah_plan *fitted,
                            const struct ah_predictor *predictor)
{
    struct ah_plan plan = *fitted;
    struct ah_switches *switches = &plan.switches;
    int farthest = ah__plan_farthest_refetch(switches), most = switches->buffers;
    int least = ah__plan_min_buffers(switches, predictor);
    for (switches->buffers = least; switches->buffers <= most; switches->buffers++)
        for (switches->prefetch_distance = 1; switches->prefetch_distance <= farthest; switches->prefetch_distance++)
            AH_TRY(candidate_add(candidates, &plan, predictor));
    return AH_OK;
}

static void note_least(struct ah_candidates *candidates, const struct ah_plan *plan, const struct ah_budget *budget)
{
    if (!candidates->least_host_bytes || plan->host_peak_bytes < candidates->least_host_bytes) {
        candidates->least_host_bytes = plan->host_peak_bytes;
        candidates->least_host = *plan;
    }
    bool within = !budget->device_bytes || plan->device_peak_bytes <= budget->device_bytes;
    const struct ah_plan *before = &candidates->least_within;
    if (within && (!before->switches.layers || plan->host_peak_bytes < before->host_peak_bytes))
        candidates->least_within = *plan;
    if (budget->host_bytes && plan->host_peak_bytes > budget->host_bytes)
        return;
    if (candidates->least_bytes && plan->device_peak_bytes >= candidates->least_bytes)
        return;
    candidates->least_bytes = plan->device_peak_bytes;
    candidates->least = *plan;
}

/* All (c, selective, staged, a) of one (p, o, embedding, head), every number of buffers and every refetch distance. */
static int candidates_exhausted(struct ah_candidates *candidates, struct ah_plan plan,
                                const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    struct ah_switches *switches = &plan.switches;
    int streams = ah__predictor_stages(predictor) ? switches->offload_optimizer : 0;
    int leaving = ah__plan_most_leaving(predictor);
    for (switches->checkpoint = 0; switches->checkpoint <= switches->layers; switches->checkpoint++) {
        int most =
            ah__policy_uses(predictor->policy, AH_SWITCH_selective) ? switches->layers - switches->checkpoint : 0;
        for (switches->selective = 0; switches->selective <= most; switches->selective++)
            for (switches->staged = 0; switches->staged <= streams; switches->staged++)
                for (switches->offload_activations = 0; switches->offload_activations <= leaving;
                     switches->offload_activations++)
                    if (ah__plan_fit(&plan, predictor, budget))
                        AH_TRY(candidates_whole(candidates, &plan, predictor));
                    else
                        note_least(candidates, &plan, budget);
    }
    return AH_OK;
}

/* The first step that may free so many bytes, or the last one; at least the next one. Negative: there is none. */
static int step_that_frees(int64_t bytes, int step, const struct ah_levels *levels,
                           const struct ah_partition *partition)
{
    if (step == levels->last)
        return -1;
    do
        bytes -= ah__levels_freed(levels, step++, partition);
    while (bytes > 0 && step < levels->last);
    return step;
}

/* Some (c, selective) of one (p, o, embedding, head): each has room for more buffers than the one before, of
 * deep models for a good part more. */
static int candidates_thinned(struct ah_candidates *candidates, struct ah_plan plan,
                              const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    enum { PARTS_OF_SLOTS = 6 };
    struct ah_switches *switches = &plan.switches;
    struct ah_levels levels;
    int more_buffers = switches->layers > MANY ? 1 + switches->layers / PARTS_OF_SLOTS : 1;
    int buffers_before = 0;
    int64_t more_bytes = more_buffers * ah__layout_buffer_bytes(predictor->partition, switches);
    ah__levels_init(&levels, predictor);
    for (int step = 0; step >= 0;) {
        ah__levels_set(switches, &levels, step);
        bool fits = ah__plan_fit(&plan, predictor, budget);
        int64_t missing_bytes = plan.device_peak_bytes - budget->device_bytes + (fits ? more_bytes : 0);
        step = step_that_frees(missing_bytes, step, &levels, predictor->partition);
        if (!fits) {
            note_least(candidates, &plan, budget);
            continue;
        }
        if (switches->buffers <= buffers_before)
            continue;
        buffers_before = switches->buffers;
        switches->prefetch_distance = ah__plan_farthest_refetch(switches);
        AH_TRY(candidate_add(candidates, &plan, predictor));
        if (switches->buffers >= ah__plan_max_buffers(switches, predictor))
            break;
    }
    int most = ah__plan_most_leaving(predictor);
    if (buffers_before > 0 || switches->offload_activations == most)
        return AH_OK;
    switches->offload_activations = most; /* all recompute, and even their inputs wait on the host */
    switches->prefetch_distance = ah__plan_farthest_refetch(switches);
    if (ah__plan_fit(&plan, predictor, budget))
        return candidate_add(candidates, &plan, predictor);
    note_least(candidates, &plan, budget);
    return AH_OK;
}

bool ah__candidate_placed(struct ah_plan *out, const struct ah_predictor *predictor, int index)
{
    struct ah_plan plan = {.workspace_bytes = predictor->profile->workspace_bytes};
    struct ah_switches *switches = &plan.switches;
    if (!predictor->policy->placement(switches, predictor->partition->layers, index))
        return false;
    switches->layers = predictor->partition->layers;
    switches->world_size = ah__predictor_world_size(predictor);
    switches->chunks = 1;
    int least = ah__plan_min_buffers(switches, predictor);
    if (switches->world_size > 1) /* nothing stays whole: what gathering needs, and one block ahead */
        switches->buffers = least + GATHERED_AHEAD;
    switches->buffers = switches->buffers > least ? switches->buffers : least; /* half-precision copies */
    ah__plan_measure(&plan, predictor);
    *out = plan;
    return true;
}

/* A published system's own placements. */
static int candidates_placed(struct ah_candidates *candidates, const struct ah_predictor *predictor,
                             const struct ah_budget *budget)
{
    struct ah_plan plan;
    const struct ah_switches *switches = &plan.switches;
    struct ah_plan last[2] = {0};   /* without, with checkpointing: the last that fits but does not suffice */
    bool found[2] = {false, false}; /* one that does */
    for (int i = 0; ah__candidate_placed(&plan, predictor, i); i++) {
        int recomputes = switches->checkpoint > 0;
        bool suffices = !predictor->policy->suffices || predictor->policy->suffices(switches, &predictor->costs);
        if (!ah__plan_within(&plan, budget)) {
            note_least(candidates, &plan, budget);
        } else if (!predictor->policy->first_fit || (suffices && !found[recomputes])) {
            found[recomputes] = true;
            AH_TRY(candidate_add(candidates, &plan, predictor));
        } else if (!found[recomputes] && (!last[recomputes].switches.layers ||
                                          last[recomputes].switches.offload_optimizer != switches->offload_optimizer)) {
            last[recomputes] = plan; /* of those that differ in buffers alone the one with the most */
        }
    }
    for (int recomputes = 0; recomputes < 2; recomputes++)
        if (!found[recomputes] && last[recomputes].switches.layers)
            AH_TRY(candidate_add(candidates, &last[recomputes], predictor));
    return AH_OK;
}

/* The next of some numbers from 0 to `most`: about so many of them, evenly spread, the last one among them; beyond most
 * after that. */
static int next_of(int at, int most, int many)
{
    int stride = (most + many - 1) / many;
    return at == most || stride < 1 ? most + 1 : at + stride < most ? at + stride : most;
}

/* All (c, selective) that matter of one (p, o, a, embedding, head): in unsharded blocks, unless all of those are known;
 * in many pieces, which may be far faster where the embedding is on the host, with none or parts of those o blocks
 * streaming; and where activations leave, for which the link is needed, too, parts that stream also in few. */
static int candidates_cut(struct ah_candidates *candidates, struct ah_plan plan, const struct ah_predictor *predictor,
                          const struct ah_budget *budget, bool known)
{
    enum { PARTS = 4, PIECES = 8 };
    struct ah_switches *switches = &plan.switches;
    int most = ah__predictor_stages(predictor) ? switches->offload_optimizer : 0;
    if (!known)
        AH_TRY(candidates_thinned(candidates, plan, predictor, budget));
    if (switches->offload_optimizer == 0 || predictor->policy->uses == AH_USE_PAPER)
        return AH_OK;
    for (; switches->staged <= most; switches->staged = next_of(switches->staged, most, PARTS)) {
        switches->chunks = PIECES;
        AH_TRY(candidates_thinned(candidates, plan, predictor, budget));
        if (switches->staged == 0 || switches->offload_activations == 0)
            continue;
        switches->chunks = AH_CANDIDATES_FEW_PIECES;
        AH_TRY(candidates_thinned(candidates, plan, predictor, budget));
    }
    return AH_OK;
}

/* Places of embedding and head: bits say whether states of the one and of the other are on the host, and whether both
 * share a place. */
enum { PLACES_MOST = 8 };
struct spread {
    const struct ah_predictor *predictor;
    const struct ah_budget *budget;
    int many, leaving;
    struct ah_candidates found[PLACES_MOST];
};

/* Of both p and o about `many`, with the activations of `leaving` blocks on the host and these places. */
static int candidates_placed_so(void *context, int places, struct ah_trials *trials)
{
    struct spread *spread = context;
    const struct ah_predictor *predictor = spread->predictor;
    int many = spread->many;
    (void)trials;
    int layers = predictor->partition->layers;
    struct ah_plan plan = {
        .switches = {.layers = layers,
                     .world_size = ah__predictor_world_size(predictor),
                     .chunks = 1,
                     .offload_activations = spread->leaving},
        .workspace_bytes = predictor->profile->workspace_bytes,
    };
    struct ah_switches *switches = &plan.switches;
    struct ah_candidates *found = &spread->found[places];
    bool whole = layers <= AH_CANDIDATES_WHOLE_LAYERS;
    for (int o = 0; o <= layers; o = next_of(o, layers, many))
        for (int p = 0; p <= o; p = next_of(p, o, many)) {
            switches->offload_optimizer = o;
            switches->offload_params = p;
            switches->embedding_on_host = places & 1;
            switches->head_on_host = (places & 2) != 0;
            switches->share_embedding_head = (places & 4) != 0;
            if (!ah__switches_valid(switches))
                continue;
            if (whole)
                AH_TRY(candidates_exhausted(found, plan, predictor, spread->budget));
            AH_TRY(candidates_cut(found, plan, predictor, spread->budget, whole));
        }
    return AH_OK;
}

/* Behind what was found before, as if it had been found in that order. */
static int candidates_add(struct ah_candidates *candidates, const struct ah_candidates *found,
                          const struct ah_budget *budget)
{
    const struct ah_plan *const least[] = {&found->least_host, &found->least_within, &found->least};
    AH_TRY(
        ah__grow(&candidates->list, &candidates->capacity, candidates->count + found->count, sizeof *candidates->list));
    for (size_t i = 0; i < found->count; i++) {
        struct ah_candidate *added = &candidates->list[candidates->count++];
        *added = found->list[i];
        added->number = candidates->count;
    }
    for (size_t i = 0; i < AH_LENGTH(least); i++)
        if (least[i]->switches.layers)
            note_least(candidates, least[i], budget);
    return AH_OK;
}

/* All places at once. */
static int candidates_spread(struct ah_candidates *candidates, struct ah_trials *trials, struct ah_descents *descents,
                             int many, int leaving)
{
    const struct ah_predictor *predictor = trials->predictor;
    struct spread spread = {.predictor = predictor, .budget = trials->budget, .many = many, .leaving = leaving};
    int all = predictor->policy->uses == AH_USE_PAPER ? 1
              : ah__plan_shares_ends(predictor)       ? PLACES_MOST
                                                      : PLACES_MOST / 2;
    int status = ah__descents_each(descents, candidates_placed_so, &spread, all, trials);
    for (int places = 0; places < all; places++) {
        if (status == AH_OK)
            status = candidates_add(candidates, &spread.found[places], trials->budget);
        ah__free(spread.found[places].list);
    }
    return status;
}

/* Where nothing fits among those that are looked at first, something may between them. */
static int candidates_all(struct ah_candidates *candidates, struct ah_trials *trials, struct ah_descents *descents)
{
    enum { MANY_OF_MORE = 20, MANY_LEAVING = 8, PARTS = 3 };
    int layers = trials->predictor->partition->layers, most = ah__plan_most_leaving(trials->predictor);
    AH_TRY(candidates_spread(candidates, trials, descents, layers > MANY ? MANY_OF_MORE : MANY, 0));
    if (layers <= AH_CANDIDATES_WHOLE_LAYERS)
        return AH_OK;
    for (int leaving = next_of(0, most, PARTS); leaving <= most; leaving = next_of(leaving, most, PARTS))
        AH_TRY(candidates_spread(candidates, trials, descents, MANY_LEAVING, leaving));
    if (candidates->count || layers <= MANY)
        return AH_OK;
    return candidates_spread(candidates, trials, descents, layers, 0);
}

int ah__candidates_find(struct ah_candidates *candidates, struct ah_trials *trials, struct ah_descents *descents)
{
    const struct ah_predictor *predictor = trials->predictor;
    return ah__policy_is_placed(predictor->policy) ? candidates_placed(candidates, predictor, trials->budget)
                                                   : candidates_all(candidates, trials, descents);
}

int ah__candidates_list(struct ah_candidates *candidates, const struct ah_predictor *predictor,
                        const struct ah_budget *budget)
{
    struct ah_trials trials = {.predictor = predictor, .budget = budget};
    struct ah_descents *descents;
    AH_TRY(ah__descents_new(&descents, predictor));
    int status = ah__candidates_find(candidates, &trials, descents);
    ah__trials_fini(&trials);
    ah__descents_free(descents);
    return status;
}
