#include "plan/fit.h"

#include "plan/config.h"

int ah__plan_min_buffers(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    struct ah_sched_config config;
    ah__sched_config_of(&config, switches, predictor->partition, predictor->policy);
    return ah__sched_min_buffers(&config);
}

/* Buffers for all parameters and all gradients at once are the most that are useful. Blocks optimized on the device
 * share a few; several ranks need enough to gather ahead. */
int ah__plan_max_buffers(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    struct ah_switches on_device = {.layers = switches->layers - switches->offload_optimizer,
                                    .world_size = switches->world_size};
    on_device.frozen_blocks = on_device.layers - ah__trained_on_device(switches);
    int shared = switches->offload_optimizer < switches->layers ? ah__plan_min_buffers(&on_device, predictor) : 0;
    bool own_gradients = ah__blocks_keep_gradients(predictor->partition);
    int both = own_gradients ? 1 : 2; /* only parameters, if gradients have memory of their own */
    int least = ah__plan_min_buffers(switches, predictor), most = both * switches->offload_optimizer + shared;
    int ahead = ah__world_size(switches) > 1 ? ah__buffers_to_gather_ahead(own_gradients) : 0;
    most = most > ahead ? most : ahead;
    return most > least ? most : least;
}

int ah__plan_most_leaving(const struct ah_predictor *predictor)
{
    int most = predictor->partition->layers - predictor->partition->frozen_blocks - AH_ACTIVATION_BUFFERS;
    bool may = ah__policy_uses(predictor->policy, AH_SWITCH_offload_activations) &&
               !predictor->count_bytes; /* no published system has it */
    return may && most > 0 ? most : 0;
}

int ah__plan_most_passes(const struct ah_predictor *predictor)
{
    int most = ah__micro_batches(predictor->partition);
    bool may = ah__policy_uses(predictor->policy, AH_SWITCH_passes) && ah__predictor_world_size(predictor) == 1 &&
               !predictor->count_bytes; /* no published system has it */
    if (ah__is_fixed(&predictor->fixed, AH_SWITCH_passes))
        return predictor->fixed.at.passes;
    return may ? most < AH_SCHED_MOST_PASSES ? most : AH_SCHED_MOST_PASSES : 1;
}

int ah__plan_passes(const struct ah_predictor *predictor)
{
    return ah__is_fixed(&predictor->fixed, AH_SWITCH_passes) ? predictor->fixed.at.passes : 1;
}

int ah__plan_most_unsharded(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    bool may = ah__policy_uses(predictor->policy, AH_SWITCH_unsharded) &&
               !predictor->count_bytes; /* no published system has it */
    return may && ah__world_size(switches) > 1 ? switches->layers - switches->offload_optimizer : 0;
}

int ah__plan_most_sums(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    bool may = ah__policy_uses(predictor->policy, AH_SWITCH_device_sums);
    bool any = ah__plan_rounds(switches, predictor) > 1 && ah__block_group(predictor->partition)->trained > 0;
    return may && any ? ah__trained_blocks(switches) : 0;
}

bool ah__plan_shares_ends(const struct ah_predictor *predictor)
{
    return ah__policy_uses(predictor->policy, AH_SWITCH_share_embedding_head) && !predictor->count_bytes &&
           ah__plan_has_ends(predictor->partition);
}

int ah__plan_farthest_refetch(const struct ah_switches *switches)
{
    return switches->offload_params ? ah__trained_on_host(switches) + 1 : 1;
}

bool ah__plan_within(const struct ah_plan *plan, const struct ah_budget *budget)
{
    return (!budget->device_bytes || plan->device_peak_bytes <= budget->device_bytes) &&
           (!budget->host_bytes || plan->host_peak_bytes <= budget->host_bytes) &&
           (!budget->disk_bytes || plan->disk_peak_bytes <= budget->disk_bytes);
}

/* Writes "host memory: found 60.0 GiB, expected at least 96066748416 bytes (89.5 GiB)" for each exceeded budget. */
static void say_needs(char *text, size_t size, const struct ah_plan *plan, const struct ah_budget *budget)
{
    const struct {
        const char *name;
        int64_t have, need;
    } memories[] = {{"device", budget->device_bytes, plan->device_peak_bytes},
                    {"host", budget->host_bytes, plan->host_peak_bytes},
                    {"disk", budget->disk_bytes, plan->disk_peak_bytes}};
    size_t used = 0;
    *text = 0;
    for (size_t i = 0; i < AH_LENGTH(memories); i++) {
        char have[32], need[32];
        if (!memories[i].have || memories[i].need <= memories[i].have)
            continue;
        ah_size_format(have, sizeof have, memories[i].have);
        ah_size_format(need, sizeof need, memories[i].need);
        used += (size_t)snprintf(text + used, size - used, "%s%s %s: found %s, expected at least %lld bytes (%s)",
                                 used ? ", and " : "", memories[i].name, i < 2 ? "memory" : "space", have,
                                 (long long)memories[i].need, need);
    }
}

int ah__plan_over_budget(const struct ah_plan *plan, const struct ah_budget *budget, const char *what)
{
    char needs[256];
    say_needs(needs, sizeof needs, plan, budget);
    return ah__fail(AH_EBUDGET, "%s%s", needs, what);
}

/* Adds as many shadow states as are useful and fit into host memory; only for plans whose updates wait for the norm. */
static void shadows_fit(struct ah_plan *plan, const struct ah_partition *partition, const struct ah_budget *budget)
{
    struct ah_switches *switches = &plan->switches;
    int64_t shadows = ah__trained_on_host(switches) - ah__trained_on_disk(switches);
    int64_t set_bytes = ah__layout_set_bytes(partition, switches);
    if (set_bytes == 0) /* nothing of a block is trained */
        return;
    if (budget->host_bytes && shadows > (budget->host_bytes - plan->host_peak_bytes) / set_bytes)
        shadows = (budget->host_bytes - plan->host_peak_bytes) / set_bytes;
    switches->shadows = (int)shadows;
    plan->host_peak_bytes += shadows * set_bytes;
}

/* Adds as many unsharded blocks as fit. The plan has none yet, and its peaks are known. */
static void unsharded_fit(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    int64_t bytes = ah__layout_whole_bytes(predictor->partition, &plan->switches);
    int64_t whole = ah__plan_most_unsharded(&plan->switches, predictor);
    int64_t room = budget->device_bytes - plan->device_peak_bytes;
    if (budget->device_bytes && whole * bytes > room)
        whole = room > 0 ? room / bytes : 0;
    plan->switches.unsharded = (int)whole;
    plan->device_peak_bytes += whole * bytes;
}

/* Leaves as many sums on the device as fit. The plan has none there yet, and its peaks are known. */
static void sums_fit(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    int most = ah__plan_most_sums(&plan->switches, predictor);
    int64_t room = budget->device_bytes - plan->device_peak_bytes;
    if (most == 0)
        return;
    int64_t bytes = ah__layout_sum_bytes(predictor->partition);
    if (budget->device_bytes && most * bytes > room)
        most = room > 0 ? (int)(room / bytes) : 0;
    plan->switches.device_sums = most;
    ah__plan_measure(plan, predictor);
}

/* Adds as many buffers as are useful and fit. The plan has the fewest, and its peaks are known. */
static void buffers_add(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    struct ah_switches *switches = &plan->switches;
    int64_t more = ah__plan_max_buffers(switches, predictor) - switches->buffers;
    int64_t bytes = ah__layout_buffer_bytes(predictor->partition, switches);
    int64_t room = budget->device_bytes - plan->device_peak_bytes;
    if (budget->device_bytes && more * bytes > room)
        more = room > 0 ? room / bytes : 0;
    switches->buffers += (int)more;
    plan->device_peak_bytes += more * bytes;
}

void ah__plan_spill(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    struct ah_switches *switches = &plan->switches;
    ah__plan_measure(plan, predictor);
    if (!ah__predictor_spills(predictor) || ah__is_fixed(&predictor->fixed, AH_SWITCH_disk_blocks))
        return;
    switches->disk_blocks = 0;
    int low = 0, high = ah__switch_high(switches, AH_SWITCH_disk_blocks);
    while (low < high) { /* from 1 on, more blocks on disk never take more host memory */
        switches->disk_blocks = low == 0 ? 0 : (low + high) / 2;
        ah__plan_measure(plan, predictor);
        bool fits = !budget->host_bytes || plan->host_peak_bytes <= budget->host_bytes;
        high = fits ? switches->disk_blocks : high;
        low = fits ? low : switches->disk_blocks + 1;
        if (fits && switches->disk_blocks == 0)
            return;
    }
    switches->disk_blocks = high;
    ah__plan_measure(plan, predictor);
}

void ah__plan_buffers_fit(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    const struct ah_fixed *fixed = &predictor->fixed;
    bool is_fixed = ah__is_fixed(fixed, AH_SWITCH_buffers);
    plan->switches.buffers = is_fixed ? fixed->at.buffers : ah__plan_min_buffers(&plan->switches, predictor);
    ah__plan_measure(plan, predictor);
    if (!is_fixed)
        buffers_add(plan, predictor, budget);
}

/* Makes all blocks unsharded if that fits; such a plan needs no buffers. Returns false, and changes nothing, if it does
 * not fit. */
static bool all_whole_fit(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    struct ah_plan whole = *plan;
    struct ah_switches *switches = &whole.switches;
    switches->unsharded = ah__plan_most_unsharded(switches, predictor);
    switches->buffers = ah__plan_min_buffers(switches, predictor);
    if (switches->unsharded < switches->layers || switches->buffers > 0)
        return false;
    ah__plan_measure(&whole, predictor);
    if (!ah__plan_within(&whole, budget))
        return false;
    *plan = whole;
    return true;
}

void ah__plan_fill(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    const struct ah_fixed *fixed = &predictor->fixed;
    bool unsharded = ah__is_fixed(fixed, AH_SWITCH_unsharded), sums = ah__is_fixed(fixed, AH_SWITCH_device_sums);
    plan->switches.unsharded = unsharded ? fixed->at.unsharded : 0;
    plan->switches.device_sums = sums ? fixed->at.device_sums : 0;
    ah__plan_measure(plan, predictor);
    if (!unsharded)
        unsharded_fit(plan, predictor, budget);
    if (!sums)
        sums_fit(plan, predictor, budget);
}

bool ah__plan_fit(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    const struct ah_partition *partition = predictor->partition;
    struct ah_switches *switches = &plan->switches;
    const struct ah_fixed *fixed = &predictor->fixed;
    bool buffers = ah__is_fixed(fixed, AH_SWITCH_buffers), shadows = ah__is_fixed(fixed, AH_SWITCH_shadows),
         unsharded = ah__is_fixed(fixed, AH_SWITCH_unsharded);
    int least = ah__plan_min_buffers(switches, predictor);
    switches->buffers = buffers ? fixed->at.buffers : least;
    switches->shadows = shadows ? fixed->at.shadows : 0;
    switches->unsharded = unsharded ? fixed->at.unsharded : 0;
    switches->device_sums = ah__is_fixed(fixed, AH_SWITCH_device_sums) ? fixed->at.device_sums : 0;
    ah__plan_measure(plan, predictor);
    if (!ah__plan_within(plan, budget) || (buffers && switches->buffers < least))
        return false;
    if (partition->step.clips && !predictor->no_shadows && !shadows)
        shadows_fit(plan, partition, budget);
    if (!buffers && !unsharded && all_whole_fit(plan, predictor, budget))
        return true;
    if (!buffers)
        buffers_add(plan, predictor, budget);
    if (!unsharded)
        unsharded_fit(plan, predictor, budget);
    return true;
}
