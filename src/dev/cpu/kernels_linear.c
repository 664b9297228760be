/* Linear layers: three products and a column sum. */
#include "dev/cpu/gemm_bf16.h"
#include "dev/cpu/kernels.h"

/* Sizes of a layer from rows x in to rows x out. The weight is [in, out], or [out, in] if attr.out_in. */
struct sizes {
    int64_t rows, in, out, weight_stride;
    bool out_in;
};

static struct sizes sizes_of(const struct ah_cpu_call *call, const struct ah_shape *x, const struct ah_shape *y)
{
    struct sizes s = {.rows = ah__shape_rows(x),
                      .in = ah__shape_last(x),
                      .out = ah__shape_last(y),
                      .out_in = call->call->attr.out_in};
    s.weight_stride = s.out_in ? s.in : s.out;
    return s;
}

static int gemm_prepare(struct ah_cpu_call *call, struct ah_gemm gemm)
{
    gemm.grid = ah__cpu_gemm_grid(gemm.m, gemm.n);
    call->as.gemm = gemm;
    return AH_OK;
}

static int bf16_product(struct ah_pool *pool, const struct ah_gemm *g, const struct ah_product *p, void *c, bool c_fp32)
{
    struct ah_gemm_bf16 gemm = {.trans_a = g->trans_a,
                                .trans_b = g->trans_b,
                                .accumulate = g->accumulate,
                                .c_fp32 = c_fp32,
                                .m = g->m,
                                .n = g->n,
                                .k = g->k,
                                .a = p->a,
                                .b = p->b,
                                .c = c,
                                .lda = g->lda,
                                .ldb = g->ldb,
                                .ldc = g->ldc,
                                .bias = p->bias};
    return ah__cpu_gemm_bf16(pool, &gemm);
}

int ah__cpu_product(const struct ah_bound *bound, const struct ah_gemm *gemm, const struct ah_product *product)
{
    enum ah_dtype dtype = bound->call->call->out[product->output].meta.dtype;
    void *c = (char *)bound->out[product->output] + product->at * ah__dtype_bytes(dtype);
    if (bound->call->dtype == AH_BF16)
        return bf16_product(bound->pool, gemm, product, c, dtype == AH_F32);
    struct ah_gemm whole = *gemm;
    whole.a = product->a;
    whole.b = product->b;
    whole.bias = product->bias;
    whole.c = c;
    return ah__cpu_gemm(bound->pool, &whole);
}

/* Computes output 0: the product of a and b, plus the bias if there is one. */
static int gemm_run(const struct ah_bound *bound, const void *a, const void *b, const void *bias)
{
    return ah__cpu_product(bound, &bound->call->as.gemm, &(struct ah_product){.a = a, .b = b, .bias = bias});
}

static int linear_prepare(struct ah_cpu_call *call)
{
    struct sizes s = sizes_of(call, ah__call_in(call, 0), ah__call_out(call, 0));
    return gemm_prepare(call, (struct ah_gemm){.trans_b = s.out_in,
                                               .m = s.rows,
                                               .n = s.out,
                                               .k = s.in,
                                               .lda = s.in,
                                               .ldb = s.weight_stride,
                                               .ldc = s.out});
}

static int linear_run(const struct ah_bound *bound)
{
    return gemm_run(bound, bound->in[0], bound->in[1], bound->in[2]);
}

const struct ah_cpu_operator ah__cpu_linear = {linear_prepare, linear_run};

static int linear_bwd_x_prepare(struct ah_cpu_call *call)
{
    struct sizes s = sizes_of(call, ah__call_out(call, 0), ah__call_in(call, 0));
    return gemm_prepare(call, (struct ah_gemm){.trans_b = !s.out_in,
                                               .m = s.rows,
                                               .n = s.in,
                                               .k = s.out,
                                               .lda = s.out,
                                               .ldb = s.weight_stride,
                                               .ldc = s.in,
                                               .accumulate = call->adds[0]});
}

static int linear_bwd_x_run(const struct ah_bound *bound)
{
    return gemm_run(bound, bound->in[0], bound->in[1], NULL);
}

const struct ah_cpu_operator ah__cpu_linear_bwd_x = {linear_bwd_x_prepare, linear_bwd_x_run};

/* Prepares x^T dy, or dy^T x for a weight [out, in]. */
static int linear_bwd_w_prepare(struct ah_cpu_call *call)
{
    struct sizes s = sizes_of(call, ah__call_in(call, 1), ah__call_in(call, 0));
    struct ah_gemm gemm = {.trans_a = true,
                           .m = s.in,
                           .n = s.out,
                           .k = s.rows,
                           .lda = s.in,
                           .ldb = s.out,
                           .ldc = s.weight_stride,
                           .accumulate = call->adds[0]};
    if (s.out_in) {
        gemm.m = s.out, gemm.n = s.in;
        gemm.lda = s.out, gemm.ldb = s.in;
    }
    return gemm_prepare(call, gemm);
}

static int linear_bwd_w_run(const struct ah_bound *bound)
{
    const void *dy = bound->in[0], *x = bound->in[1];
    return bound->call->call->attr.out_in ? gemm_run(bound, dy, x, NULL) : gemm_run(bound, x, dy, NULL);
}

const struct ah_cpu_operator ah__cpu_linear_bwd_w = {linear_bwd_w_prepare, linear_bwd_w_run};

static int linear_bwd_b_prepare(struct ah_cpu_call *call)
{
    const struct ah_shape *dy = ah__call_in(call, 0);
    int64_t cols = ah__shape_last(dy);
    call->as.strip =
        (struct ah_strip){.rows = ah__shape_rows(dy), .stride = cols, .cols = cols, .add_bias = call->adds[0]};
    call->pieces = ah__strip_pieces(cols);
    return AH_OK;
}

static int linear_bwd_b_run(const struct ah_bound *bound)
{
    struct ah_strip strip = bound->call->as.strip;
    strip.dy = bound->in[0];
    strip.dbias = bound->out[0];
    ah__strip_run(bound, &strip, &bound->call->pieces);
    return AH_OK;
}

const struct ah_cpu_operator ah__cpu_linear_bwd_b = {linear_bwd_b_prepare, linear_bwd_b_run};
