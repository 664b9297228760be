/* Products of mixtures of experts, one for each expert, and sums of its rows. */
#include <string.h>

#include "dev/cpu/kernels.h"

/* Prepares a product of rows [R,k] with a matrix of each expert. */
static int product_prepare(struct ah_cpu_call *call, const struct ah_shape *weight, struct ah_gemm gemm)
{
    call->rows = weight->dim[0];
    call->as.gemm = gemm;
    return AH_OK;
}

static int grouped_linear_prepare(struct ah_cpu_call *call)
{
    const struct ah_shape *weight = ah__call_in(call, 1);
    int64_t outer = weight->dim[1], inner = weight->dim[2];
    return product_prepare(
        call, weight,
        (struct ah_gemm){.trans_b = true, .n = outer, .k = inner, .lda = inner, .ldb = inner, .ldc = outer});
}

static int grouped_linear_bwd_x_prepare(struct ah_cpu_call *call)
{
    const struct ah_shape *weight = ah__call_in(call, 1);
    int64_t outer = weight->dim[1], inner = weight->dim[2];
    return product_prepare(
        call, weight,
        (struct ah_gemm){
            .n = inner, .k = outer, .lda = outer, .ldb = inner, .ldc = inner, .accumulate = call->adds[0]});
}

/* Multiplies the rows of each expert with its matrix. Tiles follow from the rows of each. */
static int products_run(const struct ah_bound *bound)
{
    struct ah_gemm gemm = bound->call->as.gemm;
    const int32_t *ends = bound->in[2];
    int64_t from = 0;
    for (int64_t e = 0; e < bound->call->rows; from = ends[e], e++) {
        gemm.m = ends[e] - from;
        if (gemm.m == 0)
            continue;
        gemm.grid = ah__cpu_gemm_grid(gemm.m, gemm.n);
        AH_TRY(ah__cpu_product(bound, &gemm,
                               &(struct ah_product){.a = ah__in_at(bound, 0, from * gemm.k),
                                                    .b = ah__in_at(bound, 1, e * gemm.n * gemm.k),
                                                    .bias = bound->in[3] ? ah__in_at(bound, 3, e * gemm.n) : NULL,
                                                    .at = from * gemm.n}));
    }
    return AH_OK;
}

const struct ah_cpu_operator ah__cpu_grouped_linear = {grouped_linear_prepare, products_run};
const struct ah_cpu_operator ah__cpu_grouped_linear_bwd_x = {grouped_linear_bwd_x_prepare, products_run};

/* Prepares dy^T x of each expert. */
static int grouped_linear_bwd_w_prepare(struct ah_cpu_call *call)
{
    const struct ah_shape *weight = ah__call_out(call, 0);
    int64_t outer = weight->dim[1], inner = weight->dim[2];
    return product_prepare(call, weight,
                           (struct ah_gemm){.trans_a = true,
                                            .m = outer,
                                            .n = inner,
                                            .lda = outer,
                                            .ldb = inner,
                                            .ldc = inner,
                                            .grid = ah__cpu_gemm_grid(outer, inner),
                                            .accumulate = call->adds[0]});
}

static int grouped_linear_bwd_w_run(const struct ah_bound *bound)
{
    struct ah_gemm gemm = bound->call->as.gemm;
    const int32_t *ends = bound->in[2];
    int64_t from = 0;
    for (int64_t e = 0; e < bound->call->rows; from = ends[e], e++) {
        int64_t at = e * gemm.m * gemm.n;
        gemm.k = ends[e] - from;
        if (gemm.k == 0 && !gemm.accumulate)
            memset((float *)bound->out[0] + at, 0, (size_t)(gemm.m * gemm.n) * sizeof(float));
        if (gemm.k > 0)
            AH_TRY(ah__cpu_product(bound, &gemm,
                                   &(struct ah_product){.a = ah__in_at(bound, 0, from * gemm.m),
                                                        .b = ah__in_at(bound, 1, from * gemm.n),
                                                        .at = at}));
    }
    return AH_OK;
}

const struct ah_cpu_operator ah__cpu_grouped_linear_bwd_w = {grouped_linear_bwd_w_prepare, grouped_linear_bwd_w_run};

static int grouped_linear_bwd_b_prepare(struct ah_cpu_call *call)
{
    const struct ah_shape *bias = ah__call_out(call, 0);
    call->rows = bias->dim[0];
    call->as.strip = (struct ah_strip){.stride = bias->dim[1], .cols = bias->dim[1], .add_bias = call->adds[0]};
    call->pieces = ah__strip_pieces(bias->dim[1]);
    return AH_OK;
}

static int grouped_linear_bwd_b_run(const struct ah_bound *bound)
{
    struct ah_strip strip = bound->call->as.strip;
    const int32_t *ends = bound->in[1];
    int64_t from = 0;
    for (int64_t e = 0; e < bound->call->rows; from = ends[e], e++) {
        strip.rows = ends[e] - from;
        strip.dy = ah__in_at(bound, 0, from * strip.cols);
        strip.dbias = (float *)bound->out[0] + e * strip.cols;
        if (strip.rows > 0)
            ah__strip_run(bound, &strip, &bound->call->pieces);
        else if (!strip.add_bias)
            memset(strip.dbias, 0, (size_t)strip.cols * sizeof *strip.dbias);
    }
    return AH_OK;
}

const struct ah_cpu_operator ah__cpu_grouped_linear_bwd_b = {grouped_linear_bwd_b_prepare, grouped_linear_bwd_b_run};
