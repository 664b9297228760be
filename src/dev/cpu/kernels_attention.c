/* Causal attention over the pool: the pieces of forward are groups of query tiles, those of backward are (batch, head
 * of k and v). Queries, keys and values side by side in one operand differ from three operands only in strides. */
#include "dev/cpu/kernels.h"
#include "op/attention.h"
#include "op/bf16.h"

#include <float.h>

#define LOG2_E 1.44269504F

/* A call, and its job with addresses. */
struct attention_run {
    const struct ah_bound *bound;
    struct ah_attention job;
};

/* Returns an operand by its kind, or null. */
static const void *operand_of(const struct ah_bound *bound, enum ah_operand_kind kind)
{
    int input = ah__op_input_of(bound->call->call->op, kind);
    return input < 0 ? NULL : bound->in[input];
}

static const int32_t *positions_of(const struct ah_bound *bound)
{
    return operand_of(bound, AH_OPERAND_POSITIONS);
}

/* Checks the shapes and fills the job. `packed`: q, k and v are side by side in tokens of 3 * channels. */
static int geometry(struct ah_cpu_call *call, const struct ah_shape *y, int kv_heads, bool packed)
{
    const int64_t group = AH_ATTENTION_GROUP * AH_ATTENTION_TILE;
    int heads = call->call->attr.heads;
    int64_t channels = y->dim[2];
    if (heads < 1 || channels % heads != 0 || channels / heads > AH_ATTENTION_MAX_HEAD)
        return ah__fail(AH_EDEVICE, "%lld channels in %d heads, expected heads of at most %d channels each",
                        (long long)channels, heads, AH_ATTENTION_MAX_HEAD);
    struct ah_attention job = {.seq = y->dim[1],
                               .channels = channels,
                               .heads = heads,
                               .head_size = (int)(channels / heads),
                               .group = heads / kv_heads};
    job.q_stride = packed ? 3 * channels : channels;
    job.kv_stride = packed ? 3 * channels : kv_heads * (int64_t)job.head_size;
    job.q_head = job.kv_head = job.head_size * (int64_t)(call->call->attr.by_head ? 3 : 1);
    job.window = call->call->attr.window ? call->call->attr.window : job.seq;
    job.add_q = call->adds[0];
    job.add_k = call->adds[packed ? 0 : 1];
    job.add_v = call->adds[packed ? 0 : 2];
    job.scale = ah__attention_scale(&call->call->attr, job.head_size);
    job.cap = call->call->attr.cap;
    job.most = -FLT_MAX;
    call->as.attention.job = job;
    call->as.attention.batch = y->dim[0];
    call->as.attention.groups = (job.seq + group - 1) / group;
    return AH_OK;
}

/* Takes a workspace for sums if the dtype rounds results. */
static int sums_prepare(struct ah_cpu_call *call)
{
    if (call->dtype != AH_F32)
        call->workspace_bytes = call->threads * ah__attention_sums(&call->as.attention.job) * (int64_t)sizeof(float);
    return AH_OK;
}

/* Returns the sink of a head. */
static float sink_of(const struct ah_bound *bound, const void *sinks, int64_t head)
{
    float sink = 0;
    if (bound->call->dtype == AH_F32)
        return ((const float *)sinks)[head];
    ah__bf16_widen(&sink, (const uint16_t *)sinks + head, 1);
    return sink;
}

/* Runs one group of query tiles. The groups of a head follow each other, so that its keys and values stay in the
 * caches. */
static void forward_piece(void *context, int index, int worker)
{
    const struct attention_run *run = context;
    const struct ah_bound *b = run->bound;
    const void *sinks = operand_of(b, AH_OPERAND_PARAM);
    struct ah_attention job = run->job;
    int64_t groups = b->call->as.attention.groups, pair = index / groups, head = pair % job.heads;
    if (sinks) {
        job.most = sink_of(b, sinks, head) * LOG2_E;
        job.total = 1;
    }
    b->call->kernels->attention(&job, pair / job.heads, (int)head, index % groups, ah__pool_scratch(b->pool, worker));
}

static int forward_run(const struct ah_bound *bound, struct attention_run *run)
{
    const struct ah_cpu_call *call = bound->call;
    run->bound = bound;
    run->job.y = bound->out[0];
    run->job.lse = bound->out[1];
    ah__pool_run(bound->pool, forward_piece,
                 (int)(call->as.attention.batch * run->job.heads * call->as.attention.groups), run);
    return AH_OK;
}

static void backward_piece(void *context, int index, int worker)
{
    const struct attention_run *run = context;
    const struct ah_bound *b = run->bound;
    int group = run->job.group, shared = run->job.heads / group, first = index % shared * group;
    float *sums = (float *)(void *)b->workspace;
    sums = sums ? sums + worker * ah__attention_sums(&run->job) : NULL;
    for (int head = first; head < first + group; head++)
        b->call->kernels->attention_bwd(&run->job, index / shared, head, ah__pool_scratch(b->pool, worker), sums);
}

static int backward_run(const struct ah_bound *bound, struct attention_run *run, int y)
{
    run->bound = bound;
    run->job.dy = bound->in[0];
    run->job.y = (void *)(uintptr_t)bound->in[y];
    run->job.lse = (float *)(uintptr_t)bound->in[y + 1];
    ah__pool_run(bound->pool, backward_piece,
                 (int)(bound->call->as.attention.batch * (run->job.heads / run->job.group)), run);
    return AH_OK;
}

/* ---- side by side ------------------------------------------------------------------------------------------------ */

static int attention_prepare(struct ah_cpu_call *call)
{
    return geometry(call, ah__call_out(call, 0), call->call->attr.heads, true);
}

static int attention_bwd_prepare(struct ah_cpu_call *call)
{
    AH_TRY(geometry(call, ah__call_in(call, 0), call->call->attr.heads, true));
    return sums_prepare(call);
}

/* Returns the step from q to k, and from k to v. */
static int64_t packed_step(const struct ah_attention *job)
{
    return job->q_head > job->head_size ? job->head_size : job->channels;
}

static struct attention_run packed(const struct ah_bound *bound, int qkv)
{
    struct attention_run run = {.job = bound->call->as.attention.job};
    run.job.positions = positions_of(bound);
    run.job.q = bound->in[qkv];
    run.job.k = ah__in_at(bound, qkv, packed_step(&run.job));
    run.job.v = ah__in_at(bound, qkv, 2 * packed_step(&run.job));
    return run;
}

static int attention_run(const struct ah_bound *bound)
{
    struct attention_run run = packed(bound, 0);
    return forward_run(bound, &run);
}

static int attention_bwd_run(const struct ah_bound *bound)
{
    struct attention_run run = packed(bound, 1);
    run.job.dq = bound->out[0];
    run.job.dk = ah__out_at(bound, 0, packed_step(&run.job));
    run.job.dv = ah__out_at(bound, 0, 2 * packed_step(&run.job));
    return backward_run(bound, &run, 2);
}

const struct ah_cpu_operator ah__cpu_attention = {attention_prepare, attention_run};
const struct ah_cpu_operator ah__cpu_attention_bwd = {attention_bwd_prepare, attention_bwd_run};

/* ---- each in its own --------------------------------------------------------------------------------------------- */

static int attention_qkv_prepare(struct ah_cpu_call *call)
{
    return geometry(call, ah__call_out(call, 0), call->call->attr.kv_heads, false);
}

static int attention_qkv_bwd_prepare(struct ah_cpu_call *call)
{
    AH_TRY(geometry(call, ah__call_in(call, 0), call->call->attr.kv_heads, false));
    return sums_prepare(call);
}

static struct attention_run apart(const struct ah_bound *bound, int q)
{
    struct attention_run run = {.job = bound->call->as.attention.job};
    run.job.positions = positions_of(bound);
    run.job.q = bound->in[q];
    run.job.k = bound->in[q + 1];
    run.job.v = bound->in[q + 2];
    return run;
}

static int attention_qkv_run(const struct ah_bound *bound)
{
    struct attention_run run = apart(bound, 0);
    return forward_run(bound, &run);
}

static int attention_qkv_bwd_run(const struct ah_bound *bound)
{
    struct attention_run run = apart(bound, 1);
    run.job.dq = bound->out[0];
    run.job.dk = bound->out[1];
    run.job.dv = bound->out[2];
    return backward_run(bound, &run, 4);
}

const struct ah_cpu_operator ah__cpu_attention_qkv = {attention_qkv_prepare, attention_qkv_run};
const struct ah_cpu_operator ah__cpu_attention_qkv_bwd = {attention_qkv_bwd_prepare, attention_qkv_bwd_run};

/* ---- sinks ------------------------------------------------------------------------------------------------------- */

enum { SINK_ROWS = 256 };

static int sinks_bwd_prepare(struct ah_cpu_call *call)
{
    const struct ah_shape *lse = ah__call_in(call, 2);
    call->rows = lse->dim[0] * lse->dim[2];
    call->cols = ah__call_in(call, 0)->dim[2];
    return AH_OK;
}

/* Computes the gradient of a head's sink, a sum over tokens in their order. */
static void sinks_bwd_piece(void *context, int index, int worker)
{
    const struct ah_bound *b = context;
    const struct ah_cpu_call *call = b->call;
    int64_t heads = ah__call_in(call, 3)->dim[0], seq = ah__call_in(call, 2)->dim[2], size = call->cols / heads;
    float *weight = ah__pool_scratch(b->pool, worker);
    void *room = weight + SINK_ROWS;
    float sink = sink_of(b, b->in[3], index), *dsinks = b->out[0];
    double sum = 0;
    for (int64_t from = 0; from < call->rows; from += SINK_ROWS) {
        int64_t count = call->rows - from < SINK_ROWS ? call->rows - from : SINK_ROWS;
        for (int64_t i = 0, row = from; i < count; i++, row++)
            weight[i] = sink - ((const float *)b->in[2])[(row / seq * heads + index) * seq + row % seq];
        call->kernels->exp(weight, weight, count);
        for (int64_t i = 0, at = from * call->cols + index * size; i < count; i++, at += call->cols)
            sum -= (double)weight[i] *
                   (double)call->kernels->scale_row_bwd(room, ah__in_at(b, 0, at), ah__in_at(b, 1, at), size, 1);
    }
    dsinks[index] = (call->adds[0] ? dsinks[index] : 0) + (float)sum;
}

static int sinks_bwd_run(const struct ah_bound *bound)
{
    struct ah_bound own = *bound;
    ah__pool_run(bound->pool, sinks_bwd_piece, (int)ah__call_in(bound->call, 3)->dim[0], &own);
    return AH_OK;
}

const struct ah_cpu_operator ah__cpu_sinks_bwd = {sinks_bwd_prepare, sinks_bwd_run};
