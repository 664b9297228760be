/* The arithmetic of cuDNN's stand-in: operations one after the other, every tensor whole, in fp32, rounded to its type
 * when it is made. Compiled without AddressSanitizer: it reads and writes device memory. */
#include "dnn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAN_BYTE = 0xFF, DIMENSIONS = 4 };

typedef struct cudnn_descriptor descriptor; /* of this file alone */

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static const int64_t *sizes_of(const descriptor *tensor)
{
    return cudnn_elements(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS);
}

static const int64_t *strides_of(const descriptor *tensor)
{
    return cudnn_elements(tensor, CUDNN_ATTR_TENSOR_STRIDES);
}

static int64_t count_of(const descriptor *tensor)
{
    const int64_t *size = sizes_of(tensor);
    return size[0] * size[1] * size[2] * size[3];
}

/* Position `i` of a dense tensor of these sizes as four indices. */
static void unravel(int64_t index[DIMENSIONS], int64_t i, const int64_t *size)
{
    for (int d = DIMENSIONS - 1; d >= 0; d--) {
        index[d] = i % size[d];
        i /= size[d];
    }
}

/* Where indices into a tensor of sizes `whole` fall in a dense one of sizes `size`, which is smaller in some
 * dimensions: whole groups of indices share one there. */
static int64_t grouped(const int64_t *index, const int64_t *whole, const int64_t *size)
{
    int64_t at = 0;
    for (int d = 0; d < DIMENSIONS; d++)
        at = at * size[d] + index[d] * size[d] / whole[d];
    return at;
}

static bool divides(const int64_t *size, const int64_t *whole)
{
    for (int d = 0; d < DIMENSIONS; d++)
        if (whole[d] % size[d] != 0)
            return false;
    return true;
}

static bool matmul_good(const descriptor *o)
{
    const int64_t *a = sizes_of(cudnn_link(o, CUDNN_ATTR_OPERATION_MATMUL_ADESC));
    const int64_t *b = sizes_of(cudnn_link(o, CUDNN_ATTR_OPERATION_MATMUL_BDESC));
    const int64_t *c = sizes_of(cudnn_link(o, CUDNN_ATTR_OPERATION_MATMUL_CDESC));
    return c[2] == a[2] && c[3] == b[3] && a[3] == b[2] && c[0] == a[0] && c[0] == b[0] && c[1] % a[1] == 0 &&
           c[1] % b[1] == 0;
}

/* The same elements seen across: dimensions and strides of the last two change places. A view of what has an address
 * keeps its type. */
static bool reshape_good(const descriptor *o)
{
    const descriptor *from = cudnn_link(o, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
    const descriptor *to = cudnn_link(o, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
    const int64_t *x = sizes_of(from), *y = sizes_of(to), *xs = strides_of(from), *ys = strides_of(to);
    return x[0] == y[0] && x[1] == y[1] && x[2] == y[3] && x[3] == y[2] && xs[0] == ys[0] && xs[1] == ys[1] &&
           xs[2] == ys[3] && xs[3] == ys[2];
}

static bool pointwise_good(const descriptor *o)
{
    const int64_t *y = sizes_of(cudnn_link(o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
    const cudnnBackendAttributeName_t inputs[] = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                                  CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                                  CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
    for (int i = 0; i < 3; i++) {
        const descriptor *input = cudnn_link(o, inputs[i]);
        if (input && !divides(sizes_of(input), y))
            return false;
    }
    return true;
}

bool cudnn_operation_good(const struct cudnn_descriptor *o)
{
    switch ((int)o->type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        return matmul_good(o);
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        return reshape_good(o);
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return pointwise_good(o);
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        return divides(sizes_of(cudnn_link(o, CUDNN_ATTR_OPERATION_REDUCTION_YDESC)),
                       sizes_of(cudnn_link(o, CUDNN_ATTR_OPERATION_REDUCTION_XDESC)));
    default:
        return true;
    }
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* All tensors that were made or read so far, dense. */
struct values {
    const struct cudnn_run *run;
    const descriptor *tensor[CUDNN_TENSORS_MOST];
    float *value[CUDNN_TENSORS_MOST];
    int count;
};

static float bf16_rounded(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x == x)
        bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000U;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

static int bound_find(const struct cudnn_run *run, const descriptor *tensor)
{
    for (int i = 0; i < run->tensors; i++)
        if (run->tensor[i].uid == cudnn_int(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID))
            return i;
    return -1;
}

static int64_t offset_of(const descriptor *tensor, int64_t i)
{
    int64_t index[DIMENSIONS];
    const int64_t *stride = strides_of(tensor);
    unravel(index, i, sizes_of(tensor));
    return index[0] * stride[0] + index[1] * stride[1] + index[2] * stride[2] + index[3] * stride[3];
}

static void memory_read(float *out, const descriptor *tensor, const char *at)
{
    bool half = cudnn_enum(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE) == CUDNN_DATA_BFLOAT16;
    for (int64_t i = 0; i < count_of(tensor); i++) {
        int64_t offset = offset_of(tensor, i);
        uint32_t bits = half ? (uint32_t)((const uint16_t *)(const void *)at)[offset] << 16
                             : ((const uint32_t *)(const void *)at)[offset];
        memcpy(&out[i], &bits, sizeof bits);
    }
}

static void memory_write(const float *value, const descriptor *tensor, char *at)
{
    bool half = cudnn_enum(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE) == CUDNN_DATA_BFLOAT16;
    for (int64_t i = 0; i < count_of(tensor); i++) {
        int64_t offset = offset_of(tensor, i);
        uint32_t bits;
        memcpy(&bits, &value[i], sizeof bits);
        if (half)
            ((uint16_t *)(void *)at)[offset] = (uint16_t)(bits >> 16);
        else
            ((uint32_t *)(void *)at)[offset] = bits;
    }
}

static float *value_new(struct values *v, const descriptor *tensor)
{
    float *made = malloc(sizeof *made * (size_t)count_of(tensor));
    if (!made || v->count == CUDNN_TENSORS_MOST)
        abort();
    v->tensor[v->count] = tensor;
    return v->value[v->count++] = made;
}

/* What an operation reads: made before, or in memory. */
static const float *value_get(struct values *v, const descriptor *tensor)
{
    if (!tensor)
        return NULL;
    for (int i = 0; i < v->count; i++)
        if (v->tensor[i] == tensor)
            return v->value[i];
    int bound = bound_find(v->run, tensor);
    float *value = value_new(v, tensor);
    if (bound < 0)
        abort();
    if (cudnn_elements(tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE))
        *value = v->run->tensor[bound].number;
    else
        memory_read(value, tensor, v->run->tensor[bound].at);
    return value;
}

/* What an operation made is rounded, and stored where it has an address. */
static void value_finish(struct values *v, const descriptor *tensor, float *value)
{
    int bound = bound_find(v->run, tensor);
    if (cudnn_enum(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE) == CUDNN_DATA_BFLOAT16)
        for (int64_t i = 0; i < count_of(tensor); i++)
            value[i] = bf16_rounded(value[i]);
    if (bound >= 0)
        memory_write(value, tensor, v->run->tensor[bound].at);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static void matmul_run(struct values *v, const descriptor *o)
{
    const descriptor *at = cudnn_link(o, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    const descriptor *bt = cudnn_link(o, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
    const descriptor *ct = cudnn_link(o, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    const float *a = value_get(v, at), *b = value_get(v, bt);
    const int64_t *as = sizes_of(at), *bs = sizes_of(bt), *cs = sizes_of(ct);
    float *c = value_new(v, ct);
    int64_t index[DIMENSIONS], k = as[3];
    for (int64_t i = 0; i < count_of(ct); i++) {
        unravel(index, i, cs);
        const float *left = a + ((index[0] * as[1] + index[1] * as[1] / cs[1]) * as[2] + index[2]) * k;
        const float *right = b + (index[0] * bs[1] + index[1] * bs[1] / cs[1]) * k * cs[3] + index[3];
        float sum = 0;
        for (int64_t t = 0; t < k; t++)
            sum += left[t] * right[t * cs[3]];
        c[i] = sum;
    }
    value_finish(v, ct, c);
}

static float pointwise_value(int mode, float x, float b, float t)
{
    switch (mode) {
    case CUDNN_POINTWISE_ADD:
        return x + b;
    case CUDNN_POINTWISE_SUB:
        return x - b;
    case CUDNN_POINTWISE_MUL:
        return x * b;
    case CUDNN_POINTWISE_DIV:
        return x / b;
    case CUDNN_POINTWISE_EXP:
        return expf(x);
    case CUDNN_POINTWISE_LOG:
        return logf(x);
    case CUDNN_POINTWISE_CMP_GE:
        return x >= b;
    case CUDNN_POINTWISE_CMP_GT:
        return x > b;
    case CUDNN_POINTWISE_BINARY_SELECT:
        return t != 0 ? x : b;
    default:
        abort();
    }
}

static void pointwise_run(struct values *v, const descriptor *o)
{
    const descriptor *how = cudnn_link(o, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const descriptor *xt = cudnn_link(o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    const descriptor *bt = cudnn_link(o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    const descriptor *tt = cudnn_link(o, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    const descriptor *yt = cudnn_link(o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    int mode = cudnn_enum(how, CUDNN_ATTR_POINTWISE_MODE);
    const float *x = value_get(v, xt), *b = value_get(v, bt), *t = value_get(v, tt);
    const int64_t *size = sizes_of(yt), axis = cudnn_int(how, CUDNN_ATTR_POINTWISE_AXIS);
    float *y = value_new(v, yt);
    int64_t index[DIMENSIONS];
    for (int64_t i = 0; i < count_of(yt); i++) {
        unravel(index, i, size);
        y[i] = mode == CUDNN_POINTWISE_GEN_INDEX ? (float)index[axis]
                                                 : pointwise_value(mode, x[grouped(index, size, sizes_of(xt))],
                                                                   b ? b[grouped(index, size, sizes_of(bt))] : 0,
                                                                   t ? t[grouped(index, size, sizes_of(tt))] : 0);
    }
    value_finish(v, yt, y);
}

static void reduction_run(struct values *v, const descriptor *o)
{
    const descriptor *how = cudnn_link(o, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    const descriptor *xt = cudnn_link(o, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
    const descriptor *yt = cudnn_link(o, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    bool most = cudnn_enum(how, CUDNN_ATTR_REDUCTION_OPERATOR) == CUDNN_REDUCE_TENSOR_MAX;
    const float *x = value_get(v, xt);
    float *y = value_new(v, yt);
    int64_t index[DIMENSIONS];
    for (int64_t i = 0; i < count_of(yt); i++)
        y[i] = most ? -INFINITY : 0;
    for (int64_t i = 0; i < count_of(xt); i++) {
        unravel(index, i, sizes_of(xt));
        float *to = &y[grouped(index, sizes_of(xt), sizes_of(yt))];
        *to = most ? fmaxf(*to, x[i]) : *to + x[i];
    }
    value_finish(v, yt, y);
}

static void reshape_run(struct values *v, const descriptor *o)
{
    const descriptor *xt = cudnn_link(o, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
    const descriptor *yt = cudnn_link(o, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
    const float *x = value_get(v, xt);
    const int64_t *size = sizes_of(yt);
    float *y = value_new(v, yt);
    int64_t index[DIMENSIONS];
    for (int64_t i = 0; i < count_of(yt); i++) {
        unravel(index, i, size);
        y[i] = x[((index[0] * size[1] + index[1]) * size[3] + index[3]) * size[2] + index[2]];
    }
    value_finish(v, yt, y);
}

static void operation_run(struct values *v, const descriptor *o)
{
    switch ((int)o->type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        matmul_run(v, o);
        break;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        pointwise_run(v, o);
        break;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        reduction_run(v, o);
        break;
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        reshape_run(v, o);
        break;
    default:
        abort();
    }
}

void cudnn_run(void *argument)
{
    const struct cudnn_run *run = argument;
    const descriptor *const *operations = cudnn_elements(run->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    struct values *v = calloc(1, sizeof *v);
    if (!v)
        abort();
    v->run = run;
    for (int64_t i = 0; i < run->workspace_bytes; i++)
        run->workspace[i] = (char)NAN_BYTE;
    for (int64_t i = 0; i < cudnn_count(run->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS); i++)
        operation_run(v, operations[i]);
    for (int i = 0; i < v->count; i++)
        free(v->value[i]);
    free(v);
}
