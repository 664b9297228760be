/* Causal attention over the pool: forward in pieces of one query tile, backward in pieces of one (batch, head). */
#include "dev/cpu/kernels.h"

#include <math.h>

/* A call whose job has its addresses. */
struct attention_run {
    const struct ah_bound *bound;
    struct ah_attention job;
};

static int attention_geometry(struct ah_cpu_call *call, const struct ah_shape *qkv)
{
    int heads = call->call->attr.heads;
    int64_t channels = qkv->dim[2] / 3;
    if (heads < 1 || channels % heads != 0 || channels / heads > AH_ATTENTION_MAX_HEAD)
        return ah__fail(AH_EDEVICE, "%lld channels in %d heads, expected heads of at most %d channels each",
                        (long long)channels, heads, AH_ATTENTION_MAX_HEAD);
    struct ah_attention job = {.seq = qkv->dim[1], .channels = channels, .heads = heads,
                               .head_size = (int)(channels / heads), .accumulate = call->adds[0]};
    job.scale = 1.0F / sqrtf((float)job.head_size);
    call->as.attention.job = job;
    call->as.attention.batch = qkv->dim[0];
    call->as.attention.tiles = (job.seq + AH_ATTENTION_TILE - 1) / AH_ATTENTION_TILE;
    return AH_OK;
}

static int attention_prepare(struct ah_cpu_call *call)
{
    return attention_geometry(call, ah__call_in(call, 0));
}

/* The tiles of a head follow each other, so that its keys and values stay in the caches. */
static void forward_piece(void *context, int index, int worker)
{
    const struct attention_run *run = context;
    int64_t tiles = run->bound->call->as.attention.tiles, pair = index / tiles;
    run->bound->call->kernels->attention(&run->job, pair / run->job.heads, (int)(pair % run->job.heads), index % tiles,
                                         ah__pool_scratch(run->bound->pool, worker));
}

static int attention_run(const struct ah_bound *bound)
{
    const struct ah_cpu_call *call = bound->call;
    struct attention_run run = {.bound = bound, .job = call->as.attention.job};
    run.job.qkv = bound->in[0];
    run.job.y = bound->out[0];
    run.job.lse = bound->out[1];
    ah__pool_run(bound->pool, forward_piece, (int)(call->as.attention.batch * run.job.heads * call->as.attention.tiles),
                 &run);
    return AH_OK;
}

const struct ah_cpu_operator ah__cpu_attention = {attention_prepare, attention_run};

static int attention_bwd_prepare(struct ah_cpu_call *call)
{
    AH_TRY(attention_geometry(call, ah__call_in(call, 1)));
    if (call->dtype != AH_F32)
        call->workspace_bytes = call->threads * ah__attention_sums(&call->as.attention.job) * (int64_t)sizeof(float);
    return AH_OK;
}

static void backward_piece(void *context, int index, int worker)
{
    const struct attention_run *run = context;
    const struct ah_bound *b = run->bound;
    float *sums = (float *)(void *)b->workspace;
    b->call->kernels->attention_bwd(&run->job, index / run->job.heads, index % run->job.heads,
                                    ah__pool_scratch(b->pool, worker),
                                    sums ? sums + worker * ah__attention_sums(&run->job) : NULL);
}

static int attention_bwd_run(const struct ah_bound *bound)
{
    struct attention_run run = {.bound = bound, .job = bound->call->as.attention.job};
    run.job.dy = bound->in[0];
    run.job.qkv = bound->in[1];
    run.job.y = (void *)(uintptr_t)bound->in[2];
    run.job.lse = (float *)(uintptr_t)bound->in[3];
    run.job.dqkv = bound->out[0];
    ah__pool_run(bound->pool, backward_piece, (int)(bound->call->as.attention.batch * run.job.heads), &run);
    return AH_OK;
}

const struct ah_cpu_operator ah__cpu_attention_bwd = {attention_bwd_prepare, attention_bwd_run};
