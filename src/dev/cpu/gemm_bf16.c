/* Products of bf16 operands: tiles over the pool, by AMX or by fp32 panels. */
#include "dev/cpu/gemm_bf16.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdatomic.h>
#include <string.h>

#include "dev/cpu/sgemm.h"

/* The tiles of fp32 panels; the terms of one panel. */
enum { PANEL_ROWS = 256, PANEL_COLS = 256, PANEL_TERMS = 256 };
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

static float widen(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

/* To nearest even; a NaN stays one. */
static uint16_t narrow(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7FFFFFFFU) > 0x7F800000U)
        return (uint16_t)(bits >> 16 | 0x40U);
    return (uint16_t)((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

static void panel_widen(float *to, const uint16_t *from, int64_t stride, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            to[i * cols + j] = widen(from[i * stride + j]);
}

static void panel_put(const struct ah_gemm_bf16 *g, const struct ah_gemm_tile *t, const float *sum)
{
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->cols; j++) {
            int64_t at = (t->row + i) * g->ldc + t->col + j;
            float x = sum[i * t->cols + j] + (g->bias ? widen(g->bias[t->col + j]) : 0.0F);
            if (g->c_fp32)
                ((float *)g->c)[at] = g->accumulate ? x + ((float *)g->c)[at] : x;
            else
                ((uint16_t *)g->c)[at] = narrow(g->accumulate ? x + widen(((uint16_t *)g->c)[at]) : x);
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

/* The length of equal parts of at most `most`, a multiple of 32. */
static int64_t part(int64_t length, int64_t most)
{
    return ceil_div(ceil_div(length, ceil_div(length, most)), 32) * 32;
}

/* With AMX the cut changes no bits, so it may look at the threads: smaller tiles until each has two. */
static void cut(struct bf16_job *job, const struct ah_gemm_bf16 *g)
{
    int64_t rows = job->amx ? AH_AMX_ROWS : PANEL_ROWS, cols = job->amx ? AH_AMX_COLS : PANEL_COLS;
    job->rows = part(g->m, rows);
    job->cols = part(g->n, cols);
    while (job->amx && ceil_div(g->m, job->rows) * ceil_div(g->n, job->cols) < 2 * ah__pool_threads(job->pool) &&
           (job->rows > 64 || job->cols > 64)) {
        if (job->rows > job->cols)
            job->rows = part(job->rows, job->rows / 2);
        else
            job->cols = part(job->cols, job->cols / 2);
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

char *ah__cpu_arithmetic(char *text, size_t size)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, size, "oneDNN %d.%d.%d isa %x, bf16 by %s", version->major, version->minor, version->patch,
             (unsigned)dnnl_get_effective_cpu_isa(), ah__cpu_has_amx() ? "AMX" : "panels");
    return text;
}
