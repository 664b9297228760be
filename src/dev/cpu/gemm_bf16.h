/* Inside the CPU device: matrix products of bf16 operands with fp32 sums.
 *
 * Takes row-major matrices, returns C in bf16 (rounded once, to nearest even) or fp32. A processor with AMX uses its
 * tiles; elsewhere operands are widened to fp32 panels for oneDNN's product. The two give different bits. On one
 * processor the bits depend on the shape alone: with AMX every element sums its products in the order of k with any
 * tiling, elsewhere the tiling follows from the shape. Must not know operators. */
#ifndef AH_DEV_CPU_GEMM_BF16_H
#define AH_DEV_CPU_GEMM_BF16_H

#include "dev/cpu/cpu.h"

/* C[M,N] (+)= op(A) op(B) + bias. */
struct ah_gemm_bf16 {
    bool trans_a, trans_b, accumulate; /* accumulate: adds C's old value to the sum before rounding */
    bool c_fp32;                       /* C is float, else bf16 */
    int64_t m, n, k;
    const uint16_t *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
    const uint16_t *bias; /* [N] added to every row, or null */
};

/* Computes a product over the pool, with its scratch; allocates nothing. AH_EDEVICE: a library call failed. */
int ah__cpu_gemm_bf16(struct ah_pool *pool, const struct ah_gemm_bf16 *gemm);

/* Returns true if products use AMX: the processor has it and the system lets this process use it. Forbidding it is for
 * tests. */
bool ah__cpu_has_amx(void);
void ah__cpu_amx_forbid(bool forbidden);

/* ---- between gemm_bf16.c and gemm_amx.c ---- */

/* Rows [row, row + rows) and columns [col, col + cols) of C. */
struct ah_gemm_tile {
    int64_t row, col, rows, cols;
};
/* Most rows and columns of a tile, and the terms that are packed at a time. */
enum { AH_AMX_ROWS = 512, AH_AMX_COLS = 384, AH_AMX_TERMS = 256 };
enum { AH_AMX_SCRATCH = AH_AMX_ROWS * AH_AMX_TERMS / 2 + 32 * AH_AMX_TERMS / 2 + AH_AMX_ROWS * AH_AMX_COLS };
void ah__gemm_amx(const struct ah_gemm_bf16 *gemm, const struct ah_gemm_tile *tile, float *scratch);
/* Returns true if the processor and the system allow AMX; asks them once. */
bool ah__amx_usable(void);

#endif
