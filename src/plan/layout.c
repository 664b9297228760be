#include "plan/layout.h"

#include "bind/bind.h"
#include "plan/plan_internal.h"
#include "sched/switches.h"

enum { STAGING_MOST_BYTES = 1 << 20 };

/* Everything the layout is made of, before it is placed. Areas are rounded up, so that any order of them is aligned. */
struct sizes {
    bool on_host[AH_CLASS_COUNT];
    bool copies; /* sharded: parameters used on the device are never the states' p itself */
    int64_t state[AH_CLASS_COUNT], moment[AH_CLASS_COUNT]; /* p; m or v: of one group, this rank's part */
    int64_t states[AH_CLASS_COUNT];                        /* p, m, v and the rest */
    int64_t device_state[AH_CLASS_COUNT];  /* p of a group on the device, where products may read it: then all of it */
    int64_t device_states[AH_CLASS_COUNT]; /* all states there: p alone where nothing is updated */
    int64_t frozen[AH_CLASS_COUNT];        /* of one group, this rank's part, in the compute dtype */
    int64_t buffer[AH_CLASS_COUNT];        /* parameters or gradient of one group in the compute dtype */
    int64_t host_grad[AH_CLASS_COUNT];     /* this rank's part of the gradient, on the host */
    bool own_grads;                        /* those of blocks have places of their own, not buffers */
    int64_t block_grad;                    /* each */
    int64_t stage_state, stage_moment, stage_rest; /* p; m or v; the rest: of a chunk that streams */
    int64_t stages;                                /* all of them */
    int64_t widened;                   /* parameters of a block as programs read them, where they are kept in codes */
    int64_t accumulator;               /* F32 sums of a block's gradient, where that is another dtype */
    int64_t head_grad, embedding_grad; /* F32; the latter not rounded: the region ends with it. 0 and that of both where
                                        * they share a place */
    int64_t ends;                      /* parameters of embedding and head in the place that they share */
    /* of one micro-batch */
    int64_t input, saved, kept, embedding_saved, boundary, head_saved;
    int micro_batches;
    int64_t saved_all, kept_all;           /* of all blocks that have places of their own, and of all micro-batches */
    int64_t activations[AH_KEEPING_COUNT]; /* of a block that keeps so much, with its input; of all micro-batches */
    int64_t activation_stage;              /* for the activations of any block that passes; 0: none does */
    int64_t cheap; /* where no activation set has room for what selective recomputation makes again */
    int64_t cache; /* of one block */
    int64_t work, head_work, tokens, results, staging, workspace;
    int saved_sets;
};

static int64_t max_bytes(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t round_up(int64_t bytes)
{
    return (bytes + AH_LAYOUT_ALIGN - 1) / AH_LAYOUT_ALIGN * AH_LAYOUT_ALIGN;
}

static int64_t largest_param_bytes(const struct ah_partition *partition, int group)
{
    const struct ah_group *g = &partition->groups[group];
    int64_t largest = 0;
    for (int i = 0; i < g->param_count; i++)
        largest = max_bytes(largest, ah__shape_count(&partition->params[g->first_param + i].shape));
    return (largest + AH_PARAM_ALIGN - 1) / AH_PARAM_ALIGN * AH_PARAM_ALIGN * (int64_t)sizeof(float);
}

/* Loading and saving goes through host memory in pieces; states that are on the host need none. */
static int64_t staging_bytes(const struct ah_partition *partition, const struct ah_switches *switches)
{
    const int lowest[AH_CLASS_COUNT] = {0, 1, switches->layers + 1}; /* of each class, the last to go to the host */
    int64_t largest = 0;
    for (int class = 0; class < AH_CLASS_COUNT; class ++)
        if (!ah__on_host(switches, lowest[class]))
            largest = max_bytes(largest, largest_param_bytes(partition, lowest[class]));
    return largest < STAGING_MOST_BYTES ? round_up(largest) : STAGING_MOST_BYTES;
}

/* The most scratch that any of the programs with a bit in `kinds` needs. */
static int64_t work_of(const struct ah_code *code, unsigned kinds)
{
    int64_t most = 0;
    for (int kind = 0; kind < AH_PROGRAM_COUNT; kind++)
        if (kinds >> kind & 1)
            most = max_bytes(most, code->program[kind].work_bytes);
    return most;
}

/* Which programs of a block a plan runs. Evaluation runs FORWARD_DROP under every plan. */
static unsigned block_programs(const struct ah_switches *switches)
{
    unsigned kinds = 1U << AH_PROGRAM_FORWARD_DROP | 1U << AH_PROGRAM_BACKWARD;
    if (switches->checkpoint < switches->layers)
        kinds |= 1U << AH_PROGRAM_FORWARD;
    if (switches->checkpoint > 0)
        kinds |= 1U << AH_PROGRAM_RECOMPUTE;
    if (switches->selective > 0)
        kinds |= 1U << AH_PROGRAM_RECOMPUTE_SELECTIVE;
    return kinds;
}

/* No block runs between the head's forward and its backward, so what the head saves may lie in the scratch of blocks,
 * behind the scratch of its own two programs. */
static void measure_work(struct sizes *sizes, const struct ah_partition *partition, const struct ah_switches *switches)
{
    const struct ah_code *code = partition->code, *head = &code[AH_CLASS_HEAD];
    sizes->head_work = round_up(work_of(head, 1U << AH_PROGRAM_FORWARD | 1U << AH_PROGRAM_BACKWARD));
    sizes->head_saved = round_up(head->saved_bytes);
    int64_t work = sizes->head_work + sizes->micro_batches * sizes->head_saved;
    work = max_bytes(work, work_of(head, 1U << AH_PROGRAM_FORWARD_DROP));
    if (partition->step.logits)
        work = max_bytes(work, work_of(head, 1U << AH_PROGRAM_INFER));
    work = max_bytes(work, ah__code_work_bytes(&code[AH_CLASS_EMBEDDING]));
    work = max_bytes(work, work_of(&code[AH_CLASS_BLOCK], block_programs(switches)));
    sizes->work = round_up(max_bytes(work, partition->work_bytes_least));
}

/* `count` elements in the compute dtype, in parts of all ranks. */
static int64_t parts_bytes(const struct ah_partition *partition, int64_t count, const struct ah_switches *switches)
{
    int ranks = ah__world_size(switches);
    return round_up(ranks * ah__part_count(count, ranks) * ah__dtype_bytes(partition->compute));
}

/* Embedding's or head's gradient, F32 while it is summed, and in the compute dtype in parts of all ranks. */
static int64_t sum_bytes(const struct ah_partition *partition, int group, const struct ah_switches *switches)
{
    int64_t bytes = partition->groups[group].trained * (int64_t)sizeof(float);
    int64_t parts = parts_bytes(partition, partition->groups[group].trained, switches);
    return ah__world_size(switches) > 1 ? max_bytes(bytes, parts) : bytes;
}

static void measure_groups(struct sizes *sizes, const struct ah_partition *partition,
                           const struct ah_switches *switches)
{
    int64_t element_bytes = ah__dtype_bytes(partition->compute);
    for (enum ah_class class = AH_CLASS_EMBEDDING; class < AH_CLASS_COUNT; class ++) {
        int group = ah__class_representative(class, switches->layers);
        const struct ah_group *of = &partition->groups[group];
        int ranks = ah__world_size(switches);
        int64_t part = ah__part_count(of->trained, ranks), read = ranks > 1 ? part : of->count;
        sizes->on_host[class] = ah__on_host(switches, group);
        sizes->state[class] = round_up(ah__state_size(partition, 0, part));
        sizes->moment[class] = round_up(ah__state_size(partition, 1, part));
        int64_t updated = 2 * sizes->moment[class] + round_up(ah__state_size(partition, AH_STATE_REST, part));
        sizes->states[class] = sizes->state[class] + updated;
        sizes->device_state[class] = round_up(ah__state_size(partition, 0, read));
        sizes->device_states[class] = sizes->device_state[class] + (partition->step.infers ? 0 : updated);
        sizes->buffer[class] = parts_bytes(partition, of->count, switches);
        sizes->host_grad[class] = round_up(part * element_bytes);
        sizes->frozen[class] = round_up(ah__part_count(ah__frozen_count(of), ranks) * element_bytes);
    }
    if (switches->staged > 0) {
        int64_t part = ah__part_count(partition->groups[1].trained, ah__world_size(switches));
        int64_t chunk = ah__chunk_count(part, switches->chunks);
        sizes->stage_state = round_up(ah__state_size(partition, 0, chunk));
        sizes->stage_moment = round_up(ah__state_size(partition, 1, chunk));
        sizes->stage_rest = round_up(ah__state_size(partition, AH_STATE_REST, chunk));
        sizes->stages = AH_STAGING_BUFFERS * (sizes->stage_state + 2 * sizes->stage_moment + sizes->stage_rest +
                                              round_up(chunk * element_bytes));
    }
    sizes->copies = ah__world_size(switches) > 1;
    sizes->embedding_grad = sum_bytes(partition, 0, switches);
    sizes->head_grad = round_up(sum_bytes(partition, switches->layers + 1, switches));
    if (ah__share_gradients(switches, partition->step.clips)) {
        sizes->embedding_grad = max_bytes(sizes->embedding_grad, sum_bytes(partition, switches->layers + 1, switches));
        sizes->head_grad = 0;
    }
    if (switches->share_embedding_head)
        sizes->ends = max_bytes(sizes->buffer[AH_CLASS_EMBEDDING], sizes->buffer[AH_CLASS_HEAD]);
    if (partition->step.infers)
        sizes->embedding_grad = sizes->head_grad = 0;
    if (partition->compute != AH_F32 && !partition->step.infers)
        sizes->accumulator = round_up(partition->groups[1].trained * (int64_t)sizeof(float));
    if (ah__is_widened(&partition->groups[1]))
        sizes->widened = round_up(partition->groups[1].placed * element_bytes);
    if (partition->frozen)
        sizes->block_grad = parts_bytes(partition, partition->groups[1].trained, switches);
    sizes->own_grads = partition->frozen;
}

/* What is made again is of one micro-batch, and lies where a block that keeps all of its activations has them: those
 * come later in forward and are over in backward. Blocks that pass have no place but the stages, of which each has room
 * for what the last of them keeps, which is the most. */
static void measure_saved(struct sizes *sizes, const struct ah_code *block, const struct ah_switches *switches)
{
    int keeping = ah__keeping_count(switches, AH_KEEPS_ALL, true, 0);
    int selective = ah__keeping_count(switches, AH_KEEPS_PRODUCTS, true, 0);
    sizes->saved = round_up(block->saved_bytes);
    sizes->kept = round_up(block->kept_bytes);
    sizes->saved_sets = keeping > 0 ? keeping : selective == 0 && switches->checkpoint > 0 ? 1 : 0;
    sizes->saved_all = sizes->saved_sets * sizes->saved * (keeping > 0 ? sizes->micro_batches : 1);
    sizes->kept_all = selective * sizes->kept * sizes->micro_batches;
    if (sizes->saved_sets == 0 && switches->selective > 0)
        sizes->cheap = round_up(block->saved_bytes - block->kept_bytes);
    sizes->activations[AH_KEEPS_INPUT] = sizes->micro_batches * sizes->input;
    sizes->activations[AH_KEEPS_PRODUCTS] = sizes->micro_batches * (sizes->input + sizes->kept);
    sizes->activations[AH_KEEPS_ALL] = sizes->micro_batches * (sizes->input + sizes->saved);
    if (ah__passing_blocks(switches) > 0)
        sizes->activation_stage = sizes->activations[ah__keeping_at(switches, switches->layers)];
}

static void measure(struct sizes *sizes, const struct ah_partition *partition, const struct ah_switches *switches,
                    int64_t workspace_bytes)
{
    const struct ah_code *code = partition->code;
    *sizes = (struct sizes){.micro_batches = ah__micro_batches(partition)};
    measure_groups(sizes, partition, switches);
    sizes->input = round_up(max_bytes(code[AH_CLASS_BLOCK].input_bytes, code[AH_CLASS_HEAD].input_bytes));
    measure_saved(sizes, &code[AH_CLASS_BLOCK], switches);
    sizes->cache = round_up(code[AH_CLASS_BLOCK].cache_bytes);
    sizes->embedding_saved = round_up(code[AH_CLASS_EMBEDDING].saved_bytes);
    for (enum ah_class class = AH_CLASS_EMBEDDING; class < AH_CLASS_COUNT; class ++)
        sizes->boundary = max_bytes(sizes->boundary, max_bytes(code[class].boundary_bytes, code[class].output_bytes));
    sizes->boundary = round_up(sizes->boundary);
    measure_work(sizes, partition, switches);
    sizes->workspace = round_up(workspace_bytes);
    sizes->tokens = 2 * round_up(ah__tokens_bytes(partition) / 2);
    sizes->results = round_up(ah__results_bytes(partition));
    sizes->staging = staging_bytes(partition, switches);
}

/* ---- totals ---- */

/* With several ranks, blocks that come from the host but keep their parameters on the device keep only this rank's part
 * there, which has the size of its gradient's. */
static int shard_count(const struct ah_switches *switches)
{
    return ah__world_size(switches) > 1 ? switches->offload_optimizer - switches->offload_params : 0;
}

/* With several ranks, blocks that stay on the device but not whole: this rank's part of what is frozen stays there. */
static int homes_count(const struct ah_switches *switches)
{
    return ah__world_size(switches) > 1 ? switches->layers - switches->offload_optimizer - switches->unsharded : 0;
}

/* What waits for the norm of gradients that ranks have summed is a rank's part alone: those of blocks optimized on the
 * device leave their buffers for it. */
static int reduced_count(const struct ah_partition *partition, const struct ah_switches *switches)
{
    bool wait = ah__world_size(switches) > 1 && partition->step.clips;
    return wait ? switches->layers - switches->offload_optimizer : 0;
}

/* Of blocks that do not pass, and the head's. */
static int inputs_count(const struct ah_switches *switches)
{
    return switches->layers + 1 - ah__passing_blocks(switches);
}

/* Embedding or head on the device: states unless they are on the host, parameters unless the master serves. */
static int64_t dedicated_bytes(const struct sizes *sizes, enum ah_class class)
{
    bool host = sizes->on_host[class];
    bool apart = (host || sizes->copies) && sizes->ends == 0;
    int64_t frozen = sizes->ends > 0 ? sizes->frozen[class] : 0; /* else in that place */
    return (host ? 0 : sizes->device_states[class] + frozen) + (apart ? sizes->buffer[class] : 0);
}

/* Device bytes that belong to no block: the same under every (c, p, o) with embedding and head where they are. */
static int64_t outside_bytes(const struct sizes *sizes)
{
    int64_t bytes = sizes->embedding_grad + sizes->head_grad + sizes->ends;
    bytes += dedicated_bytes(sizes, AH_CLASS_EMBEDDING) + dedicated_bytes(sizes, AH_CLASS_HEAD);
    return bytes + sizes->micro_batches * (sizes->embedding_saved + sizes->boundary) + sizes->work + sizes->workspace +
           sizes->stages + AH_ACTIVATION_BUFFERS * sizes->activation_stage + sizes->accumulator + sizes->widened +
           2 * sizes->tokens + 2 * sizes->results;
}

/* Activations that wait for backward on the host. */
static int64_t host_activation_bytes(const struct sizes *sizes, const struct ah_switches *switches)
{
    int64_t bytes = 0;
    for (int keeping = 0; keeping < AH_KEEPING_COUNT; keeping++)
        bytes += sizes->activations[keeping] *
                 ah__keeping_count(switches, (enum ah_keeping)keeping, false, switches->offload_activations);
    return bytes;
}

/* Host bytes that belong to no block. */
static int64_t host_outside_bytes(const struct sizes *sizes)
{
    int64_t bytes = 2 * sizes->tokens + 2 * sizes->results + sizes->staging;
    for (enum ah_class class = AH_CLASS_EMBEDDING; class < AH_CLASS_COUNT; class ++)
        if (class != AH_CLASS_BLOCK && sizes->on_host[class])
            bytes += sizes->states[class] + sizes->host_grad[class] + sizes->frozen[class];
    return bytes;
}

int64_t ah__layout_set_bytes(const struct ah_partition *partition, const struct ah_switches *switches)
{
    struct sizes sizes = {.copies = false};
    measure_groups(&sizes, partition, switches);
    return sizes.states[AH_CLASS_BLOCK];
}

int64_t ah__layout_buffer_bytes(const struct ah_partition *partition, const struct ah_switches *switches)
{
    int ranks = ah__world_size(switches);
    return round_up(ranks * ah__part_count(partition->groups[1].count, ranks) * ah__dtype_bytes(partition->compute));
}

int64_t ah__layout_activation_bytes(const struct ah_partition *partition, enum ah_keeping keeping)
{
    struct ah_switches none = {.layers = partition->layers};
    struct sizes sizes;
    measure(&sizes, partition, &none, 0);
    return sizes.activations[keeping];
}

void ah__layout_bytes(int64_t *device, int64_t *host, const struct ah_partition *partition,
                      const struct ah_switches *switches, int64_t workspace_bytes)
{
    struct sizes sizes;
    measure(&sizes, partition, switches, workspace_bytes);
    int parts = shard_count(switches) + reduced_count(partition, switches);
    int frozen = shard_count(switches) + homes_count(switches);
    int on_device = switches->layers - switches->offload_optimizer;
    *device = (switches->buffers + switches->unsharded) * sizes.buffer[AH_CLASS_BLOCK] +
              parts * sizes.host_grad[AH_CLASS_BLOCK] + frozen * sizes.frozen[AH_CLASS_BLOCK] +
              switches->layers * sizes.block_grad + sizes.device_states[AH_CLASS_BLOCK] * on_device +
              inputs_count(switches) * sizes.micro_batches * sizes.input + sizes.saved_all + sizes.kept_all +
              sizes.cheap + switches->layers * sizes.cache + outside_bytes(&sizes);
    *host = sizes.states[AH_CLASS_BLOCK] * ah__host_sets(switches) +
            (sizes.host_grad[AH_CLASS_BLOCK] + sizes.frozen[AH_CLASS_BLOCK]) * switches->offload_optimizer +
            host_activation_bytes(&sizes, switches) + host_outside_bytes(&sizes);
}

void ah__layout_constants(int64_t *device, int64_t *host, const struct ah_partition *partition)
{
    struct ah_switches all_recompute = {.layers = partition->layers, .checkpoint = partition->layers};
    struct sizes sizes;
    measure(&sizes, partition, &all_recompute, 0);
    *device = outside_bytes(&sizes);
    *host = host_outside_bytes(&sizes);
}

/* ---- placing ---- */

/* The next `bytes` of the memory that *end has grown to. */
static int64_t place(int64_t *end, int64_t bytes)
{
    int64_t offset = *end;
    *end += bytes;
    return offset;
}

static void place_group(struct ah_layout *layout, int group, const struct ah_switches *switches,
                        const struct sizes *sizes)
{
    enum ah_class class = ah__class_of(group, switches->layers);
    struct ah_layout_group *g = &layout->groups[group];
    *g = (struct ah_layout_group){
        .host_grad_offset = -1, .param_offset = -1, .grad_offset = -1, .host_frozen_offset = -1, .frozen_offset = -1};
    g->on_host = ah__on_host(switches, group);
    g->state_bytes = g->on_host ? sizes->state[class] : sizes->device_state[class];
    g->moment_bytes = sizes->moment[class];
    if (!g->on_host)
        g->state_offset = place(&layout->device_bytes, sizes->device_states[class]);
    else
        g->state_offset = class == AH_CLASS_BLOCK ? -1 : place(&layout->host_bytes, sizes->states[class]);
    if (g->on_host) {
        g->host_grad_offset = place(&layout->host_bytes, sizes->host_grad[class]);
        g->host_frozen_offset = place(&layout->host_bytes, sizes->frozen[class]);
    }
    bool apart = class == AH_CLASS_BLOCK ? ah__unsharded(switches, group) : g->on_host || sizes->copies;
    bool shares = sizes->ends && class != AH_CLASS_BLOCK;
    if (shares && class == AH_CLASS_HEAD)
        g->param_offset = layout->groups[0].param_offset;
    else if (apart)
        g->param_offset = place(&layout->device_bytes, shares ? sizes->ends : sizes->buffer[class]);
    if (!g->on_host && ah__world_size(switches) > 1 && (shares || !apart))
        g->frozen_offset = place(&layout->device_bytes, sizes->frozen[class]);
}

/* Where a block has what it keeps, and its input; on the host too where they leave. */
static void place_activations(struct ah_layout *layout, int block, const struct ah_switches *switches,
                              const struct sizes *sizes)
{
    struct ah_layout_group *group = &layout->groups[block];
    int below = ah__passing_below(switches, block), order = ah__giving_up(switches, block) - 1;
    enum ah_keeping keeping = ah__keeping(switches, block);
    bool passes = ah__passes(switches, block);
    int64_t stage = layout->activation_stages_offset + below % AH_ACTIVATION_BUFFERS * sizes->activation_stage;
    group->input_offset = passes ? stage : layout->inputs_offset + (block - 1 - below) * layout->input_bytes;
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
                        const struct sizes *sizes)
{
    int64_t *end = &layout->device_bytes;
    layout->inputs_offset = place(end, inputs_count(switches) * layout->input_bytes);
    layout->saved_offset = place(end, sizes->saved_all);
    layout->kept_offset = place(end, sizes->kept_all);
    layout->cheap_offset = place(end, sizes->cheap);
    if (sizes->saved_sets > 0)
        layout->cheap_offset = layout->saved_offset + block->kept_bytes;
    layout->activation_stages_offset = place(end, AH_ACTIVATION_BUFFERS * sizes->activation_stage);
    for (int group = 1; group <= switches->layers; group++)
        place_activations(layout, group, switches, sizes);
    layout->groups[switches->layers + 1].input_offset =
        layout->inputs_offset + (inputs_count(switches) - 1) * layout->input_bytes;
}

static void place_device(struct ah_layout *layout, const struct ah_partition *partition,
                         const struct ah_switches *switches, const struct sizes *sizes)
{
    int64_t *end = &layout->device_bytes;
    place_saved(layout, &partition->code[AH_CLASS_BLOCK], switches, sizes);
    layout->cache_offset = place(end, switches->layers * sizes->cache);
    layout->embedding_saved_offset = place(end, sizes->micro_batches * sizes->embedding_saved);
    layout->boundary_offset = place(end, sizes->micro_batches * sizes->boundary);
    layout->work_offset = place(end, sizes->work);
    layout->head_saved_offset = layout->work_offset + sizes->head_work;
    layout->workspace_offset = place(end, sizes->workspace);
    layout->widened_offset = place(end, sizes->widened);
    layout->accumulator_offset = sizes->accumulator ? place(end, sizes->accumulator) : -1;
    layout->tokens_offset = place(end, 2 * sizes->tokens);
    layout->results_offset = place(end, 2 * sizes->results);
    layout->groups[switches->layers + 1].grad_offset = place(end, sizes->head_grad);
    for (int group = 1; sizes->own_grads && group <= switches->layers; group++)
        layout->groups[group].grad_offset = place(end, sizes->block_grad);
    layout->groups[0].grad_offset = place(end, sizes->embedding_grad);
    if (sizes->embedding_grad > 0 && sizes->head_grad == 0)
        layout->groups[switches->layers + 1].grad_offset = layout->groups[0].grad_offset;
}

static void place_host(struct ah_layout *layout, const struct ah_switches *switches, const struct sizes *sizes)
{
    int64_t *end = &layout->host_bytes;
    layout->set_bytes = sizes->states[AH_CLASS_BLOCK];
    layout->sets_offset = place(end, ah__host_sets(switches) * layout->set_bytes);
    layout->host_tokens_offset = place(end, 2 * sizes->tokens);
    layout->host_results_offset = place(end, 2 * sizes->results);
    layout->host_staging_offset = place(end, sizes->staging);
}

static void note_sizes(struct ah_layout *layout, const struct ah_switches *switches, const struct sizes *sizes)
{
    layout->buffer_bytes = sizes->buffer[AH_CLASS_BLOCK];
    layout->stage_bytes = sizes->stages / AH_STAGING_BUFFERS;
    layout->stage_state_bytes = sizes->stage_state;
    layout->stage_moment_bytes = sizes->stage_moment;
    layout->stage_rest_bytes = sizes->stage_rest;
    layout->input_bytes = sizes->micro_batches * sizes->input;
    layout->saved_sets = sizes->saved_sets;
    layout->saved_bytes = sizes->saved_sets > 0 ? sizes->saved_all / sizes->saved_sets : 0;
    layout->kept_sets = ah__keeping_count(switches, AH_KEEPS_PRODUCTS, true, 0);
    layout->activation_stage_bytes = sizes->activation_stage;
    layout->kept_bytes = sizes->micro_batches * sizes->kept;
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
    struct sizes sizes;
    measure(&sizes, partition, switches, workspace_bytes);
    note_sizes(layout, switches, &sizes);
    layout->buffers_offset = place(&layout->device_bytes, switches->buffers * layout->buffer_bytes);
    layout->reduced_bytes = sizes.host_grad[AH_CLASS_BLOCK];
    layout->shard_bytes = layout->reduced_bytes + sizes.frozen[AH_CLASS_BLOCK];
    layout->shards_offset = place(&layout->device_bytes, shard_count(switches) * layout->shard_bytes);
    layout->reduced_offset = place(&layout->device_bytes, reduced_count(partition, switches) * layout->reduced_bytes);
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
