/* The arithmetic of cuBLASLt's stand-in. */
#ifndef EMULATION_PRODUCT_H
#define EMULATION_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

/* A matrix by columns: element (row, column) lies at (column * ld + row) elements, after `batch` of `stride` more. */
struct product_matrix {
    char *at;
    bool bf16; /* else float */
    int64_t ld, stride;
};

/* D = alpha op(A) op(B) + beta C + bias of each row, `batches` times; with dgelu times the slope of gelu (by tanh) at
 * `aux`, of one batch. Sums are fp32 in order of k, D rounds once. */
struct product {
    bool trans_a, trans_b, dgelu;
    int64_t m, n, k, batches;
    float alpha, beta;
    struct product_matrix a, b, c, d, aux;
    const char *bias; /* or null */
    bool bias_bf16;
    char *workspace; /* overwritten */
    int64_t workspace_bytes;
};
/* On a stream's thread; the argument is a struct product. */
void product_run(void *product);

#endif
