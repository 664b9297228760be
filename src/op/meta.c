/* Shapes and number types. */
#include <string.h>

#include "op/program.h"

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
