/* Rotation of pairs of channels by position. Linear, and backward turns the other way: it reads the gradient alone. */
#include <math.h>

#include "op/rules.h"

static int rotary_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(ah__op_expect_float("x", &in[0], 3, 3));
    if (attr->heads < 1 || ah__op_last(&in[0]) % attr->heads != 0)
        return ah__op_wrong("x", &in[0], "[B,T,C] with C a multiple of %d heads", attr->heads);
    int64_t size = ah__op_last(&in[0]) / attr->heads, dims = attr->dims ? attr->dims : size;
    if (dims < 0 || dims > size || dims % 2 != 0)
        return ah__fail(AH_EINPUT, "%lld of %lld channels of a head rotate, expected an even number of them",
                        (long long)dims, (long long)size);
    if (!(attr->theta > 0 && isfinite(attr->theta)))
        return ah__fail(AH_EINPUT, "theta: found %g, expected a number above 0", (double)attr->theta);
    out[0] = in[0];
    return AH_OK;
}

static double rotary_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)out;
    double count = (double)ah__shape_count(&in[0].shape), size = (double)ah__op_last(&in[0]) / attr->heads;
    return 3 * count * (attr->dims ? attr->dims / size : 1);
}

/* x [B,T,heads * size]: of each head and each pair i of dims / 2, (a, b) = (x[i], x[i + dims / 2]) becomes
 * (a cos - b sin, b cos + a sin) of the angle t * theta^(-2 i / dims). */
const struct ah_op_row ah__op_rotary = {
    .name = "rotary",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION}),
    AH_OP_OUTPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION, .in_place = true}),
    .attrs = AH_ATTR_HEADS | AH_ATTR_THETA | AH_ATTR_DIMS,
    .infer = rotary_infer,
    .flops = rotary_flops,
};

const struct ah_op_row ah__op_rotary_bwd = {
    .name = "rotary_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT}),
    AH_OP_OUTPUTS({.name = "dx", .kind = AH_OPERAND_GRADIENT, .in_place = true}),
    .attrs = AH_ATTR_HEADS | AH_ATTR_THETA | AH_ATTR_DIMS,
    .infer = rotary_infer,
    .flops = rotary_flops,
};
