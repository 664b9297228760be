/* Softmax cross-entropy of logits. */
#include "dev/cuda/kernels.h"
#include "dev/cuda/program.h"

enum { SCALE_BYTES = 256 }; /* bytes before the rows' losses */

static int cross_entropy_prepare(struct ah_cuda_call *call)
{
    int64_t rows = ah__shape_rows(&call->call->in[0].meta.shape);
    call->workspace_bytes = SCALE_BYTES + rows * (int64_t)sizeof(double);
    return AH_OK;
}

static int cross_entropy_enqueue(const struct ah_cuda_bound *bound)
{
    const struct ah_shape *logits = &bound->call->call->in[0].meta.shape;
    struct ah_cuda_loss_scale *scale = (struct ah_cuda_loss_scale *)bound->workspace;
    struct ah_cuda_cross_entropy job = {.dlogits = bound->out[1],
                                        .logits = bound->in[0],
                                        .targets = bound->in[1],
                                        .losses = (double *)(bound->workspace + SCALE_BYTES),
                                        .rows = ah__shape_rows(logits),
                                        .cols = logits->dim[2],
                                        .stride = logits->dim[2],
                                        .scale = scale};
    AH_CUDA_TRY(ah__cuda_loss_scale_enqueue(bound->stream, scale, bound->in[2], NULL, job.rows));
    AH_CUDA_TRY(ah__cuda_cross_entropy_enqueue(bound->stream, bound->call->dtype, &job));
    AH_CUDA_TRY(ah__cuda_loss_sum_enqueue(bound->stream, bound->out[0], job.losses, job.rows, scale));
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_cross_entropy = {cross_entropy_prepare, cross_entropy_enqueue};
