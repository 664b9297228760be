/* 16 integers of 32 bits beside simd.h's 16 floats, for the bits of floats and for codes of 8 bits. Included after
 * simd.h; every operation gives the same lanes in every width. */
#ifndef AH_DEV_HOST_SIMD_INT_H
#define AH_DEV_HOST_SIMD_INT_H

#if AH_SIMD == 512

typedef __m512i i16;
AH_INLINE i16 i_set(int32_t x)
{
    return _mm512_set1_epi32(x);
}
#define I_BINARY(name, wide, narrow, plain)                                                                            \
    AH_INLINE i16 name(i16 a, i16 b)                                                                                   \
    {                                                                                                                  \
        return wide(a, b);                                                                                             \
    }
#define I_SHIFT(name, wide, narrow, plain)                                                                             \
    AH_INLINE i16 name(i16 a, int n)                                                                                   \
    {                                                                                                                  \
        return wide(a, (unsigned)n);                                                                                   \
    }
AH_INLINE i16 i_bits(v16 a)
{
    return _mm512_castps_si512(a);
}
AH_INLINE v16 v_of_bits(i16 a)
{
    return _mm512_castsi512_ps(a);
}
AH_INLINE v16 v_from_int(i16 a)
{
    return _mm512_cvtepi32_ps(a);
}
/* Converts to integers, towards zero. */
AH_INLINE i16 i_from_float(v16 a)
{
    return _mm512_cvttps_epi32(a);
}
/* Returns n, plus 1 in lanes where a >= bound. */
AH_INLINE i16 i_count(i16 n, v16 a, v16 bound)
{
    return _mm512_mask_add_epi32(n, _mm512_cmp_ps_mask(a, bound, _CMP_GE_OQ), n, _mm512_set1_epi32(1));
}
/* Returns table[index % 8]. */
AH_INLINE v16 v_table(const float *table, i16 index)
{
    __m512 twice = _mm512_broadcast_f32x8(_mm256_loadu_ps(table));
    return _mm512_permutexvar_ps(index, twice);
}
/* Returns table[index % 16]. */
AH_INLINE v16 v_table16(const float table[16], i16 index)
{
    return _mm512_permutexvar_ps(index, _mm512_loadu_ps(table));
}
AH_INLINE i16 i_of_bytes(__m128i x)
{
    return _mm512_cvtepu8_epi32(x);
}
AH_INLINE i16 i_load_signed_bytes(const uint8_t *p)
{
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
AH_INLINE i16 i_load_bytes(const uint8_t *p)
{
    return i_of_bytes(_mm_loadu_si128((const __m128i *)(const void *)p));
}
/* Stores the low bytes. */
AH_INLINE void i_store_bytes(uint8_t *p, i16 a)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(a));
}

/* Stores the low 16 bits. */
AH_INLINE void i_store_words(uint16_t *p, i16 a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(a));
}

#elif AH_SIMD == 256

typedef struct {
    __m256i half[2];
} i16;
AH_INLINE i16 i_set(int32_t x)
{
    return (i16){{_mm256_set1_epi32(x), _mm256_set1_epi32(x)}};
}
#define I_BINARY(name, wide, narrow, plain)                                                                            \
    AH_INLINE i16 name(i16 a, i16 b)                                                                                   \
    {                                                                                                                  \
        return (i16){{narrow(a.half[0], b.half[0]), narrow(a.half[1], b.half[1])}};                                    \
    }
#define I_SHIFT(name, wide, narrow, plain)                                                                             \
    AH_INLINE i16 name(i16 a, int n)                                                                                   \
    {                                                                                                                  \
        return (i16){{narrow(a.half[0], n), narrow(a.half[1], n)}};                                                    \
    }
AH_INLINE i16 i_bits(v16 a)
{
    return (i16){{_mm256_castps_si256(a.half[0]), _mm256_castps_si256(a.half[1])}};
}
AH_INLINE v16 v_of_bits(i16 a)
{
    return (v16){{_mm256_castsi256_ps(a.half[0]), _mm256_castsi256_ps(a.half[1])}};
}
AH_INLINE v16 v_from_int(i16 a)
{
    return (v16){{_mm256_cvtepi32_ps(a.half[0]), _mm256_cvtepi32_ps(a.half[1])}};
}
AH_INLINE i16 i_from_float(v16 a)
{
    return (i16){{_mm256_cvttps_epi32(a.half[0]), _mm256_cvttps_epi32(a.half[1])}};
}
AH_INLINE __m256i i_count_half(__m256i n, __m256 a, __m256 bound)
{
    return _mm256_sub_epi32(n, _mm256_castps_si256(_mm256_cmp_ps(a, bound, _CMP_GE_OQ)));
}
AH_INLINE i16 i_count(i16 n, v16 a, v16 bound)
{
    return (i16){
        {i_count_half(n.half[0], a.half[0], bound.half[0]), i_count_half(n.half[1], a.half[1], bound.half[1])}};
}
AH_INLINE v16 v_table(const float *table, i16 index)
{
    __m256 all = _mm256_loadu_ps(table);
    return (v16){{_mm256_permutevar8x32_ps(all, index.half[0]), _mm256_permutevar8x32_ps(all, index.half[1])}};
}
/* The fourth bit of an index selects the half of the table. */
AH_INLINE __m256 v_table16_half(const float table[16], __m256i index)
{
    __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), index);
    __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), index);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));
}
AH_INLINE v16 v_table16(const float table[16], i16 index)
{
    return (v16){{v_table16_half(table, index.half[0]), v_table16_half(table, index.half[1])}};
}
AH_INLINE i16 i_of_bytes(__m128i x)
{
    return (i16){{_mm256_cvtepu8_epi32(x), _mm256_cvtepu8_epi32(_mm_srli_si128(x, 8))}};
}
AH_INLINE i16 i_load_bytes(const uint8_t *p)
{
    return i_of_bytes(_mm_loadu_si128((const __m128i *)(const void *)p));
}
AH_INLINE i16 i_load_signed_bytes(const uint8_t *p)
{
    __m128i all = _mm_loadu_si128((const __m128i *)(const void *)p);
    return (i16){{_mm256_cvtepi8_epi32(all), _mm256_cvtepi8_epi32(_mm_srli_si128(all, 8))}};
}
AH_INLINE void i_store_bytes(uint8_t *p, i16 a)
{
    const __m256i low = _mm256_set1_epi32(0xff);
    __m256i mixed = _mm256_packus_epi32(_mm256_and_si256(a.half[0], low), _mm256_and_si256(a.half[1], low));
    __m256i words = _mm256_permute4x64_epi64(mixed, 0xD8);
    __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128((__m128i *)(void *)p, bytes);
}
AH_INLINE void i_store_words(uint16_t *p, i16 a)
{
    const __m256i low = _mm256_set1_epi32(0xffff);
    __m256i mixed = _mm256_packus_epi32(_mm256_and_si256(a.half[0], low), _mm256_and_si256(a.half[1], low));
    _mm256_storeu_si256((__m256i *)(void *)p, _mm256_permute4x64_epi64(mixed, 0xD8));
}

#else

typedef struct {
    int32_t lane[LANES];
} i16;
#define I_EACH(type, expression)                                                                                       \
    type out;                                                                                                          \
    for (int i = 0; i < LANES; i++)                                                                                    \
        out.lane[i] = (expression);                                                                                    \
    return out
AH_INLINE i16 i_set(int32_t x)
{
    I_EACH(i16, x);
}
#define I_BINARY(name, wide, narrow, plain)                                                                            \
    AH_INLINE i16 name(i16 a, i16 b)                                                                                   \
    {                                                                                                                  \
        I_EACH(i16, plain(a.lane[i], b.lane[i]));                                                                      \
    }
#define I_SHIFT(name, wide, narrow, plain)                                                                             \
    AH_INLINE i16 name(i16 a, int n)                                                                                   \
    {                                                                                                                  \
        I_EACH(i16, plain(a.lane[i], n));                                                                              \
    }
#define I_ADD(a, b) ((int32_t)((uint32_t)a + (uint32_t)b))
#define I_SUB(a, b) (a - b)
#define I_AND(a, b) (a & b)
#define I_OR(a, b) (a | b)
#define I_XOR(a, b) (a ^ b)
#define I_MAX(a, b) (a > b ? a : b)
#define I_MIN(a, b) (a < b ? a : b)
#define I_RIGHT(a, n) ((int32_t)((uint32_t)a >> n))
#define I_RIGHT_SIGNED(a, n) (a >> n)
AH_INLINE i16 i_bits(v16 a)
{
    i16 out;
    memcpy(&out, &a, sizeof out);
    return out;
}
AH_INLINE v16 v_of_bits(i16 a)
{
    v16 out;
    memcpy(&out, &a, sizeof out);
    return out;
}
AH_INLINE v16 v_from_int(i16 a)
{
    I_EACH(v16, (float)a.lane[i]);
}
AH_INLINE i16 i_from_float(v16 a)
{
    I_EACH(i16, (int32_t)a.lane[i]);
}
AH_INLINE i16 i_count(i16 n, v16 a, v16 bound)
{
    I_EACH(i16, n.lane[i] + (a.lane[i] >= bound.lane[i]));
}
AH_INLINE v16 v_table(const float *table, i16 index)
{
    I_EACH(v16, table[index.lane[i] & 7]);
}
AH_INLINE v16 v_table16(const float table[16], i16 index)
{
    I_EACH(v16, table[index.lane[i] & 15]);
}
AH_INLINE i16 i_load_bytes(const uint8_t *p)
{
    I_EACH(i16, p[i]);
}
AH_INLINE i16 i_load_signed_bytes(const uint8_t *p)
{
    I_EACH(i16, (int8_t)p[i]);
}
/* Loads the halves of 8 bytes, the high half of each first. */
AH_INLINE i16 i_load_nibbles(const uint8_t *p)
{
    I_EACH(i16, i % 2 ? p[i / 2] & 15 : p[i / 2] >> 4);
}
AH_INLINE void i_store_bytes(uint8_t *p, i16 a)
{
    for (int i = 0; i < LANES; i++)
        p[i] = (uint8_t)a.lane[i];
}
AH_INLINE void i_store_words(uint16_t *p, i16 a)
{
    for (int i = 0; i < LANES; i++)
        p[i] = (uint16_t)a.lane[i];
}

#endif

#if AH_SIMD != 1
AH_INLINE i16 i_load_nibbles(const uint8_t *p)
{
    const __m128i low = _mm_set1_epi8(15);
    __m128i all = _mm_loadl_epi64((const __m128i *)(const void *)p);
    return i_of_bytes(_mm_unpacklo_epi8(_mm_and_si128(_mm_srli_epi16(all, 4), low), _mm_and_si128(all, low)));
}
#endif

I_BINARY(i_add, _mm512_add_epi32, _mm256_add_epi32, I_ADD)
I_BINARY(i_sub, _mm512_sub_epi32, _mm256_sub_epi32, I_SUB)
I_BINARY(i_and, _mm512_and_si512, _mm256_and_si256, I_AND)
I_BINARY(i_or, _mm512_or_si512, _mm256_or_si256, I_OR)
I_BINARY(i_xor, _mm512_xor_si512, _mm256_xor_si256, I_XOR)
I_BINARY(i_max, _mm512_max_epi32, _mm256_max_epi32, I_MAX)
I_BINARY(i_min, _mm512_min_epi32, _mm256_min_epi32, I_MIN)
I_SHIFT(i_right, _mm512_srli_epi32, _mm256_srli_epi32, I_RIGHT)
I_SHIFT(i_right_signed, _mm512_srai_epi32, _mm256_srai_epi32, I_RIGHT_SIGNED)

#endif
