/* Tables of vectors, of tokens and of positions. Row `first` of a table is for id, or position, 0. */
#include "op/rules.h"

static int expect_first(const struct ah_attr *attr)
{
    return attr->first >= 0 ? AH_OK
                            : ah__fail(AH_EINPUT, "first row: found %d, expected a number of at least 0", attr->first);
}

static int embedding_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(expect_first(attr));
    AH_TRY(ah__op_expect_float("table", &in[0], 2, 2));
    AH_TRY(ah__op_expect_ids("ids", &in[1]));
    if (in[0].shape.dim[0] <= attr->first)
        return ah__op_wrong("table", &in[0], "[V,C] with V above its first row %d", attr->first);
    out[0].dtype = in[0].dtype;
    out[0].shape = (struct ah_shape){3, {in[1].shape.dim[0], in[1].shape.dim[1], ah__op_last(&in[0]), 0}};
    return AH_OK;
}

/* Bytes moved; of the table only the rows that are looked up. */
static double embedding_bytes(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)attr;
    return 2 * (double)ah__meta_bytes(&out[0]) + (double)ah__meta_bytes(&in[1]);
}

/* (table [V,C], ids [B,T], which may be positions) -> x [B,T,C] */
const struct ah_op_row ah__op_embedding = {
    .name = "embedding",
    AH_OP_INPUTS({.name = "table", .kind = AH_OPERAND_PARAM},
                 {.name = "ids", .kind = AH_OPERAND_TOKENS, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION}),
    .attrs = AH_ATTR_FIRST,
    .infer = embedding_infer,
    .flops = ah__op_no_flops,
    .bytes = embedding_bytes,
};

static int embedding_bwd_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(expect_first(attr));
    AH_TRY(ah__op_expect_float("dx", &in[0], 3, 3));
    AH_TRY(ah__op_expect("ids", &in[1], AH_I32, ah_shape2(in[0].shape.dim[0], in[0].shape.dim[1])));
    return ah__op_expect("dtable", &out[0], AH_F32, ah_shape2(out[0].shape.dim[0], ah__op_last(&in[0])));
}

const struct ah_op_row ah__op_embedding_bwd = {
    .name = "embedding_bwd",
    AH_OP_INPUTS({.name = "dx", .kind = AH_OPERAND_GRADIENT}, {.name = "ids", .kind = AH_OPERAND_TOKENS}),
    AH_OP_OUTPUTS({.name = "dtable", .kind = AH_OPERAND_PARAM_GRADIENT, .given = true}),
    .attrs = AH_ATTR_FIRST | AH_ATTR_ACC,
    .infer = embedding_bwd_infer,
    .flops = ah__op_one_flop,
};

static int add_position_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(expect_first(attr));
    AH_TRY(ah__op_expect_float("x", &in[0], 3, 3));
    AH_TRY(ah__op_expect_float("table", &in[1], 2, 2));
    int64_t seq = in[0].shape.dim[1], width = ah__op_last(&in[0]), positions = in[1].shape.dim[0] - attr->first;
    if (in[1].dtype != in[0].dtype || ah__op_last(&in[1]) != width || positions < seq)
        return ah__op_wrong("table", &in[1], "%s [P,%lld] with P >= %lld", ah__dtype_name(in[0].dtype),
                            (long long)width, (long long)(seq + attr->first));
    out[0] = in[0];
    return AH_OK;
}

/* Bytes moved; of a table longer than the sequence at most as many as of x. */
static double add_position_bytes(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)attr;
    int64_t x = ah__meta_bytes(&in[0]), table = ah__meta_bytes(&in[1]);
    return (double)(x + (table < x ? table : x) + ah__meta_bytes(&out[0]));
}

/* (x [B,T,C], table [P,C]) -> x: position t has row first + t. */
const struct ah_op_row ah__op_add_position = {
    .name = "add_position",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION}, {.name = "table", .kind = AH_OPERAND_PARAM}),
    AH_OP_OUTPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION, .in_place = true}),
    .attrs = AH_ATTR_FIRST,
    .infer = add_position_infer,
    .flops = ah__op_one_flop,
    .bytes = add_position_bytes,
};

static int position_bwd_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(expect_first(attr));
    AH_TRY(ah__op_expect_float("dx", &in[0], 3, 3));
    return ah__op_expect("dtable", &out[0], AH_F32, ah_shape2(out[0].shape.dim[0], ah__op_last(&in[0])));
}

/* Rows of dtable before `first` and from first + T on are zero. */
const struct ah_op_row ah__op_position_bwd = {
    .name = "position_bwd",
    AH_OP_INPUTS({.name = "dx", .kind = AH_OPERAND_GRADIENT}),
    AH_OP_OUTPUTS({.name = "dtable", .kind = AH_OPERAND_PARAM_GRADIENT, .given = true}),
    .attrs = AH_ATTR_FIRST | AH_ATTR_ACC,
    .infer = position_bwd_infer,
    .flops = ah__op_one_flop,
};
