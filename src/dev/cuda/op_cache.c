/* Operators of the key/value cache. */
#include "dev/cuda/attention.h"
#include "dev/cuda/kernels.h"
#include "dev/cuda/program.h"
#include "op/attention.h"

static int nothing_prepare(struct ah_cuda_call *call)
{
    (void)call;
    return AH_OK;
}

static const char *elements_after(const struct ah_cuda_bound *bound, int input, int64_t count)
{
    return (const char *)bound->in[input] + count * ah__dtype_bytes(bound->call->dtype);
}

/* Enqueues a write. k and v in operands of their own count as one head; side by side with q they follow it, for all
 * heads or for each head. */
static int cache_write_enqueue(const struct ah_cuda_bound *bound)
{
    const struct ah_call *call = bound->call->call;
    const struct ah_shape *cache = &call->in[0].meta.shape, *k = &call->in[1].meta.shape;
    bool packed = !bound->in[2], by_head = packed && call->attr.by_head;
    int64_t keys = cache->dim[2] / 2, size = by_head ? keys / call->attr.heads : keys;
    struct ah_cuda_cache job = {.cache = bound->out[0],
                                .k = elements_after(bound, 1, packed ? size : 0),
                                .v = packed ? elements_after(bound, 1, 2 * size) : bound->in[2],
                                .positions = bound->in[3],
                                .batch = k->dim[0],
                                .seq = k->dim[1],
                                .rows = cache->dim[1],
                                .keys = keys,
                                .stride = k->dim[2],
                                .head = by_head ? 3 * size : 0,
                                .heads = by_head ? call->attr.heads : 1,
                                .size = (int)size};
    AH_CUDA_TRY(ah__cuda_cache_write_enqueue(bound->stream, bound->call->dtype, &job));
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_cache_write = {nothing_prepare, cache_write_enqueue};

static int attention_cached_prepare(struct ah_cuda_call *call)
{
    int64_t channels = call->call->out[0].meta.shape.dim[2];
    int heads = call->call->attr.heads;
    if (channels / heads <= AH_CUDA_ATTENTION_MAX_HEAD)
        return AH_OK;
    return ah__fail(AH_EDEVICE, "%lld channels in %d heads, expected heads of at most %d channels each",
                    (long long)channels, heads, AH_CUDA_ATTENTION_MAX_HEAD);
}

static int attention_cached_enqueue(const struct ah_cuda_bound *bound)
{
    const struct ah_call *call = bound->call->call;
    const struct ah_shape *cache = &call->in[0].meta.shape, *q = &call->in[1].meta.shape, *y = &call->out[0].meta.shape;
    int heads = call->attr.heads, size = (int)(y->dim[2] / heads);
    struct ah_cuda_cache job = {.cache = (void *)(uintptr_t)bound->in[0],
                                .q = bound->in[1],
                                .y = bound->out[0],
                                .positions = bound->in[2],
                                .batch = y->dim[0],
                                .seq = y->dim[1],
                                .rows = cache->dim[1],
                                .keys = cache->dim[2] / 2,
                                .stride = q->dim[2],
                                .head = size * (call->attr.by_head ? 3 : 1),
                                .window = call->attr.window ? call->attr.window : cache->dim[1],
                                .heads = heads,
                                .size = size,
                                .group = heads / call->attr.kv_heads,
                                .scale = ah__attention_scale(&call->attr, size),
                                .cap = call->attr.cap,
                                .sinks = bound->in[3]};
    AH_CUDA_TRY(ah__cuda_attention_cached_enqueue(bound->stream, bound->call->dtype, &job));
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_attention_cached = {attention_cached_prepare, attention_cached_enqueue};
