#include "op/rules.h"

#include <math.h>
#include <stdarg.h>

int64_t ah__op_last(const struct ah_meta *meta)
{
    return meta->shape.dim[meta->shape.rank - 1];
}

struct ah_meta ah__op_floats(int64_t count)
{
    return (struct ah_meta){AH_F32, ah_shape1(count)};
}

int ah__op_wrong(const char *operand, const struct ah_meta *found, const char *format, ...)
{
    char expected[160], shape[96];
    va_list args;
    va_start(args, format);
    vsnprintf(expected, sizeof expected, format, args);
    va_end(args);
    return ah__fail(AH_EINPUT, "%s is %s %s, expected %s", operand, ah__dtype_name(found->dtype),
                    ah__shape_format(shape, sizeof shape, &found->shape), expected);
}

int ah__op_expect_float(const char *operand, const struct ah_meta *found, int rank_min, int rank_max)
{
    if (found->dtype != AH_I32 && found->shape.rank >= rank_min && found->shape.rank <= rank_max)
        return AH_OK;
    if (rank_min == rank_max)
        return ah__op_wrong(operand, found, "floats of rank %d", rank_min);
    return ah__op_wrong(operand, found, "floats of rank %d to %d", rank_min, rank_max);
}

int ah__op_expect(const char *operand, const struct ah_meta *found, enum ah_dtype dtype, struct ah_shape shape)
{
    char text[96];
    if (found->dtype == dtype && ah__shape_equal(&found->shape, &shape))
        return AH_OK;
    return ah__op_wrong(operand, found, "%s %s", ah__dtype_name(dtype), ah__shape_format(text, sizeof text, &shape));
}

int ah__op_expect_ids(const char *operand, const struct ah_meta *found)
{
    if (found->dtype == AH_I32 && found->shape.rank == 2)
        return AH_OK;
    return ah__op_wrong(operand, found, "I32 [batch,seq]");
}

int ah__cap_expect(const struct ah_attr *attr)
{
    if (attr->cap >= 0 && isfinite(attr->cap))
        return AH_OK;
    return ah__fail(AH_EINPUT, "cap: found %g, expected a number of at least 0", (double)attr->cap);
}

int ah__op_expect_positions(const struct ah_meta *found, const struct ah_meta *x)
{
    if (!found->shape.rank)
        return AH_OK;
    return ah__op_expect("positions", found, AH_I32, ah_shape2(x->shape.dim[0], x->shape.dim[1]));
}

int ah__op_infer_same(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("x", &in[0], 1, AH_MAX_RANK));
    out[0] = in[0];
    return AH_OK;
}

int ah__op_infer_pair(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(ah__op_infer_same(out, in, attr));
    return ah__op_expect("b", &in[1], in[0].dtype, in[0].shape);
}

double ah__op_no_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)in, (void)out, (void)attr;
    return 0;
}

double ah__op_one_flop(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)out, (void)attr;
    return (double)ah__shape_count(&in[0].shape);
}
