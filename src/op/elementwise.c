/* Sums, multiples and copies. Their gradient rules need no operators of their own. */
#include "op/rules.h"

#include <math.h>

/* a += b */
const struct ah_op_row ah__op_add = {
    .name = "add",
    AH_OP_INPUTS({.name = "a", .kind = AH_OPERAND_ACTIVATION}, {.name = "b", .kind = AH_OPERAND_ACTIVATION}),
    AH_OP_OUTPUTS({.name = "a", .kind = AH_OPERAND_ACTIVATION, .in_place = true}),
    .infer = ah__op_infer_pair,
    .flops = ah__op_one_flop,
};

static int scale_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(ah__op_expect_float("x", &in[0], 1, AH_MAX_RANK));
    if (!isfinite(attr->scale) || fabsf(attr->scale) <= 0)
        return ah__fail(AH_EINPUT, "scale: found %g, expected a number other than 0", (double)attr->scale);
    out[0] = in[0];
    return AH_OK;
}

/* x *= scale */
const struct ah_op_row ah__op_scale = {
    .name = "scale",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION}),
    AH_OP_OUTPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION, .in_place = true}),
    .attrs = AH_ATTR_SCALE,
    .infer = scale_infer,
    .flops = ah__op_one_flop,
};

static int soft_cap_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(ah__cap_expect(attr));
    if (!(attr->cap > 0))
        return ah__fail(AH_EINPUT, "cap: found 0, expected a number above 0");
    return ah__op_infer_same(out, in, attr);
}

AH_OP_FLOPS_PER_ELEMENT(soft_cap_flops, 5.0)

/* x = cap * tanh(x / cap) */
const struct ah_op_row ah__op_soft_cap = {
    .name = "soft_cap",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION}),
    AH_OP_OUTPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION, .in_place = true}),
    .attrs = AH_ATTR_CAP,
    .infer = soft_cap_infer,
    .flops = soft_cap_flops,
};

/* Copies x to y, which has memory of its own. */
const struct ah_op_row ah__op_copy = {
    .name = "copy",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION}),
    AH_OP_OUTPUTS({.name = "y", .kind = AH_OPERAND_ACTIVATION}),
    .infer = ah__op_infer_same,
    .flops = ah__op_no_flops,
};
