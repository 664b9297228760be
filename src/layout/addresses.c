#include "layout/addresses.h"

/* Returns an iteration's copy of tokens or results. Both exist twice: iterations k and k + 2 use the same copy. The
 * first iteration uses the upper copy, so that if no gradient is behind it, device memory ends with bytes that every
 * training step uses. */
static char *of_iteration(char *base, int64_t offset, int64_t bytes, int64_t iteration)
{
    return base + offset + (iteration + 1) % 2 * bytes;
}

char *ah__host_results(const struct ah_memory *memory, int64_t iteration)
{
    return of_iteration(memory->host, memory->layout->host_results_offset, memory->layout->results_bytes, iteration);
}

char *ah__host_tokens(const struct ah_memory *memory, int64_t iteration)
{
    return of_iteration(memory->host, memory->layout->host_tokens_offset, memory->layout->tokens_bytes, iteration);
}

static char *set_of(const struct ah_memory *memory, int set)
{
    return memory->host + memory->layout->sets_offset + set * memory->layout->set_bytes;
}

/* Returns the address of p of a group's states; blocks on the host have theirs in `set`. */
char *ah__states_of(const struct ah_memory *memory, int group, int set)
{
    const struct ah_layout_group *g = &memory->layout->groups[group];
    return g->state_offset < 0 ? set_of(memory, set) : (g->on_host ? memory->host : memory->device) + g->state_offset;
}

static char *buffer(const struct ah_memory *memory, int index)
{
    return memory->device + memory->layout->buffers_offset + index * memory->layout->buffer_bytes;
}

/* Returns the address of a group's parameters in the compute dtype on the device: in a buffer, in dedicated memory, or
 * where they are updated. */
static char *params(const struct ah_memory *memory, int group, int param_buffer)
{
    const struct ah_layout_group *g = &memory->layout->groups[group];
    if (param_buffer >= 0)
        return buffer(memory, param_buffer);
    return memory->device + (g->param_offset >= 0 ? g->param_offset : g->state_offset);
}

/* Returns the address of the gradient of a group's trained elements, in the compute dtype; null for a block without
 * memory for it. */
static char *gradient(const struct ah_memory *memory, int group, int grad_buffer)
{
    int64_t own = memory->layout->groups[group].grad_offset;
    if (grad_buffer >= 0)
        return buffer(memory, grad_buffer);
    return own >= 0 ? memory->device + own : NULL;
}

/* Returns the address of the input of block 1..layers or of the head. */
static char *input_of(const struct ah_memory *memory, int partition)
{
    return memory->device + memory->layout->groups[partition].input_offset;
}

/* Sets the address of a partition's saved activations: SAVED, and CHEAP behind it, which blocks that recompute have
 * elsewhere. */
static void place_whole(struct ah_addresses *at, const struct ah_memory *memory, int partition, int64_t offset,
                        int64_t step)
{
    const struct ah_code *code = ah__code_of(memory->partition, partition);
    at->saved = memory->device + offset;
    at->cheap = at->saved + code->kept_bytes;
    at->saved_step = at->cheap_step = step;
}

/* Sets the addresses of saved activations. A block that recomputes does so after the blocks above it have finished with
 * their activations, one micro-batch after the other. The embedding's are those of micro-batches from `first` on. */
static void place_saved(struct ah_addresses *at, const struct ah_memory *memory, int partition, int64_t first)
{
    const struct ah_layout *layout = memory->layout;
    const struct ah_switches *switches = memory->switches;
    int64_t offset = layout->groups[partition].saved_offset;
    if (partition == 0) {
        place_whole(at, memory, partition, layout->embedding_saved_offset + first * layout->embedding_saved_step,
                    layout->embedding_saved_step);
    } else if (partition > switches->layers) {
        place_whole(at, memory, partition, layout->head_saved_offset, layout->head_saved_step);
    } else if (ah__keeping(switches, partition) == AH_KEEPS_ALL) {
        place_whole(at, memory, partition, offset, layout->saved_step);
    } else {
        at->saved = memory->device + offset;
        at->saved_step = ah__recomputes(switches, partition) ? 0 : layout->kept_step;
        at->cheap = memory->device + layout->cheap_offset;
    }
}

static void place_waiting(struct ah_addresses *at, const struct ah_memory *memory, int partition)
{
    const struct ah_layout_group *group = &memory->layout->groups[partition];
    at->activation_bytes = group->activation_bytes;
    at->host_activations = memory->host + group->host_activations_offset;
}

/* Returns where an update also copies this rank's parameters; null: nowhere. With several ranks, unsharded blocks, and
 * embedding and head unless they share a buffer, have all parameters in memory of their own, apart from this rank's
 * states. Other groups are cast when they are used. */
static char *update_copy_of(const struct ah_memory *memory, int group)
{
    const struct ah_layout_group *place = &memory->layout->groups[group];
    bool shares = memory->switches->share_embedding_head && !ah__is_block(memory->switches, group);
    bool kept = ah__world_size(memory->switches) > 1 && !place->on_host && place->param_offset >= 0 && !shares;
    return kept ? memory->device + place->param_offset : NULL;
}

/* Returns where this rank's shard of a block's parameters stays that is fetched from the host once for forward and
 * backward; null for other groups. */
static char *shard_of(const struct ah_memory *memory, int group)
{
    const struct ah_switches *switches = memory->switches;
    int kept = group - ah__first_trained_on_host(switches) - switches->offload_params;
    if (ah__world_size(memory->switches) == 1 || !ah__is_block(switches, group) || kept < 0)
        return NULL;
    return memory->device + memory->layout->shards_offset + kept * memory->layout->shard_bytes;
}

/* Returns where this rank's shard of a reduced gradient waits for the norm; null unless the group is a block that is
 * optimized on the device and clipping is on. */
static char *reduced_of(const struct ah_memory *memory, int group)
{
    const struct ah_switches *switches = memory->switches;
    bool waits = ah__world_size(memory->switches) > 1 && memory->partition->step.clips;
    if (!waits || !ah__is_block(switches, group) || ah__is_frozen(switches, group) || ah__on_host(switches, group))
        return NULL;
    int index = group - 1 - switches->frozen_blocks;
    return memory->device + memory->layout->reduced_offset + index * memory->layout->reduced_bytes;
}

/* Returns where this rank's shard of the frozen parameters waits for a CAST: behind the trained ones in `shard`, or in
 * memory of its own. */
static char *frozen_of(const struct ah_memory *memory, int group, char *shard)
{
    int64_t own = memory->layout->groups[group].frozen_offset;
    if (shard)
        return shard + memory->layout->reduced_bytes;
    return own >= 0 ? memory->device + own : NULL;
}

/* Sets the operands of a chunk of a block on disk: states, gradient and parameters are in its host buffer. */
static void place_slot(struct ah_addresses *at, const struct ah_memory *memory, const struct ah_item *item)
{
    const struct ah_layout *layout = memory->layout;
    int g = item->partition, shadow = item->shadow_set >= 0 ? item->shadow_set : item->set;
    const struct ah_disk_chunk *chunk = ah__disk_chunk_of(layout, g);
    char *slot = memory->host + layout->slots_offset + item->slot * layout->slot_bytes;
    at->states[0] = at->host_param = slot;
    at->states[1] = slot + chunk->state;
    at->states[2] = at->states[1] + chunk->moment;
    at->states[AH_STATE_REST] = at->states[2] + chunk->moment;
    at->host_frozen = slot + chunk->state;
    at->host_grad = slot + chunk->states;
    at->disk = memory->disk;
    at->disk_states = ah__disk_states_at(layout, g, item->chunk, item->set);
    at->disk_shadow = ah__disk_states_at(layout, g, item->chunk, shadow);
    at->disk_frozen = ah__disk_frozen_at(layout, g, item->chunk);
    at->disk_gradient = ah__disk_gradient_at(layout, g, item->chunk);
    at->disk_param_bytes = chunk->state;
    at->disk_states_bytes = chunk->states;
    at->disk_frozen_bytes = chunk->frozen;
    at->disk_gradient_bytes = chunk->gradient;
}

static void place_group(struct ah_addresses *at, const struct ah_memory *memory, const struct ah_item *item)
{
    int g = item->partition, shared = memory->partition->shared_group;
    const struct ah_layout_group *place = &memory->layout->groups[g];
    at->param = params(memory, g, item->param_buffer);
    at->shard = shard_of(memory, g);
    at->frozen = frozen_of(memory, g, at->shard);
    at->grad = gradient(memory, g, item->grad_buffer);
    at->reduced = reduced_of(memory, g);
    int below = memory->switches->frozen_blocks + memory->layout->staying_sums;
    bool apart = g > below && ah__is_block(memory->switches, g) && memory->layout->sums_offset >= 0;
    int sum = item->sum > 0 ? item->sum : 0;
    at->sum = apart ? memory->device + memory->layout->sums_offset + sum * memory->layout->sum_bytes : at->grad;
    char *host_sums = memory->host + memory->layout->host_sums_offset;
    at->host_sum = apart ? host_sums + (g - 1 - below) * memory->layout->sum_bytes : NULL;
    if (shared >= 0) {
        at->shared_param = params(memory, shared, -1);
        at->shared_sum = gradient(memory, shared, -1);
    }
    char *states = place->on_disk ? NULL : ah__states_of(memory, g, item->set);
    char *spare = item->shadow_set >= 0 && !place->on_disk ? set_of(memory, item->shadow_set) : NULL;
    for (int i = 0; i < AH_STATE_COUNT && !place->on_disk; i++) {
        at->states[i] = states + ah__state_at(place, i);
        at->shadow_states[i] = spare ? spare + ah__state_at(place, i) : NULL;
    }
    at->host_grad = place->on_host ? memory->host + place->host_grad_offset : NULL;
    at->host_param = states;
    at->host_frozen = place->on_host ? memory->host + place->host_frozen_offset : NULL;
    if (place->on_disk)
        place_slot(at, memory, item);
    char *stage = memory->device + memory->layout->stages_offset + item->stage * memory->layout->stage_bytes;
    for (int i = 0; i < AH_STATE_COUNT; i++)
        at->stage[i] = stage + memory->layout->stage_at[i];
    at->stage_grad = stage + memory->layout->stage_at[AH_STATE_COUNT];
    at->update_copy = update_copy_of(memory, g);
    at->update_grad = place->on_host ? at->host_grad : at->grad;
}

void ah__addresses(struct ah_addresses *at, const struct ah_memory *memory, const struct ah_item *item)
{
    const struct ah_layout *layout = memory->layout;
    int i = item->partition;
    int64_t first = layout->embeds_late ? item->first_micro_batch : 0;
    *at = (struct ah_addresses){
        .input = i > 0 ? input_of(memory, i) : NULL,
        .output = i <= memory->switches->layers ? input_of(memory, i + 1) : NULL,
        .work = memory->device + layout->work_offset,
        .workspace = memory->device + layout->workspace_offset,
        .widened = memory->device + layout->widened_offset,
        .boundary = memory->device + layout->boundary_offset + first * layout->boundary_step,
        .cache = i > 0 ? memory->device + layout->cache_offset + (i - 1) * layout->cache_bytes : NULL,
        .tokens = of_iteration(memory->device, layout->tokens_offset, layout->tokens_bytes, item->iteration),
        .results = of_iteration(memory->device, layout->results_offset, layout->results_bytes, item->iteration),
        .host_tokens = ah__host_tokens(memory, item->iteration),
        .host_results = ah__host_results(memory, item->iteration),
        .tokens_bytes = layout->tokens_bytes,
        .input_step = layout->input_step,
        .output_step = layout->input_step,
        .boundary_step = layout->boundary_step,
    };
    place_saved(at, memory, i, first);
    place_waiting(at, memory, i);
    place_group(at, memory, item);
}
