#include "op/op.h"

#include <stdarg.h>
#include <string.h>

int64_t ah__shape_count(const struct ah_shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++)
        count *= shape->dim[i];
    return count;
}

int64_t ah__shape_rows(const struct ah_shape *shape)
{
    int64_t rows = 1;
    for (int i = 0; i + 1 < shape->rank; i++)
        rows *= shape->dim[i];
    return rows;
}

bool ah__shape_equal(const struct ah_shape *a, const struct ah_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

static const struct {
    const char *name;
    int64_t bytes;
} dtypes[AH_DTYPE_COUNT] = {
    [AH_F32] = {"F32", 4},
    [AH_BF16] = {"BF16", 2},
    [AH_F16] = {"F16", 2},
    [AH_I32] = {"I32", 4},
};

int64_t ah__dtype_bytes(enum ah_dtype dtype)
{
    return dtypes[dtype].bytes;
}

const char *ah__dtype_name(enum ah_dtype dtype)
{
    return dtypes[dtype].name;
}

char *ah__shape_format(char *text, size_t size, const struct ah_shape *shape)
{
    size_t used = 0;
    for (int i = 0; i < shape->rank && used < size; i++) {
        int n = snprintf(text + used, size - used, "%c%lld", i ? ',' : '[', (long long)shape->dim[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    if (used < size)
        snprintf(text + used, size - used, shape->rank ? "]" : "[]");
    return text;
}

/* ---- shape rules ---------------------------------------------------------------------------------------------------- */

static int64_t last(const struct ah_meta *meta)
{
    return meta->shape.dim[meta->shape.rank - 1];
}

static bool is_float(const struct ah_meta *meta)
{
    return meta->dtype != AH_I32;
}

AH_PRINTF(3, 4) static int wrong(const char *operand, const struct ah_meta *found, const char *format, ...)
{
    char expected[160], shape[96];
    va_list args;
    va_start(args, format);
    vsnprintf(expected, sizeof expected, format, args);
    va_end(args);
    return ah__fail(AH_EINPUT, "%s is %s %s, expected %s", operand, ah__dtype_name(found->dtype),
                    ah__shape_format(shape, sizeof shape, &found->shape), expected);
}

static int expect_float(const char *operand, const struct ah_meta *found, int rank_min, int rank_max)
{
    if (is_float(found) && found->shape.rank >= rank_min && found->shape.rank <= rank_max)
        return AH_OK;
    if (rank_min == rank_max)
        return wrong(operand, found, "floats of rank %d", rank_min);
    return wrong(operand, found, "floats of rank %d to %d", rank_min, rank_max);
}

static int expect(const char *operand, const struct ah_meta *found, enum ah_dtype dtype, struct ah_shape shape)
{
    char text[96];
    if (found->dtype == dtype && ah__shape_equal(&found->shape, &shape))
        return AH_OK;
    return wrong(operand, found, "%s %s", ah__dtype_name(dtype), ah__shape_format(text, sizeof text, &shape));
}

static int expect_ids(const char *operand, const struct ah_meta *found)
{
    if (found->dtype == AH_I32 && found->shape.rank == 2)
        return AH_OK;
    return wrong(operand, found, "I32 [batch,seq]");
}

static struct ah_meta floats(int64_t count)
{
    return (struct ah_meta){AH_F32, ah_shape1(count)};
}

static int embedding_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(expect_float("table", &in[0], 2, 2));
    AH_TRY(expect_ids("ids", &in[1]));
    out[0].dtype = in[0].dtype;
    out[0].shape = (struct ah_shape){3, {in[1].shape.dim[0], in[1].shape.dim[1], last(&in[0]), 0}};
    return AH_OK;
}

static int add_position_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(expect_float("x", &in[0], 3, 3));
    AH_TRY(expect_float("table", &in[1], 2, 2));
    int64_t seq = in[0].shape.dim[1], positions = in[1].shape.dim[0];
    if (in[1].dtype != in[0].dtype || last(&in[1]) != last(&in[0]) || positions < seq)
        return wrong("table", &in[1], "%s [P,%lld] with P >= %lld", ah__dtype_name(in[0].dtype), (long long)last(&in[0]),
                     (long long)seq);
    out[0] = in[0];
    return AH_OK;
}

static int layernorm_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(expect_float("x", &in[0], 1, AH_MAX_RANK));
    AH_TRY(expect("weight", &in[1], in[0].dtype, ah_shape1(last(&in[0]))));
    AH_TRY(expect("bias", &in[2], in[0].dtype, ah_shape1(last(&in[0]))));
    out[0] = in[0];
    out[1] = out[2] = floats(ah__shape_rows(&in[0].shape));
    return AH_OK;
}

static int linear_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(expect_float("x", &in[0], 1, AH_MAX_RANK));
    AH_TRY(expect_float("weight", &in[1], 2, 2));
    int64_t inner = in[1].shape.dim[attr->out_in ? 1 : 0], outer = in[1].shape.dim[attr->out_in ? 0 : 1];
    if (in[1].dtype != in[0].dtype || inner != last(&in[0]))
        return wrong("weight", &in[1], attr->out_in ? "%s [O,%lld]" : "%s [%lld,O]", ah__dtype_name(in[0].dtype),
                     (long long)last(&in[0]));
    if (in[2].shape.rank)
        AH_TRY(expect("bias", &in[2], in[0].dtype, ah_shape1(outer)));
    out[0] = in[0];
    out[0].shape.dim[in[0].shape.rank - 1] = outer;
    return AH_OK;
}

static int attention_check(const struct ah_meta *qkv, const struct ah_attr *attr)
{
    AH_TRY(expect_float("qkv", qkv, 3, 3));
    if (attr->heads < 1 || last(qkv) % (3 * (int64_t)attr->heads) != 0)
        return wrong("qkv", qkv, "[B,T,3C] with C a multiple of %d heads", attr->heads);
    return AH_OK;
}

static int attention_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(attention_check(&in[0], attr));
    out[0] = in[0];
    out[0].shape.dim[2] /= 3;
    out[1].dtype = AH_F32;
    out[1].shape = (struct ah_shape){3, {in[0].shape.dim[0], attr->heads, in[0].shape.dim[1], 0}};
    return AH_OK;
}

static int same_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(expect_float("x", &in[0], 1, AH_MAX_RANK));
    out[0] = in[0];
    return AH_OK;
}

static int add_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(same_infer(out, in, attr));
    return expect("b", &in[1], in[0].dtype, in[0].shape);
}

static int cross_entropy_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(expect_float("logits", &in[0], 3, 3));
    AH_TRY(expect("targets", &in[1], AH_I32, ah_shape2(in[0].shape.dim[0], in[0].shape.dim[1])));
    out[0] = floats(1);
    out[1] = in[0];
    return AH_OK;
}

static int embedding_bwd_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(expect_float("dx", &in[0], 3, 3));
    AH_TRY(expect("ids", &in[1], AH_I32, ah_shape2(in[0].shape.dim[0], in[0].shape.dim[1])));
    return expect("dtable", &out[0], in[0].dtype, ah_shape2(out[0].shape.dim[0], last(&in[0])));
}

static int position_bwd_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(expect_float("dx", &in[0], 3, 3));
    return expect("dtable", &out[0], in[0].dtype, ah_shape2(out[0].shape.dim[0], last(&in[0])));
}

static int layernorm_bwd_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(expect_float("dy", &in[0], 1, AH_MAX_RANK));
    AH_TRY(expect("x", &in[1], in[0].dtype, in[0].shape));
    AH_TRY(expect("weight", &in[2], in[0].dtype, ah_shape1(last(&in[0]))));
    AH_TRY(expect("mean", &in[3], AH_F32, ah_shape1(ah__shape_rows(&in[0].shape))));
    AH_TRY(expect("rstd", &in[4], AH_F32, in[3].shape));
    out[0] = in[0];
    out[1] = out[2] = in[2];
    return AH_OK;
}

static int linear_bwd_x_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(expect_float("dy", &in[0], 1, AH_MAX_RANK));
    int64_t inner = in[1].shape.dim[attr->out_in ? 1 : 0];
    struct ah_shape weight = attr->out_in ? ah_shape2(last(&in[0]), inner) : ah_shape2(inner, last(&in[0]));
    AH_TRY(expect("weight", &in[1], in[0].dtype, weight));
    out[0] = in[0];
    out[0].shape.dim[in[0].shape.rank - 1] = inner;
    return AH_OK;
}

static int linear_bwd_w_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(expect_float("dy", &in[0], 1, AH_MAX_RANK));
    struct ah_shape x = in[0].shape;
    AH_TRY(expect_float("x", &in[1], x.rank, x.rank));
    x.dim[x.rank - 1] = last(&in[1]);
    AH_TRY(expect("x", &in[1], in[0].dtype, x));
    int64_t inner = last(&in[1]), outer = last(&in[0]);
    out[0].dtype = in[0].dtype;
    out[0].shape = attr->out_in ? ah_shape2(outer, inner) : ah_shape2(inner, outer);
    return AH_OK;
}

static int linear_bwd_b_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(expect_float("dy", &in[0], 1, AH_MAX_RANK));
    out[0].dtype = in[0].dtype;
    out[0].shape = ah_shape1(last(&in[0]));
    return AH_OK;
}

static int attention_bwd_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    struct ah_meta forward[2];
    AH_TRY(attention_infer(forward, &in[1], attr));
    AH_TRY(expect("dy", &in[0], in[1].dtype, forward[0].shape));
    AH_TRY(expect("y", &in[2], in[1].dtype, forward[0].shape));
    AH_TRY(expect("lse", &in[3], AH_F32, forward[1].shape));
    out[0] = in[1];
    return AH_OK;
}

/* ---- floating-point operations --------------------------------------------------------------------------------------- */

static double none_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)in, (void)out, (void)attr;
    return 0;
}

/* Element-wise operators and reductions: a nominal number of operations for each element of input 0. */
#define FLOPS_PER_ELEMENT(name, factor)                                                                                \
    static double name(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)                \
    {                                                                                                                  \
        (void)out, (void)attr;                                                                                         \
        return factor * (double)ah__shape_count(&in[0].shape);                                                         \
    }
FLOPS_PER_ELEMENT(one_flops, 1.0)
FLOPS_PER_ELEMENT(cross_entropy_flops, 5.0)
FLOPS_PER_ELEMENT(layernorm_flops, 8.0)
FLOPS_PER_ELEMENT(gelu_flops, 12.0)
FLOPS_PER_ELEMENT(layernorm_bwd_flops, 14.0)
FLOPS_PER_ELEMENT(gelu_bwd_flops, 20.0)

static double linear_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)attr;
    double bias = in[2].shape.rank ? (double)ah__shape_count(&out[0].shape) : 0;
    return 2.0 * (double)ah__shape_rows(&in[0].shape) * (double)ah__shape_count(&in[1].shape) + bias;
}

static double linear_bwd_x_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)out, (void)attr;
    return 2.0 * (double)ah__shape_rows(&in[0].shape) * (double)ah__shape_count(&in[1].shape);
}

static double linear_bwd_w_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)attr;
    return 2.0 * (double)ah__shape_rows(&in[0].shape) * (double)ah__shape_count(&out[0].shape);
}

/* One product of queries with keys, or of probabilities with values, over the causal half. */
static double attention_product(const struct ah_meta *qkv)
{
    return (double)ah__shape_count(&qkv->shape) / 3 * (double)qkv->shape.dim[1];
}

static double attention_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)out, (void)attr;
    return 2 * attention_product(&in[0]);
}

static double attention_bwd_flops(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    (void)out, (void)attr;
    return 5 * attention_product(&in[1]);
}

const struct ah_op_row ah__op_table[AH_OP_COUNT] = {
    [AH_OP_EMBEDDING] = {"embedding", 2, 1, -1, embedding_infer, none_flops},
    [AH_OP_ADD_POSITION] = {"add_position", 2, 1, 0, add_position_infer, one_flops},
    [AH_OP_LAYERNORM] = {"layernorm", 3, 3, -1, layernorm_infer, layernorm_flops},
    [AH_OP_LINEAR] = {"linear", 3, 1, -1, linear_infer, linear_flops},
    [AH_OP_ATTENTION] = {"attention", 1, 2, -1, attention_infer, attention_flops},
    [AH_OP_GELU] = {"gelu", 1, 1, -1, same_infer, gelu_flops},
    [AH_OP_RELU] = {"relu", 1, 1, -1, same_infer, one_flops},
    [AH_OP_ADD] = {"add", 2, 1, 0, add_infer, one_flops},
    [AH_OP_CROSS_ENTROPY] = {"cross_entropy", 2, 2, 1, cross_entropy_infer, cross_entropy_flops},
    [AH_OP_EMBEDDING_BWD] = {"embedding_bwd", 2, 1, -1, embedding_bwd_infer, one_flops},
    [AH_OP_POSITION_BWD] = {"position_bwd", 1, 1, -1, position_bwd_infer, one_flops},
    [AH_OP_LAYERNORM_BWD] = {"layernorm_bwd", 5, 3, -1, layernorm_bwd_infer, layernorm_bwd_flops},
    [AH_OP_LINEAR_BWD_X] = {"linear_bwd_x", 2, 1, -1, linear_bwd_x_infer, linear_bwd_x_flops},
    [AH_OP_LINEAR_BWD_W] = {"linear_bwd_w", 2, 1, -1, linear_bwd_w_infer, linear_bwd_w_flops},
    [AH_OP_LINEAR_BWD_B] = {"linear_bwd_b", 1, 1, -1, linear_bwd_b_infer, one_flops},
    [AH_OP_ATTENTION_BWD] = {"attention_bwd", 4, 1, -1, attention_bwd_infer, attention_bwd_flops},
    [AH_OP_GELU_BWD] = {"gelu_bwd", 2, 1, 0, add_infer, gelu_bwd_flops},
    [AH_OP_RELU_BWD] = {"relu_bwd", 2, 1, 0, add_infer, one_flops},
    [AH_OP_COPY] = {"copy", 1, 1, -1, same_infer, none_flops},
};
