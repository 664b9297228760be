#include "layout/layout.h"

#include <string.h>

#include "bind/bind.h"

/* Returns the offset of the next `bytes` of the memory, which end at *end. */
static int64_t place(int64_t *end, int64_t bytes)
{
    int64_t offset = *end;
    *end += bytes;
    return offset;
}

static void place_group(struct ah_layout *layout, int group, const struct ah_switches *switches,
                        const struct ah_sizes *sizes)
{
    int class = ah__sized(switches, group);
    bool block = ah__is_block(switches, group);
    struct ah_layout_group *g = &layout->groups[group];
    *g = (struct ah_layout_group){
        .host_grad_offset = -1, .param_offset = -1, .grad_offset = -1, .host_frozen_offset = -1, .frozen_offset = -1};
    g->on_host = ah__on_host(switches, group);
    g->on_disk = ah__on_disk(switches, group);
    g->state_bytes = g->on_host ? sizes->state[class][0] : sizes->device_state[class];
    g->moment_bytes = sizes->state[class][1];
    if (!g->on_host)
        g->state_offset = place(&layout->device_bytes, sizes->device_states[class]);
    else
        g->state_offset = block ? -1 : place(&layout->host_bytes, sizes->states[class]);
    if (g->on_host && !g->on_disk) {
        g->host_grad_offset = place(&layout->host_bytes, sizes->host_grad[class]);
        g->host_frozen_offset = place(&layout->host_bytes, sizes->frozen[class]);
    }
    if (g->on_disk)
        g->disk_offset =
            place(&layout->disk_bytes, switches->chunks * sizes->disk_chunk[class == AH_SIZED_FROZEN].bytes);
    bool apart = block ? ah__unsharded(switches, group) : g->on_host || sizes->copies;
    bool shares = sizes->ends && !block;
    if (shares && class == AH_CLASS_HEAD)
        g->param_offset = layout->groups[0].param_offset;
    else if (apart)
        g->param_offset =
            place(&layout->device_bytes, shares ? sizes->ends : sizes->buffer[block ? AH_CLASS_BLOCK : class]);
    if (!g->on_host && ah__world_size(switches) > 1 && (shares || !apart))
        g->frozen_offset = place(&layout->device_bytes, sizes->frozen[class]);
}

/* Places a block's input and saved activations, also on the host if they are offloaded. */
static void place_activations(struct ah_layout *layout, int block, const struct ah_switches *switches,
                              const struct ah_sizes *sizes)
{
    struct ah_layout_group *group = &layout->groups[block];
    int below = ah__passing_below(switches, block), order = ah__giving_up(switches, block) - 1;
    enum ah_keeping keeping = ah__keeping(switches, block);
    bool passes = ah__passes(switches, block);
    int64_t stage = layout->activation_stages_offset + below % AH_ACTIVATION_BUFFERS * sizes->activation_stage;
    group->input_offset =
        passes ? stage : layout->inputs_offset + (block - switches->frozen_blocks - 1 - below) * layout->input_bytes;
    if (keeping == AH_KEEPS_INPUT)
        group->saved_offset = layout->saved_sets > 0 ? layout->saved_offset : layout->kept_offset;
    else if (passes)
        group->saved_offset = stage + layout->input_bytes;
    else if (keeping == AH_KEEPS_PRODUCTS)
        group->saved_offset = layout->kept_offset + (order - switches->checkpoint) * layout->kept_bytes;
    else
        group->saved_offset =
            layout->saved_offset + (order - switches->checkpoint - switches->selective) * layout->saved_bytes;
    if (!ah__leaves(switches, block))
        return;
    group->activation_bytes = sizes->activations[keeping];
    group->host_activations_offset = place(&layout->host_bytes, group->activation_bytes);
}

static void place_saved(struct ah_layout *layout, const struct ah_code *block, const struct ah_switches *switches,
                        const struct ah_sizes *sizes)
{
    int64_t *end = &layout->device_bytes;
    layout->inputs_offset = place(end, ah__inputs_count(switches) * layout->input_bytes);
    layout->saved_offset = place(end, sizes->saved_all);
    layout->kept_offset = place(end, sizes->kept_all);
    layout->cheap_offset = place(end, sizes->cheap);
    if (sizes->saved_sets > 0)
        layout->cheap_offset = layout->saved_offset + block->kept_bytes;
    layout->activation_stages_offset = place(end, AH_ACTIVATION_BUFFERS * sizes->activation_stage);
    int lowest = switches->frozen_blocks + 1;
    for (int group = lowest; group <= switches->layers; group++)
        place_activations(layout, group, switches, sizes);
    for (int group = 1; group < lowest; group++) /* each overwrites its input, and keeps nothing */
        layout->groups[group].input_offset = layout->groups[lowest].input_offset;
    layout->groups[switches->layers + 1].input_offset =
        layout->inputs_offset + (ah__inputs_count(switches) - 1) * layout->input_bytes;
}

static void place_device(struct ah_layout *layout, const struct ah_partition *partition,
                         const struct ah_switches *switches, const struct ah_sizes *sizes)
{
    int64_t *end = &layout->device_bytes;
    place_saved(layout, &partition->code[AH_CLASS_BLOCK], switches, sizes);
    layout->cache_offset = place(end, switches->layers * sizes->cache);
    layout->embedding_saved_offset = place(end, sizes->embedded * sizes->embedding_saved);
    layout->boundary_offset = place(end, sizes->embedded * sizes->boundary);
    layout->work_offset = place(end, sizes->work);
    layout->head_saved_offset = layout->work_offset + sizes->head_work;
    layout->workspace_offset = place(end, sizes->workspace);
    layout->widened_offset = place(end, sizes->widened);
    layout->sums_offset = sizes->sum_places ? place(end, sizes->sum_places * sizes->sum) : -1;
    layout->results_offset = place(end, 2 * sizes->results);
    layout->tokens_offset = place(end, 2 * sizes->tokens);
    layout->groups[switches->layers + 1].grad_offset = place(end, sizes->head_grad);
    for (int index = 0; index < ah__trained_blocks(switches); index++)
        if (index < sizes->staying_sums || sizes->own_grads)
            layout->groups[switches->frozen_blocks + 1 + index].grad_offset =
                place(end, index < sizes->staying_sums ? sizes->sum : sizes->block_grad);
    layout->groups[0].grad_offset = place(end, sizes->embedding_grad);
    if (sizes->embedding_grad > 0 && sizes->head_grad == 0)
        layout->groups[switches->layers + 1].grad_offset = layout->groups[0].grad_offset;
}

static void place_host(struct ah_layout *layout, const struct ah_switches *switches, const struct ah_sizes *sizes)
{
    int64_t *end = &layout->host_bytes;
    layout->set_bytes = sizes->states[AH_CLASS_BLOCK];
    layout->sets_offset = place(end, ah__host_sets(switches) * layout->set_bytes);
    layout->host_sums_offset = place(end, sizes->host_sums);
    layout->host_tokens_offset = place(end, 2 * sizes->tokens);
    layout->host_results_offset = place(end, 2 * sizes->results);
    layout->host_staging_offset = place(end, sizes->staging);
}

/* Places the host buffers of a disk, first of all, since their addresses are aligned as a disk needs it. */
static void place_slots(struct ah_layout *layout, const struct ah_switches *switches, const struct ah_sizes *sizes)
{
    layout->slot_bytes = sizes->slot;
    layout->frozen_blocks = switches->frozen_blocks;
    layout->disk_chunk[0] = sizes->disk_chunk[0];
    layout->disk_chunk[1] = sizes->disk_chunk[1];
    layout->slots_offset = place(&layout->host_bytes, ah__disk_slots(switches) * sizes->slot);
}

const struct ah_disk_chunk *ah__disk_chunk_of(const struct ah_layout *layout, int group)
{
    return &layout->disk_chunk[group <= layout->frozen_blocks];
}

int64_t ah__disk_frozen_at(const struct ah_layout *layout, int group, int chunk)
{
    return layout->groups[group].disk_offset + chunk * ah__disk_chunk_of(layout, group)->bytes;
}

int64_t ah__disk_gradient_at(const struct ah_layout *layout, int group, int chunk)
{
    return ah__disk_frozen_at(layout, group, chunk) + ah__disk_chunk_of(layout, group)->frozen;
}

int64_t ah__disk_states_at(const struct ah_layout *layout, int group, int chunk, int place)
{
    const struct ah_disk_chunk *of = ah__disk_chunk_of(layout, group);
    return ah__disk_gradient_at(layout, group, chunk) + of->gradient + place * of->states;
}

static void note_sizes(struct ah_layout *layout, const struct ah_switches *switches, const struct ah_sizes *sizes)
{
    layout->buffer_bytes = sizes->buffer[AH_CLASS_BLOCK];
    layout->stage_bytes = sizes->stages / AH_STAGING_BUFFERS;
    memcpy(layout->stage_at, sizes->stage_at, sizeof layout->stage_at);
    layout->input_bytes = sizes->at_once * sizes->input;
    layout->sum_bytes = sizes->sum;
    layout->staying_sums = sizes->staying_sums;
    layout->embeds_late = sizes->embedded > sizes->at_once;
    layout->saved_sets = sizes->saved_sets;
    layout->saved_bytes = sizes->saved_sets > 0 ? sizes->saved_all / sizes->saved_sets : 0;
    layout->kept_sets = ah__keeping_count(switches, AH_KEEPS_PRODUCTS, true, 0);
    layout->activation_stage_bytes = sizes->activation_stage;
    layout->kept_bytes = sizes->at_once * sizes->kept;
    layout->kept_step = sizes->kept;
    layout->cache_bytes = sizes->cache;
    layout->input_step = sizes->input;
    layout->saved_step = sizes->saved;
    layout->embedding_saved_step = sizes->embedding_saved;
    layout->head_saved_step = sizes->head_saved;
    layout->boundary_step = sizes->boundary;
    layout->work_bytes = sizes->work;
    layout->tokens_bytes = sizes->tokens;
    layout->results_bytes = sizes->results;
    layout->host_staging_bytes = sizes->staging;
}

int ah__layout_new(struct ah_layout **out, const struct ah_partition *partition, const struct ah_switches *switches,
                   int64_t workspace_bytes)
{
    struct ah_layout *layout = NULL;
    AH_TRY(ah__new(&layout, 1, sizeof *layout));
    int status = ah__new(&layout->groups, (size_t)switches->layers + 2, sizeof *layout->groups);
    if (status != AH_OK) {
        ah__layout_free(layout);
        return status;
    }
    struct ah_sizes sizes;
    ah__sizes(&sizes, partition, switches, workspace_bytes);
    note_sizes(layout, switches, &sizes);
    place_slots(layout, switches, &sizes);
    layout->buffers_offset = place(&layout->device_bytes, switches->buffers * layout->buffer_bytes);
    layout->reduced_bytes = sizes.host_grad[AH_CLASS_BLOCK];
    layout->shard_bytes = layout->reduced_bytes + sizes.frozen[AH_CLASS_BLOCK];
    layout->shards_offset = place(&layout->device_bytes, ah__shard_count(switches) * layout->shard_bytes);
    layout->reduced_offset =
        place(&layout->device_bytes, ah__reduced_count(partition, switches) * layout->reduced_bytes);
    layout->stages_offset = place(&layout->device_bytes, sizes.stages);
    for (int group = 0; group < switches->layers + 2; group++)
        place_group(layout, group, switches, &sizes);
    place_device(layout, partition, switches, &sizes);
    place_host(layout, switches, &sizes);
    *out = layout;
    return AH_OK;
}

void ah__layout_free(struct ah_layout *layout)
{
    if (!layout)
        return;
    ah__free(layout->groups);
    ah__free(layout);
}
