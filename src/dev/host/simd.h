/* A vector of 16 floats in three widths, so that one kernel source gives the same bits on every x86-64 processor.
 *
 * Included once per instruction set with AH_SIMD defined as 512 (AVX-512), 256 (AVX2 + FMA) or 1 (no assumption). Every
 * operation is one IEEE operation per lane, with every register width. simd_int.h has integers, simd_sum.h sums. Stores
 * of bfloat16 round to nearest even; NaN stays NaN. Knows no operators and no memory layout. */
#ifndef AH_DEV_HOST_SIMD_H
#define AH_DEV_HOST_SIMD_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if AH_SIMD != 1
#include <immintrin.h>
#endif

enum { LANES = 16 };

#if AH_SIMD == 512
#define AH_TARGET __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
typedef __m512 v16;
#elif AH_SIMD == 256
#define AH_TARGET __attribute__((target("avx2,fma")))
typedef struct {
    __m256 half[2];
} v16;
#else
#define AH_TARGET
typedef struct {
    float lane[LANES];
} v16;
#endif
#define AH_INLINE static inline AH_TARGET __attribute__((always_inline))

#if AH_SIMD == 512

AH_INLINE v16 v_set(float x)
{
    return _mm512_set1_ps(x);
}
AH_INLINE v16 v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
AH_INLINE void v_store(float *p, v16 a)
{
    _mm512_storeu_ps(p, a);
}
AH_INLINE __mmask16 v_lanes(int n)
{
    return (__mmask16)((1u << n) - 1u);
}
AH_INLINE v16 v_load_first(const float *p, int n)
{
    return _mm512_maskz_loadu_ps(v_lanes(n), p);
}
AH_INLINE void v_store_first(float *p, v16 a, int n)
{
    _mm512_mask_storeu_ps(p, v_lanes(n), a);
}
AH_INLINE v16 v_add(v16 a, v16 b)
{
    return _mm512_add_ps(a, b);
}
AH_INLINE v16 v_sub(v16 a, v16 b)
{
    return _mm512_sub_ps(a, b);
}
AH_INLINE v16 v_mul(v16 a, v16 b)
{
    return _mm512_mul_ps(a, b);
}
AH_INLINE v16 v_div(v16 a, v16 b)
{
    return _mm512_div_ps(a, b);
}
AH_INLINE v16 v_sqrt(v16 a)
{
    return _mm512_sqrt_ps(a);
}
AH_INLINE v16 v_fma(v16 a, v16 b, v16 c)
{
    return _mm512_fmadd_ps(a, b, c);
}
AH_INLINE v16 v_max(v16 a, v16 b)
{
    return _mm512_max_ps(a, b);
}
AH_INLINE v16 v_min(v16 a, v16 b)
{
    return _mm512_min_ps(a, b);
}
AH_INLINE v16 v_if_less(v16 x, v16 bound, v16 yes, v16 no)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, bound, _CMP_LT_OQ), no, yes);
}
AH_INLINE v16 v_first(int n, v16 a, v16 b)
{
    return _mm512_mask_blend_ps(v_lanes(n), b, a);
}
AH_INLINE v16 v_exponent(v16 shifted)
{
    __m512i bits = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(bits, _mm512_set1_epi32(0x3F800000)));
}
AH_INLINE __m256 v_half(v16 a, int i)
{
    return i ? _mm512_extractf32x8_ps(a, 1) : _mm512_castps512_ps256(a);
}
AH_INLINE void v_prefetch(const void *p)
{
    _mm_prefetch((const char *)p, _MM_HINT_T0);
}
AH_INLINE v16 v_wide_bf16(__m256i x)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}
AH_INLINE v16 v_load_bf16(const uint16_t *p)
{
    return v_wide_bf16(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
AH_INLINE v16 v_load_first_bf16(const uint16_t *p, int n)
{
    return v_wide_bf16(_mm256_maskz_loadu_epi16(v_lanes(n), p));
}
AH_INLINE __m256i v_bf16(v16 a)
{
    __m512i bits = _mm512_castps_si512(a), high = _mm512_srli_epi32(bits, 16);
    __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    __m512i near = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd), 16);
    __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
    return _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(_mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), near, quiet));
}
AH_INLINE void v_store_bf16(uint16_t *p, v16 a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, v_bf16(a));
}
AH_INLINE void v_store_first_bf16(uint16_t *p, v16 a, int n)
{
    _mm256_mask_storeu_epi16(p, v_lanes(n), v_bf16(a));
}

#elif AH_SIMD == 256

#define V_EACH(expression0, expression1)                                                                               \
    return (v16)                                                                                                       \
    {                                                                                                                  \
        {                                                                                                              \
            expression0, expression1                                                                                   \
        }                                                                                                              \
    }
AH_INLINE v16 v_set(float x)
{
    V_EACH(_mm256_set1_ps(x), _mm256_set1_ps(x));
}
AH_INLINE v16 v_load(const float *p)
{
    V_EACH(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8));
}
AH_INLINE void v_store(float *p, v16 a)
{
    _mm256_storeu_ps(p, a.half[0]);
    _mm256_storeu_ps(p + 8, a.half[1]);
}
AH_INLINE __m256i v_lanes(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
AH_INLINE v16 v_load_first(const float *p, int n)
{
    V_EACH(_mm256_maskload_ps(p, v_lanes(n)), n > 8 ? _mm256_maskload_ps(p + 8, v_lanes(n - 8)) : _mm256_setzero_ps());
}
AH_INLINE void v_store_first(float *p, v16 a, int n)
{
    _mm256_maskstore_ps(p, v_lanes(n), a.half[0]);
    if (n > 8)
        _mm256_maskstore_ps(p + 8, v_lanes(n - 8), a.half[1]);
}
#define V_BINARY(name, intrinsic)                                                                                      \
    AH_INLINE v16 name(v16 a, v16 b)                                                                                   \
    {                                                                                                                  \
        V_EACH(intrinsic(a.half[0], b.half[0]), intrinsic(a.half[1], b.half[1]));                                      \
    }
V_BINARY(v_add, _mm256_add_ps)
V_BINARY(v_sub, _mm256_sub_ps)
V_BINARY(v_mul, _mm256_mul_ps)
V_BINARY(v_div, _mm256_div_ps)
V_BINARY(v_max, _mm256_max_ps)
V_BINARY(v_min, _mm256_min_ps)
AH_INLINE v16 v_sqrt(v16 a)
{
    V_EACH(_mm256_sqrt_ps(a.half[0]), _mm256_sqrt_ps(a.half[1]));
}
AH_INLINE v16 v_fma(v16 a, v16 b, v16 c)
{
    V_EACH(_mm256_fmadd_ps(a.half[0], b.half[0], c.half[0]), _mm256_fmadd_ps(a.half[1], b.half[1], c.half[1]));
}
AH_INLINE __m256 v_pick(__m256 mask, __m256 yes, __m256 no)
{
    return _mm256_blendv_ps(no, yes, mask);
}
AH_INLINE v16 v_if_less(v16 x, v16 bound, v16 yes, v16 no)
{
    V_EACH(v_pick(_mm256_cmp_ps(x.half[0], bound.half[0], _CMP_LT_OQ), yes.half[0], no.half[0]),
           v_pick(_mm256_cmp_ps(x.half[1], bound.half[1], _CMP_LT_OQ), yes.half[1], no.half[1]));
}
AH_INLINE v16 v_first(int n, v16 a, v16 b)
{
    V_EACH(v_pick(_mm256_castsi256_ps(v_lanes(n)), a.half[0], b.half[0]),
           v_pick(_mm256_castsi256_ps(v_lanes(n - 8)), a.half[1], b.half[1]));
}
AH_INLINE __m256 v_exponent_half(__m256 shifted)
{
    __m256i bits = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_set1_epi32(0x3F800000)));
}
AH_INLINE v16 v_exponent(v16 shifted)
{
    V_EACH(v_exponent_half(shifted.half[0]), v_exponent_half(shifted.half[1]));
}
AH_INLINE __m256 v_half(v16 a, int i)
{
    return a.half[i];
}
AH_INLINE void v_prefetch(const void *p)
{
    _mm_prefetch((const char *)p, _MM_HINT_T0);
}
AH_INLINE __m256 v_wide_bf16(const uint16_t *p)
{
    __m256i x = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(x, 16));
}
AH_INLINE v16 v_load_bf16(const uint16_t *p)
{
    V_EACH(v_wide_bf16(p), v_wide_bf16(p + 8));
}
AH_INLINE v16 v_load_first_bf16(const uint16_t *p, int n)
{
    uint16_t all[LANES] = {0};
    memcpy(all, p, (size_t)n * sizeof *p);
    return v_load_bf16(all);
}
AH_INLINE __m256i v_bf16_half(__m256 a)
{
    __m256i bits = _mm256_castps_si256(a), high = _mm256_srli_epi32(bits, 16);
    __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    __m256i near = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd), 16);
    __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    return _mm256_blendv_epi8(near, quiet, _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)));
}
AH_INLINE void v_store_bf16(uint16_t *p, v16 a)
{
    __m256i mixed = _mm256_packus_epi32(v_bf16_half(a.half[0]), v_bf16_half(a.half[1]));
    _mm256_storeu_si256((__m256i *)(void *)p, _mm256_permute4x64_epi64(mixed, 0xD8));
}
AH_INLINE void v_store_first_bf16(uint16_t *p, v16 a, int n)
{
    uint16_t all[LANES];
    v_store_bf16(all, a);
    memcpy(p, all, (size_t)n * sizeof *p);
}

#else

#define V_EACH(expression)                                                                                             \
    v16 out;                                                                                                           \
    for (int i = 0; i < LANES; i++)                                                                                    \
        out.lane[i] = (expression);                                                                                    \
    return out
AH_INLINE v16 v_set(float x)
{
    V_EACH(x);
}
AH_INLINE v16 v_load(const float *p)
{
    V_EACH(p[i]);
}
AH_INLINE void v_store(float *p, v16 a)
{
    memcpy(p, a.lane, sizeof a.lane);
}
AH_INLINE v16 v_load_first(const float *p, int n)
{
    V_EACH(i < n ? p[i] : 0.0F);
}
AH_INLINE void v_store_first(float *p, v16 a, int n)
{
    memcpy(p, a.lane, (size_t)n * sizeof *p);
}
AH_INLINE v16 v_add(v16 a, v16 b)
{
    V_EACH(a.lane[i] + b.lane[i]);
}
AH_INLINE v16 v_sub(v16 a, v16 b)
{
    V_EACH(a.lane[i] - b.lane[i]);
}
AH_INLINE v16 v_mul(v16 a, v16 b)
{
    V_EACH(a.lane[i] * b.lane[i]);
}
AH_INLINE v16 v_div(v16 a, v16 b)
{
    V_EACH(a.lane[i] / b.lane[i]);
}
AH_INLINE v16 v_sqrt(v16 a)
{
    V_EACH(sqrtf(a.lane[i]));
}
AH_INLINE v16 v_fma(v16 a, v16 b, v16 c)
{
    V_EACH(fmaf(a.lane[i], b.lane[i], c.lane[i]));
}
AH_INLINE v16 v_max(v16 a, v16 b)
{
    V_EACH(a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]);
}
AH_INLINE v16 v_min(v16 a, v16 b)
{
    V_EACH(a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]);
}
AH_INLINE v16 v_if_less(v16 x, v16 bound, v16 yes, v16 no)
{
    V_EACH(x.lane[i] < bound.lane[i] ? yes.lane[i] : no.lane[i]);
}
AH_INLINE v16 v_first(int n, v16 a, v16 b)
{
    V_EACH(i < n ? a.lane[i] : b.lane[i]);
}
AH_INLINE float v_exponent_lane(float shifted)
{
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + 0x3F800000U;
    memcpy(&shifted, &bits, sizeof bits);
    return shifted;
}
AH_INLINE v16 v_exponent(v16 shifted)
{
    V_EACH(v_exponent_lane(shifted.lane[i]));
}
AH_INLINE void v_prefetch(const void *p)
{
    (void)p;
}
AH_INLINE float v_wide_bf16(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}
AH_INLINE v16 v_load_bf16(const uint16_t *p)
{
    V_EACH(v_wide_bf16(p[i]));
}
AH_INLINE v16 v_load_first_bf16(const uint16_t *p, int n)
{
    V_EACH(i < n ? v_wide_bf16(p[i]) : 0.0F);
}
AH_INLINE uint16_t v_bf16(float a)
{
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    uint32_t near = bits + 0x7FFFU + (bits >> 16 & 1U), quiet = bits | 0x400000U;
    return (uint16_t)((isnan(a) ? quiet : near) >> 16);
}
AH_INLINE void v_store_first_bf16(uint16_t *p, v16 a, int n)
{
    for (int i = 0; i < n; i++)
        p[i] = v_bf16(a.lane[i]);
}
AH_INLINE void v_store_bf16(uint16_t *p, v16 a)
{
    v_store_first_bf16(p, a, LANES);
}

#endif

/* Computes to[j * to_stride + i] = from[i * from_stride + j] * scale for a 16 x 16 tile. */
#if AH_SIMD == 512
AH_INLINE void v_transpose(float *to, int64_t to_stride, const float *from, int64_t from_stride, v16 scale)
{
    __m512 a[16], b[16];
    for (int i = 0; i < 16; i++)
        a[i] = _mm512_mul_ps(_mm512_loadu_ps(from + i * from_stride), scale);
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 2; j++) {
            __m512d low = _mm512_castps_pd(b[i + j]), high = _mm512_castps_pd(b[i + j + 2]);
            a[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
            a[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
        }
    for (int i = 0; i < 16; i += 8)
        for (int j = 0; j < 4; j++) {
            b[i + j] = _mm512_shuffle_f32x4(a[i + j], a[i + j + 4], 0x88);
            b[i + j + 4] = _mm512_shuffle_f32x4(a[i + j], a[i + j + 4], 0xDD);
        }
    for (int j = 0; j < 8; j++) {
        _mm512_storeu_ps(to + j * to_stride, _mm512_shuffle_f32x4(b[j], b[j + 8], 0x88));
        _mm512_storeu_ps(to + (j + 8) * to_stride, _mm512_shuffle_f32x4(b[j], b[j + 8], 0xDD));
    }
}
#else
AH_INLINE void v_transpose(float *to, int64_t to_stride, const float *from, int64_t from_stride, v16 scale)
{
    float factor[LANES];
    v_store(factor, scale);
    for (int i = 0; i < LANES; i++)
        for (int j = 0; j < LANES; j++)
            to[j * to_stride + i] = from[i * from_stride + j] * factor[0];
}
#endif

/* Load or store n lanes, but all 16 if n >= 16: for the last step of a loop over a row. */
AH_INLINE v16 v_load_most(const float *p, int64_t n)
{
    return n >= LANES ? v_load(p) : v_load_first(p, (int)n);
}
AH_INLINE void v_store_most(float *p, v16 a, int64_t n)
{
    if (n >= LANES)
        v_store(p, a);
    else
        v_store_first(p, a, (int)n);
}

AH_INLINE v16 v_load_most_bf16(const uint16_t *p, int64_t n)
{
    return n >= LANES ? v_load_bf16(p) : v_load_first_bf16(p, (int)n);
}
AH_INLINE void v_store_most_bf16(uint16_t *p, v16 a, int64_t n)
{
    if (n >= LANES)
        v_store_bf16(p, a);
    else
        v_store_first_bf16(p, a, (int)n);
}

/* Returns e^x to about 1 ulp; 0 below -86.9 (smaller results would soon be flushed to 0 anyway), e^88.3 above 88.3; NaN
 * stays NaN. */
AH_INLINE v16 v_exp(v16 x)
{
    const v16 lowest = v_set(-86.9F), shift = v_set(12582912.0F);
    v16 inside = v_min(v_set(88.3F), v_max(lowest, x));
    v16 shifted = v_fma(inside, v_set(1.44269504F), shift); /* the integer is in the low bits */
    v16 n = v_sub(shifted, shift);
    v16 r = v_fma(n, v_set(-0.693147182464599609375F), inside);
    r = v_fma(n, v_set(1.90465421e-9F), r);
    v16 q = v_set(0.000198910304F);
    q = v_fma(q, r, v_set(0.00139336858F));
    q = v_fma(q, r, v_set(0.00833331048F));
    q = v_fma(q, r, v_set(0.041666463F));
    q = v_fma(q, r, v_set(0.166666672F));
    q = v_fma(q, r, v_set(0.5F));
    v16 p = v_add(v_fma(q, v_mul(r, r), r), v_set(1.0F));
    return v_if_less(x, lowest, v_set(0.0F), v_mul(p, v_exponent(shifted)));
}

/* Returns tanh x to about 1 ulp: near 0 an odd polynomial, fitted to 4e-9 of it. NaN stays NaN. */
AH_INLINE v16 v_tanh(v16 x)
{
    v16 square = v_mul(x, x), size = v_max(v_sub(v_set(0.0F), x), x);
    v16 p = v_set(-0.005704983F);
    p = v_fma(p, square, v_set(0.020639084F));
    p = v_fma(p, square, v_set(-0.053739715F));
    p = v_fma(p, square, v_set(0.13331442F));
    p = v_fma(p, square, v_set(-0.3333328F));
    v16 near = v_fma(v_mul(x, square), p, x), e = v_exp(v_add(size, size));
    v16 far = v_sub(v_set(1.0F), v_div(v_set(2.0F), v_add(e, v_set(1.0F))));
    far = v_if_less(x, v_set(0.0F), v_sub(v_set(0.0F), far), far);
    return v_if_less(size, v_set(0.625F), near, far);
}

#endif
