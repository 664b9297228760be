/* Causal self-attention: queries, keys and values side by side in one operand, or each in its own. A query at position
 * i sees the keys up to i, with a window w the keys from i - w + 1 on. With positions it sees those of its own
 * document: the keys from i - p on, if p is its position there. A sink is a score of a head that every query sees
 * beside its keys, and whose value is zero: it takes a share of the softmax and gives nothing. */
#include "op/attention.h"

#include <math.h>

#include "op/rules.h"

float ah__attention_scale(const struct ah_attr *attr, int64_t size)
{
    return attr->scale > 0 ? attr->scale : 1.0F / sqrtf((float)size);
}

int ah__attention_expect(const struct ah_attr *attr)
{
    if (attr->window < 0)
        return ah__fail(AH_EINPUT, "window: found %d, expected a number of at least 0", attr->window);
    if (!(attr->scale >= 0 && isfinite(attr->scale)))
        return ah__fail(AH_EINPUT, "scale: found %g, expected a number of at least 0", (double)attr->scale);
    return ah__cap_expect(attr);
}

int ah__attention_expect_sinks(const struct ah_meta *sinks, const struct ah_meta *q, const struct ah_attr *attr)
{
    return sinks->shape.rank ? ah__op_expect("sinks", sinks, q->dtype, ah_shape1(attr->heads)) : AH_OK;
}

/* Floating-point operations of one product of queries with keys, or of probabilities with values: the causal half of
 * T^2 pairs, of these the pairs within the window. `y`: [B,T,C]. */
static double seen_product(const struct ah_meta *y, const struct ah_attr *attr)
{
    double seq = (double)y->shape.dim[1], window = attr->window;
    double keys = window > 0 && window < seq ? window * (2 - window / seq) : seq;
    return (double)ah__shape_count(&y->shape) * keys;
}

static int attention_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(ah__attention_expect(attr));
    AH_TRY(ah__op_expect_float("qkv", &in[0], 3, 3));
    if (attr->heads < 1 || ah__op_last(&in[0]) % (3 * (int64_t)attr->heads) != 0)
        return ah__op_wrong("qkv", &in[0], "[B,T,3C] with C a multiple of %d heads", attr->heads);
    AH_TRY(ah__op_expect_positions(&in[1], &in[0]));
    out[0] = in[0];
    out[0].shape.dim[2] /= 3;
    out[1].dtype = AH_F32;
    out[1].shape = (struct ah_shape){3, {in[0].shape.dim[0], attr->heads, in[0].shape.dim[1], 0}};
    return AH_OK;
}

static double attention_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)in;
    return 2 * seen_product(&out[0], attr);
}

/* qkv [B,T,3C], with q, k and v of all heads one after the other or, by_head, side by side in each head -> (y [B,T,C],
 * lse [B,H,T]: the logarithm of each row's sum of exponentials) */
const struct ah_op_row ah__op_attention = {
    .name = "attention",
    AH_OP_INPUTS({.name = "qkv", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true},
                 {.name = "positions", .kind = AH_OPERAND_POSITIONS, .optional = true, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true},
                  {.name = "lse", .kind = AH_OPERAND_STATISTICS, .backward_reads = true}),
    .attrs = AH_ATTR_HEADS | AH_ATTR_BY_HEAD | AH_ATTR_WINDOW | AH_ATTR_SCALE | AH_ATTR_CAP,
    .infer = attention_infer,
    .flops = attention_flops,
    .limit = AH_OP_LIMIT_ATTENTION,
};

static int attention_bwd_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    const struct ah_meta forward_in[] = {in[1], in[4]};
    struct ah_meta forward[2];
    AH_TRY(attention_infer(forward, forward_in, attr));
    AH_TRY(ah__op_expect("dy", &in[0], in[1].dtype, forward[0].shape));
    AH_TRY(ah__op_expect("y", &in[2], in[1].dtype, forward[0].shape));
    AH_TRY(ah__op_expect("lse", &in[3], AH_F32, forward[1].shape));
    out[0] = in[1];
    return AH_OK;
}

static double attention_bwd_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)out;
    return 5 * seen_product(&in[0], attr);
}

const struct ah_op_row ah__op_attention_bwd = {
    .name = "attention_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "qkv", .kind = AH_OPERAND_ACTIVATION},
                 {.name = "y", .kind = AH_OPERAND_ACTIVATION}, {.name = "lse", .kind = AH_OPERAND_STATISTICS},
                 {.name = "positions", .kind = AH_OPERAND_POSITIONS, .optional = true}),
    AH_OP_OUTPUTS({.name = "dqkv", .kind = AH_OPERAND_GRADIENT}),
    .attrs = AH_ATTR_HEADS | AH_ATTR_BY_HEAD | AH_ATTR_WINDOW | AH_ATTR_SCALE | AH_ATTR_CAP,
    .infer = attention_bwd_infer,
    .flops = attention_bwd_flops,
    .limit = AH_OP_LIMIT_ATTENTION_BWD,
};

/* ---- queries, keys and values in operands of their own ----------------------------------------------------------- */

static int attention_qkv_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(ah__attention_expect(attr));
    AH_TRY(ah__op_expect_float("q", &in[0], 3, 3));
    if (attr->heads < 1 || ah__op_last(&in[0]) % attr->heads != 0)
        return ah__op_wrong("q", &in[0], "[B,T,C] with C a multiple of %d heads", attr->heads);
    if (attr->kv_heads < 1 || attr->heads % attr->kv_heads != 0)
        return ah__fail(AH_EINPUT, "heads: found %d, expected a multiple of %d heads of keys and values", attr->heads,
                        attr->kv_heads);
    struct ah_shape key = in[0].shape;
    key.dim[2] = key.dim[2] / attr->heads * attr->kv_heads;
    AH_TRY(ah__op_expect("k", &in[1], in[0].dtype, key));
    AH_TRY(ah__op_expect("v", &in[2], in[0].dtype, key));
    AH_TRY(ah__op_expect_positions(&in[3], &in[0]));
    AH_TRY(ah__attention_expect_sinks(&in[4], &in[0], attr));
    out[0] = in[0];
    out[1].dtype = AH_F32;
    out[1].shape = (struct ah_shape){3, {in[0].shape.dim[0], attr->heads, in[0].shape.dim[1], 0}};
    return AH_OK;
}

static double attention_qkv_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)out;
    return 2 * seen_product(&in[0], attr);
}

/* (q [B,T,heads * size], k and v [B,T,kv_heads * size], positions?, sinks [heads]?) -> (y like q, lse [B,heads,T], with
 * the sink's exponential in the sum); head h reads head h / (heads / kv_heads) of keys and values */
const struct ah_op_row ah__op_attention_qkv = {
    .name = "attention_qkv",
    AH_OP_INPUTS({.name = "q", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true},
                 {.name = "k", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true},
                 {.name = "v", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true},
                 {.name = "positions", .kind = AH_OPERAND_POSITIONS, .optional = true, .backward_reads = true},
                 {.name = "sinks", .kind = AH_OPERAND_PARAM, .optional = true, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true},
                  {.name = "lse", .kind = AH_OPERAND_STATISTICS, .backward_reads = true}),
    .attrs = AH_ATTR_HEADS | AH_ATTR_KV_HEADS | AH_ATTR_WINDOW | AH_ATTR_SCALE | AH_ATTR_CAP,
    .infer = attention_qkv_infer,
    .flops = attention_qkv_flops,
    .limit = AH_OP_LIMIT_ATTENTION,
};

static int attention_qkv_bwd_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    const struct ah_meta forward_in[] = {in[1], in[2], in[3], in[6], {0}};
    struct ah_meta forward[2];
    AH_TRY(attention_qkv_infer(forward, forward_in, attr));
    AH_TRY(ah__op_expect("dy", &in[0], in[1].dtype, forward[0].shape));
    AH_TRY(ah__op_expect("y", &in[4], in[1].dtype, forward[0].shape));
    AH_TRY(ah__op_expect("lse", &in[5], AH_F32, forward[1].shape));
    out[0] = in[1];
    out[1] = out[2] = in[2];
    return AH_OK;
}

static double attention_qkv_bwd_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    return 2.5 * attention_qkv_flops(&in[1], out, attr);
}

const struct ah_op_row ah__op_attention_qkv_bwd = {
    .name = "attention_qkv_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "q", .kind = AH_OPERAND_ACTIVATION},
                 {.name = "k", .kind = AH_OPERAND_ACTIVATION}, {.name = "v", .kind = AH_OPERAND_ACTIVATION},
                 {.name = "y", .kind = AH_OPERAND_ACTIVATION}, {.name = "lse", .kind = AH_OPERAND_STATISTICS},
                 {.name = "positions", .kind = AH_OPERAND_POSITIONS, .optional = true}),
    AH_OP_OUTPUTS({.name = "dq", .kind = AH_OPERAND_GRADIENT}, {.name = "dk", .kind = AH_OPERAND_GRADIENT},
                  {.name = "dv", .kind = AH_OPERAND_GRADIENT}),
    .attrs = AH_ATTR_HEADS | AH_ATTR_KV_HEADS | AH_ATTR_WINDOW | AH_ATTR_SCALE | AH_ATTR_CAP,
    .infer = attention_qkv_bwd_infer,
    .flops = attention_qkv_bwd_flops,
    .limit = AH_OP_LIMIT_ATTENTION_BWD,
};

/* ---- sinks ------------------------------------------------------------------------------------------------------- */

static int sinks_bwd_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("sinks", &in[3], 1, 1));
    AH_TRY(ah__op_expect_float("dy", &in[0], 3, 3));
    int64_t heads = in[3].shape.dim[0];
    if (ah__op_last(&in[0]) % heads != 0)
        return ah__op_wrong("dy", &in[0], "[B,T,C] with C a multiple of %lld heads", (long long)heads);
    AH_TRY(ah__op_expect("y", &in[1], in[0].dtype, in[0].shape));
    AH_TRY(ah__op_expect("lse", &in[2], AH_F32, ah_shape3(in[0].shape.dim[0], heads, in[0].shape.dim[1])));
    AH_TRY(ah__op_expect("sinks", &in[3], in[0].dtype, in[3].shape));
    out[0] = ah__op_floats(heads);
    return AH_OK;
}

AH_OP_FLOPS_PER_ELEMENT(sinks_bwd_flops, 2.0)

/* (dy, y and lse of attention with sinks, sinks) -> dsinks [heads], minus the sum over tokens of the sink's probability
 * times dy y. Attention's own backward needs no sinks: they are in y and lse. */
const struct ah_op_row ah__op_sinks_bwd = {
    .name = "sinks_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "y", .kind = AH_OPERAND_ACTIVATION},
                 {.name = "lse", .kind = AH_OPERAND_STATISTICS}, {.name = "sinks", .kind = AH_OPERAND_PARAM}),
    AH_OP_OUTPUTS({.name = "dsinks", .kind = AH_OPERAND_PARAM_GRADIENT}),
    .attrs = AH_ATTR_ACC,
    .infer = sinks_bwd_infer,
    .flops = sinks_bwd_flops,
};
