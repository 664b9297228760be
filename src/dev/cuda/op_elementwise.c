/* Operators without products or row sums: activations, addition, copies. */
#include "dev/cuda/kernels.h"
#include "dev/cuda/program.h"

static int nothing_prepare(struct ah_cuda_call *call)
{
    (void)call;
    return AH_OK;
}

static int elementwise_enqueue(const struct ah_cuda_bound *bound)
{
    const struct ah_cuda_call *call = bound->call;
    const struct ah_attr *attr = &call->call->attr;
    AH_CUDA_TRY(ah__cuda_elementwise_enqueue(bound->stream, call->call->op, call->dtype, bound->out, bound->in,
                                             ah__shape_count(&call->call->in[0].meta.shape),
                                             attr->cap > 0 ? attr->cap : attr->scale));
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_gelu = {nothing_prepare, elementwise_enqueue};
const struct ah_cuda_operator ah__cuda_gelu_bwd = {nothing_prepare, elementwise_enqueue};
const struct ah_cuda_operator ah__cuda_gelu_erf = {nothing_prepare, elementwise_enqueue};
const struct ah_cuda_operator ah__cuda_gelu_erf_bwd = {nothing_prepare, elementwise_enqueue};
const struct ah_cuda_operator ah__cuda_relu = {nothing_prepare, elementwise_enqueue};
const struct ah_cuda_operator ah__cuda_relu_bwd = {nothing_prepare, elementwise_enqueue};
const struct ah_cuda_operator ah__cuda_silu_mul = {nothing_prepare, elementwise_enqueue};
const struct ah_cuda_operator ah__cuda_silu_mul_bwd = {nothing_prepare, elementwise_enqueue};
const struct ah_cuda_operator ah__cuda_gelu_mul = {nothing_prepare, elementwise_enqueue};
const struct ah_cuda_operator ah__cuda_gelu_mul_bwd = {nothing_prepare, elementwise_enqueue};
const struct ah_cuda_operator ah__cuda_scale = {nothing_prepare, elementwise_enqueue};
const struct ah_cuda_operator ah__cuda_soft_cap = {nothing_prepare, elementwise_enqueue};
const struct ah_cuda_operator ah__cuda_add = {nothing_prepare, elementwise_enqueue};

static int halves_enqueue(const struct ah_cuda_bound *bound)
{
    const struct ah_call *call = bound->call->call;
    bool back = call->in[1].space != AH_SPACE_NONE;
    const struct ah_shape *half = back ? &call->in[0].meta.shape : &call->out[0].meta.shape;
    const struct ah_cuda_halves job = {.out = bound->out[0],
                                       .in = bound->in,
                                       .rows = ah__shape_rows(half),
                                       .cols = half->dim[half->rank - 1],
                                       .scale = call->attr.scale,
                                       .limit = call->attr.limit};
    AH_CUDA_TRY(ah__cuda_halves_enqueue(bound->stream, call->op, bound->call->dtype, &job));
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_silu_mul_halves = {nothing_prepare, halves_enqueue};
const struct ah_cuda_operator ah__cuda_silu_mul_halves_bwd = {nothing_prepare, halves_enqueue};
const struct ah_cuda_operator ah__cuda_swiglu_clamped = {nothing_prepare, halves_enqueue};
const struct ah_cuda_operator ah__cuda_swiglu_clamped_bwd = {nothing_prepare, halves_enqueue};

static int copy_enqueue(const struct ah_cuda_bound *bound)
{
    AH_CUDA_TRY(cudaMemcpyAsync(bound->out[0], bound->in[0], (size_t)ah__meta_bytes(&bound->call->call->in[0].meta),
                                cudaMemcpyDeviceToDevice, bound->stream));
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_copy = {nothing_prepare, copy_enqueue};
