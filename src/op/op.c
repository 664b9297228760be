#include "op/program.h"

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
    const char *name; /* name in safetensors files */
    int64_t bytes;
    const char *word; /* word for users; null: not a format that a training may keep states in */
} dtypes[AH_DTYPE_COUNT] = {
    [AH_F32] = {"F32", 4, "fp32"}, [AH_BF16] = {"BF16", 2, "bf16"}, [AH_F16] = {"F16", 2, NULL},
    [AH_I32] = {"I32", 4, NULL},   [AH_U8] = {"U8", 1, "int8"},
};

int64_t ah__dtype_bytes(enum ah_dtype dtype)
{
    return dtypes[dtype].bytes;
}

const char *ah__dtype_name(enum ah_dtype dtype)
{
    return dtypes[dtype].name;
}

static bool dtype_find(enum ah_dtype *out, const char *text)
{
    for (int dtype = 0; dtype < AH_DTYPE_COUNT; dtype++)
        if (dtypes[dtype].word && strcmp(text, dtypes[dtype].word) == 0) {
            *out = (enum ah_dtype)dtype;
            return true;
        }
    return false;
}

int ah_dtype_parse(enum ah_dtype *out, const char *text)
{
    enum ah_dtype found;
    if (!dtype_find(&found, text) || found == AH_U8)
        return ah__fail(AH_EINPUT, "dtype: found '%.40s', expected bf16 or fp32", text);
    *out = found;
    return AH_OK;
}

int ah_moments_parse(enum ah_dtype *out, const char *text)
{
    if (!dtype_find(out, text))
        return ah__fail(AH_EINPUT, "moments: found '%.40s', expected bf16, fp32 or int8", text);
    return AH_OK;
}

const char *ah__dtype_word(enum ah_dtype dtype)
{
    return dtypes[dtype].word;
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

int64_t ah__meta_bytes(const struct ah_meta *meta)
{
    return meta->shape.rank ? ah__shape_count(&meta->shape) * ah__dtype_bytes(meta->dtype) : 0;
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

const struct ah_op_row *const ah__op_table[AH_OP_COUNT] = {
#define ENTRY(id, name) [AH_OP_##id] = &ah__op_##name,
    AH_OP_LIST(ENTRY)
#undef ENTRY
};

int ah__op_inplace_output(enum ah_op op)
{
    const struct ah_op_row *row = ah__op_table[op];
    for (int i = 0; i < row->outputs; i++)
        if (row->out[i].in_place)
            return i;
    return -1;
}

double ah__op_bytes(enum ah_op op, const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    const struct ah_op_row *row = ah__op_table[op];
    if (row->bytes)
        return row->bytes(in, out, attr);
    double bytes = 0;
    for (int i = 0; i < row->inputs; i++)
        bytes += (double)ah__meta_bytes(&in[i]);
    for (int i = 0; i < row->outputs; i++)
        bytes += (double)ah__meta_bytes(&out[i]) * (attr->acc >> i & 1 ? 2 : 1);
    return bytes;
}

double ah__call_flops(const struct ah_call *call)
{
    struct ah_meta in[AH_OP_MAX_INPUTS], out[AH_OP_MAX_OUTPUTS];
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
        in[i] = call->in[i].meta;
    for (int i = 0; i < AH_OP_MAX_OUTPUTS; i++)
        out[i] = call->out[i].meta;
    return ah__op_table[call->op]->flops(in, out, &call->attr);
}
