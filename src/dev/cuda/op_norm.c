/* Normalisation of rows, and sums over rows. */
#include "dev/cuda/kernels.h"
#include "dev/cuda/program.h"

static int64_t last(const struct ah_shape *shape)
{
    return shape->dim[shape->rank - 1];
}

/* Returns the length of rows, which is the weight's. */
static int64_t cols_of(const struct ah_call *call)
{
    int weight = 0;
    while (ah__op_table[call->op]->in[weight].kind != AH_OPERAND_PARAM)
        weight++;
    return last(&call->in[weight].meta.shape);
}

/* Checks the length of rows, which are kept in registers. */
static int norm_prepare(struct ah_cuda_call *call)
{
    const struct ah_op_operand *row = &ah__op_table[call->call->op]->in[0];
    const struct ah_shape *x = &call->call->in[0].meta.shape;
    int64_t most = AH_CUDA_NORM_BYTES / ah__dtype_bytes(call->dtype);
    char found[96];
    if (cols_of(call->call) > most)
        return ah__fail(AH_EDEVICE, "input 0 (%s) is %s, expected at most %lld channels", row->name,
                        ah__shape_format(found, sizeof found, x), (long long)most);
    return AH_OK;
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

static struct ah_cuda_norm norm_of(const struct ah_cuda_bound *bound)
{
    const struct ah_call *call = bound->call->call;
    const struct ah_shape *x = &call->in[0].meta.shape;
    return (struct ah_cuda_norm){.y = bound->out[0],
                                 .x = bound->in[0],
                                 .weight = bound->in[1],
                                 .rows = ah__shape_count(x) / cols_of(call),
                                 .cols = cols_of(call),
                                 .eps = call->attr.eps,
                                 .offset = call->attr.offset};
}

static int layernorm_enqueue(const struct ah_cuda_bound *bound)
{
    struct ah_cuda_norm job = norm_of(bound);
    job.bias = bound->in[2];
    job.mean = bound->out[1];
    job.rstd = bound->out[2];
    AH_CUDA_TRY(ah__cuda_norm_enqueue(bound->stream, bound->call->dtype, &job));
    return AH_OK;
}

static int rmsnorm_enqueue(const struct ah_cuda_bound *bound)
{
    struct ah_cuda_norm job = norm_of(bound);
    job.rstd = bound->out[1];
    AH_CUDA_TRY(ah__cuda_norm_enqueue(bound->stream, bound->call->dtype, &job));
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_layernorm = {norm_prepare, layernorm_enqueue};
const struct ah_cuda_operator ah__cuda_rmsnorm = {norm_prepare, rmsnorm_enqueue};

/* ---- backward ---------------------------------------------------------------------------------------------------- */

static int norm_bwd_prepare(struct ah_cuda_call *call)
{
    const struct ah_shape *x = &call->call->in[0].meta.shape;
    int64_t cols = cols_of(call->call);
    call->workspace_bytes = ah__cuda_norm_bwd_workspace(call->dtype, ah__shape_count(x) / cols, cols);
    return norm_prepare(call);
}

static struct ah_cuda_norm_bwd norm_bwd_of(const struct ah_cuda_bound *bound)
{
    const struct ah_call *call = bound->call->call;
    int64_t cols = cols_of(call);
    return (struct ah_cuda_norm_bwd){.dx = bound->out[0],
                                     .dweight = bound->out[1],
                                     .dy = bound->in[0],
                                     .x = bound->in[1],
                                     .weight = bound->in[2],
                                     .rows = ah__shape_count(&call->in[0].meta.shape) / cols,
                                     .cols = cols,
                                     .offset = call->attr.offset,
                                     .add_x = bound->call->adds[0],
                                     .add_weight = bound->call->adds[1],
                                     .partials = (float *)bound->workspace};
}

static int layernorm_bwd_enqueue(const struct ah_cuda_bound *bound)
{
    struct ah_cuda_norm_bwd job = norm_bwd_of(bound);
    job.mean = bound->in[3];
    job.rstd = bound->in[4];
    job.dbias = bound->out[2];
    job.add_bias = bound->call->adds[2];
    AH_CUDA_TRY(ah__cuda_norm_bwd_enqueue(bound->stream, bound->call->dtype, &job));
    return AH_OK;
}

static int rmsnorm_bwd_enqueue(const struct ah_cuda_bound *bound)
{
    struct ah_cuda_norm_bwd job = norm_bwd_of(bound);
    job.rstd = bound->in[3];
    AH_CUDA_TRY(ah__cuda_norm_bwd_enqueue(bound->stream, bound->call->dtype, &job));
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_layernorm_bwd = {norm_bwd_prepare, layernorm_bwd_enqueue};
const struct ah_cuda_operator ah__cuda_rmsnorm_bwd = {norm_bwd_prepare, rmsnorm_bwd_enqueue};

/* ---- sums of columns --------------------------------------------------------------------------------------------- */

static int linear_bwd_b_prepare(struct ah_cuda_call *call)
{
    const struct ah_shape *dy = &call->call->in[0].meta.shape;
    call->workspace_bytes = ah__cuda_column_sum_workspace(call->dtype, ah__shape_rows(dy), last(dy));
    return AH_OK;
}

static int linear_bwd_b_enqueue(const struct ah_cuda_bound *bound)
{
    const struct ah_cuda_call *call = bound->call;
    const struct ah_shape *dy = &call->call->in[0].meta.shape;
    AH_CUDA_TRY(ah__cuda_column_sum_enqueue(bound->stream, call->dtype, bound->out[0], bound->in[0], ah__shape_rows(dy),
                                            last(dy), call->adds[0], (float *)bound->workspace));
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_linear_bwd_b = {linear_bwd_b_prepare, linear_bwd_b_enqueue};
