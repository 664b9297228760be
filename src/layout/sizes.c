#include "layout/sizes.h"

#include "bind/bind.h"
#include "dev/host/disk.h"

enum { STAGING_MOST_BYTES = 1 << 20 };

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

/* Returns the size of the staging buffer in host memory, through which device states are loaded and saved in pieces; 0
 * if all states are on the host. */
static int64_t staging_bytes(const struct ah_partition *partition, const struct ah_switches *switches)
{
    const int lowest[AH_CLASS_COUNT] = {0, 1, switches->layers + 1}; /* for each class, the group that is offloaded
                                                                      * last */
    int64_t largest = 0;
    for (int class = 0; class < AH_CLASS_COUNT; class ++)
        if (!ah__on_host(switches, lowest[class]))
            largest = max_bytes(largest, largest_param_bytes(partition, lowest[class]));
    return largest < STAGING_MOST_BYTES ? round_up(largest) : STAGING_MOST_BYTES;
}

/* Returns the most scratch that one of the programs with a bit in `kinds` needs. */
static int64_t work_of(const struct ah_code *code, unsigned kinds)
{
    int64_t most = 0;
    for (int kind = 0; kind < AH_PROGRAM_COUNT; kind++)
        if (kinds >> kind & 1)
            most = max_bytes(most, code->program[kind].work_bytes);
    return most;
}

/* Returns the programs of a block that a plan runs, as bits. Evaluation runs FORWARD_DROP under every plan. */
static unsigned block_programs(const struct ah_switches *switches)
{
    unsigned kinds = 1U << AH_PROGRAM_FORWARD_DROP | 1U << AH_PROGRAM_BACKWARD;
    if (switches->checkpoint < ah__trained_blocks(switches))
        kinds |= 1U << AH_PROGRAM_FORWARD;
    if (switches->checkpoint > 0)
        kinds |= 1U << AH_PROGRAM_RECOMPUTE;
    if (switches->selective > 0)
        kinds |= 1U << AH_PROGRAM_RECOMPUTE_SELECTIVE;
    return kinds;
}

/* Computes the size of scratch. No block runs between the head's forward and its backward, so the head's saved
 * activations may use the blocks' scratch, behind the scratch of the head's own two programs. */
static void measure_work(struct ah_sizes *sizes, const struct ah_partition *partition,
                         const struct ah_switches *switches)
{
    const struct ah_code *code = partition->code, *head = &code[AH_CLASS_HEAD];
    sizes->head_work = round_up(work_of(head, 1U << AH_PROGRAM_FORWARD | 1U << AH_PROGRAM_BACKWARD));
    sizes->head_saved = round_up(head->saved_bytes);
    int64_t work = sizes->head_work + sizes->at_once * sizes->head_saved;
    work = max_bytes(work, work_of(head, 1U << AH_PROGRAM_FORWARD_DROP));
    if (partition->step.logits)
        work = max_bytes(work, work_of(head, 1U << AH_PROGRAM_INFER));
    work = max_bytes(work, ah__code_work_bytes(&code[AH_CLASS_EMBEDDING]));
    for (int class = AH_CLASS_COUNT; class < partition->class_count; class ++)
        work = max_bytes(work, work_of(&code[class], 1U << AH_PROGRAM_FORWARD_DROP));
    work = max_bytes(work, work_of(&code[AH_CLASS_BLOCK], block_programs(switches)));
    sizes->work = round_up(max_bytes(work, partition->work_bytes_least));
    for (int class = 0; class < partition->class_count; class ++)
        sizes->program_work = max_bytes(sizes->program_work, ah__code_work_bytes(&code[class]));
}

/* Returns the bytes of `count` elements in the compute dtype, rounded up to equal parts for all ranks. */
static int64_t parts_bytes(const struct ah_partition *partition, int64_t count, const struct ah_switches *switches)
{
    int ranks = ah__world_size(switches);
    return round_up(ranks * ah__part_count(count, ranks) * ah__dtype_bytes(partition->compute));
}

/* Returns the bytes of the embedding's or head's gradient: F32 while it is summed, then in the compute dtype in equal
 * parts for all ranks. */
static int64_t sum_bytes(const struct ah_partition *partition, int group, const struct ah_switches *switches)
{
    int64_t bytes = partition->groups[group].trained * (int64_t)sizeof(float);
    int64_t parts = parts_bytes(partition, partition->groups[group].trained, switches);
    return ah__world_size(switches) > 1 ? max_bytes(bytes, parts) : bytes;
}

int64_t ah__layout_sum_bytes(const struct ah_partition *partition)
{
    return round_up(ah__block_group(partition)->trained * (int64_t)sizeof(float));
}

/* Computes the size of a block's gradient sum, and for how many micro-batches boundary gradients wait for the
 * embedding's backward: if its gradient shares memory with another, for all, since then it comes last. */
static void measure_sums(struct ah_sizes *sizes, const struct ah_partition *partition,
                         const struct ah_switches *switches)
{
    int count = ah__rounds(switches, sizes->micro_batches), trained = ah__trained_blocks(switches);
    bool rounds = count > 1;
    bool late = partition->shared_group == 0 || ah__share_gradients(switches, partition->step.clips);
    sizes->embedded = late ? sizes->micro_batches : sizes->at_once;
    sizes->sum = ah__layout_sum_bytes(partition);
    if (partition->step.infers)
        return;
    sizes->staying_sums = ah__staying_sums(switches, count);
    bool in_turn = trained > sizes->staying_sums && sizes->sum > 0;
    sizes->sum_places = !in_turn ? 0 : rounds ? AH_SUM_PLACES : partition->compute != AH_F32 ? 1 : 0;
    sizes->host_sums = rounds ? (trained - sizes->staying_sums) * sizes->sum : 0;
}

static void measure_groups(struct ah_sizes *sizes, const struct ah_partition *partition,
                           const struct ah_switches *switches)
{
    const struct ah_group *block = ah__block_group(partition);
    int64_t element_bytes = ah__dtype_bytes(partition->compute);
    for (int class = 0; class < AH_SIZED_COUNT; class ++) {
        int group = class == AH_SIZED_FROZEN ? 1 : ah__class_representative((enum ah_class) class, switches->layers);
        if (class == AH_SIZED_FROZEN && !ah__is_frozen(switches, group))
            break;
        const struct ah_group *of = &partition->groups[group];
        int ranks = ah__world_size(switches);
        int64_t part = ah__part_count(of->trained, ranks), read = ranks > 1 ? part : of->count;
        sizes->on_host[class] = ah__on_host(switches, group);
        for (int which = 0; which < AH_STATE_COUNT; which++) {
            sizes->state[class][which] = round_up(ah__state_size(partition, which, part));
            sizes->states[class] += sizes->state[class][which];
        }
        int64_t updated = partition->step.infers ? 0 : sizes->states[class] - sizes->state[class][0];
        sizes->device_state[class] = round_up(ah__state_size(partition, 0, read));
        sizes->device_states[class] = sizes->device_state[class] + updated;
        sizes->buffer[class] = parts_bytes(partition, of->count, switches);
        sizes->host_grad[class] = round_up(part * element_bytes);
        sizes->summed[class] = sum_bytes(partition, group, switches);
        sizes->frozen[class] = round_up(ah__part_count(ah__frozen_count(of), ranks) * element_bytes);
    }
    sizes->buffer[AH_CLASS_BLOCK] = ah__layout_buffer_bytes(partition, switches);
    if (switches->staged > 0) {
        int64_t part = ah__part_count(block->trained, ah__world_size(switches));
        int64_t chunk = ah__chunk_count(part, switches->chunks);
        for (int i = 0; i < AH_STATE_COUNT; i++)
            sizes->stage_at[i + 1] = sizes->stage_at[i] + round_up(ah__state_size(partition, i, chunk));
        sizes->stages = AH_STAGING_BUFFERS * (sizes->stage_at[AH_STATE_COUNT] + round_up(chunk * element_bytes));
    }
    sizes->copies = ah__world_size(switches) > 1;
    sizes->embedding_grad = sizes->summed[AH_CLASS_EMBEDDING];
    sizes->head_grad = round_up(sizes->summed[AH_CLASS_HEAD]);
    if (ah__share_gradients(switches, partition->step.clips)) {
        sizes->embedding_grad = max_bytes(sizes->embedding_grad, sizes->summed[AH_CLASS_HEAD]);
        sizes->head_grad = 0;
    }
    if (switches->share_embedding_head)
        sizes->ends = max_bytes(sizes->buffer[AH_CLASS_EMBEDDING], sizes->buffer[AH_CLASS_HEAD]);
    if (partition->step.infers)
        sizes->embedding_grad = sizes->head_grad = 0;
    measure_sums(sizes, partition, switches);
    if (ah__is_widened(block))
        sizes->widened = round_up(block->placed * element_bytes);
    if (ah__blocks_keep_gradients(partition))
        sizes->block_grad = parts_bytes(partition, block->trained, switches);
    sizes->own_grads = ah__blocks_keep_gradients(partition);
}

static int64_t disk_round_up(int64_t bytes)
{
    return (bytes + AH_DISK_ALIGN - 1) / AH_DISK_ALIGN * AH_DISK_ALIGN;
}

static struct ah_disk_chunk disk_chunk(const struct ah_partition *partition, int group,
                                       const struct ah_switches *switches)
{
    const struct ah_group *of = &partition->groups[group];
    int ranks = ah__world_size(switches);
    int64_t count = ah__chunk_count(ah__part_count(of->trained, ranks), switches->chunks);
    int64_t frozen = ah__chunk_count(ah__part_count(ah__frozen_count(of), ranks), switches->chunks);
    struct ah_disk_chunk chunk = {
        .state = disk_round_up(ah__state_size(partition, 0, count)),
        .moment = disk_round_up(ah__state_size(partition, 1, count)),
        .rest = disk_round_up(ah__state_size(partition, AH_STATE_REST, count)),
        .gradient = disk_round_up(count * ah__dtype_bytes(partition->compute)),
        .frozen = disk_round_up(frozen * ah__dtype_bytes(partition->compute)),
        .places = ah__disk_places(partition->step.clips),
    };
    chunk.states = chunk.state + 2 * chunk.moment + chunk.rest;
    chunk.bytes = chunk.frozen + chunk.gradient + chunk.places * chunk.states;
    return chunk;
}

/* Computes the sizes of blocks on disk, and of the host buffers for their chunks: of states and gradient, or of p and
 * what is frozen. */
static void measure_disk(struct ah_sizes *sizes, const struct ah_partition *partition,
                         const struct ah_switches *switches)
{
    const int group[2] = {switches->layers, 1};
    for (int frozen = 0; switches->disk_blocks > 0 && frozen <= (switches->frozen_blocks > 0); frozen++) {
        struct ah_disk_chunk chunk = disk_chunk(partition, group[frozen], switches);
        sizes->disk_chunk[frozen] = chunk;
        sizes->slot = max_bytes(sizes->slot, max_bytes(chunk.states + chunk.gradient, chunk.state + chunk.frozen));
    }
}

/* Computes the sizes of saved activations. Recomputed activations are those of one micro-batch and use the set of a
 * block that keeps all its activations, which are saved later in forward and read earlier in backward. Blocks whose
 * activations are offloaded have only the staging buffers, each large enough for the last such block, which saves the
 * most. */
static void measure_saved(struct ah_sizes *sizes, const struct ah_code *block, const struct ah_switches *switches)
{
    int keeping = ah__keeping_count(switches, AH_KEEPS_ALL, true, 0);
    int selective = ah__keeping_count(switches, AH_KEEPS_PRODUCTS, true, 0);
    sizes->saved = round_up(block->saved_bytes);
    sizes->kept = round_up(block->kept_bytes);
    sizes->saved_sets = keeping > 0 ? keeping : selective == 0 && switches->checkpoint > 0 ? 1 : 0;
    sizes->saved_all = sizes->saved_sets * sizes->saved * (keeping > 0 ? sizes->at_once : 1);
    sizes->kept_all = selective * sizes->kept * sizes->at_once;
    if (sizes->saved_sets == 0 && switches->selective > 0)
        sizes->cheap = round_up(block->saved_bytes - block->kept_bytes);
    sizes->activations[AH_KEEPS_INPUT] = sizes->at_once * sizes->input;
    sizes->activations[AH_KEEPS_PRODUCTS] = sizes->at_once * (sizes->input + sizes->kept);
    sizes->activations[AH_KEEPS_ALL] = sizes->at_once * (sizes->input + sizes->saved);
    if (ah__passing_blocks(switches) > 0)
        sizes->activation_stage = sizes->activations[ah__keeping_at(switches, switches->layers)];
}

void ah__sizes(struct ah_sizes *sizes, const struct ah_partition *partition, const struct ah_switches *switches,
               int64_t workspace_bytes)
{
    const struct ah_code *code = partition->code;
    int micro_batches = ah__micro_batches(partition);
    *sizes = (struct ah_sizes){
        .micro_batches = micro_batches,
        .at_once = ah__round_most(micro_batches, ah__rounds(switches, micro_batches)),
    };
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
    measure_disk(sizes, partition, switches);
}

/* ---- totals ---- */

int ah__shard_count(const struct ah_switches *switches)
{
    return ah__world_size(switches) > 1 ? ah__trained_on_host(switches) - switches->offload_params : 0;
}

/* Returns how many blocks have their shard of frozen parameters on the device beside states: with several ranks, those
 * that are optimized on the device and sharded. */
static int homes_count(const struct ah_switches *switches)
{
    int unsharded = switches->unsharded - ah__unsharded_frozen(switches);
    return ah__world_size(switches) > 1 ? ah__trained_on_device(switches) - unsharded : 0;
}

/* Device bytes of blocks without backward that stay there: all of them, or this rank's parts. */
static int64_t frozen_bytes(const struct ah_sizes *sizes, const struct ah_switches *switches)
{
    int on_device = switches->frozen_blocks - ah__frozen_on_host(switches), whole = ah__unsharded_frozen(switches);
    if (ah__world_size(switches) == 1)
        return on_device * sizes->device_states[AH_SIZED_FROZEN];
    return (on_device - whole) * sizes->frozen[AH_SIZED_FROZEN] + whole * sizes->buffer[AH_CLASS_BLOCK];
}

int ah__reduced_count(const struct ah_partition *partition, const struct ah_switches *switches)
{
    bool wait = ah__world_size(switches) > 1 && partition->step.clips;
    return wait ? ah__trained_on_device(switches) : 0;
}

int ah__inputs_count(const struct ah_switches *switches)
{
    return ah__trained_blocks(switches) + 1 - ah__passing_blocks(switches);
}

/* Returns the bytes of embedding or head on the device: states unless they are on the host, parameters unless the
 * states' p serves as such. */
static int64_t dedicated_bytes(const struct ah_sizes *sizes, enum ah_class class)
{
    bool host = sizes->on_host[class];
    bool apart = (host || sizes->copies) && sizes->ends == 0;
    int64_t frozen = sizes->ends > 0 ? sizes->frozen[class] : 0; /* else in the group's own buffer */
    return (host ? 0 : sizes->device_states[class] + frozen) + (apart ? sizes->buffer[class] : 0);
}

/* Returns the device bytes that belong to no block: the same under every (c, p, o) with embedding and head where they
 * are. */
static int64_t outside_bytes(const struct ah_sizes *sizes)
{
    int64_t bytes = sizes->embedding_grad + sizes->head_grad + sizes->ends;
    bytes += dedicated_bytes(sizes, AH_CLASS_EMBEDDING) + dedicated_bytes(sizes, AH_CLASS_HEAD);
    return bytes + sizes->embedded * (sizes->embedding_saved + sizes->boundary) + sizes->work + sizes->workspace +
           sizes->stages + AH_ACTIVATION_BUFFERS * sizes->activation_stage + sizes->sum_places * sizes->sum +
           sizes->widened + 2 * sizes->tokens + 2 * sizes->results;
}

/* Returns the bytes of offloaded activations on the host. */
static int64_t host_activation_bytes(const struct ah_sizes *sizes, const struct ah_switches *switches)
{
    int64_t bytes = 0;
    for (int keeping = 0; keeping < AH_KEEPING_COUNT; keeping++)
        bytes += sizes->activations[keeping] *
                 ah__keeping_count(switches, (enum ah_keeping)keeping, false, switches->offload_activations);
    return bytes;
}

/* Returns the host bytes that belong to no block. */
static int64_t host_outside_bytes(const struct ah_sizes *sizes)
{
    int64_t bytes = 2 * sizes->tokens + 2 * sizes->results + sizes->staging + sizes->host_sums;
    for (enum ah_class class = AH_CLASS_EMBEDDING; class < AH_CLASS_COUNT; class ++)
        if (class != AH_CLASS_BLOCK && sizes->on_host[class])
            bytes += sizes->states[class] + sizes->host_grad[class] + sizes->frozen[class];
    return bytes;
}

int64_t ah__layout_set_bytes(const struct ah_partition *partition, const struct ah_switches *switches)
{
    struct ah_sizes sizes = {.copies = false};
    measure_groups(&sizes, partition, switches);
    return sizes.states[AH_CLASS_BLOCK];
}

int64_t ah__layout_buffer_bytes(const struct ah_partition *partition, const struct ah_switches *switches)
{
    int64_t lowest = partition->groups[1].count, highest = ah__block_group(partition)->count;
    return parts_bytes(partition, max_bytes(lowest, highest), switches);
}

int64_t ah__layout_whole_bytes(const struct ah_partition *partition, const struct ah_switches *switches)
{
    int ranks = ah__world_size(switches);
    int64_t home =
        ah__part_count(ah__frozen_count(ah__block_group(partition)), ranks) * ah__dtype_bytes(partition->compute);
    return ah__layout_buffer_bytes(partition, switches) - round_up(home);
}

int64_t ah__layout_activation_bytes(const struct ah_partition *partition, enum ah_keeping keeping)
{
    struct ah_switches none = {.layers = partition->layers, .frozen_blocks = partition->frozen_blocks};
    struct ah_sizes sizes;
    ah__sizes(&sizes, partition, &none, 0);
    return sizes.activations[keeping];
}

void ah__layout_bytes(int64_t *device, int64_t *host, const struct ah_partition *partition,
                      const struct ah_switches *switches, int64_t workspace_bytes)
{
    struct ah_sizes sizes;
    ah__sizes(&sizes, partition, switches, workspace_bytes);
    int parts = ah__shard_count(switches) + ah__reduced_count(partition, switches);
    int frozen = ah__shard_count(switches) + homes_count(switches);
    int unsharded = switches->unsharded - ah__unsharded_frozen(switches);
    *device = (switches->buffers + unsharded) * sizes.buffer[AH_CLASS_BLOCK] + frozen_bytes(&sizes, switches) +
              parts * sizes.host_grad[AH_CLASS_BLOCK] + frozen * sizes.frozen[AH_CLASS_BLOCK] +
              (ah__trained_blocks(switches) - sizes.staying_sums) * sizes.block_grad + sizes.staying_sums * sizes.sum +
              ah__trained_on_device(switches) * sizes.device_states[AH_CLASS_BLOCK] +
              ah__inputs_count(switches) * sizes.at_once * sizes.input + sizes.saved_all + sizes.kept_all +
              sizes.cheap + switches->layers * sizes.cache + outside_bytes(&sizes);
    *host = sizes.states[AH_CLASS_BLOCK] * ah__host_sets(switches) +
            (sizes.host_grad[AH_CLASS_BLOCK] + sizes.frozen[AH_CLASS_BLOCK]) *
                (ah__trained_on_host(switches) - ah__trained_on_disk(switches)) +
            sizes.frozen[AH_SIZED_FROZEN] * (ah__frozen_on_host(switches) - ah__frozen_on_disk(switches)) +
            sizes.slot * ah__disk_slots(switches) + host_activation_bytes(&sizes, switches) +
            host_outside_bytes(&sizes);
}

int64_t ah__layout_disk_bytes(const struct ah_partition *partition, const struct ah_switches *switches)
{
    struct ah_sizes sizes = {.slot = 0};
    measure_disk(&sizes, partition, switches);
    return switches->chunks * (ah__trained_on_disk(switches) * sizes.disk_chunk[0].bytes +
                               ah__frozen_on_disk(switches) * sizes.disk_chunk[1].bytes);
}

struct ah_disk_traffic ah__layout_disk_traffic(const struct ah_partition *partition, const struct ah_switches *switches)
{
    struct ah_disk_chunk chunk = disk_chunk(partition, switches->layers, switches), frozen = {.frozen = 0};
    if (switches->frozen_blocks > 0)
        frozen = disk_chunk(partition, 1, switches);
    return (struct ah_disk_traffic){.fetched = switches->chunks * (chunk.state + chunk.frozen),
                                    .fetched_frozen = switches->chunks * (frozen.state + frozen.frozen),
                                    .gradient = switches->chunks * chunk.gradient,
                                    .states = switches->chunks * chunk.states};
}

void ah__layout_constants(int64_t *device, int64_t *host, const struct ah_partition *partition)
{
    int trained = partition->layers - partition->frozen_blocks;
    struct ah_switches all_recompute = {
        .layers = partition->layers, .frozen_blocks = partition->frozen_blocks, .checkpoint = trained};
    struct ah_sizes sizes;
    ah__sizes(&sizes, partition, &all_recompute, 0);
    *device = outside_bytes(&sizes);
    *host = host_outside_bytes(&sizes);
}
