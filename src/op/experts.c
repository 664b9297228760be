/* Mixtures of experts without dropped tokens: of R tokens with K experts each, exactly R * K rows are computed, however
 * they spread. Route decides which; dispatch copies each token's row once for every expert of it, in the order of the
 * experts; grouped_linear multiplies the rows of each expert with its own matrix; scale_rows weighs them; combine sums
 * the rows of a token; gate_rows weighs what an expert of all tokens gives; shares gives the weights as a matrix, for
 * sums over experts that need no rows, as of their biases. Every order is fixed: rows of one expert lie in the order of
 * tokens, and a token's sum in the order of its experts, the likeliest first.
 *
 *     weights [..,K]  F32, share of each of a token's experts, the likeliest first
 *     slots [..,K]    I32, row of the token's copy for this expert, 0 to R * K - 1
 *     source [R * K]  I32, for each row the place in `slots` that names it: token * K + which of its experts
 *     ends [E]        I32, the row behind the last one of each expert */
#include "op/rules.h"

static struct ah_meta ids_of(struct ah_shape shape)
{
    return (struct ah_meta){AH_I32, shape};
}

static int expect_shares(const char *name, const struct ah_meta *found)
{
    return found->dtype == AH_F32 && found->shape.rank >= 2 ? AH_OK : ah__op_wrong(name, found, "F32 [..,K]");
}

static int expect_ends(const struct ah_meta *found, int64_t experts)
{
    return ah__op_expect("ends", found, AH_I32, ah_shape1(experts));
}

static int expect_source(const struct ah_meta *found, int64_t rows)
{
    return ah__op_expect("source", found, AH_I32, ah_shape1(rows));
}

/* ---- route ------------------------------------------------------------------------------------------------------- */

static int route_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(ah__op_expect_float("logits", &in[0], 2, AH_MAX_RANK));
    int64_t experts = ah__op_last(&in[0]);
    if (attr->picks < 1 || attr->picks > experts || attr->picks > AH_MOST_PICKS)
        return ah__fail(AH_EINPUT, "picks: found %d, expected 1 to %lld, of %lld experts", attr->picks,
                        (long long)(experts < AH_MOST_PICKS ? experts : AH_MOST_PICKS), (long long)experts);
    struct ah_shape shape = in[0].shape;
    shape.dim[shape.rank - 1] = attr->picks;
    out[0] = (struct ah_meta){AH_F32, shape};
    out[1] = ids_of(shape);
    out[2] = ids_of(ah_shape1(ah__shape_count(&shape)));
    out[3] = ids_of(ah_shape1(experts));
    return AH_OK;
}

AH_OP_FLOPS_PER_ELEMENT(route_flops, 10.0)

/* Takes the K largest logits of each token; among equal ones first the expert after the last one of the token before,
 * counted round, so that tokens without a preference spread evenly. The weights are softmax(logits) of those K, divided
 * by their sum if attr.normalised. */
const struct ah_op_row ah__op_route = {
    .name = "route",
    AH_OP_INPUTS({.name = "logits", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "weights", .kind = AH_OPERAND_SHARE, .backward_reads = true},
                  {.name = "slots", .kind = AH_OPERAND_INDEX, .backward_reads = true},
                  {.name = "source", .kind = AH_OPERAND_INDEX},
                  {.name = "ends", .kind = AH_OPERAND_INDEX, .backward_reads = true}),
    .attrs = AH_ATTR_PICKS | AH_ATTR_NORMALISED,
    .infer = route_infer,
    .flops = route_flops,
};

static int route_bwd_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("logits", &in[0], 2, AH_MAX_RANK));
    AH_TRY(expect_shares("dweights", &in[1]));
    AH_TRY(ah__op_expect("weights", &in[2], AH_F32, in[1].shape));
    AH_TRY(ah__op_expect("slots", &in[3], AH_I32, in[1].shape));
    AH_TRY(expect_ends(&in[4], ah__op_last(&in[0])));
    out[0] = in[0];
    return AH_OK;
}

const struct ah_op_row ah__op_route_bwd = {
    .name = "route_bwd",
    AH_OP_INPUTS({.name = "logits", .kind = AH_OPERAND_ACTIVATION}, {.name = "dweights", .kind = AH_OPERAND_SHARE},
                 {.name = "weights", .kind = AH_OPERAND_SHARE}, {.name = "slots", .kind = AH_OPERAND_INDEX},
                 {.name = "ends", .kind = AH_OPERAND_INDEX}),
    AH_OP_OUTPUTS({.name = "dlogits", .kind = AH_OPERAND_GRADIENT}),
    .attrs = AH_ATTR_PICKS | AH_ATTR_NORMALISED,
    .infer = route_bwd_infer,
    .flops = route_flops,
};

/* ---- dispatch and combine, each the other's gradient ------------------------------------------------------------- */

static int dispatch_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("x", &in[0], 2, AH_MAX_RANK));
    if (in[1].dtype != AH_I32 || in[1].shape.rank < 2 || ah__shape_rows(&in[1].shape) != ah__shape_rows(&in[0].shape))
        return ah__op_wrong("slots", &in[1], "I32 [..,K] of as many tokens as x");
    int64_t rows = ah__shape_count(&in[1].shape);
    AH_TRY(expect_source(&in[2], rows));
    out[0] = (struct ah_meta){in[0].dtype, ah_shape2(rows, ah__op_last(&in[0]))};
    return AH_OK;
}

/* (x [..,C], slots, source) -> y [R * K,C], y[row] = x[source[row] / K] */
const struct ah_op_row ah__op_dispatch = {
    .name = "dispatch",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION},
                 {.name = "slots", .kind = AH_OPERAND_INDEX, .backward_reads = true},
                 {.name = "source", .kind = AH_OPERAND_INDEX, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION}),
    .infer = dispatch_infer,
    .flops = ah__op_no_flops,
};

static int combine_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("x", &in[0], 2, 2));
    if (in[1].dtype != AH_I32 || in[1].shape.rank < 2 || ah__shape_count(&in[1].shape) != in[0].shape.dim[0])
        return ah__op_wrong("slots", &in[1], "I32 [..,K], one for each of %lld rows", (long long)in[0].shape.dim[0]);
    AH_TRY(expect_source(&in[2], in[0].shape.dim[0]));
    out[0] = (struct ah_meta){in[0].dtype, in[1].shape};
    out[0].shape.dim[out[0].shape.rank - 1] = ah__op_last(&in[0]);
    return AH_OK;
}

/* (x [R * K,C], slots [..,K], source) -> y [..,C], y[t] = sum over k of x[slots[t,k]] */
const struct ah_op_row ah__op_combine = {
    .name = "combine",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION},
                 {.name = "slots", .kind = AH_OPERAND_INDEX, .backward_reads = true},
                 {.name = "source", .kind = AH_OPERAND_INDEX, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION}),
    .infer = combine_infer,
    .flops = ah__op_one_flop,
};

/* ---- weights of rows --------------------------------------------------------------------------------------------- */

static int scale_rows_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("x", &in[0], 2, 2));
    AH_TRY(expect_shares("weights", &in[1]));
    if (ah__shape_count(&in[1].shape) != in[0].shape.dim[0])
        return ah__op_wrong("weights", &in[1], "F32 [..,K], one for each of %lld rows", (long long)in[0].shape.dim[0]);
    AH_TRY(expect_source(&in[2], in[0].shape.dim[0]));
    out[0] = in[0];
    return AH_OK;
}

/* (x [R * K,C], weights [..,K], source) -> y like x, y[row] = x[row] * weights[source[row]] */
const struct ah_op_row ah__op_scale_rows = {
    .name = "scale_rows",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true},
                 {.name = "weights", .kind = AH_OPERAND_SHARE, .backward_reads = true},
                 {.name = "source", .kind = AH_OPERAND_INDEX, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION}),
    .infer = scale_rows_infer,
    .flops = ah__op_one_flop,
};

static int scale_rows_bwd_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(ah__op_expect_float("dy", &in[0], 2, 2));
    AH_TRY(ah__op_expect("x", &in[1], in[0].dtype, in[0].shape));
    AH_TRY(scale_rows_infer(out, (const struct ah_meta[]){in[0], in[2], in[3]}, attr));
    out[1] = in[2];
    return AH_OK;
}

AH_OP_FLOPS_PER_ELEMENT(scale_rows_bwd_flops, 3.0)

/* dx = dy times the row's weight, over dy; the weight's gradient is the row's dy times x, summed over C */
const struct ah_op_row ah__op_scale_rows_bwd = {
    .name = "scale_rows_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "x", .kind = AH_OPERAND_ACTIVATION},
                 {.name = "weights", .kind = AH_OPERAND_SHARE}, {.name = "source", .kind = AH_OPERAND_INDEX}),
    AH_OP_OUTPUTS({.name = "dx", .kind = AH_OPERAND_GRADIENT, .in_place = true},
                  {.name = "dweights", .kind = AH_OPERAND_SHARE}),
    .infer = scale_rows_bwd_infer,
    .flops = scale_rows_bwd_flops,
};

static int expect_gate(const struct ah_meta *gate, const struct ah_meta *x)
{
    struct ah_shape shape = x->shape;
    shape.dim[shape.rank - 1] = 1;
    return ah__op_expect("gate", gate, x->dtype, shape);
}

static int gate_rows_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("x", &in[0], 1, AH_MAX_RANK));
    AH_TRY(expect_gate(&in[1], &in[0]));
    out[0] = in[0];
    return AH_OK;
}

/* (x [..,C], gate [..,1]) -> y like x: each row times 1 / (1 + e^-gate) */
const struct ah_op_row ah__op_gate_rows = {
    .name = "gate_rows",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true},
                 {.name = "gate", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION}),
    .infer = gate_rows_infer,
    .flops = ah__op_one_flop,
};

static int gate_rows_bwd_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("dy", &in[0], 1, AH_MAX_RANK));
    AH_TRY(ah__op_expect("x", &in[1], in[0].dtype, in[0].shape));
    AH_TRY(expect_gate(&in[2], &in[0]));
    out[0] = in[0];
    out[1] = in[2];
    return AH_OK;
}

/* With s = 1 / (1 + e^-gate): dx = dy s; dgate = s (1 - s) times the row's dy times x, summed over C. Not over dy,
 * which belongs to the other term, too, where y is one of a sum. */
const struct ah_op_row ah__op_gate_rows_bwd = {
    .name = "gate_rows_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "x", .kind = AH_OPERAND_ACTIVATION},
                 {.name = "gate", .kind = AH_OPERAND_ACTIVATION}),
    AH_OP_OUTPUTS({.name = "dx", .kind = AH_OPERAND_GRADIENT}, {.name = "dgate", .kind = AH_OPERAND_GRADIENT}),
    .infer = gate_rows_bwd_infer,
    .flops = scale_rows_bwd_flops,
};

/* ---- weights as a matrix ----------------------------------------------------------------------------------------- */

static int expect_places(const struct ah_meta *slots, const struct ah_meta *ends, const struct ah_meta *matrix)
{
    struct ah_shape shape = matrix->shape;
    shape.dim[shape.rank - 1] = slots->shape.rank ? slots->shape.dim[slots->shape.rank - 1] : 0;
    AH_TRY(ah__op_expect("slots", slots, AH_I32, shape));
    return expect_ends(ends, ah__op_last(matrix));
}

static int shares_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("logits", &in[0], 2, AH_MAX_RANK));
    AH_TRY(expect_places(&in[2], &in[3], &in[0]));
    AH_TRY(ah__op_expect("weights", &in[1], AH_F32, in[2].shape));
    out[0] = in[0];
    return AH_OK;
}

/* (logits [..,E], weights [..,K], slots [..,K], ends [E]) -> y like logits: the weights of the experts that a token
 * has, 0 of the others. The values of logits are not read: only their type and shape count. */
const struct ah_op_row ah__op_shares = {
    .name = "shares",
    AH_OP_INPUTS({.name = "logits", .kind = AH_OPERAND_ACTIVATION}, {.name = "weights", .kind = AH_OPERAND_SHARE},
                 {.name = "slots", .kind = AH_OPERAND_INDEX, .backward_reads = true},
                 {.name = "ends", .kind = AH_OPERAND_INDEX, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION}),
    .infer = shares_infer,
    .flops = ah__op_no_flops,
};

static int shares_bwd_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("dy", &in[0], 2, AH_MAX_RANK));
    AH_TRY(expect_places(&in[1], &in[2], &in[0]));
    out[0] = (struct ah_meta){AH_F32, in[1].shape};
    return AH_OK;
}

const struct ah_op_row ah__op_shares_bwd = {
    .name = "shares_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "slots", .kind = AH_OPERAND_INDEX},
                 {.name = "ends", .kind = AH_OPERAND_INDEX}),
    AH_OP_OUTPUTS({.name = "dweights", .kind = AH_OPERAND_SHARE}),
    .infer = shares_bwd_infer,
    .flops = ah__op_no_flops,
};

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* The inputs and outputs of an expert's matrix [E,O,I]. */
static int64_t outer_of(const struct ah_meta *weight)
{
    return weight->shape.dim[1];
}

static int64_t inner_of(const struct ah_meta *weight)
{
    return weight->shape.dim[2];
}

static int grouped_linear_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("x", &in[0], 2, 2));
    AH_TRY(ah__op_expect_float("weight", &in[1], 3, 3));
    if (in[1].dtype != in[0].dtype || inner_of(&in[1]) != ah__op_last(&in[0]))
        return ah__op_wrong("weight", &in[1], "%s [E,O,%lld]", ah__dtype_name(in[0].dtype),
                            (long long)ah__op_last(&in[0]));
    AH_TRY(expect_ends(&in[2], in[1].shape.dim[0]));
    if (in[3].shape.rank)
        AH_TRY(ah__op_expect("bias", &in[3], in[0].dtype, ah_shape2(in[1].shape.dim[0], outer_of(&in[1]))));
    out[0] = (struct ah_meta){in[0].dtype, ah_shape2(in[0].shape.dim[0], outer_of(&in[1]))};
    return AH_OK;
}

static double product_flops(const struct ah_meta *rows, const struct ah_meta *weight)
{
    return 2.0 * (double)rows->shape.dim[0] * (double)outer_of(weight) * (double)inner_of(weight);
}

/* Returns the product of one expert, rounded up, if all have equally many rows. */
static struct ah_op_product product_with(const struct ah_meta *rows, const struct ah_meta *weight)
{
    int64_t experts = weight->shape.dim[0];
    return (struct ah_op_product){(rows->shape.dim[0] + experts - 1) / experts, outer_of(weight), inner_of(weight)};
}

static double weight_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)out, (void)attr;
    return product_flops(&in[0], &in[1]);
}

static struct ah_op_product weight_product(const struct ah_meta *in, const struct ah_meta *out)
{
    (void)out;
    return product_with(&in[0], &in[1]);
}

static double linear_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    return weight_flops(in, out, attr) + (in[3].shape.rank ? (double)ah__shape_count(&out[0].shape) : 0);
}

/* (x [R,I], weight [E,O,I], ends [E], bias [E,O]?) -> y [R,O]: the rows of expert e times its matrix, plus its bias */
const struct ah_op_row ah__op_grouped_linear = {
    .name = "grouped_linear",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION, .backward_reads = true},
                 {.name = "weight", .kind = AH_OPERAND_PARAM, .backward_reads = true},
                 {.name = "ends", .kind = AH_OPERAND_INDEX, .backward_reads = true},
                 {.name = "bias", .kind = AH_OPERAND_PARAM, .optional = true}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION}),
    .infer = grouped_linear_infer,
    .flops = linear_flops,
    .limit = AH_OP_LIMIT_PRODUCT,
    .product = weight_product,
};

static int grouped_linear_bwd_x_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("dy", &in[0], 2, 2));
    AH_TRY(ah__op_expect_float("weight", &in[1], 3, 3));
    if (in[1].dtype != in[0].dtype || outer_of(&in[1]) != ah__op_last(&in[0]))
        return ah__op_wrong("weight", &in[1], "%s [E,%lld,I]", ah__dtype_name(in[0].dtype),
                            (long long)ah__op_last(&in[0]));
    AH_TRY(expect_ends(&in[2], in[1].shape.dim[0]));
    out[0] = (struct ah_meta){in[0].dtype, ah_shape2(in[0].shape.dim[0], inner_of(&in[1]))};
    return AH_OK;
}

const struct ah_op_row ah__op_grouped_linear_bwd_x = {
    .name = "grouped_linear_bwd_x",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "weight", .kind = AH_OPERAND_PARAM},
                 {.name = "ends", .kind = AH_OPERAND_INDEX}),
    AH_OP_OUTPUTS({.name = "dx", .kind = AH_OPERAND_GRADIENT}),
    .infer = grouped_linear_bwd_x_infer,
    .flops = weight_flops,
    .limit = AH_OP_LIMIT_PRODUCT,
    .product = weight_product,
};

static int grouped_linear_bwd_w_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("dy", &in[0], 2, 2));
    AH_TRY(ah__op_expect_float("x", &in[1], 2, 2));
    AH_TRY(ah__op_expect("x", &in[1], in[0].dtype, ah_shape2(in[0].shape.dim[0], ah__op_last(&in[1]))));
    if (in[2].dtype != AH_I32 || in[2].shape.rank != 1)
        return ah__op_wrong("ends", &in[2], "I32 [E]");
    out[0] = (struct ah_meta){AH_F32, ah_shape3(in[2].shape.dim[0], ah__op_last(&in[0]), ah__op_last(&in[1]))};
    return AH_OK;
}

static double grouped_linear_bwd_w_flops(const struct ah_meta *in, const struct ah_meta *out,
                                         const struct ah_attr *attr)
{
    (void)attr;
    return product_flops(&in[0], &out[0]);
}

static struct ah_op_product grouped_linear_bwd_w_product(const struct ah_meta *in, const struct ah_meta *out)
{
    return product_with(&in[0], &out[0]);
}

const struct ah_op_row ah__op_grouped_linear_bwd_w = {
    .name = "grouped_linear_bwd_w",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "x", .kind = AH_OPERAND_ACTIVATION},
                 {.name = "ends", .kind = AH_OPERAND_INDEX}),
    AH_OP_OUTPUTS({.name = "dweight", .kind = AH_OPERAND_PARAM_GRADIENT}),
    .attrs = AH_ATTR_ACC,
    .infer = grouped_linear_bwd_w_infer,
    .flops = grouped_linear_bwd_w_flops,
    .limit = AH_OP_LIMIT_PRODUCT,
    .product = grouped_linear_bwd_w_product,
};

static int grouped_linear_bwd_b_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("dy", &in[0], 2, 2));
    if (in[1].dtype != AH_I32 || in[1].shape.rank != 1)
        return ah__op_wrong("ends", &in[1], "I32 [E]");
    out[0] = (struct ah_meta){AH_F32, ah_shape2(in[1].shape.dim[0], ah__op_last(&in[0]))};
    return AH_OK;
}

static double grouped_linear_bwd_b_flops(const struct ah_meta *in, const struct ah_meta *out,
                                         const struct ah_attr *attr)
{
    (void)out, (void)attr;
    return (double)ah__shape_count(&in[0].shape);
}

/* The sum of dy over the rows of each expert */
const struct ah_op_row ah__op_grouped_linear_bwd_b = {
    .name = "grouped_linear_bwd_b",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}, {.name = "ends", .kind = AH_OPERAND_INDEX}),
    AH_OP_OUTPUTS({.name = "dbias", .kind = AH_OPERAND_PARAM_GRADIENT}),
    .attrs = AH_ATTR_ACC,
    .infer = grouped_linear_bwd_b_infer,
    .flops = grouped_linear_bwd_b_flops,
};
