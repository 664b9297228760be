/* Normalisation over the last dimension. */
#include "op/rules.h"

#include <math.h>

static int layernorm_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("x", &in[0], 1, AH_MAX_RANK));
    AH_TRY(ah__op_expect("weight", &in[1], in[0].dtype, ah_shape1(ah__op_last(&in[0]))));
    if (in[2].shape.rank)
        AH_TRY(ah__op_expect("bias", &in[2], in[0].dtype, ah_shape1(ah__op_last(&in[0]))));
    out[0] = in[0];
    out[1] = out[2] = ah__op_floats(ah__shape_rows(&in[0].shape));
    return AH_OK;
}

AH_OP_FLOPS_PER_ELEMENT(layernorm_flops, 8.0)

/* (x [..,C], weight [C], bias [C]?) -> (y, mean [rows], rstd [rows]) */
const struct ah_op_row ah__op_layernorm = {
    .name = "layernorm",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true},
                 {.name = "weight", .kind = AH_OPERAND_PARAM, .backward_reads = true},
                 {.name = "bias", .kind = AH_OPERAND_PARAM, .optional = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION},
                  {.name = "mean", .kind = AH_OPERAND_STATISTICS, .backward_reads = true},
                  {.name = "rstd", .kind = AH_OPERAND_STATISTICS, .backward_reads = true}),
    .attrs = AH_ATTR_EPS,
    .infer = layernorm_infer,
    .flops = layernorm_flops,
};

static int layernorm_bwd_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("dy", &in[0], 1, AH_MAX_RANK));
    AH_TRY(ah__op_expect("x", &in[1], in[0].dtype, in[0].shape));
    AH_TRY(ah__op_expect("weight", &in[2], in[0].dtype, ah_shape1(ah__op_last(&in[0]))));
    AH_TRY(ah__op_expect("mean", &in[3], AH_F32, ah_shape1(ah__shape_rows(&in[0].shape))));
    AH_TRY(ah__op_expect("rstd", &in[4], AH_F32, in[3].shape));
    out[0] = in[0];
    out[1] = out[2] = ah__op_floats(ah__op_last(&in[0]));
    return AH_OK;
}

AH_OP_FLOPS_PER_ELEMENT(layernorm_bwd_flops, 14.0)

/* (dy, x, weight, mean, rstd) -> (dx, dweight?, dbias?) */
const struct ah_op_row ah__op_layernorm_bwd = {
    .name = "layernorm_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "x", .kind = AH_OPERAND_ACTIVATION},
                 {.name = "weight", .kind = AH_OPERAND_PARAM}, {.name = "mean", .kind = AH_OPERAND_STATISTICS},
                 {.name = "rstd", .kind = AH_OPERAND_STATISTICS}),
    AH_OP_OUTPUTS({.name = "dx", .kind = AH_OPERAND_GRADIENT},
                  {.name = "dweight", .kind = AH_OPERAND_PARAM_GRADIENT, .optional = true},
                  {.name = "dbias", .kind = AH_OPERAND_PARAM_GRADIENT, .optional = true}),
    .attrs = AH_ATTR_EPS | AH_ATTR_ACC,
    .infer = layernorm_bwd_infer,
    .flops = layernorm_bwd_flops,
};

/* Checks the weight, which may be shorter than the last dimension: each run of as many channels is then a row. */
static int expect_group(const struct ah_meta *x, const struct ah_meta *weight)
{
    if (weight->dtype != x->dtype || weight->shape.rank != 1 || weight->shape.dim[0] < 1 ||
        ah__op_last(x) % weight->shape.dim[0] != 0)
        return ah__op_wrong("weight", weight, "%s [C] or a divisor of C = %lld", ah__dtype_name(x->dtype),
                            (long long)ah__op_last(x));
    return AH_OK;
}

static int rmsnorm_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    if (!isfinite(attr->offset))
        return ah__fail(AH_EINPUT, "offset: found %g, expected a number", (double)attr->offset);
    AH_TRY(ah__op_expect_float("x", &in[0], 1, AH_MAX_RANK));
    AH_TRY(expect_group(&in[0], &in[1]));
    out[0] = in[0];
    out[1] = ah__op_floats(ah__shape_count(&in[0].shape) / ah__op_last(&in[1]));
    return AH_OK;
}

AH_OP_FLOPS_PER_ELEMENT(rmsnorm_flops, 4.0)

/* (x [..,C], weight [C], or [C / n] for rows of so many channels) -> (y, rstd [rows]): x * rstd * (weight + offset) */
const struct ah_op_row ah__op_rmsnorm = {
    .name = "rmsnorm",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true},
                 {.name = "weight", .kind = AH_OPERAND_PARAM, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION},
                  {.name = "rstd", .kind = AH_OPERAND_STATISTICS, .backward_reads = true}),
    .attrs = AH_ATTR_EPS | AH_ATTR_OFFSET,
    .infer = rmsnorm_infer,
    .flops = rmsnorm_flops,
};

static int rmsnorm_bwd_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("dy", &in[0], 1, AH_MAX_RANK));
    AH_TRY(ah__op_expect("x", &in[1], in[0].dtype, in[0].shape));
    AH_TRY(expect_group(&in[0], &in[2]));
    int64_t cols = ah__op_last(&in[2]);
    AH_TRY(ah__op_expect("rstd", &in[3], AH_F32, ah_shape1(ah__shape_count(&in[0].shape) / cols)));
    out[0] = in[0];
    out[1] = ah__op_floats(cols);
    return AH_OK;
}

AH_OP_FLOPS_PER_ELEMENT(rmsnorm_bwd_flops, 10.0)

const struct ah_op_row ah__op_rmsnorm_bwd = {
    .name = "rmsnorm_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "x", .kind = AH_OPERAND_ACTIVATION},
                 {.name = "weight", .kind = AH_OPERAND_PARAM}, {.name = "rstd", .kind = AH_OPERAND_STATISTICS}),
    AH_OP_OUTPUTS({.name = "dx", .kind = AH_OPERAND_GRADIENT},
                  {.name = "dweight", .kind = AH_OPERAND_PARAM_GRADIENT, .optional = true}),
    .attrs = AH_ATTR_EPS | AH_ATTR_OFFSET | AH_ATTR_ACC,
    .infer = rmsnorm_bwd_infer,
    .flops = rmsnorm_bwd_flops,
};
