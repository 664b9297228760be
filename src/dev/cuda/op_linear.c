/* Linear layers: three products. (The bias's gradient is a column sum, no product.)
 *
 * If gelu's backward directly follows the product that makes its gradient, and overwrites it, cuBLASLt does both at
 * once: the gradient of the activation is neither stored nor rounded. This depends on dtype, shape, GPU and library; a
 * block has one backward program under every plan, so its bits do not depend on the plan. The same fusion in forward is
 * not used: in some modes the programs of a block place the activation over the product's inputs, in others not. */
#include "dev/cuda/gemm.h"
#include "dev/cuda/program.h"

/* Sizes of a layer from rows x in to rows x out. The weight is [in, out], or [out, in] if attr.out_in. */
struct sizes {
    int64_t rows, in, out, weight_stride;
    bool out_in;
};

static struct sizes sizes_of(const struct ah_cuda_call *call, const struct ah_operand *x, const struct ah_operand *y)
{
    const struct ah_shape *in = &x->meta.shape, *out = &y->meta.shape;
    struct sizes s = {.rows = ah__shape_rows(in),
                      .in = in->dim[in->rank - 1],
                      .out = out->dim[out->rank - 1],
                      .out_in = call->call->attr.out_in};
    s.weight_stride = s.out_in ? s.in : s.out;
    return s;
}

static void product_release(struct ah_cuda_call *call)
{
    ah__cuda_gemm_fini(call->owned, call->cuda);
}

/* Prepares the call as this product of inputs 0 and 1, with its result in output 0. */
static int product_prepare(struct ah_cuda_call *call, struct ah_cuda_gemm_shape shape)
{
    const struct ah_operand *const operands[] = {&call->call->in[0], &call->call->in[1], &call->call->in[2],
                                                 &call->call->out[0]};
    struct ah_cuda_gemm *gemm;
    bool fused = false;
    shape.dtype = call->dtype;
    shape.c_dtype = call->call->out[0].meta.dtype;
    shape.accumulate = call->adds[0];
    shape.align_bytes = ah__cuda_align(operands, (int)AH_LENGTH(operands));
    AH_TRY(ah__new(&gemm, 1, sizeof *gemm)); /* owned by the call from here on */
    call->owned = gemm;
    call->release = product_release;
    if (shape.epilogue == AH_CUDA_GELU_BWD)
        AH_TRY(ah__cuda_gemm_try(gemm, &fused, call->cuda, &shape));
    call->takes_next = fused;
    if (shape.epilogue == AH_CUDA_GELU_BWD)
        shape.epilogue = AH_CUDA_PLAIN;
    if (!fused)
        AH_TRY(ah__cuda_gemm_init(gemm, call->cuda, &shape));
    call->workspace_bytes = gemm->workspace_bytes;
    return AH_OK;
}

static int product_enqueue(const struct ah_cuda_bound *bound, const void *a, const void *b, const void *extra)
{
    const struct ah_cuda_call *call = bound->call;
    const struct ah_cuda_gemm_at at = {a, b, extra, bound->out[0], bound->workspace};
    return ah__cuda_gemm_enqueue(call->owned, call->cuda, bound->stream, &at);
}

static int linear_prepare(struct ah_cuda_call *call)
{
    bool bias = call->call->in[2].space != AH_SPACE_NONE;
    struct sizes s = sizes_of(call, &call->call->in[0], &call->call->out[0]);
    return product_prepare(call, (struct ah_cuda_gemm_shape){.trans_b = s.out_in,
                                                             .m = s.rows,
                                                             .n = s.out,
                                                             .k = s.in,
                                                             .lda = s.in,
                                                             .ldb = s.weight_stride,
                                                             .ldc = s.out,
                                                             .epilogue = bias ? AH_CUDA_BIAS : AH_CUDA_PLAIN});
}

static int linear_enqueue(const struct ah_cuda_bound *bound)
{
    return product_enqueue(bound, bound->in[0], bound->in[1], bound->in[2]);
}

const struct ah_cuda_operator ah__cuda_linear = {linear_prepare, linear_enqueue};

static bool same_place(const struct ah_operand *a, const struct ah_operand *b)
{
    return a->space == b->space && a->offset == b->offset;
}

/* Returns true if gelu's backward can be fused with the product. Only on Hopper and the Blackwell of data centers: on
 * older GPUs the fused product is known to be slower than the two apart, and workstations' Blackwell has their kind of
 * matrix instructions. */
static bool is_fusible(const struct ah_cuda_call *call, const struct sizes *s)
{
    const struct ah_call *next = call->next;
    const struct ah_operand *dx = &call->call->out[0];
    int architecture = call->cuda->properties.major;
    if (!next || next->op != AH_OP_GELU_BWD || call->adds[0] || (architecture != 9 && architecture != 10))
        return false;
    return call->dtype == AH_BF16 && s->in % 8 == 0 && next->in[1].offset % 16 == 0 && same_place(&next->in[0], dx) &&
           same_place(&next->out[0], dx);
}

static int linear_bwd_x_prepare(struct ah_cuda_call *call)
{
    struct sizes s = sizes_of(call, &call->call->out[0], &call->call->in[0]);
    enum ah_cuda_epilogue epilogue = is_fusible(call, &s) ? AH_CUDA_GELU_BWD : AH_CUDA_PLAIN;
    return product_prepare(call, (struct ah_cuda_gemm_shape){.trans_b = !s.out_in,
                                                             .m = s.rows,
                                                             .n = s.in,
                                                             .k = s.out,
                                                             .lda = s.out,
                                                             .ldb = s.weight_stride,
                                                             .ldc = s.in,
                                                             .epilogue = epilogue});
}

static int linear_bwd_x_enqueue(const struct ah_cuda_bound *bound)
{
    return product_enqueue(bound, bound->in[0], bound->in[1], bound->next_in[1]);
}

const struct ah_cuda_operator ah__cuda_linear_bwd_x = {linear_bwd_x_prepare, linear_bwd_x_enqueue};

/* Prepares x^T dy, or dy^T x for a weight [out, in]. */
static int linear_bwd_w_prepare(struct ah_cuda_call *call)
{
    struct sizes s = sizes_of(call, &call->call->in[1], &call->call->in[0]);
    struct ah_cuda_gemm_shape shape = {
        .trans_a = true, .m = s.in, .n = s.out, .k = s.rows, .lda = s.in, .ldb = s.out, .ldc = s.weight_stride};
    if (s.out_in) {
        shape.m = s.out, shape.n = s.in;
        shape.lda = s.out, shape.ldb = s.in;
    }
    return product_prepare(call, shape);
}

static int linear_bwd_w_enqueue(const struct ah_cuda_bound *bound)
{
    const void *dy = bound->in[0], *x = bound->in[1];
    return bound->call->call->attr.out_in ? product_enqueue(bound, dy, x, NULL) : product_enqueue(bound, x, dy, NULL);
}

const struct ah_cuda_operator ah__cuda_linear_bwd_w = {linear_bwd_w_prepare, linear_bwd_w_enqueue};
