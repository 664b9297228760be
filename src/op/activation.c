/* Functions of one element, or of two elements at the same place. Backward overwrites the incoming gradient. */
#include "op/rules.h"

AH_OP_FLOPS_PER_ELEMENT(gelu_flops, 12.0)
AH_OP_FLOPS_PER_ELEMENT(gelu_bwd_flops, 20.0)

const struct ah_op_row ah__op_gelu = {
    .name = "gelu",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION}),
    .infer = ah__op_infer_same,
    .flops = gelu_flops,
};

const struct ah_op_row ah__op_gelu_bwd = {
    .name = "gelu_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "x", .kind = AH_OPERAND_ACTIVATION}),
    AH_OP_OUTPUTS({.name = "dx", .kind = AH_OPERAND_GRADIENT, .in_place = true}),
    .infer = ah__op_infer_pair,
    .flops = gelu_bwd_flops,
};

/* y = x * Phi(x), with Phi the normal distribution's cumulative distribution function */
const struct ah_op_row ah__op_gelu_erf = {
    .name = "gelu_erf",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION}),
    .infer = ah__op_infer_same,
    .flops = gelu_flops,
};

const struct ah_op_row ah__op_gelu_erf_bwd = {
    .name = "gelu_erf_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "x", .kind = AH_OPERAND_ACTIVATION}),
    AH_OP_OUTPUTS({.name = "dx", .kind = AH_OPERAND_GRADIENT, .in_place = true}),
    .infer = ah__op_infer_pair,
    .flops = gelu_bwd_flops,
};

const struct ah_op_row ah__op_relu = {
    .name = "relu",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION}),
    .infer = ah__op_infer_same,
    .flops = ah__op_one_flop,
};

const struct ah_op_row ah__op_relu_bwd = {
    .name = "relu_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "x", .kind = AH_OPERAND_ACTIVATION}),
    AH_OP_OUTPUTS({.name = "dx", .kind = AH_OPERAND_GRADIENT, .in_place = true}),
    .infer = ah__op_infer_pair,
    .flops = ah__op_one_flop,
};

static int gated_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("gate", &in[0], 1, AH_MAX_RANK));
    AH_TRY(ah__op_expect("up", &in[1], in[0].dtype, in[0].shape));
    out[0] = in[0];
    return AH_OK;
}

AH_OP_FLOPS_PER_ELEMENT(silu_mul_flops, 10.0)

/* y = gate / (1 + e^-gate) * up */
const struct ah_op_row ah__op_silu_mul = {
    .name = "silu_mul",
    AH_OP_INPUTS({.name = "gate", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true},
                 {.name = "up", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION}),
    .infer = gated_infer,
    .flops = silu_mul_flops,
};

static int gated_bwd_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("dy", &in[0], 1, AH_MAX_RANK));
    AH_TRY(ah__op_expect("gate", &in[1], in[0].dtype, in[0].shape));
    AH_TRY(ah__op_expect("up", &in[2], in[0].dtype, in[0].shape));
    out[0] = out[1] = in[0];
    return AH_OK;
}

AH_OP_FLOPS_PER_ELEMENT(silu_mul_bwd_flops, 16.0)

const struct ah_op_row ah__op_silu_mul_bwd = {
    .name = "silu_mul_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "gate", .kind = AH_OPERAND_ACTIVATION},
                 {.name = "up", .kind = AH_OPERAND_ACTIVATION}),
    AH_OP_OUTPUTS({.name = "dgate", .kind = AH_OPERAND_GRADIENT, .in_place = true},
                  {.name = "dup", .kind = AH_OPERAND_GRADIENT}),
    .infer = gated_bwd_infer,
    .flops = silu_mul_bwd_flops,
};

static int halves_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("x", &in[0], 1, AH_MAX_RANK));
    if (ah__op_last(&in[0]) % 2)
        return ah__op_wrong("x", &in[0], "%s [..,2I]", ah__dtype_name(in[0].dtype));
    out[0] = in[0];
    out[0].shape.dim[out[0].shape.rank - 1] /= 2;
    return AH_OK;
}

AH_OP_FLOPS_PER_ELEMENT(silu_mul_halves_flops, 5.0)

/* x [..,2I] -> y [..,I]: silu_mul of each row's first half, the gate, and its second */
const struct ah_op_row ah__op_silu_mul_halves = {
    .name = "silu_mul_halves",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION}),
    .infer = halves_infer,
    .flops = silu_mul_halves_flops,
};

static int halves_bwd_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    struct ah_meta half;
    AH_TRY(halves_infer(&half, &in[1], attr));
    AH_TRY(ah__op_expect("dy", &in[0], half.dtype, half.shape));
    out[0] = in[1];
    return AH_OK;
}

const struct ah_op_row ah__op_silu_mul_halves_bwd = {
    .name = "silu_mul_halves_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "x", .kind = AH_OPERAND_ACTIVATION}),
    AH_OP_OUTPUTS({.name = "dx", .kind = AH_OPERAND_GRADIENT}),
    .infer = halves_bwd_infer,
    .flops = silu_mul_bwd_flops,
};

AH_OP_FLOPS_PER_ELEMENT(swiglu_clamped_flops, 7.0)
AH_OP_FLOPS_PER_ELEMENT(swiglu_clamped_bwd_flops, 20.0)

static int clamped_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    if (!(attr->limit > 0) || !(attr->scale > 0))
        return ah__fail(AH_EINPUT, "limit, scale: found %g, %g, expected numbers above 0", (double)attr->limit,
                        (double)attr->scale);
    return halves_infer(out, in, attr);
}

/* x [..,2I] -> y [..,I]: with g = min(x, limit) of the row's first half and u = max(-limit, min(x, limit)) of its
 * second, g / (1 + e^(-scale g)) (u + 1), as in transformers' GptOssExperts */
const struct ah_op_row ah__op_swiglu_clamped = {
    .name = "swiglu_clamped",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION}),
    .attrs = AH_ATTR_SCALE | AH_ATTR_LIMIT,
    .infer = clamped_infer,
    .flops = swiglu_clamped_flops,
};

/* The slope is 0 where a number is beyond the limit. */
const struct ah_op_row ah__op_swiglu_clamped_bwd = {
    .name = "swiglu_clamped_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "x", .kind = AH_OPERAND_ACTIVATION}),
    AH_OP_OUTPUTS({.name = "dx", .kind = AH_OPERAND_GRADIENT}),
    .attrs = AH_ATTR_SCALE | AH_ATTR_LIMIT,
    .infer = halves_bwd_infer,
    .flops = swiglu_clamped_bwd_flops,
};

AH_OP_FLOPS_PER_ELEMENT(gelu_mul_flops, 13.0)
AH_OP_FLOPS_PER_ELEMENT(gelu_mul_bwd_flops, 23.0)

/* y = gelu(gate) * up, gelu in its tanh form */
const struct ah_op_row ah__op_gelu_mul = {
    .name = "gelu_mul",
    AH_OP_INPUTS({.name = "gate", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true},
                 {.name = "up", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION}),
    .infer = gated_infer,
    .flops = gelu_mul_flops,
};

const struct ah_op_row ah__op_gelu_mul_bwd = {
    .name = "gelu_mul_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "gate", .kind = AH_OPERAND_ACTIVATION},
                 {.name = "up", .kind = AH_OPERAND_ACTIVATION}),
    AH_OP_OUTPUTS({.name = "dgate", .kind = AH_OPERAND_GRADIENT, .in_place = true},
                  {.name = "dup", .kind = AH_OPERAND_GRADIENT}),
    .infer = gated_bwd_infer,
    .flops = gelu_mul_bwd_flops,
};
