/* Matrix products by oneDNN. Tiles are cut by shape alone and each is one single-threaded call, so the bits do not
 * depend on the number of threads. */
#include "dev/cpu/cpu.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdatomic.h>
#include <string.h>

/* Large enough that packing inside a call costs little, small enough for several workers. */
enum { TILE_ROWS = 1024, TILE_COLS = 384, TILE_LEAST = 64, TILES_WANTED = 4 };

struct gemm_job {
    const struct ah_gemm *gemm;
    atomic_int failed;
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Parts of one size, a multiple of 16. */
static int64_t part_size(int64_t length, int64_t parts)
{
    return ceil_div(ceil_div(length, parts), 16) * 16;
}

struct ah_gemm_grid ah__cpu_gemm_grid(int64_t m, int64_t n)
{
    int64_t down = ceil_div(m, TILE_ROWS), across = ceil_div(n, TILE_COLS);
    while (down * across < TILES_WANTED || (down * across < 3 * TILES_WANTED && down * across % 2 != 0)) {
        bool can_rows = m >= (down + 1) * TILE_LEAST, can_cols = n >= (across + 1) * TILE_LEAST;
        if (!can_rows && !can_cols)
            break;
        if (can_rows && (!can_cols || m * across >= n * down))
            down++;
        else
            across++;
    }
    struct ah_gemm_grid grid = {.rows = part_size(m, down), .cols = part_size(n, across)};
    grid.down = ceil_div(m, grid.rows);
    grid.across = ceil_div(n, grid.cols);
    return grid;
}

/* Puts the bias where the product is then added. */
static void bias_fill(const struct ah_gemm *g, float *c, const float *bias, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float *row = c + i * g->ldc;
        if (!g->accumulate)
            memcpy(row, bias, (size_t)cols * sizeof *row);
        else
            for (int64_t j = 0; j < cols; j++)
                row[j] += bias[j];
    }
}

static void tile(void *context, int index, int worker)
{
    (void)worker;
    struct gemm_job *job = context;
    const struct ah_gemm *g = job->gemm;
    int64_t row = index % g->grid.down * g->grid.rows, col = index / g->grid.down * g->grid.cols;
    int64_t rows = g->m - row < g->grid.rows ? g->m - row : g->grid.rows;
    int64_t cols = g->n - col < g->grid.cols ? g->n - col : g->grid.cols;
    float *c = g->c + row * g->ldc + col;
    if (g->bias)
        bias_fill(g, c, g->bias + col, rows, cols);
    dnnl_status_t status =
        dnnl_sgemm(g->trans_a ? 'T' : 'N', g->trans_b ? 'T' : 'N', rows, cols, g->k, 1.0F,
                   g->trans_a ? g->a + row : g->a + row * g->lda, g->lda, g->trans_b ? g->b + col * g->ldb : g->b + col,
                   g->ldb, g->accumulate || g->bias ? 1.0F : 0.0F, c, g->ldc);
    if (status != dnnl_success)
        atomic_store(&job->failed, (int)status);
}

int ah__cpu_gemm(struct ah_pool *pool, const struct ah_gemm *gemm)
{
    struct gemm_job job = {.gemm = gemm};
    ah__pool_run(pool, tile, (int)(gemm->grid.down * gemm->grid.across), &job);
    int failed = atomic_load(&job.failed);
    if (failed)
        return ah__fail(AH_EDEVICE, "cpu: dnnl_sgemm of %lldx%lldx%lld failed with status %d", (long long)gemm->m,
                        (long long)gemm->n, (long long)gemm->k, failed);
    return AH_OK;
}
