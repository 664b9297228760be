#include "plan/seeds.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "plan/fit.h"
#include "plan/space.h"
#include "plan/walk.h"
#include "sched/switches.h"

/* Placements of embedding and head: bits for states of the embedding, then of the head, on the host, and for a shared
 * buffer. */
enum { PLACES = 8 };

static struct ah_plan placed(int places, const struct ah_predictor *predictor)
{
    struct ah_plan plan = {.switches = ah__predictor_lowest(predictor),
                           .workspace_bytes = predictor->profile->workspace_bytes};
    plan.switches.passes = ah__plan_passes(predictor);
    plan.switches.embedding_on_host = places & 1;
    plan.switches.head_on_host = places >> 1 & 1;
    plan.switches.share_embedding_head = places >> 2 & 1;
    return plan;
}

static bool possible(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    bool elsewhere = switches->embedding_on_host || switches->head_on_host;
    bool shares = !switches->share_embedding_head || ah__plan_shares_ends(predictor);
    const struct ah_fixed places = {
        predictor->fixed.mask &
            (1U << AH_SWITCH_embedding_on_host | 1U << AH_SWITCH_head_on_host | 1U << AH_SWITCH_share_embedding_head),
        predictor->fixed.at};
    return ah__switches_valid(switches) && shares && ah__fixed_holds(&places, switches) &&
           !(!ah__policy_uses(predictor->policy, AH_SWITCH_head_on_host) && elsewhere);
}

/* ---- the smallest plan ------------------------------------------------------------------------------------------- */

static bool smaller_on_disk(const struct ah_plan *plan, const struct ah_plan *than)
{
    if (plan->disk_peak_bytes != than->disk_peak_bytes)
        return plan->disk_peak_bytes < than->disk_peak_bytes;
    return plan->device_peak_bytes < than->device_peak_bytes;
}

void ah__least_note(struct ah_least *least, const struct ah_plan *plan, const struct ah_budget *budget)
{
    bool device = !budget->device_bytes || plan->device_peak_bytes <= budget->device_bytes;
    bool host = !budget->host_bytes || plan->host_peak_bytes <= budget->host_bytes;
    if (!least->host.switches.layers || plan->host_peak_bytes < least->host.host_peak_bytes)
        least->host = *plan;
    if (device && (!least->within.switches.layers || plan->host_peak_bytes < least->within.host_peak_bytes))
        least->within = *plan;
    if (host && (!least->device.switches.layers || plan->device_peak_bytes < least->device.device_peak_bytes))
        least->device = *plan;
    if (device && host && (!least->disk.switches.layers || smaller_on_disk(plan, &least->disk)))
        least->disk = *plan;
}

/* Sets the fixed switches, and the fewest buffers where those are free. False: no plan has them. */
static bool fixed_fit(struct ah_switches *switches, const struct ah_predictor *predictor)
{
    ah__fixed_set(switches, &predictor->fixed);
    int least = ah__plan_min_buffers(switches, predictor);
    if (!ah__is_fixed(&predictor->fixed, AH_SWITCH_buffers))
        switches->buffers = least > switches->out_of_order ? least : switches->out_of_order;
    return ah__switches_valid(switches) && switches->buffers >= least;
}

/* Notes a plan with as many blocks on disk as it needs: with most chunks, since the disk's buffers are smaller then;
 * with fewer while that is too much there, since each chunk is rounded up. */
static void note_spilled(struct ah_least *least, struct ah_plan *plan, const struct ah_predictor *predictor,
                         const struct ah_budget *budget)
{
    bool open = ah__predictor_spills(predictor) && !ah__is_fixed(&predictor->fixed, AH_SWITCH_chunks);
    plan->switches.chunks = open ? AH_CHUNKS_MOST : plan->switches.chunks;
    for (bool again = true; again; plan->switches.chunks /= 2) {
        ah__plan_spill(plan, predictor, budget);
        ah__least_note(least, plan, budget);
        again = open && plan->switches.chunks > 1 && budget->disk_bytes && plan->disk_peak_bytes > budget->disk_bytes;
    }
}

/* Notes the plans of one placement with no recomputation, with full and with all levels, each with no and with most
 * activations offloaded; if the number of passes is open, with one and with the most. */
static void note_placement(struct ah_least *least, struct ah_plan plan, const struct ah_predictor *predictor,
                           const struct ah_budget *budget)
{
    struct ah_switches *switches = &plan.switches;
    int levels = ah__space_levels(predictor), leaving = ah__plan_most_leaving(predictor);
    if (!possible(switches, predictor))
        return;
    switches->buffers = ah__plan_min_buffers(switches, predictor);
    const int passes[] = {switches->passes, ah__plan_most_passes(predictor)};
    for (int i = 0; i < (passes[1] > passes[0] ? 12 : 6); i++) {
        switches->passes = passes[i / 6];
        switches->offload_activations = i % 2 ? leaving : 0;
        ah__space_set_level(switches, i % 6 < 2 ? 0 : i % 6 < 4 ? ah__trained_blocks(switches) : levels, predictor);
        struct ah_plan fixed = plan;
        if (predictor->fixed.mask && !fixed_fit(&fixed.switches, predictor))
            continue;
        note_spilled(least, &fixed, predictor, budget);
    }
}

void ah__least_find(struct ah_least *out, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    *out = (struct ah_least){.device = {.step_ns = 0}};
    for (int places = 0; places < PLACES; places++) {
        struct ah_plan plan = placed(places, predictor);
        struct ah_switches *switches = &plan.switches;
        for (switches->offload_optimizer = 0; switches->offload_optimizer <= switches->layers;
             switches->offload_optimizer++) {
            int o = switches->offload_optimizer;
            const int most = ah__trained_on_host(switches), params[] = {0, o / 2, o - 1, o};
            for (size_t i = 0; i < AH_LENGTH(params); i++) {
                switches->offload_params = params[i] < most ? params[i] : most;
                note_placement(out, plan, predictor, budget);
            }
        }
    }
}

bool ah__least_fits(const struct ah_least *least, const struct ah_budget *budget)
{
    return least->disk.switches.layers && ah__plan_within(&least->disk, budget);
}

/* ---- seeds ------------------------------------------------------------------------------------------------------- */

/* Kinds of plans with one placement of embedding and head: no block, some or all offloaded blocks staged; activations
 * offloaded or not; parameters offloaded or not; few buffers or many. */
enum { KINDS = 3 * 2 * 2 * 2 };

struct seed {
    struct ah_plan plan; /* layers 0: no plan */
    int64_t cost_ns;
    int number; /* number of the placement and kind */
};

struct found {
    struct seed seed[PLACES * KINDS]; /* of each placement, of each kind */
    int64_t considered[PLACES];
};

static int kind_of(const struct ah_switches *switches, bool many)
{
    int streams = switches->staged == 0 ? 0 : switches->staged < ah__trained_on_host(switches) ? 1 : 2;
    return ((streams * 2 + (switches->offload_activations > 0)) * 2 + (switches->offload_params > 0)) * 2 + many;
}

static void consider(struct found *found, int places, struct ah_plan plan, bool many, const struct ah_trials *trials)
{
    enum { FEW = 2, MANY_PARTS = 4 };
    struct ah_switches *switches = &plan.switches;
    int least = ah__plan_min_buffers(switches, trials->predictor);
    switches->buffers = least + FEW + (many ? switches->layers / MANY_PARTS : 0);
    switches->prefetch_distance = switches->out_of_order = AH_AS_FAR_AS_IT_GOES;
    if (!ah__space_complete(&plan, AH_COMPLETES_RECOMPUTATION, trials->predictor, trials->budget))
        return;
    int64_t cost = ah__walk_cost_ns(&plan, trials->predictor);
    int number = places * KINDS + kind_of(switches, many);
    struct seed *seed = &found->seed[number];
    found->considered[places]++;
    if (!seed->plan.switches.layers || cost < seed->cost_ns)
        *seed = (struct seed){plan, cost, number};
}

/* Returns the index-th of `parts` + 1 numbers from 0 to `most`, evenly spaced. */
static int part_of(int most, int index, int parts)
{
    return (int)((int64_t)most * index / parts);
}

/* Considers all seeds of one placement of embedding and head, with evenly spaced numbers of blocks. */
static int place_seeds(void *context, int places, struct ah_trials *trials)
{
    enum { PARTS = 12, STREAM_PARTS = 3, LEAVING_PARTS = 2, PARAM_PARTS = 2, LIGHT_PARTS = 16 };
    const struct ah_predictor *predictor = trials->predictor;
    struct ah_plan plan = placed(places, predictor);
    struct ah_switches *switches = &plan.switches;
    int streams = ah__predictor_stages(predictor) ? STREAM_PARTS : 0;
    int leaving = ah__plan_most_leaving(predictor), leaves = leaving > 0 ? LEAVING_PARTS : 0;
    const struct ah_group *head = &predictor->partition->groups[switches->layers + 1];
    bool light =
        head->count * LIGHT_PARTS < ah__block_group(predictor->partition)->count; /* where a small head is placed
                                                                                     * matters little */
    if (!possible(switches, predictor) ||
        (light && !predictor->fixed.mask && switches->head_on_host != switches->embedding_on_host))
        return AH_OK;
    for (int i = 0; i <= PARTS; i++)
        for (int s = 0; s <= streams; s++)
            for (int a = 0; a <= leaves; a++)
                for (int p = 0; p < 2 * (PARAM_PARTS + 1); p++) {
                    switches->offload_optimizer = part_of(switches->layers, i, PARTS);
                    switches->offload_params = part_of(ah__trained_on_host(switches), p / 2, PARAM_PARTS);
                    switches->staged = part_of(ah__trained_on_host(switches), s, STREAM_PARTS);
                    switches->offload_activations = part_of(leaving, a, LEAVING_PARTS);
                    consider(context, places, plan, p % 2, trials);
                }
    return AH_OK;
}

static int by_cost(const void *left, const void *right)
{
    const struct seed *a = left, *b = right;
    bool has_a = a->plan.switches.layers, has_b = b->plan.switches.layers;
    if (has_a != has_b)
        return has_a ? -1 : 1;
    if (a->cost_ns != b->cost_ns)
        return a->cost_ns < b->cost_ns ? -1 : 1;
    return a->number - b->number;
}

int ah__seeds_find(struct ah_plan **out, int *count, int64_t *considered, struct ah_workers *workers,
                   struct ah_trials *trials)
{
    struct found *found;
    AH_TRY(ah__new(&found, 1, sizeof *found));
    int status = ah__workers_each(workers, place_seeds, found, PLACES, trials);
    if (status == AH_OK)
        status = ah__new(out, PLACES * KINDS, sizeof **out);
    if (status == AH_OK) {
        qsort(found->seed, PLACES * KINDS, sizeof *found->seed, by_cost);
        *count = 0;
        *considered = 0;
        for (int i = 0; i < PLACES * KINDS && found->seed[i].plan.switches.layers; i++)
            (*out)[(*count)++] = found->seed[i].plan;
        for (int i = 0; i < PLACES; i++)
            *considered += found->considered[i];
    }
    ah__free(found);
    return status;
}
