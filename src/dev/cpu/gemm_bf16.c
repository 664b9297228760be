/* Products of bf16 operands: cuts them into tiles over the pool, by AMX or by fp32 panels. */
#include "dev/cpu/gemm_bf16.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdatomic.h>
#include <string.h>

#include "base/guard.h"
#include "dev/cpu/sgemm.h"
#include "dev/host/kernels.h"

/* Sizes of tiles of fp32 panels, with columns in multiples that oneDNN's kernels take at a time; and terms of a
 * panel. */
enum { PANEL_ROWS = 256, PANEL_COLS = 384, PANEL_MULTIPLE = 48, PANEL_TERMS = 256 };
enum { PANEL_SCRATCH = PANEL_TERMS * (PANEL_ROWS + PANEL_COLS) + PANEL_ROWS * PANEL_COLS };
_Static_assert((int)PANEL_SCRATCH <= (int)AH_POOL_SCRATCH && (int)AH_AMX_SCRATCH <= (int)AH_POOL_SCRATCH,
               "scratch of a worker");

struct bf16_job {
    const struct ah_gemm_bf16 *gemm;
    struct ah_pool *pool;
    int64_t rows, cols, down;
    bool amx;
    atomic_int failed;
};

static atomic_bool amx_forbidden;

bool ah__cpu_has_amx(void)
{
    return !atomic_load(&amx_forbidden) && ah__amx_usable();
}

void ah__cpu_amx_forbid(bool forbidden)
{
    atomic_store(&amx_forbidden, forbidden);
}

/* ---- fp32 panels ---------------------------------------------------------------------------------------------------
 */

static void panel_widen(float *to, const uint16_t *from, int64_t stride, int64_t rows, int64_t cols)
{
    const struct ah_host_kernels *kernels = ah__host_kernels();
    for (int64_t i = 0; i < rows; i++)
        kernels->from_bf16(to + i * cols, from + i * stride, cols);
}

static void row_add(float *to, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += x[i];
}

/* Writes a row of the tile's sums to C. */
static void row_put(const struct ah_gemm_bf16 *g, int64_t at, float *sum, int64_t n)
{
    const struct ah_host_kernels *kernels = ah__host_kernels();
    uint16_t *half = (uint16_t *)g->c + at;
    float *c = (float *)g->c + at, old[PANEL_COLS];
    if (g->accumulate && !g->c_fp32)
        kernels->from_bf16(old, half, n);
    if (g->accumulate)
        row_add(sum, g->c_fp32 ? c : old, n);
    if (g->c_fp32)
        memcpy(c, sum, (size_t)n * sizeof *c);
    else
        kernels->to_bf16(half, sum, n);
}

static void panel_put(const struct ah_gemm_bf16 *g, const struct ah_gemm_tile *t, float *sum)
{
    float bias[PANEL_COLS];
    if (g->bias)
        ah__host_kernels()->from_bf16(bias, g->bias + t->col, t->cols);
    for (int64_t i = 0; i < t->rows; i++, sum += t->cols) {
        if (g->bias)
            row_add(sum, bias, t->cols);
        row_put(g, (t->row + i) * g->ldc + t->col, sum, t->cols);
    }
}

static int panels(const struct ah_gemm_bf16 *g, const struct ah_gemm_tile *t, float *scratch)
{
    float *sum = scratch, *a = sum + PANEL_ROWS * PANEL_COLS, *b = a + PANEL_ROWS * PANEL_TERMS;
    for (int64_t k = 0; k < g->k; k += PANEL_TERMS) {
        int64_t terms = g->k - k < PANEL_TERMS ? g->k - k : PANEL_TERMS;
        const uint16_t *from_a = g->trans_a ? g->a + k * g->lda + t->row : g->a + t->row * g->lda + k;
        const uint16_t *from_b = g->trans_b ? g->b + t->col * g->ldb + k : g->b + k * g->ldb + t->col;
        int64_t lda = g->trans_a ? t->rows : terms, ldb = g->trans_b ? terms : t->cols;
        panel_widen(a, from_a, g->lda, g->trans_a ? terms : t->rows, lda);
        panel_widen(b, from_b, g->ldb, g->trans_b ? t->cols : terms, ldb);
        struct ah_sgemm call = {
            .trans_a = g->trans_a,
            .trans_b = g->trans_b,
            .accumulate = k > 0,
            .m = t->rows,
            .n = t->cols,
            .k = terms,
            .lda = lda,
            .ldb = ldb,
            .ldc = t->cols,
            .a = a,
            .b = b,
            .c = sum,
        };
        AH_TRY(ah__cpu_sgemm(&call));
    }
    panel_put(g, t, sum);
    return AH_OK;
}

/* ---- tiles ---------------------------------------------------------------------------------------------------------
 */

static void tile(void *context, int index, int worker)
{
    struct bf16_job *job = context;
    const struct ah_gemm_bf16 *g = job->gemm;
    struct ah_gemm_tile t = {.row = index % job->down * job->rows, .col = index / job->down * job->cols};
    t.rows = g->m - t.row < job->rows ? g->m - t.row : job->rows;
    t.cols = g->n - t.col < job->cols ? g->n - t.col : job->cols;
    float *scratch = ah__pool_scratch(job->pool, worker);
    if (job->amx) {
        ah__gemm_amx(g, &t, scratch);
        return;
    }
    int status = panels(g, &t, scratch);
    if (status != AH_OK)
        atomic_store(&job->failed, status);
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Returns the length of equal parts of at most `most`, as a multiple of `of`. */
static int64_t part(int64_t length, int64_t most, int64_t of)
{
    return ceil_div(ceil_div(length, ceil_div(length, most)), of) * of;
}

/* Chooses the tiles. With AMX the cut changes no bits, so it may depend on the threads: tiles get smaller until each
 * thread has two. */
static void cut(struct bf16_job *job, const struct ah_gemm_bf16 *g)
{
    int64_t rows = job->amx ? AH_AMX_ROWS : PANEL_ROWS, cols = job->amx ? AH_AMX_COLS : PANEL_COLS;
    job->rows = part(g->m, rows, 32);
    job->cols = part(g->n, cols, job->amx ? 32 : PANEL_MULTIPLE);
    while (job->amx && ceil_div(g->m, job->rows) * ceil_div(g->n, job->cols) < 2 * ah__pool_threads(job->pool) &&
           (job->rows > 64 || job->cols > 64)) {
        if (job->rows > job->cols)
            job->rows = part(job->rows, job->rows / 2, 32);
        else
            job->cols = part(job->cols, job->cols / 2, 32);
    }
    job->down = ceil_div(g->m, job->rows);
}

int ah__cpu_gemm_bf16(struct ah_pool *pool, const struct ah_gemm_bf16 *gemm)
{
    struct bf16_job job = {.gemm = gemm, .pool = pool, .amx = ah__cpu_has_amx()};
    cut(&job, gemm);
    ah__pool_run(pool, tile, (int)(job.down * ceil_div(gemm->n, job.cols)), &job);
    int failed = atomic_load(&job.failed);
    return failed ? ah__cpu_sgemm_fail(failed, gemm->m, gemm->n, gemm->k) : AH_OK;
}

/* ---- what bits depend on ----------------------------------------------------------------------------------------- */

struct arithmetic_text {
    char *text;
    size_t size;
};

static void arithmetic(void *context)
{
    const struct arithmetic_text *out = context;
    const dnnl_version_t *version = dnnl_version();
    char panels[32];
    snprintf(panels, sizeof panels, "panels of %dx%d", PANEL_ROWS, PANEL_COLS);
    snprintf(out->text, out->size, "oneDNN %d.%d.%d isa %x, bf16 by %s", version->major, version->minor, version->patch,
             (unsigned)dnnl_get_effective_cpu_isa(), ah__cpu_has_amx() ? "AMX" : panels);
}

int ah__cpu_arithmetic(char *text, size_t size)
{
    struct arithmetic_text out = {text, size};
    return ah__guard_run("oneDNN", arithmetic, &out);
}
