/* Causal attention. Queries, keys and values side by side in one operand differ from three operands only in strides.
 * cuDNN does the jobs for which it is made, the device's own kernels the rest (attention_cudnn.h has the rule); this is
 * decided when a program is prepared. */
#include "dev/cuda/attention_cudnn.h"
#include "dev/cuda/program.h"
#include "op/attention.h"

#include <string.h>

/* A prepared call. */
struct attention {
    struct ah_cuda_attention job; /* without addresses */
    struct ah_cuda_sdpa *sdpa;    /* null: own kernels */
};

static void attention_release(struct ah_cuda_call *call)
{
    struct attention *attention = call->owned;
    ah__cuda_sdpa_free(attention->sdpa);
}

/* Records who does attention, for info(). Only for training in bf16, for which cuDNN is expected: the first job that
 * cuDNN does not do, else that it does all. */
static void path_tell(struct ah_cuda *cuda, const struct ah_cuda_attention *job, bool backward, const char *reason)
{
    bool told = strncmp(cuda->attention, "own", 3) == 0;
    if (told || job->dtype != AH_BF16 || job->seq < 2)
        return;
    if (reason)
        snprintf(cuda->attention, sizeof cuda->attention, "own kernels do %s of heads of %d channels: %s",
                 backward ? "backward" : "forward", job->head_size, reason);
    else
        snprintf(cuda->attention, sizeof cuda->attention, "cuDNN %zu", cuda->library.cudnnGetVersion());
}

static int path_choose(struct ah_cuda_call *call, struct attention *attention, bool backward)
{
    const struct ah_cuda_attention *job = &attention->job;
    char refusal[AH_CUDA_SDPA_REASON];
    const char *reason = ah__cuda_sdpa_unfit(call->cuda, job, backward);
    if (!reason) {
        AH_TRY(ah__cuda_sdpa_new(&attention->sdpa, call->cuda, job, backward, refusal));
        reason = attention->sdpa ? NULL : refusal;
    }
    path_tell(call->cuda, job, backward, reason);
    if (attention->sdpa)
        call->workspace_bytes = ah__cuda_sdpa_workspace(attention->sdpa);
    else if (backward)
        call->workspace_bytes = job->batch * job->heads * job->seq * (int64_t)sizeof(float);
    return AH_OK;
}

/* Returns the input with positions. */
static int positions_input(const struct ah_cuda_call *call)
{
    return ah__op_input_of(call->call->op, AH_OPERAND_POSITIONS);
}

/* Checks the shapes and fills the job. `packed`: q, k and v are side by side in tokens of 3 * channels. */
static int geometry(struct ah_cuda_attention *job, const struct ah_cuda_call *call, const struct ah_shape *y,
                    bool packed)
{
    int heads = call->call->attr.heads, kv_heads = packed ? heads : call->call->attr.kv_heads;
    int64_t channels = y->dim[2];
    if (heads < 1 || channels % heads != 0 || channels / heads > AH_CUDA_ATTENTION_MAX_HEAD)
        return ah__fail(AH_EDEVICE, "%lld channels in %d heads, expected heads of at most %d channels each",
                        (long long)channels, heads, AH_CUDA_ATTENTION_MAX_HEAD);
    *job = (struct ah_cuda_attention){.dtype = call->dtype,
                                      .batch = y->dim[0],
                                      .seq = y->dim[1],
                                      .channels = channels,
                                      .heads = heads,
                                      .head_size = (int)(channels / heads),
                                      .group = heads / kv_heads};
    job->q_stride = packed ? 3 * channels : channels;
    job->kv_stride = packed ? 3 * channels : kv_heads * (int64_t)job->head_size;
    job->q_head = job->kv_head = job->head_size * (int64_t)(call->call->attr.by_head ? 3 : 1);
    job->documents = call->call->in[positions_input(call)].space != AH_SPACE_NONE;
    job->window = call->call->attr.window ? call->call->attr.window : job->seq;
    job->add_q = call->adds[0];
    job->add_k = call->adds[packed ? 0 : 1];
    job->add_v = call->adds[packed ? 0 : 2];
    job->scale = ah__attention_scale(&call->call->attr, job->head_size);
    job->cap = call->call->attr.cap;
    return AH_OK;
}

static int call_prepare(struct ah_cuda_call *call, const struct ah_operand *y, bool packed, bool backward)
{
    struct attention *attention;
    AH_TRY(ah__new(&attention, 1, sizeof *attention));
    call->owned = attention;
    call->release = attention_release;
    AH_TRY(geometry(&attention->job, call, &y->meta.shape, packed));
    return path_choose(call, attention, backward);
}

static struct ah_cuda_attention job_of(const struct ah_cuda_bound *bound)
{
    return ((const struct attention *)bound->call->owned)->job;
}

static int enqueue(const struct ah_cuda_bound *bound, struct ah_cuda_attention *job, bool backward)
{
    const struct attention *attention = bound->call->owned;
    job->positions = bound->in[positions_input(bound->call)];
    if (attention->sdpa)
        return ah__cuda_sdpa_enqueue(attention->sdpa, bound->stream, job, bound->workspace);
    job->dot = (float *)(void *)bound->workspace;
    if (backward)
        AH_CUDA_TRY(ah__cuda_attention_bwd_enqueue(bound->stream, job));
    else
        AH_CUDA_TRY(ah__cuda_attention_enqueue(bound->stream, job));
    return AH_OK;
}

static int forward_enqueue(const struct ah_cuda_bound *bound, struct ah_cuda_attention *job)
{
    int sinks = ah__op_input_of(bound->call->call->op, AH_OPERAND_PARAM);
    job->y = bound->out[0];
    job->lse = bound->out[1];
    job->sinks = sinks < 0 ? NULL : bound->in[sinks];
    AH_TRY(enqueue(bound, job, false));
    if (job->sinks && ((const struct attention *)bound->call->owned)->sdpa)
        AH_CUDA_TRY(ah__cuda_sinks_enqueue(bound->stream, job));
    return AH_OK;
}

/* Enqueues backward. `y`: the input that is the forward's result; the logarithms follow it. */
static int backward_enqueue(const struct ah_cuda_bound *bound, struct ah_cuda_attention *job, int y)
{
    job->dy = bound->in[0];
    job->y = (void *)(uintptr_t)bound->in[y];
    job->lse = (float *)(uintptr_t)bound->in[y + 1];
    return enqueue(bound, job, true);
}

/* ---- side by side ------------------------------------------------------------------------------------------------ */

static int attention_prepare(struct ah_cuda_call *call)
{
    return call_prepare(call, &call->call->out[0], true, false);
}

static int attention_bwd_prepare(struct ah_cuda_call *call)
{
    return call_prepare(call, &call->call->in[0], true, true);
}

/* Returns the address of queries, keys or values (`times` 0, 1, 2), which follow each other from `at` on, for all heads
 * or for each head. */
static char *channels_after(const struct ah_cuda_attention *job, const void *at, int times)
{
    int64_t step = job->q_head > job->head_size ? job->head_size : job->channels;
    return (char *)(uintptr_t)at + times * step * ah__dtype_bytes(job->dtype);
}

static struct ah_cuda_attention packed(const struct ah_cuda_bound *bound, int qkv)
{
    struct ah_cuda_attention job = job_of(bound);
    job.q = bound->in[qkv];
    job.k = channels_after(&job, job.q, 1);
    job.v = channels_after(&job, job.q, 2);
    return job;
}

static int attention_enqueue(const struct ah_cuda_bound *bound)
{
    struct ah_cuda_attention job = packed(bound, 0);
    return forward_enqueue(bound, &job);
}

static int attention_bwd_enqueue(const struct ah_cuda_bound *bound)
{
    struct ah_cuda_attention job = packed(bound, 1);
    job.dq = bound->out[0];
    job.dk = channels_after(&job, job.dq, 1);
    job.dv = channels_after(&job, job.dq, 2);
    return backward_enqueue(bound, &job, 2);
}

const struct ah_cuda_operator ah__cuda_attention = {attention_prepare, attention_enqueue};
const struct ah_cuda_operator ah__cuda_attention_bwd = {attention_bwd_prepare, attention_bwd_enqueue};

/* ---- each in its own --------------------------------------------------------------------------------------------- */

static int attention_qkv_prepare(struct ah_cuda_call *call)
{
    return call_prepare(call, &call->call->out[0], false, false);
}

static int attention_qkv_bwd_prepare(struct ah_cuda_call *call)
{
    return call_prepare(call, &call->call->in[0], false, true);
}

static struct ah_cuda_attention apart(const struct ah_cuda_bound *bound, int q)
{
    struct ah_cuda_attention job = job_of(bound);
    job.q = bound->in[q];
    job.k = bound->in[q + 1];
    job.v = bound->in[q + 2];
    return job;
}

static int attention_qkv_enqueue(const struct ah_cuda_bound *bound)
{
    struct ah_cuda_attention job = apart(bound, 0);
    return forward_enqueue(bound, &job);
}

static int attention_qkv_bwd_enqueue(const struct ah_cuda_bound *bound)
{
    struct ah_cuda_attention job = apart(bound, 1);
    job.dq = bound->out[0];
    job.dk = bound->out[1];
    job.dv = bound->out[2];
    return backward_enqueue(bound, &job, 4);
}

const struct ah_cuda_operator ah__cuda_attention_qkv = {attention_qkv_prepare, attention_qkv_enqueue};
const struct ah_cuda_operator ah__cuda_attention_qkv_bwd = {attention_qkv_bwd_prepare, attention_qkv_bwd_enqueue};

/* ---- sinks ------------------------------------------------------------------------------------------------------- */

static int sinks_bwd_prepare(struct ah_cuda_call *call)
{
    call->workspace_bytes = ah__meta_bytes(&call->call->in[2].meta);
    return AH_OK;
}

static int sinks_bwd_enqueue(const struct ah_cuda_bound *bound)
{
    const struct ah_call *call = bound->call->call;
    const struct ah_shape *y = &call->in[1].meta.shape;
    int heads = (int)call->in[3].meta.shape.dim[0];
    struct ah_cuda_attention job = {.dtype = bound->call->dtype,
                                    .dy = bound->in[0],
                                    .y = (void *)(uintptr_t)bound->in[1],
                                    .lse = (float *)(uintptr_t)bound->in[2],
                                    .sinks = bound->in[3],
                                    .dsinks = bound->out[0],
                                    .add_sinks = bound->call->adds[0],
                                    .dot = (float *)(void *)bound->workspace,
                                    .batch = y->dim[0],
                                    .seq = y->dim[1],
                                    .channels = y->dim[2],
                                    .heads = heads,
                                    .head_size = (int)(y->dim[2] / heads)};
    AH_CUDA_TRY(ah__cuda_sinks_bwd_enqueue(bound->stream, &job));
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_sinks_bwd = {sinks_bwd_prepare, sinks_bwd_enqueue};
