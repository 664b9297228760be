/* Causal attention over the pool: forward in pieces of one query tile, backward in pieces of one (batch, head). */
#include "dev/cpu/kernels.h"

#include <math.h>

struct attention_run {
    const struct ah_bound *bound;
    struct ah_attention job;
    int64_t batch;
};

static int prepare(struct attention_run *run, const struct ah_bound *bound, const struct ah_shape *qkv)
{
    int heads = bound->call->attr.heads;
    int64_t channels = qkv->dim[2] / 3;
    if (heads < 1 || channels % heads != 0 || channels / heads > AH_ATTENTION_MAX_HEAD)
        return ah__fail(AH_EDEVICE, "cpu: attention: %lld channels in %d heads, expected heads of at most %d channels each",
                        (long long)channels, heads, AH_ATTENTION_MAX_HEAD);
    run->bound = bound;
    run->batch = qkv->dim[0];
    run->job.seq = qkv->dim[1];
    run->job.channels = channels;
    run->job.heads = heads;
    run->job.head_size = (int)(channels / heads);
    run->job.scale = 1.0F / sqrtf((float)run->job.head_size);
    return AH_OK;
}

/* The tiles of a head follow each other, so that its keys and values stay in the caches. */
static void forward_piece(void *context, int index, int worker)
{
    const struct attention_run *run = context;
    int64_t tiles = (run->job.seq + AH_ATTENTION_TILE - 1) / AH_ATTENTION_TILE, pair = index / tiles;
    run->bound->kernels->attention(&run->job, pair / run->job.heads, (int)(pair % run->job.heads), index % tiles,
                                   ah__pool_scratch(run->bound->pool, worker));
}

int ah__cpu_attention(const struct ah_bound *bound)
{
    struct attention_run run = {.job = {.qkv = bound->in[0], .y = bound->out[0], .lse = bound->out[1]}};
    AH_TRY(prepare(&run, bound, &bound->call->in[0].meta.shape));
    int64_t tiles = (run.job.seq + AH_ATTENTION_TILE - 1) / AH_ATTENTION_TILE;
    ah__pool_run(bound->pool, forward_piece, (int)(run.batch * run.job.heads * tiles), &run);
    return AH_OK;
}

static void backward_piece(void *context, int index, int worker)
{
    const struct attention_run *run = context;
    run->bound->kernels->attention_bwd(&run->job, index / run->job.heads, index % run->job.heads,
                                       ah__pool_scratch(run->bound->pool, worker));
}

int ah__cpu_attention_bwd(const struct ah_bound *bound)
{
    struct attention_run run = {.job = {.dy = bound->in[0], .qkv = bound->in[1], .dqkv = bound->out[0],
                                        .accumulate = ah__bound_adds(bound, 0)}};
    run.job.y = (float *)(uintptr_t)bound->in[2];
    run.job.lse = (float *)(uintptr_t)bound->in[3];
    AH_TRY(prepare(&run, bound, &bound->call->in[1].meta.shape));
    ah__pool_run(bound->pool, backward_piece, (int)(run.batch * run.job.heads), &run);
    return AH_OK;
}
