#include "plan/space.h"

#include "plan/fit.h"
#include "sched/switches.h"

/* ---- the switches ------------------------------------------------------------------------------------------------ */

static int most_blocks(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    (void)predictor;
    return switches->layers;
}

static int most_trained(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    (void)predictor;
    return ah__trained_blocks(switches);
}

static int most_params(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    (void)predictor;
    return ah__trained_on_host(switches);
}

/* Blocks on disk have a second place there. */
static int most_shadows(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    (void)predictor;
    return ah__trained_on_host(switches) - ah__trained_on_disk(switches);
}

static int most_staged(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    return ah__predictor_stages(predictor) ? ah__trained_on_host(switches) : 0;
}

static int most_leaving(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    (void)switches;
    return ah__plan_most_leaving(predictor);
}

static int most_selective(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    return ah__policy_uses(predictor->policy, AH_SWITCH_selective) ? ah__trained_blocks(switches) - switches->checkpoint
                                                                   : 0;
}

static int may_move(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    (void)switches;
    return ah__policy_uses(predictor->policy, AH_SWITCH_head_on_host);
}

static int may_share(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    return ah__plan_shares_ends(predictor) && ah__may_share_ends(switches);
}

static int most_chunks(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    return !ah__policy_uses(predictor->policy, AH_SWITCH_chunks) || !ah__offloads(switches) ? 1 : AH_CHUNKS_MOST;
}

static int most_overtaken(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    return predictor->policy->overtakes && switches->offload_optimizer > 0 ? switches->buffers : 0;
}

static int most_ahead(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    (void)predictor;
    return ah__plan_farthest_refetch(switches);
}

static int most_on_disk(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    return ah__predictor_spills(predictor) ? ah__switch_high(switches, AH_SWITCH_disk_blocks) : 0;
}

static int most_read_ahead(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    return ah__predictor_spills(predictor) ? ah__switch_high(switches, AH_SWITCH_disk_ahead) : 0;
}

const struct ah_row ah__rows[] = {
    {AH_SWITCH_offload_optimizer, AH_ROLE_PLACE, most_blocks},
    {AH_SWITCH_offload_params, AH_ROLE_PLACE, most_params},
    {AH_SWITCH_checkpoint, AH_ROLE_PLACE, most_trained},
    {AH_SWITCH_selective, AH_ROLE_PLACE, most_selective},
    {AH_SWITCH_staged, AH_ROLE_PLACE, most_staged},
    {AH_SWITCH_offload_activations, AH_ROLE_PLACE, most_leaving},
    {AH_SWITCH_buffers, AH_ROLE_PLACE, ah__plan_max_buffers},
    {AH_SWITCH_embedding_on_host, AH_ROLE_FLAG, may_move},
    {AH_SWITCH_head_on_host, AH_ROLE_FLAG, may_move},
    {AH_SWITCH_share_embedding_head, AH_ROLE_FLAG, may_share},
    {AH_SWITCH_chunks, AH_ROLE_ORDER, most_chunks},
    {AH_SWITCH_out_of_order, AH_ROLE_ORDER, most_overtaken},
    {AH_SWITCH_prefetch_distance, AH_ROLE_ORDER, most_ahead},
    {AH_SWITCH_shadows, AH_ROLE_REST, most_shadows},
    {AH_SWITCH_unsharded, AH_ROLE_REST, ah__plan_most_unsharded},
    {AH_SWITCH_device_sums, AH_ROLE_REST, ah__plan_most_sums},
    {AH_SWITCH_disk_blocks, AH_ROLE_SPILL, most_on_disk},
    {AH_SWITCH_disk_ahead, AH_ROLE_ORDER, most_read_ahead},
};
enum { DISK_ROWS = 2 }; /* the last */

int ah__row_count(const struct ah_predictor *predictor)
{
    return (int)AH_LENGTH(ah__rows) - (ah__predictor_spills(predictor) ? 0 : DISK_ROWS);
}

void ah__space_settle(struct ah_switches *switches, const struct ah_predictor *predictor)
{
    switches->passes = ah__plan_passes(predictor);
    for (size_t i = 0; i < AH_LENGTH(ah__rows); i++) {
        const struct ah_row *row = &ah__rows[i];
        int value = ah__switch_get(switches, row->at), most = row->most(switches, predictor);
        int low = ah__switch_table[row->at].low;
        value = value > most ? most : value;
        ah__switch_set(switches, row->at, value < low ? low : value);
    }
    if (predictor->fixed.mask)
        ah__fixed_set(switches, &predictor->fixed);
}

/* ---- completion -------------------------------------------------------------------------------------------------- */

/* Returns true if selective recomputation comes first: it frees a byte in less time than recomputing a whole block
 * does. */
static bool selective_pays(const struct ah_predictor *predictor)
{
    const struct ah_costs *costs = &predictor->profile->costs;
    const struct ah_code *block = &predictor->partition->code[AH_CLASS_BLOCK];
    double freed = (double)(block->saved_bytes - block->kept_bytes);
    return ah__policy_uses(predictor->policy, AH_SWITCH_selective) &&
           (double)costs->selective_ns[AH_CLASS_BLOCK] * (double)block->saved_bytes <
               (double)costs->recompute_ns[AH_CLASS_BLOCK] * freed;
}

int ah__space_levels(const struct ah_predictor *predictor)
{
    int trained = predictor->partition->layers - predictor->partition->frozen_blocks;
    return selective_pays(predictor) ? 2 * trained : trained;
}

void ah__space_set_level(struct ah_switches *switches, int level, const struct ah_predictor *predictor)
{
    int trained = ah__trained_blocks(switches), whole = selective_pays(predictor) ? level - trained : level;
    switches->checkpoint = whole > 0 ? whole : 0;
    switches->selective = !selective_pays(predictor) ? 0 : whole > 0 ? trained - whole : level;
}

static bool fits(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    ah__plan_spill(plan, predictor, budget);
    return ah__plan_within(plan, budget);
}

/* Sets the first level at which the plan with these buffers fits, or the last one; false: not even that fits. */
static bool least_recomputation(struct ah_plan *plan, const struct ah_predictor *predictor,
                                const struct ah_budget *budget)
{
    int low = 0, last = ah__space_levels(predictor), high = last;
    while (low < high) {
        int level = (low + high) / 2;
        ah__space_set_level(&plan->switches, level, predictor);
        if (fits(plan, predictor, budget))
            high = level;
        else
            low = level + 1;
    }
    ah__space_set_level(&plan->switches, high, predictor);
    return high < last || fits(plan, predictor, budget);
}

/* Offloads parameters of more blocks, as few as needed until the plan fits. False: it never fits. */
static bool more_params(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    enum { STEPS = 16 };
    struct ah_switches *switches = &plan->switches;
    int stride = 1 + switches->layers / STEPS;
    while (switches->offload_params < ah__trained_on_host(switches)) {
        int left = ah__trained_on_host(switches) - switches->offload_params;
        switches->offload_params += left < stride ? left : stride;
        int least = ah__plan_min_buffers(switches, predictor);
        switches->buffers = switches->buffers < least ? least : switches->buffers;
        if (fits(plan, predictor, budget))
            return true;
    }
    return false;
}

bool ah__space_complete(struct ah_plan *plan, enum ah_completion completion, const struct ah_predictor *predictor,
                        const struct ah_budget *budget)
{
    struct ah_switches *switches = &plan->switches;
    const struct ah_fixed *fixed = &predictor->fixed;
    bool recomputes = completion == AH_COMPLETES_RECOMPUTATION && !ah__is_fixed(fixed, AH_SWITCH_checkpoint) &&
                      !ah__is_fixed(fixed, AH_SWITCH_selective);
    bool farthest = switches->prefetch_distance == AH_AS_FAR_AS_IT_GOES,
         overtakes = switches->out_of_order == AH_AS_FAR_AS_IT_GOES;
    ah__space_settle(switches, predictor);
    int wanted = switches->buffers, least = ah__plan_min_buffers(switches, predictor);
    switches->shadows = switches->unsharded = switches->device_sums = 0; /* they take the memory that is left */
    if (recomputes) {
        switches->buffers = wanted < least ? least : wanted;
        if (!least_recomputation(plan, predictor, budget) && !ah__is_fixed(fixed, AH_SWITCH_offload_params))
            more_params(plan, predictor, budget);
    }
    ah__plan_spill(plan, predictor, budget);
    if (!ah__switches_valid(switches) || !ah__plan_fit(plan, predictor, budget))
        return false;
    least = ah__plan_min_buffers(switches, predictor);
    wanted = wanted < least ? least : wanted;
    switches->buffers = switches->buffers < wanted ? switches->buffers : wanted;
    switches->prefetch_distance = farthest ? AH_AS_FAR_AS_IT_GOES : switches->prefetch_distance;
    switches->out_of_order = overtakes ? AH_AS_FAR_AS_IT_GOES : switches->out_of_order;
    ah__space_settle(switches, predictor);
    ah__plan_fill(plan, predictor, budget);
    return !fixed->mask ||
           (ah__fixed_holds(fixed, switches) && ah__switches_valid(switches) &&
            switches->buffers >= ah__plan_min_buffers(switches, predictor) && ah__plan_within(plan, budget));
}
