/* Linear layers. The weight is [I,O], or [O,I] when attr.out_in. */
#include "op/rules.h"

static int64_t inner_of(const struct ah_meta *weight, const struct ah_attr *attr)
{
    return weight->shape.dim[attr->out_in ? 1 : 0];
}

static struct ah_shape weight_shape(int64_t inner, int64_t outer, const struct ah_attr *attr)
{
    return attr->out_in ? ah_shape2(outer, inner) : ah_shape2(inner, outer);
}

static int linear_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(ah__op_expect_float("x", &in[0], 1, AH_MAX_RANK));
    AH_TRY(ah__op_expect_float("weight", &in[1], 2, 2));
    int64_t inner = inner_of(&in[1], attr), outer = in[1].shape.dim[attr->out_in ? 0 : 1];
    if (in[1].dtype != in[0].dtype || inner != ah__op_last(&in[0]))
        return ah__op_wrong("weight", &in[1], attr->out_in ? "%s [O,%lld]" : "%s [%lld,O]", ah__dtype_name(in[0].dtype),
                            (long long)ah__op_last(&in[0]));
    if (in[2].shape.rank)
        AH_TRY(ah__op_expect("bias", &in[2], in[0].dtype, ah_shape1(outer)));
    out[0] = in[0];
    out[0].shape.dim[in[0].shape.rank - 1] = outer;
    return AH_OK;
}

static double product_flops(const struct ah_meta *in, const struct ah_meta *matrix)
{
    return 2.0 * (double)ah__shape_rows(&in[0].shape) * (double)ah__shape_count(&matrix->shape);
}

static double linear_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)attr;
    double bias = in[2].shape.rank ? (double)ah__shape_count(&out[0].shape) : 0;
    return product_flops(in, &in[1]) + bias;
}

static struct ah_op_product product_with(const struct ah_meta *in, const struct ah_meta *matrix)
{
    return (struct ah_op_product){ah__shape_rows(&in[0].shape), matrix->shape.dim[0], matrix->shape.dim[1]};
}

static struct ah_op_product weight_product(const struct ah_meta *in, const struct ah_meta *out)
{
    (void)out;
    return product_with(in, &in[1]);
}

/* (x [..,I], weight, bias [O]?) -> y [..,O] */
const struct ah_op_row ah__op_linear = {
    .name = "linear",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true},
                 {.name = "weight", .kind = AH_OPERAND_PARAM, .backward_reads = true},
                 {.name = "bias", .kind = AH_OPERAND_PARAM, .optional = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION}),
    .attrs = AH_ATTR_OUT_IN,
    .infer = linear_infer,
    .flops = linear_flops,
    .limit = AH_OP_LIMIT_PRODUCT,
    .product = weight_product,
};

static int linear_bwd_x_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(ah__op_expect_float("dy", &in[0], 1, AH_MAX_RANK));
    int64_t inner = inner_of(&in[1], attr);
    AH_TRY(ah__op_expect("weight", &in[1], in[0].dtype, weight_shape(inner, ah__op_last(&in[0]), attr)));
    out[0] = in[0];
    out[0].shape.dim[in[0].shape.rank - 1] = inner;
    return AH_OK;
}

static double linear_bwd_x_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)out, (void)attr;
    return product_flops(in, &in[1]);
}

const struct ah_op_row ah__op_linear_bwd_x = {
    .name = "linear_bwd_x",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "weight", .kind = AH_OPERAND_PARAM}),
    AH_OP_OUTPUTS({.name = "dx", .kind = AH_OPERAND_GRADIENT}),
    .attrs = AH_ATTR_OUT_IN,
    .infer = linear_bwd_x_infer,
    .flops = linear_bwd_x_flops,
    .limit = AH_OP_LIMIT_PRODUCT,
    .product = weight_product,
};

static int linear_bwd_w_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(ah__op_expect_float("dy", &in[0], 1, AH_MAX_RANK));
    struct ah_shape x = in[0].shape;
    AH_TRY(ah__op_expect_float("x", &in[1], x.rank, x.rank));
    x.dim[x.rank - 1] = ah__op_last(&in[1]);
    AH_TRY(ah__op_expect("x", &in[1], in[0].dtype, x));
    out[0].dtype = AH_F32;
    out[0].shape = weight_shape(ah__op_last(&in[1]), ah__op_last(&in[0]), attr);
    return AH_OK;
}

static double linear_bwd_w_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)attr;
    return product_flops(in, &out[0]);
}

static struct ah_op_product linear_bwd_w_product(const struct ah_meta *in, const struct ah_meta *out)
{
    return product_with(in, &out[0]);
}

const struct ah_op_row ah__op_linear_bwd_w = {
    .name = "linear_bwd_w",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "x", .kind = AH_OPERAND_ACTIVATION}),
    AH_OP_OUTPUTS({.name = "dweight", .kind = AH_OPERAND_PARAM_GRADIENT}),
    .attrs = AH_ATTR_OUT_IN | AH_ATTR_ACC,
    .infer = linear_bwd_w_infer,
    .flops = linear_bwd_w_flops,
    .limit = AH_OP_LIMIT_PRODUCT,
    .product = linear_bwd_w_product,
};

static int linear_bwd_b_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("dy", &in[0], 1, AH_MAX_RANK));
    out[0] = ah__op_floats(ah__op_last(&in[0]));
    return AH_OK;
}

const struct ah_op_row ah__op_linear_bwd_b = {
    .name = "linear_bwd_b",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}),
    AH_OP_OUTPUTS({.name = "dbias", .kind = AH_OPERAND_PARAM_GRADIENT}),
    .attrs = AH_ATTR_ACC,
    .infer = linear_bwd_b_infer,
    .flops = ah__op_one_flop,
};
