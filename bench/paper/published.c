#include "paper/published.h"

#include "partition/class.h"

/* Per token and channel, per score, per logit: elements of the compute dtype, and bytes that do not depend on it. */
enum { BLOCK_ELEMENTS = 16, BLOCK_MASKS = 2, SCORE_ELEMENTS = 2, SCORE_MASKS = 1 };
enum { AROUND_ELEMENTS = 2, AROUND_MASKS = 1 };
enum { LOGIT_BYTES = 12, STATE_BYTES = 12 };

/* Bytes on the host of a parameter whose states are there; and the elements of each of two gradient buckets of a system
 * that keeps all parameters on the device. DeepSpeed's reduce_bucket_size is 500 million unless its user sets it. */
enum { HOST_BYTES = 14, HOST_BYTES_ZERO_OFFLOAD = 18 /* states, fp32 gradient, fp16 parameter */ };
enum { BUCKET_ELEMENTS_ZERO_OFFLOAD = 500000000 };

static int64_t host_bytes(const struct ah_policy *policy)
{
    return policy == &ah__policy_zero_offload ? HOST_BYTES_ZERO_OFFLOAD : HOST_BYTES;
}

static int64_t bucket_elements(const struct ah_policy *policy)
{
    return policy == &ah__policy_zero_offload ? BUCKET_ELEMENTS_ZERO_OFFLOAD : 0;
}

static const struct ah_call *find_call(const struct ah_program *program, enum ah_op a, enum ah_op b)
{
    for (int i = 0; i < program->count; i++)
        if (program->calls[i].op == a || program->calls[i].op == b)
            return &program->calls[i];
    return NULL;
}

/* The head's weight is [vocabulary, width], the only matrix its loss reads. */
static int64_t vocabulary_of(const struct ah_partition *partition, int64_t width)
{
    const struct ah_program *forward = &partition->code[AH_CLASS_HEAD].program[AH_PROGRAM_FORWARD];
    for (int c = 0; c < forward->count; c++)
        for (int i = 0; i < AH_OP_MAX_INPUTS; i++) {
            const struct ah_operand *in = &forward->calls[c].in[i];
            bool weight = in->space == AH_SPACE_PARAM || in->space == AH_SPACE_SHARED;
            if (weight && in->meta.shape.rank == 2)
                return ah__shape_count(&in->meta.shape) / width;
        }
    return 0;
}

struct published_shape published_shape(const struct ah_partition *partition)
{
    const struct ah_code *block = &partition->code[AH_CLASS_BLOCK];
    struct published_shape shape = {.tokens = partition->batch * partition->seq, .seq = partition->seq};
    const struct ah_call *attention =
        find_call(&block->program[AH_PROGRAM_FORWARD_DROP], AH_OP_ATTENTION, AH_OP_ATTENTION_QKV);
    shape.width = block->input_bytes / (shape.tokens * ah__dtype_bytes(partition->compute));
    shape.heads = attention ? attention->attr.heads : 0;
    shape.vocabulary = vocabulary_of(partition, shape.width);
    return shape;
}

int64_t published_activation_bytes(const struct ah_partition *partition, const struct ah_switches *switches)
{
    struct published_shape shape = published_shape(partition);
    int64_t element = ah__dtype_bytes(partition->compute), channels = shape.tokens * shape.width;
    int64_t scores = shape.tokens * shape.heads * shape.seq, micro_batches = ah__micro_batches(partition);
    int64_t block =
        channels * (BLOCK_ELEMENTS * element + BLOCK_MASKS) + scores * (SCORE_ELEMENTS * element + SCORE_MASKS);
    int64_t around = channels * (AROUND_ELEMENTS * element + AROUND_MASKS);
    int64_t head = shape.tokens * shape.vocabulary * LOGIT_BYTES;
    int64_t at_head = (switches->layers - switches->checkpoint) * block * micro_batches + head;
    int64_t again = switches->checkpoint ? block : 0;
    return micro_batches * (switches->checkpoint * channels * element + around) + (at_head > again ? at_head : again);
}

static int64_t share(int64_t bytes, const struct ah_switches *switches)
{
    return (bytes + ah__world_size(switches) - 1) / ah__world_size(switches);
}

/* Blocks: states, buffers and, with several ranks, parts that stay. Buckets: what a system keeps instead of buffers. */
static int64_t block_data(const struct ah_partition *partition, const struct ah_switches *switches,
                          const struct ah_policy *policy)
{
    int64_t count = partition->groups[1].count, element = ah__dtype_bytes(partition->compute);
    int64_t on_device = switches->layers - switches->offload_optimizer;
    int64_t states = on_device * share(count * STATE_BYTES, switches);
    if (bucket_elements(policy) && ah__world_size(switches) == 1)
        return states + switches->layers * count * element;
    int64_t stays = switches->offload_optimizer - switches->offload_params;
    return states + switches->buffers * count * element +
           (ah__world_size(switches) > 1 ? stays * share(count * element, switches) : 0);
}

static int64_t other_data(const struct ah_partition *partition, const struct ah_switches *switches, int group)
{
    int64_t count = partition->groups[group].count, element = ah__dtype_bytes(partition->compute);
    return 2 * count * element + (ah__on_host(switches, group) ? 0 : share(count * STATE_BYTES, switches));
}

void published_bytes(int64_t *device, int64_t *host, const struct ah_partition *partition,
                     const struct ah_switches *switches, const struct ah_policy *policy)
{
    int last = switches->layers + 1;
    int64_t element = ah__dtype_bytes(partition->compute);
    int64_t on_host = (switches->offload_optimizer + switches->shadows) * partition->groups[1].count;
    on_host += ah__on_host(switches, 0) ? partition->groups[0].count : 0;
    on_host += ah__on_host(switches, last) ? partition->groups[last].count : 0;
    *device = published_activation_bytes(partition, switches) + block_data(partition, switches, policy) +
              other_data(partition, switches, 0) + other_data(partition, switches, last) +
              2 * bucket_elements(policy) * element;
    *host = share(on_host * host_bytes(policy), switches);
}
