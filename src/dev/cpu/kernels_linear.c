/* Linear layers: three products and a column sum. */
#include "dev/cpu/kernels.h"

/* rows x in -> rows x out; the weight is [in, out], or [out, in] when attr.out_in. */
struct sizes {
    int64_t rows, in, out, weight_stride;
    bool out_in;
};

static int64_t last_dim(const struct ah_operand *operand)
{
    return operand->meta.shape.dim[operand->meta.shape.rank - 1];
}

static struct sizes sizes_of(const struct ah_call *call, const struct ah_operand *x, const struct ah_operand *y)
{
    struct sizes s = {.rows = ah__shape_rows(&x->meta.shape), .in = last_dim(x), .out = last_dim(y),
                      .out_in = call->attr.out_in};
    s.weight_stride = s.out_in ? s.in : s.out;
    return s;
}

int ah__cpu_linear(const struct ah_bound *bound)
{
    const struct ah_call *call = bound->call;
    struct sizes s = sizes_of(call, &call->in[0], &call->out[0]);
    struct ah_gemm gemm = {.trans_b = s.out_in,
                           .m = s.rows,
                           .n = s.out,
                           .k = s.in,
                           .a = bound->in[0],
                           .lda = s.in,
                           .b = bound->in[1],
                           .ldb = s.weight_stride,
                           .c = bound->out[0],
                           .ldc = s.out,
                           .bias = bound->in[2]};
    return ah__cpu_gemm(bound->pool, &gemm);
}

int ah__cpu_linear_bwd_x(const struct ah_bound *bound)
{
    const struct ah_call *call = bound->call;
    struct sizes s = sizes_of(call, &call->out[0], &call->in[0]);
    struct ah_gemm gemm = {.trans_b = !s.out_in, .m = s.rows, .n = s.in, .k = s.out, .a = bound->in[0], .lda = s.out,
                           .b = bound->in[1], .ldb = s.weight_stride, .c = bound->out[0], .ldc = s.in,
                           .accumulate = ah__bound_adds(bound, 0)};
    return ah__cpu_gemm(bound->pool, &gemm);
}

/* x^T dy, or dy^T x for a weight [out, in]. */
int ah__cpu_linear_bwd_w(const struct ah_bound *bound)
{
    const struct ah_call *call = bound->call;
    struct sizes s = sizes_of(call, &call->in[1], &call->in[0]);
    const float *dy = bound->in[0], *x = bound->in[1];
    struct ah_gemm gemm = {.trans_a = true, .m = s.in, .n = s.out, .k = s.rows, .a = x, .lda = s.in, .b = dy, .ldb = s.out,
                           .c = bound->out[0], .ldc = s.weight_stride, .accumulate = ah__bound_adds(bound, 0)};
    if (s.out_in) {
        gemm.m = s.out, gemm.n = s.in;
        gemm.a = dy, gemm.lda = s.out;
        gemm.b = x, gemm.ldb = s.in;
    }
    return ah__cpu_gemm(bound->pool, &gemm);
}

int ah__cpu_linear_bwd_b(const struct ah_bound *bound)
{
    const struct ah_operand *dy = &bound->call->in[0];
    struct ah_strip strip = {.dy = bound->in[0], .dbias = bound->out[0], .rows = ah__shape_rows(&dy->meta.shape),
                             .stride = last_dim(dy), .cols = last_dim(dy), .add_bias = ah__bound_adds(bound, 0)};
    ah__strip_run(bound->pool, bound->kernels, &strip);
    return AH_OK;
}
