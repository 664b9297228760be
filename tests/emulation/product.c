/* Compiled without AddressSanitizer: it reads and writes device memory. */
#include "product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAN_BYTE = 0xFF };

static float element_read(const struct product_matrix *matrix, int64_t index)
{
    if (!matrix->bf16)
        return ((const float *)(const void *)matrix->at)[index];
    uint32_t bits = (uint32_t)((const uint16_t *)(const void *)matrix->at)[index] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* To nearest even; a NaN stays one. */
static uint16_t bf16_round(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static void element_write(const struct product_matrix *matrix, int64_t index, float value)
{
    if (matrix->bf16)
        ((uint16_t *)(void *)matrix->at)[index] = bf16_round(value);
    else
        ((float *)(void *)matrix->at)[index] = value;
}

/* [columns][rows] floats of a matrix, or of its transpose, which then has `rows` rows. */
static void pack(float *out, const struct product_matrix *matrix, bool transposed, int64_t rows, int64_t columns)
{
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            out[j * rows + i] = element_read(matrix, transposed ? i * matrix->ld + j : j * matrix->ld + i);
}

/* One column of the product: sums of `m` rows, term by term. All of it is this thread's own memory. */
__attribute__((no_sanitize("thread"))) static void column_sum(float *restrict sum, const float *restrict a,
                                                              const float *restrict b, int64_t m, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        sum[i] = 0;
    for (int64_t l = 0; l < k; l++) {
        const float factor = b[l], *column = a + l * m;
        for (int64_t i = 0; i < m; i++)
            sum[i] += column[i] * factor;
    }
}

/* As the library's kernels for Hopper have it, whose machine code has the fast tanh (MUFU.TANH): 11 bits are right. */
static double tanh_fast(double x)
{
    enum { BITS = 11 };
    int exponent;
    double part = frexp(tanh(x), &exponent);
    return ldexp(trunc(ldexp(part, BITS)), exponent - BITS);
}

static float gelu_slope(float x)
{
    double u = 0.79788456080286536 * ((double)x + 0.044715 * (double)x * (double)x * (double)x), t = tanh_fast(u);
    double inner = 0.79788456080286536 * (1 + 3 * 0.044715 * (double)x * (double)x);
    return (float)(0.5 * (1 + t) + 0.5 * (double)x * (1 - t * t) * inner);
}

static void column_write(const struct product *product, const float *sum, int64_t column)
{
    const struct product_matrix bias = {(char *)(uintptr_t)product->bias, product->bias_bf16, 0, 0};
    for (int64_t i = 0; i < product->m; i++) {
        float value = product->alpha * sum[i];
        if (product->beta != 0)
            value += product->beta * element_read(&product->c, column * product->c.ld + i);
        if (product->bias)
            value += element_read(&bias, i);
        if (product->dgelu)
            value *= gelu_slope(element_read(&product->aux, column * product->aux.ld + i));
        element_write(&product->d, column * product->d.ld + i, value);
    }
}

static void batch_run(const struct product *product, float *a, float *b, float *sum)
{
    pack(a, &product->a, product->trans_a, product->m, product->k);
    pack(b, &product->b, product->trans_b, product->k, product->n);
    for (int64_t j = 0; j < product->n; j++) {
        column_sum(sum, a, b + j * product->k, product->m, product->k);
        column_write(product, sum, j);
    }
}

static void matrix_next(struct product_matrix *matrix)
{
    matrix->at += matrix->stride * (matrix->bf16 ? 2 : 4);
}

void product_run(void *argument)
{
    struct product *product = argument;
    int64_t m = product->m, n = product->n, k = product->k;
    float *memory = malloc(sizeof *memory * (size_t)(m * k + k * n + m));
    if (!memory)
        abort();
    for (int64_t i = 0; i < product->workspace_bytes; i++)
        product->workspace[i] = (char)NAN_BYTE;
    for (int64_t i = 0; i < product->batches; i++) {
        batch_run(product, memory, memory + m * k, memory + m * k + k * n);
        matrix_next(&product->a);
        matrix_next(&product->b);
        matrix_next(&product->c);
        matrix_next(&product->d);
    }
    free(memory);
}
