/* Causal self-attention on queries, keys and values that lie side by side. */
#include "op/rules.h"

static int attention_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(ah__op_expect_float("qkv", &in[0], 3, 3));
    if (attr->heads < 1 || ah__op_last(&in[0]) % (3 * (int64_t)attr->heads) != 0)
        return ah__op_wrong("qkv", &in[0], "[B,T,3C] with C a multiple of %d heads", attr->heads);
    out[0] = in[0];
    out[0].shape.dim[2] /= 3;
    out[1].dtype = AH_F32;
    out[1].shape = (struct ah_shape){3, {in[0].shape.dim[0], attr->heads, in[0].shape.dim[1], 0}};
    return AH_OK;
}

/* One product of queries with keys, or of probabilities with values, over the causal half. */
static double half_product(const struct ah_meta *qkv)
{
    return (double)ah__shape_count(&qkv->shape) / 3 * (double)qkv->shape.dim[1];
}

static double attention_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)out, (void)attr;
    return 2 * half_product(&in[0]);
}

/* qkv [B,T,3C] -> (y [B,T,C], lse [B,H,T]: the logarithm of each row's sum of exponentials) */
const struct ah_op_row ah__op_attention = {
    .name = "attention",
    AH_OP_INPUTS({.name = "qkv", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true},
                  {.name = "lse", .kind = AH_OPERAND_STATISTICS, .backward_reads = true}),
    .attrs = AH_ATTR_HEADS,
    .infer = attention_infer,
    .flops = attention_flops,
    .limit = AH_OP_LIMIT_ATTENTION,
};

static int attention_bwd_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    struct ah_meta forward[2];
    AH_TRY(attention_infer(forward, &in[1], attr));
    AH_TRY(ah__op_expect("dy", &in[0], in[1].dtype, forward[0].shape));
    AH_TRY(ah__op_expect("y", &in[2], in[1].dtype, forward[0].shape));
    AH_TRY(ah__op_expect("lse", &in[3], AH_F32, forward[1].shape));
    out[0] = in[1];
    return AH_OK;
}

static double attention_bwd_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)out, (void)attr;
    return 5 * half_product(&in[1]);
}

const struct ah_op_row ah__op_attention_bwd = {
    .name = "attention_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "qkv", .kind = AH_OPERAND_ACTIVATION},
                 {.name = "y", .kind = AH_OPERAND_ACTIVATION}, {.name = "lse", .kind = AH_OPERAND_STATISTICS}),
    AH_OP_OUTPUTS({.name = "dqkv", .kind = AH_OPERAND_GRADIENT}),
    .attrs = AH_ATTR_HEADS,
    .infer = attention_bwd_infer,
    .flops = attention_bwd_flops,
    .limit = AH_OP_LIMIT_ATTENTION_BWD,
};
