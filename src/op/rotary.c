/* Rotation of pairs of channels by position. It is linear, and backward rotates the other way: it reads only the
 * gradient. */
#include "op/rotary.h"

#include <math.h>

#include "op/rules.h"

enum {
    ROTARY_ATTRS = AH_ATTR_HEADS | AH_ATTR_THETA | AH_ATTR_DIMS | AH_ATTR_FACTOR | AH_ATTR_LOW | AH_ATTR_HIGH |
                   AH_ATTR_ORIGINAL | AH_ATTR_RAMP | AH_ATTR_MAGNITUDE | AH_ATTR_STRETCH | AH_ATTR_BY_HEAD
};

int64_t ah__rotary_size(const struct ah_meta *x, const struct ah_attr *attr)
{
    return ah__op_last(x) / attr->heads / (attr->by_head ? 3 : 1);
}

int64_t ah__rotary_pairs(const struct ah_meta *x, const struct ah_attr *attr)
{
    return attr->dims < 0 ? 0 : (attr->dims ? attr->dims : ah__rotary_size(x, attr)) / 2;
}

/* Returns the angle, stretched as Llama 3 does: by how often the wave fits the original positions. */
static double stretched(const struct ah_attr *attr, double angle)
{
    const double two_pi = 6.283185307179586476925;
    double times = attr->original * angle / two_pi, low = (double)attr->low, high = (double)attr->high;
    double kept = (times - low) / (high - low);
    if (times > high)
        return angle;
    if (times < low)
        return angle / (double)attr->factor;
    return (1 - kept) * angle / (double)attr->factor + kept * angle;
}

/* Returns the angle, stretched as YaRN does: the short waves of low pairs stay, those of high pairs are stretched. */
static double ramped(const struct ah_attr *attr, double angle, double pair)
{
    double low = (double)attr->low, part = (pair - low) / ((double)attr->high - low);
    part = fmin(fmax(part, 0), 1);
    return (1 - part) * angle + part * angle / (double)attr->factor;
}

double ah__rotary_magnitude(const struct ah_attr *attr)
{
    return attr->magnitude > 0 ? (double)attr->magnitude : 1;
}

double ah__rotary_angle(const struct ah_attr *attr, int64_t i, int64_t pairs)
{
    double angle = pow((double)attr->theta, -((double)i / (double)pairs));
    if (attr->stretch.of[0] > 0)
        return angle / (double)attr->stretch.of[i];
    if (!(attr->factor > 0))
        return angle;
    if (attr->ramp)
        return ramped(attr, angle, (double)i);
    return attr->high > 0 ? stretched(attr, angle) : angle / (double)attr->factor;
}

static int expect_number(const char *name, float value, float least)
{
    if (value >= least && isfinite(value))
        return AH_OK;
    return ah__fail(AH_EINPUT, "%s: found %g, expected a number of at least %g", name, (double)value, (double)least);
}

static int expect_stretch(const struct ah_attr *attr)
{
    AH_TRY(expect_number("factor", attr->factor, 0));
    AH_TRY(expect_number("low", attr->low, 0));
    AH_TRY(expect_number("high", attr->high, 0));
    AH_TRY(expect_number("magnitude", attr->magnitude, 0));
    if (attr->high > 0 && (attr->low >= attr->high || (attr->original < 1 && !attr->ramp)))
        return ah__fail(AH_EINPUT,
                        "found low %g, high %g and %d original positions, expected low below high and 1 or "
                        "more positions",
                        (double)attr->low, (double)attr->high, attr->original);
    return AH_OK;
}

/* Checks that there is a stretch for each pair, or no stretch at all. */
static int expect_stretches(const struct ah_attr *attr, int64_t pairs)
{
    const float *of = attr->stretch.of;
    if (!(of[0] > 0) && of[0] >= 0)
        return AH_OK;
    if (pairs > AH_ATTR_MOST_STRETCHES)
        return ah__fail(AH_EINPUT, "stretches: found %lld pairs of channels, expected at most %d", (long long)pairs,
                        AH_ATTR_MOST_STRETCHES);
    for (int64_t i = 0; i < pairs; i++)
        if (!(of[i] > 0 && isfinite(of[i])))
            return ah__fail(AH_EINPUT, "stretches: found %g of pair %lld, expected a number above 0", (double)of[i],
                            (long long)i);
    return AH_OK;
}

static int rotary_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(ah__op_expect_float("x", &in[0], 3, 3));
    int parts = attr->by_head ? 3 : 1;
    if (attr->heads < 1 || ah__op_last(&in[0]) % ((int64_t)parts * attr->heads) != 0)
        return ah__op_wrong("x", &in[0], "[B,T,%sC] with C a multiple of %d heads", attr->by_head ? "3" : "",
                            attr->heads);
    int64_t size = ah__rotary_size(&in[0], attr), dims = attr->dims ? attr->dims : size;
    if (dims < -1 || dims > size || (dims > 0 && dims % 2 != 0))
        return ah__fail(AH_EINPUT, "%lld of %lld channels of a head rotate, expected an even number of them",
                        (long long)dims, (long long)size);
    if (!(attr->theta > 0 && isfinite(attr->theta)))
        return ah__fail(AH_EINPUT, "theta: found %g, expected a number above 0", (double)attr->theta);
    AH_TRY(expect_stretch(attr));
    AH_TRY(expect_stretches(attr, ah__rotary_pairs(&in[0], attr)));
    AH_TRY(ah__op_expect_positions(&in[1], &in[0]));
    out[0] = in[0];
    return AH_OK;
}

static double rotary_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)out;
    double turning = 2 * (double)ah__rotary_pairs(&in[0], attr) * attr->heads * (attr->by_head ? 2 : 1);
    return 3 * (double)ah__shape_rows(&in[0].shape) * turning;
}

/* x [B,T,heads * size]: for each head and each pair i of dims / 2, (a, b) = (x[i], x[i + dims / 2]) becomes (a cos - b
 * sin, b cos + a sin) of the angle t * theta^(-2 i / dims), or of a smaller one for stretched waves, times the
 * magnitude. by_head: x is [B,T,heads * 3 * size], and v of each head's q, k and v does not rotate. t is a token's
 * place or, if positions are given, its position. */
const struct ah_op_row ah__op_rotary = {
    .name = "rotary",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION},
                 {.name = "positions", .kind = AH_OPERAND_POSITIONS, .optional = true, .backward_reads = true}),
    AH_OP_OUTPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION, .in_place = true}),
    .attrs = ROTARY_ATTRS,
    .infer = rotary_infer,
    .flops = rotary_flops,
};

const struct ah_op_row ah__op_rotary_bwd = {
    .name = "rotary_bwd",
    AH_OP_INPUTS({.name = "dy", .kind = AH_OPERAND_GRADIENT},
                 {.name = "positions", .kind = AH_OPERAND_POSITIONS, .optional = true}),
    AH_OP_OUTPUTS({.name = "dx", .kind = AH_OPERAND_GRADIENT, .in_place = true}),
    .attrs = ROTARY_ATTRS,
    .infer = rotary_infer,
    .flops = rotary_flops,
};
