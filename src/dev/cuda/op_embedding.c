/* Tables of vectors: of tokens and of positions. */
#include "dev/cuda/kernels.h"
#include "dev/cuda/program.h"

static int nothing_prepare(struct ah_cuda_call *call)
{
    (void)call;
    return AH_OK;
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static int embedding_enqueue(const struct ah_cuda_bound *bound)
{
    const struct ah_operand *in = bound->call->call->in;
    int64_t cols = in[0].meta.shape.dim[1], first = bound->call->call->attr.first;
    const char *table = (const char *)bound->in[0] + first * cols * ah__dtype_bytes(bound->call->dtype);
    AH_CUDA_TRY(ah__cuda_embedding_enqueue(bound->stream, bound->call->dtype, bound->out[0], table, bound->in[1],
                                           ah__shape_count(&in[1].meta.shape), cols, in[0].meta.shape.dim[0] - first));
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_embedding = {nothing_prepare, embedding_enqueue};

/* Prepares backward. A key of the sort has bits for only so many tokens. */
static int embedding_bwd_prepare(struct ah_cuda_call *call)
{
    const struct ah_shape *dx = &call->call->in[0].meta.shape;
    char found[96];
    if (ah__shape_rows(dx) > INT32_MAX)
        return ah__fail(AH_EDEVICE, "input 0 (dx) is %s, expected at most %d tokens",
                        ah__shape_format(found, sizeof found, dx), INT32_MAX);
    call->workspace_bytes = ah__cuda_embedding_bwd_workspace(ah__shape_rows(dx), dx->dim[2]);
    return AH_OK;
}

static int embedding_bwd_enqueue(const struct ah_cuda_bound *bound)
{
    const struct ah_cuda_call *call = bound->call;
    const struct ah_shape *dx = &call->call->in[0].meta.shape;
    int64_t skipped = call->call->attr.first * dx->dim[2];
    if (skipped && !call->adds[0])
        AH_CUDA_TRY(cudaMemsetAsync(bound->out[0], 0, (size_t)skipped * sizeof(float), bound->stream));
    struct ah_cuda_embedding_bwd job = {.dtable = (float *)bound->out[0] + skipped,
                                        .dx = bound->in[0],
                                        .ids = bound->in[1],
                                        .rows = ah__shape_rows(dx),
                                        .cols = dx->dim[2],
                                        .vocabulary = call->call->out[0].meta.shape.dim[0] - call->call->attr.first,
                                        .adds = call->adds[0],
                                        .workspace = bound->workspace};
    AH_CUDA_TRY(ah__cuda_embedding_bwd_enqueue(bound->stream, call->dtype, &job));
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_embedding_bwd = {embedding_bwd_prepare, embedding_bwd_enqueue};

/* ---- positions --------------------------------------------------------------------------------------------------- */

static int add_position_enqueue(const struct ah_cuda_bound *bound)
{
    const struct ah_call *call = bound->call->call;
    const struct ah_shape *x = &call->in[0].meta.shape;
    enum ah_dtype dtype = bound->call->dtype;
    const char *table = (const char *)bound->in[1] + call->attr.first * x->dim[2] * ah__dtype_bytes(dtype);
    AH_CUDA_TRY(ah__cuda_add_position_enqueue(bound->stream, dtype, bound->out[0], bound->in[0], table, x->dim[0],
                                              x->dim[1], x->dim[2]));
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_add_position = {nothing_prepare, add_position_enqueue};

static int position_bwd_enqueue(const struct ah_cuda_bound *bound)
{
    const struct ah_cuda_call *call = bound->call;
    const struct ah_shape *dx = &call->call->in[0].meta.shape;
    AH_CUDA_TRY(ah__cuda_position_bwd_enqueue(bound->stream, call->dtype, bound->out[0], bound->in[0], dx->dim[0],
                                              dx->dim[1], dx->dim[2], call->call->out[0].meta.shape.dim[0],
                                              call->call->attr.first, call->adds[0]));
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_position_bwd = {nothing_prepare, position_bwd_enqueue};
