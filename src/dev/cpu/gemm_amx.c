/* Products of bf16 on AMX tiles. Blocks of 32 x 32 sums stay in four tile registers while 32 terms at a time pass.
 *
 * Both operands are packed into tiles of 1 KiB: of A all rows of the piece, which fit the second-level cache, of B one
 * strip of 32 columns, which fits the first. The terms are cut into ranges so that this holds. Between ranges the sums
 * are kept in fp32, so that neither the cut nor the place of a block changes a bit. */
#include "dev/cpu/gemm_bf16.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AMX_TARGET                                                                                                     \
    __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,bmi2")))
#define AMX_INLINE static inline AMX_TARGET __attribute__((always_inline))

enum { SIDE = 16, BLOCK = 32, STEP = 32, TILE_HALVES = SIDE * STEP, TILE_FLOATS = SIDE * SIDE, TILE_STRIDE = 64 };

/* ---- permission ----------------------------------------------------------------------------------------------------
 */

enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) */

enum { LEAF_FEATURES = 7, EDX_AMX_BF16 = 22, EDX_AMX_TILE = 24 };

/* Returns true if the processor has AMX. Not every compiler has names for these features. */
static bool processor_has_amx(void)
{
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid_count(LEAF_FEATURES, 0, &eax, &ebx, &ecx, &edx) && edx >> EDX_AMX_BF16 & 1U &&
           edx >> EDX_AMX_TILE & 1U;
}

bool ah__amx_usable(void)
{
    static atomic_int known; /* 1: no, 2: yes */
    if (atomic_load(&known) == 0) {
        bool usable = processor_has_amx() && __builtin_cpu_supports("avx512bf16") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
        atomic_store(&known, usable ? 2 : 1);
    }
    return atomic_load(&known) == 2;
}

/* ---- packing -------------------------------------------------------------------------------------------------------
 */

AMX_INLINE __mmask32 first32(int64_t n)
{
    return n >= 32 ? 0xFFFFFFFFU : n <= 0 ? 0 : (1U << n) - 1U;
}

/* Loads the first n of 32 halves; the others are zero. */
AMX_INLINE __m512i load_first(const uint16_t *p, int64_t n)
{
    return n >= 32 ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi16(first32(n), p);
}

/* Transposes 16 x 16 pairs: to[p][i] = from[i][p]. */
AMX_INLINE void transpose_pairs(uint16_t *to, __m512i a[SIDE])
{
    __m512i b[SIDE];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4)
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            a[i + 2 * j] = _mm512_unpacklo_epi64(b[i + j], b[i + j + 2]);
            a[i + 2 * j + 1] = _mm512_unpackhi_epi64(b[i + j], b[i + j + 2]);
        }
#pragma GCC unroll 2
    for (int i = 0; i < 16; i += 8)
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            b[i + j] = _mm512_shuffle_i32x4(a[i + j], a[i + j + 4], 0x88);
            b[i + j + 4] = _mm512_shuffle_i32x4(a[i + j], a[i + j + 4], 0xDD);
        }
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        _mm512_store_si512(to + j * STEP, _mm512_shuffle_i32x4(b[j], b[j + 8], 0x88));
        _mm512_store_si512(to + (j + 8) * STEP, _mm512_shuffle_i32x4(b[j], b[j + 8], 0xDD));
    }
}

/* Packs two tiles: to[half][row][k] = from[half * 16 + row][k]. */
AMX_INLINE void pack_rows(uint16_t *to, const uint16_t *from, int64_t stride, int64_t rows, int64_t terms)
{
    for (int i = 0; i < BLOCK; i++)
        _mm512_store_si512(to + i * STEP, i < rows ? load_first(from + i * stride, terms) : _mm512_setzero_si512());
}

/* Packs two tiles of pairs: to[half][pair][col] = from[half * 16 + col][pair], where the terms of `from` are along its
 * rows. */
AMX_INLINE void pack_rows_as_pairs(uint16_t *to, const uint16_t *from, int64_t stride, int64_t cols, int64_t terms)
{
    for (int half = 0; half < 2; half++) {
        __m512i a[SIDE];
#pragma GCC unroll 16
        for (int i = 0; i < SIDE; i++)
            a[i] =
                half * SIDE + i < cols ? load_first(from + (half * SIDE + i) * stride, terms) : _mm512_setzero_si512();
        transpose_pairs(to + half * TILE_HALVES, a);
    }
}

/* Loads the pairs of two rows of 32 columns, columns 0..15 and 16..31. */
AMX_INLINE void pairs_load(__m512i out[2], const uint16_t *from, int64_t stride, int64_t cols, int64_t terms)
{
    const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37,
                                         5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    __m512i even = terms > 0 ? load_first(from, cols) : _mm512_setzero_si512();
    __m512i odd = terms > 1 ? load_first(from + stride, cols) : _mm512_setzero_si512();
    out[0] = _mm512_permutex2var_epi16(even, low, odd);
    out[1] = _mm512_permutex2var_epi16(even, high, odd);
}

/* Packs two tiles of pairs: to[half][pair][col] = (from[2 pair][half * 16 + col], from[2 pair + 1][...]). */
AMX_INLINE void pack_pairs(uint16_t *to, const uint16_t *from, int64_t stride, int64_t cols, int64_t terms)
{
    for (int i = 0; i < SIDE; i++) {
        __m512i pair[2];
        pairs_load(pair, from + 2 * i * stride, stride, cols, terms - 2 * i);
        _mm512_store_si512(to + i * STEP, pair[0]);
        _mm512_store_si512(to + TILE_HALVES + i * STEP, pair[1]);
    }
}

/* Packs two tiles: to[half][row][k] = from[k][half * 16 + row], where the terms of `from` are along its columns. */
AMX_INLINE void pack_columns(uint16_t *to, const uint16_t *from, int64_t stride, int64_t rows, int64_t terms)
{
    __m512i low[SIDE], high[SIDE];
#pragma GCC unroll 16
    for (int i = 0; i < SIDE; i++) {
        __m512i pair[2];
        pairs_load(pair, from + 2 * i * stride, stride, rows, terms - 2 * i);
        low[i] = pair[0];
        high[i] = pair[1];
    }
    transpose_pairs(to, low);
    transpose_pairs(to + TILE_HALVES, high);
}

/* Packs terms [from, from + terms) of 32 rows of op(A): two tiles for each step of 32 terms. */
static AMX_TARGET void pack_a(uint16_t *to, const struct ah_gemm_bf16 *g, int64_t row, int64_t rows, int64_t from,
                              int64_t terms)
{
    for (int64_t k = 0; k < terms; k += STEP, to += 2 * TILE_HALVES)
        if (g->trans_a)
            pack_columns(to, g->a + (from + k) * g->lda + row, g->lda, rows, terms - k);
        else
            pack_rows(to, g->a + row * g->lda + from + k, g->lda, rows, terms - k);
}

static AMX_TARGET void pack_b(uint16_t *to, const struct ah_gemm_bf16 *g, int64_t col, int64_t cols, int64_t from,
                              int64_t terms)
{
    for (int64_t k = 0; k < terms; k += STEP, to += 2 * TILE_HALVES)
        if (g->trans_b)
            pack_rows_as_pairs(to, g->b + col * g->ldb + from + k, g->ldb, cols, terms - k);
        else
            pack_pairs(to, g->b + (from + k) * g->ldb + col, g->ldb, cols, terms - k);
}

/* ---- products ------------------------------------------------------------------------------------------------------
 */

struct __attribute__((packed)) tile_config {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

static AMX_TARGET void tiles_begin(void)
{
    struct tile_config config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.row_bytes[i] = TILE_STRIDE;
        config.rows[i] = SIDE;
    }
    _tile_loadconfig(&config);
}

/* Computes sum[4 tiles] = a b, or += a b, over `steps` times 32 terms. */
static AMX_TARGET void block_product(float *sum, const uint16_t *a, const uint16_t *b, int64_t steps, bool add)
{
    if (add) {
        _tile_loadd(0, sum, TILE_STRIDE);
        _tile_loadd(1, sum + TILE_FLOATS, TILE_STRIDE);
        _tile_loadd(2, sum + 2 * TILE_FLOATS, TILE_STRIDE);
        _tile_loadd(3, sum + 3 * TILE_FLOATS, TILE_STRIDE);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t i = 0; i < steps; i++, a += 2 * TILE_HALVES, b += 2 * TILE_HALVES) {
        _tile_loadd(6, b, TILE_STRIDE);
        _tile_loadd(4, a, TILE_STRIDE);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b + TILE_HALVES, TILE_STRIDE);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a + TILE_HALVES, TILE_STRIDE);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sum, TILE_STRIDE);
    _tile_stored(1, sum + TILE_FLOATS, TILE_STRIDE);
    _tile_stored(2, sum + 2 * TILE_FLOATS, TILE_STRIDE);
    _tile_stored(3, sum + 3 * TILE_FLOATS, TILE_STRIDE);
}

/* ---- results -------------------------------------------------------------------------------------------------------
 */

AMX_INLINE __m512 widen(__mmask16 lanes, const uint16_t *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, p)), 16));
}

/* Writes 16 columns of a row of sums to C. */
AMX_INLINE void row_put(const struct ah_gemm_bf16 *g, const float *sum, int64_t row, int64_t col, __mmask16 lanes)
{
    __m512 x = _mm512_load_ps(sum);
    if (g->bias)
        x = _mm512_add_ps(x, widen(lanes, g->bias + col));
    if (g->c_fp32) {
        float *c = (float *)g->c + row * g->ldc + col;
        if (g->accumulate)
            x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(lanes, c));
        _mm512_mask_storeu_ps(c, lanes, x);
        return;
    }
    uint16_t *c = (uint16_t *)g->c + row * g->ldc + col;
    if (g->accumulate)
        x = _mm512_add_ps(x, widen(lanes, c));
    _mm256_mask_storeu_epi16(c, lanes, (__m256i)_mm512_cvtneps_pbh(x));
}

static AMX_TARGET void block_put(const struct ah_gemm_bf16 *g, const float *sum, int64_t row, int64_t col, int64_t rows,
                                 int64_t cols)
{
    __mmask16 lanes[2] = {(__mmask16)first32(cols < SIDE ? cols : SIDE), (__mmask16)first32(cols - SIDE)};
    for (int64_t i = 0; i < rows; i++)
        for (int half = 0; half < 2; half++)
            if (lanes[half])
                row_put(g, sum + (i / SIDE * 2 + half) * TILE_FLOATS + i % SIDE * SIDE, row + i, col + half * SIDE,
                        lanes[half]);
}

/* ---- the piece -----------------------------------------------------------------------------------------------------
 */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Returns the terms of one range: equal parts, in whole steps. */
static int64_t range_terms(int64_t k)
{
    int64_t parts = (k + AH_AMX_TERMS - 1) / AH_AMX_TERMS;
    return (k + parts * STEP - 1) / (parts * STEP) * STEP;
}

struct amx_piece {
    const struct ah_gemm_bf16 *gemm;
    const struct ah_gemm_tile *tile;
    uint16_t *a, *b;
    float *sum;
    int64_t from, terms;
    bool first, last; /* this is the first, the last range of terms */
};

/* Prefetches a share of the next strip of op(B), since its cache lines are far from each other. */
AMX_INLINE void ahead_b(const struct amx_piece *p, int64_t strip_col, int64_t share, int64_t shares)
{
    const struct ah_gemm_bf16 *g = p->gemm;
    int64_t lines = g->trans_b ? (p->terms + STEP - 1) / STEP : 1, rows = g->trans_b ? BLOCK : p->terms;
    int64_t col = p->tile->col + strip_col + BLOCK;
    if (strip_col + BLOCK >= p->tile->cols)
        return;
    for (int64_t i = rows * lines * share / shares; i < rows * lines * (share + 1) / shares; i++) {
        int64_t row = i / lines, line = i % lines * STEP;
        const uint16_t *at =
            g->trans_b ? g->b + (col + row) * g->ldb + p->from + line : g->b + (p->from + row) * g->ldb + col;
        _mm_prefetch((const char *)at, _MM_HINT_T1);
    }
}

/* Computes a strip of 32 columns. With one range of terms no sums are kept between ranges, so all blocks use the same
 * memory for sums, which stays in the first-level cache. */
static AMX_TARGET void strip(const struct amx_piece *p, int64_t strip_col)
{
    const struct ah_gemm_bf16 *g = p->gemm;
    const struct ah_gemm_tile *t = p->tile;
    int64_t steps = (p->terms + STEP - 1) / STEP, cols = least(BLOCK, t->cols - strip_col);
    int64_t blocks = (t->rows + BLOCK - 1) / BLOCK, keep = p->first && p->last ? 0 : 4 * TILE_FLOATS;
    pack_b(p->b, g, t->col + strip_col, cols, p->from, p->terms);
    for (int64_t i = 0; i < blocks; i++) {
        ahead_b(p, strip_col, i, blocks);
        float *sum = p->sum + (strip_col / BLOCK * blocks + i) * keep;
        block_product(sum, p->a + i * steps * 2 * TILE_HALVES, p->b, steps, !p->first);
        if (p->last)
            block_put(g, sum, t->row + i * BLOCK, t->col + strip_col, least(BLOCK, t->rows - i * BLOCK), cols);
    }
}

AMX_TARGET void ah__gemm_amx(const struct ah_gemm_bf16 *gemm, const struct ah_gemm_tile *tile, float *scratch)
{
    struct amx_piece p = {.gemm = gemm, .tile = tile, .sum = scratch};
    p.b = (uint16_t *)(void *)(scratch + AH_AMX_ROWS * AH_AMX_COLS);
    p.a = p.b + BLOCK * AH_AMX_TERMS;
    tiles_begin();
    int64_t range = range_terms(gemm->k);
    for (p.from = 0; p.from < gemm->k; p.from += range) {
        p.terms = least(range, gemm->k - p.from);
        p.first = p.from == 0;
        p.last = p.from + range >= gemm->k;
        int64_t steps = (p.terms + STEP - 1) / STEP;
        for (int64_t i = 0; i < tile->rows; i += BLOCK)
            pack_a(p.a + i / BLOCK * steps * 2 * TILE_HALVES, gemm, tile->row + i, least(BLOCK, tile->rows - i), p.from,
                   p.terms);
        for (int64_t col = 0; col < tile->cols; col += BLOCK)
            strip(&p, col);
    }
    _tile_release();
}

#else

bool ah__amx_usable(void)
{
    return false;
}

void ah__gemm_amx(const struct ah_gemm_bf16 *gemm, const struct ah_gemm_tile *tile, float *scratch)
{
    (void)gemm, (void)tile, (void)scratch;
}

#endif
