/* Computes the addresses of an item's operands from the run's layout. */
#include "run/internal.h"
#include "sched/switches.h"

int64_t ah__run_part(int64_t *first, const struct ah_run *run, int group)
{
    return ah__part_range(first, run->partition->groups[group].trained, run->comm->rank, run->comm->world_size);
}

/* Returns an iteration's copy of tokens or results. Both exist twice: iterations k and k + 2 use the same copy. The
 * first iteration uses the upper copy, so that if no gradient is behind it, device memory ends with bytes that every
 * training step uses. */
static char *of_iteration(char *base, int64_t offset, int64_t bytes, int64_t iteration)
{
    return base + offset + (iteration + 1) % 2 * bytes;
}

static char *host_results(const struct ah_run *run, int64_t iteration)
{
    return of_iteration(run->host, run->layout->host_results_offset, run->layout->results_bytes, iteration);
}

char *ah__run_tokens(const struct ah_run *run, int64_t iteration)
{
    return of_iteration(run->host, run->layout->host_tokens_offset, run->layout->tokens_bytes, iteration);
}

double ah__run_loss(const struct ah_run *run, int64_t iteration)
{
    const char *results = host_results(run, iteration);
    bool totals = run->comm->world_size > 1 && !run->evaluates;
    const float *loss = (const float *)(const void *)(results + (totals ? ah__results_totals(run->partition)
                                                                        : ah__results_losses(run->partition)));
    double sum = 0;
    for (int i = 0; i < ah__micro_batches(run->partition); i++)
        sum += (double)loss[i];
    return sum;
}

const float *ah__run_flag_counts(const struct ah_run *run, int64_t iteration)
{
    const char *totals = host_results(run, iteration) + ah__results_totals(run->partition);
    return (const float *)(const void *)totals + ah__micro_batches(run->partition);
}

const double *ah__run_norms(const struct ah_run *run, int64_t iteration)
{
    return (const double *)(const void *)(host_results(run, iteration) + AH_RESULTS_NORMS);
}

float *ah__run_scale(const struct ah_run *run, int64_t iteration)
{
    return (float *)(void *)(host_results(run, iteration) + AH_RESULTS_SCALE);
}

static char *set_of(const struct ah_run *run, int set)
{
    return run->host + run->layout->sets_offset + set * run->layout->set_bytes;
}

/* Returns the address of p of a group's states; blocks on the host have theirs in `set`. */
static char *states_of(const struct ah_run *run, int group, int set)
{
    const struct ah_layout_group *g = &run->layout->groups[group];
    return g->state_offset < 0 ? set_of(run, set) : (g->on_host ? run->host : run->device) + g->state_offset;
}

char *ah__run_states(const struct ah_run *run, int group)
{
    return states_of(run, group, ah__sched_set(run->sched, group));
}

static char *buffer(const struct ah_run *run, int index)
{
    return run->device + run->layout->buffers_offset + index * run->layout->buffer_bytes;
}

/* Returns the address of a group's parameters in the compute dtype on the device: in a buffer, in dedicated memory, or
 * where they are updated. */
static char *params(const struct ah_run *run, int group, int param_buffer)
{
    const struct ah_layout_group *g = &run->layout->groups[group];
    if (param_buffer >= 0)
        return buffer(run, param_buffer);
    return run->device + (g->param_offset >= 0 ? g->param_offset : g->state_offset);
}

/* Returns the same address for a frozen lowest block: behind the embedding's own parameters, or in the buffer into
 * which it is fetched. */
static char *params_below(const struct ah_run *run, const struct ah_item *item)
{
    const struct ah_layout *layout = run->layout;
    const struct ah_partition *partition = run->partition;
    int64_t first = ah__embedding_count(partition) + (item->below - 1) * ah__below_count(partition);
    if (layout->below_bytes > 0)
        return run->device + layout->below_offset + item->stage * layout->below_bytes;
    return params(run, 0, -1) + first * ah__dtype_bytes(partition->compute);
}

/* Returns the address of the gradient of a group's trained elements, in the compute dtype; null for a block without
 * memory for it. */
static char *gradient(const struct ah_run *run, int group, int grad_buffer)
{
    int64_t own = run->layout->groups[group].grad_offset;
    if (grad_buffer >= 0)
        return buffer(run, grad_buffer);
    return own >= 0 ? run->device + own : NULL;
}

/* Returns the address of the input of block 1..layers or of the head. */
static char *input_of(const struct ah_run *run, int partition)
{
    return run->device + run->layout->groups[partition].input_offset;
}

/* Sets the address of a partition's saved activations: SAVED, and CHEAP behind it, which blocks that recompute have
 * elsewhere. */
static void place_whole(struct ah_addresses *at, const struct ah_run *run, int partition, int64_t offset, int64_t step)
{
    const struct ah_code *code = &run->partition->code[ah__class_of(partition, run->plan.switches.layers)];
    at->saved = run->device + offset;
    at->cheap = at->saved + code->kept_bytes;
    at->saved_step = at->cheap_step = step;
}

/* Sets the addresses of saved activations. A block that recomputes does so after the blocks above it have finished with
 * their activations, one micro-batch after the other. The embedding's are those of micro-batches from `first` on. */
static void place_saved(struct ah_addresses *at, const struct ah_run *run, int partition, int64_t first)
{
    const struct ah_layout *layout = run->layout;
    const struct ah_switches *switches = &run->plan.switches;
    int64_t offset = layout->groups[partition].saved_offset;
    if (partition == 0) {
        place_whole(at, run, partition, layout->embedding_saved_offset + first * layout->embedding_saved_step,
                    layout->embedding_saved_step);
    } else if (partition > switches->layers) {
        place_whole(at, run, partition, layout->head_saved_offset, layout->head_saved_step);
    } else if (ah__keeping(switches, partition) == AH_KEEPS_ALL) {
        place_whole(at, run, partition, offset, layout->saved_step);
    } else {
        at->saved = run->device + offset;
        at->saved_step = ah__recomputes(switches, partition) ? 0 : layout->kept_step;
        at->cheap = run->device + layout->cheap_offset;
    }
}

static void place_waiting(struct ah_addresses *at, const struct ah_run *run, int partition)
{
    const struct ah_layout_group *group = &run->layout->groups[partition];
    at->activation_bytes = group->activation_bytes;
    at->host_activations = run->host + group->host_activations_offset;
}

/* Returns where an update also copies this rank's parameters; null: nowhere. With several ranks, unsharded blocks, and
 * embedding and head unless they share a buffer, have all parameters in memory of their own, apart from this rank's
 * states. Other groups are cast when they are used. */
static char *update_copy_of(const struct ah_run *run, int group)
{
    const struct ah_layout_group *place = &run->layout->groups[group];
    bool shares = run->plan.switches.share_embedding_head && !ah__is_block(&run->plan.switches, group);
    bool kept = run->comm->world_size > 1 && !place->on_host && place->param_offset >= 0 && !shares;
    return kept ? run->device + place->param_offset : NULL;
}

/* Returns where this rank's shard of a block's parameters stays that is fetched from the host once for forward and
 * backward; null for other groups. */
static char *shard_of(const struct ah_run *run, int group)
{
    const struct ah_switches *switches = &run->plan.switches;
    int kept = group - ah__first_on_host(switches) - switches->offload_params;
    if (run->comm->world_size == 1 || !ah__is_block(switches, group) || kept < 0)
        return NULL;
    return run->device + run->layout->shards_offset + kept * run->layout->shard_bytes;
}

/* Returns where this rank's shard of a reduced gradient waits for the norm; null unless the group is a block that is
 * optimized on the device and clipping is on. */
static char *reduced_of(const struct ah_run *run, int group)
{
    const struct ah_switches *switches = &run->plan.switches;
    bool waits = run->comm->world_size > 1 && run->partition->step.clips;
    if (!waits || !ah__is_block(switches, group) || ah__on_host(switches, group))
        return NULL;
    return run->device + run->layout->reduced_offset + (group - 1) * run->layout->reduced_bytes;
}

/* Returns where this rank's shard of the frozen parameters waits for a CAST: behind the trained ones in `shard`, or in
 * memory of its own. */
static char *frozen_of(const struct ah_run *run, int group, char *shard)
{
    int64_t own = run->layout->groups[group].frozen_offset;
    if (shard)
        return shard + run->layout->reduced_bytes;
    return own >= 0 ? run->device + own : NULL;
}

static void place_group(struct ah_addresses *at, const struct ah_run *run, const struct ah_item *item)
{
    int g = item->partition, shared = run->partition->shared_group;
    const struct ah_layout_group *place = &run->layout->groups[g];
    at->param = item->below > 0 ? params_below(run, item) : params(run, g, item->param_buffer);
    at->shard = shard_of(run, g);
    at->frozen = frozen_of(run, g, at->shard);
    at->grad = gradient(run, g, item->grad_buffer);
    at->reduced = reduced_of(run, g);
    bool apart = ah__is_block(&run->plan.switches, g) && run->layout->sums_offset >= 0;
    int sum = item->sum > 0 ? item->sum : 0;
    at->sum = apart ? run->device + run->layout->sums_offset + sum * run->layout->sum_bytes : at->grad;
    at->host_sum = apart ? run->host + run->layout->host_sums_offset + (g - 1) * run->layout->sum_bytes : NULL;
    if (shared >= 0) {
        at->shared_param = params(run, shared, -1);
        at->shared_sum = gradient(run, shared, -1);
    }
    char *states = states_of(run, g, item->set);
    char *spare = item->shadow_set >= 0 ? set_of(run, item->shadow_set) : NULL;
    for (int i = 0; i < AH_STATE_COUNT; i++) {
        at->states[i] = states + ah__state_at(place, i);
        at->shadow_states[i] = spare ? spare + ah__state_at(place, i) : NULL;
    }
    at->host_grad = place->on_host ? run->host + place->host_grad_offset : NULL;
    at->host_param = states;
    at->host_frozen = place->on_host ? run->host + place->host_frozen_offset : NULL;
    char *stage = run->device + run->layout->stages_offset + item->stage * run->layout->stage_bytes;
    at->stage[0] = stage;
    at->stage[1] = stage + run->layout->stage_state_bytes;
    at->stage[2] = at->stage[1] + run->layout->stage_moment_bytes;
    at->stage[AH_STATE_REST] = at->stage[2] + run->layout->stage_moment_bytes;
    at->stage_grad = at->stage[AH_STATE_REST] + run->layout->stage_rest_bytes;
    at->update_copy = update_copy_of(run, g);
    at->update_grad = place->on_host ? at->host_grad : at->grad;
}

void ah__run_addresses(struct ah_addresses *at, const struct ah_run *run, const struct ah_item *item)
{
    const struct ah_layout *layout = run->layout;
    int i = item->partition;
    int64_t first = layout->embeds_late ? item->first_micro_batch : 0;
    *at = (struct ah_addresses){
        .input = i > 0             ? input_of(run, i)
                 : item->below > 0 ? input_of(run, 1)
                                   : NULL,
        .output = i <= run->plan.switches.layers ? input_of(run, i + 1) : NULL,
        .work = run->device + layout->work_offset,
        .workspace = run->device + layout->workspace_offset,
        .widened = run->device + layout->widened_offset,
        .boundary = run->device + layout->boundary_offset + first * layout->boundary_step,
        .cache = i > 0 ? run->device + layout->cache_offset + (i - 1) * layout->cache_bytes : NULL,
        .tokens = of_iteration(run->device, layout->tokens_offset, layout->tokens_bytes, item->iteration),
        .results = of_iteration(run->device, layout->results_offset, layout->results_bytes, item->iteration),
        .host_tokens = ah__run_tokens(run, item->iteration),
        .host_results = host_results(run, item->iteration),
        .tokens_bytes = layout->tokens_bytes,
        .input_step = layout->input_step,
        .output_step = layout->input_step,
        .boundary_step = layout->boundary_step,
    };
    place_saved(at, run, i, first);
    place_waiting(at, run, i);
    place_group(at, run, item);
}
