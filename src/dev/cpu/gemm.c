/* Matrix products by oneDNN. Tiles are cut by shape alone and each is one single-threaded call, so the bits do not
 * depend on the number of threads. */
#include "dev/cpu/cpu.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/guard.h"
#include "dev/cpu/sgemm.h"

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

/* Returns the size of equal parts, a multiple of 16. */
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

/* Writes the bias to C (or adds it), to which the product is added afterwards. */
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

/* ---- the library's call ------------------------------------------------------------------------------------------ */

struct sgemm_call {
    const struct ah_sgemm *of;
    dnnl_status_t status;
};

static void sgemm(void *context)
{
    struct sgemm_call *call = context;
    const struct ah_sgemm *g = call->of;
    call->status = dnnl_sgemm(g->trans_a ? 'T' : 'N', g->trans_b ? 'T' : 'N', g->m, g->n, g->k, 1.0F, g->a, g->lda,
                              g->b, g->ldb, g->accumulate ? 1.0F : 0.0F, g->c, g->ldc);
}

int ah__cpu_sgemm(const struct ah_sgemm *of)
{
    struct sgemm_call call = {.of = of};
    AH_TRY(ah__guard_run("oneDNN", sgemm, &call));
    if (call.status == dnnl_out_of_memory)
        return ah__fail(AH_ENOMEM, "oneDNN: out of host memory");
    if (call.status != dnnl_success)
        return ah__fail(AH_EDEVICE, "oneDNN: status %d", (int)call.status);
    return AH_OK;
}

int ah__cpu_sgemm_fail(int status, int64_t m, int64_t n, int64_t k)
{
    return ah__fail(status, "cpu: a product of %lldx%lldx%lld by oneDNN: %s", (long long)m, (long long)n, (long long)k,
                    status == AH_ENOMEM ? "out of host memory" : "it failed");
}

static pthread_mutex_t ready_lock = PTHREAD_MUTEX_INITIALIZER;
static bool ready;

/* Runs a first product, on a thread of its own because it changes the thread's OpenMP settings. */
static void *first_product(void *context)
{
    enum { SIDE = 16 };
    static const float a[SIDE * SIDE], b[SIDE * SIDE];
    float c[SIDE * SIDE];
    struct ah_sgemm call = {.m = SIDE, .n = SIDE, .k = SIDE, .lda = SIDE, .ldb = SIDE, .ldc = SIDE};
    call.a = a;
    call.b = b;
    call.c = c;
    omp_set_num_threads(1);
    *(int *)context = ah__cpu_sgemm(&call);
    return NULL;
}

static int products_start(void)
{
    enum { ROOM_BYTES = 32 << 20 }; /* about six times the need */
    pthread_t thread;
    int status = AH_OK;
    AH_TRY(ah__room(ROOM_BYTES));
    int error = pthread_create(&thread, NULL, first_product, &status);
    if (error)
        return ah__fail(AH_ENOMEM, "cpu: no thread to start oneDNN: %s", strerror(error));
    pthread_join(thread, NULL);
    if (status != AH_OK)
        return ah__fail(status, "cpu: oneDNN: %s", status == AH_ENOMEM ? "out of host memory" : "it does not start");
    return AH_OK;
}

int ah__cpu_products_ready(void)
{
    pthread_mutex_lock(&ready_lock);
    int status = ready ? AH_OK : products_start();
    ready = ready || status == AH_OK;
    pthread_mutex_unlock(&ready_lock);
    return status;
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

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
    struct ah_sgemm call = {
        .trans_a = g->trans_a,
        .trans_b = g->trans_b,
        .accumulate = g->accumulate || g->bias,
        .m = rows,
        .n = cols,
        .k = g->k,
        .lda = g->lda,
        .ldb = g->ldb,
        .ldc = g->ldc,
        .a = g->trans_a ? g->a + row : g->a + row * g->lda,
        .b = g->trans_b ? g->b + col * g->ldb : g->b + col,
        .c = c,
    };
    int status = ah__cpu_sgemm(&call);
    if (status != AH_OK)
        atomic_store(&job->failed, status);
}

int ah__cpu_gemm(struct ah_pool *pool, const struct ah_gemm *gemm)
{
    struct gemm_job job = {.gemm = gemm};
    ah__pool_run(pool, tile, (int)(gemm->grid.down * gemm->grid.across), &job);
    int failed = atomic_load(&job.failed);
    return failed ? ah__cpu_sgemm_fail(failed, gemm->m, gemm->n, gemm->k) : AH_OK;
}
