/* Sums beside simd.h's vectors of 16 floats: over lanes, by one fixed tree, and over many floats in double. Included
 * after simd.h; every operation gives the same bits in every width. */
#ifndef AH_DEV_HOST_SIMD_SUM_H
#define AH_DEV_HOST_SIMD_SUM_H

/* Return the sum and the largest of 16 lanes, always by the tree lane i with lane i + 8, + 4, + 2, + 1. */
#if AH_SIMD == 1
AH_INLINE float v_sum(v16 a)
{
    for (int step = LANES / 2; step; step /= 2)
        for (int i = 0; i < step; i++)
            a.lane[i] = a.lane[i] + a.lane[i + step];
    return a.lane[0];
}
AH_INLINE float v_largest(v16 a)
{
    for (int step = LANES / 2; step; step /= 2)
        for (int i = 0; i < step; i++)
            a.lane[i] = a.lane[i] > a.lane[i + step] ? a.lane[i] : a.lane[i + step];
    return a.lane[0];
}
#else
#define V_TREE(name, wide, narrow)                                                                                     \
    AH_INLINE float name(v16 a)                                                                                        \
    {                                                                                                                  \
        __m256 eight = wide(v_half(a, 0), v_half(a, 1));                                                               \
        __m128 four = narrow(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));                          \
        __m128 two = narrow(four, _mm_movehl_ps(four, four));                                                          \
        return _mm_cvtss_f32(narrow(two, _mm_movehdup_ps(two)));                                                       \
    }
V_TREE(v_sum, _mm256_add_ps, _mm_add_ps)
V_TREE(v_largest, _mm256_max_ps, _mm_max_ps)
#endif

/* Double accumulators of 16 lanes, for sums over many floats. */
#if AH_SIMD == 512
typedef struct {
    __m512d half[2];
} d16;
AH_INLINE d16 d_zero(void)
{
    return (d16){{_mm512_setzero_pd(), _mm512_setzero_pd()}};
}
AH_INLINE d16 d_wide(v16 a)
{
    return (d16){{_mm512_cvtps_pd(v_half(a, 0)), _mm512_cvtps_pd(v_half(a, 1))}};
}
AH_INLINE d16 d_add(d16 acc, v16 a)
{
    d16 x = d_wide(a);
    return (d16){{_mm512_add_pd(acc.half[0], x.half[0]), _mm512_add_pd(acc.half[1], x.half[1])}};
}
AH_INLINE d16 d_add_square(d16 acc, v16 a)
{
    d16 x = d_wide(a);
    return (d16){
        {_mm512_fmadd_pd(x.half[0], x.half[0], acc.half[0]), _mm512_fmadd_pd(x.half[1], x.half[1], acc.half[1])}};
}
AH_INLINE void d_store(double *p, d16 a)
{
    _mm512_storeu_pd(p, a.half[0]);
    _mm512_storeu_pd(p + 8, a.half[1]);
}
#elif AH_SIMD == 256
typedef struct {
    __m256d quarter[4];
} d16;
AH_INLINE d16 d_zero(void)
{
    return (d16){{_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()}};
}
AH_INLINE __m256d d_wide(v16 a, int quarter)
{
    __m256 half = a.half[quarter / 2];
    return _mm256_cvtps_pd(quarter % 2 ? _mm256_extractf128_ps(half, 1) : _mm256_castps256_ps128(half));
}
AH_INLINE d16 d_add(d16 acc, v16 a)
{
    for (int i = 0; i < 4; i++)
        acc.quarter[i] = _mm256_add_pd(acc.quarter[i], d_wide(a, i));
    return acc;
}
AH_INLINE d16 d_add_square(d16 acc, v16 a)
{
    for (int i = 0; i < 4; i++)
        acc.quarter[i] = _mm256_fmadd_pd(d_wide(a, i), d_wide(a, i), acc.quarter[i]);
    return acc;
}
AH_INLINE void d_store(double *p, d16 a)
{
    for (int i = 0; i < 4; i++)
        _mm256_storeu_pd(p + 4 * i, a.quarter[i]);
}
#else
typedef struct {
    double lane[LANES];
} d16;
AH_INLINE d16 d_zero(void)
{
    return (d16){{0}};
}
AH_INLINE d16 d_add(d16 acc, v16 a)
{
    for (int i = 0; i < LANES; i++)
        acc.lane[i] += (double)a.lane[i];
    return acc;
}
/* Adds squares. The product of two floats is exact in double, so this equals the fused operation of the other
 * widths. */
AH_INLINE d16 d_add_square(d16 acc, v16 a)
{
    for (int i = 0; i < LANES; i++)
        acc.lane[i] += (double)a.lane[i] * (double)a.lane[i];
    return acc;
}
AH_INLINE void d_store(double *p, d16 a)
{
    memcpy(p, a.lane, sizeof a.lane);
}
#endif

#endif
