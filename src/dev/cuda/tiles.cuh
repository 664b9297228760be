/* Tiles of 64 rows and 64 columns in registers and shared memory, and their products: the building blocks of
 * attention. */
#ifndef AH_DEV_CUDA_TILES_CUH
#define AH_DEV_CUDA_TILES_CUH

#include "dev/cuda/attention.h"
#include "dev/cuda/element.cuh"

#define TILE 64
#define THREADS 256
#define DEPTH 32  /* channels of scores staged at a time */
#define ROWS 16   /* rows of the second factor staged at a time */
#define STRIDE 68 /* stride of 64 columns in shared memory: 16-byte aligned, rows in different banks */

/* Shared memory for the tiles of a block. `along` stages ROWS rows of up to 256 channels in `across`. */
struct alignas(16) tiles {
    float across[2][DEPTH][STRIDE];
    float factor[TILE][STRIDE];
};
static_assert(ROWS * AH_CUDA_ATTENTION_MAX_HEAD <= 2 * DEPTH * STRIDE, "rows are staged where scores were");

/* Rows of one head: row r is at `at + r * stride`; the first `rows` of them exist. */
template <typename E> struct rows {
    const E *at;
    int64_t stride;
    int64_t rows;
};

/* ---- elements ---------------------------------------------------------------------------------------------------- */

template <typename E> static __device__ inline float4 quad_load(const E *from)
{
    const pack<E, 4> x = pack_load<E, 4>(from);
    return make_float4(wide(x.lane[0]), wide(x.lane[1]), wide(x.lane[2]), wide(x.lane[3]));
}

template <typename E> static __device__ inline void quad_store(E *to, float4 x)
{
    pack<E, 4> y;
    put(&y.lane[0], x.x);
    put(&y.lane[1], x.y);
    put(&y.lane[2], x.z);
    put(&y.lane[3], x.w);
    pack_store(to, y);
}

/* Loads channels [channel, channel + 4) of a row, with zeros beyond the last. If `size` is a multiple of 4, every such
 * group is whole and aligned. */
template <typename E> static __device__ inline float4 channels_load(const E *row, int channel, int size)
{
    if (size % 4 == 0)
        return channel < size ? quad_load(row + channel) : make_float4(0.0F, 0.0F, 0.0F, 0.0F);
    float4 x;
    x.x = channel < size ? wide(row[channel]) : 0.0F;
    x.y = channel + 1 < size ? wide(row[channel + 1]) : 0.0F;
    x.z = channel + 2 < size ? wide(row[channel + 2]) : 0.0F;
    x.w = channel + 3 < size ? wide(row[channel + 3]) : 0.0F;
    return x;
}

template <typename E> static __device__ inline void channels_store(E *row, int channel, int size, float4 x)
{
    if (size % 4 == 0) {
        if (channel < size)
            quad_store(row + channel, x);
        return;
    }
    if (channel < size)
        put(row + channel, x.x);
    if (channel + 1 < size)
        put(row + channel + 1, x.y);
    if (channel + 2 < size)
        put(row + channel + 2, x.z);
    if (channel + 3 < size)
        put(row + channel + 3, x.w);
}

/* ---- products of tiles ------------------------------------------------------------------------------------------- */

/* Adds the outer product of 4 rows and 4 columns. */
static __device__ inline void outer(float sum[4][4], float4 left, float4 right)
{
    const float l[4] = {left.x, left.y, left.z, left.w}, r[4] = {right.x, right.y, right.z, right.w};
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            sum[i][j] = fmaf(l[i], r[j], sum[i][j]);
}

/* Stages to[channel][row]: channels [from, from + DEPTH) of a tile, with zeros where it has none. */
template <typename E>
static __device__ inline void stage_across(float (*to)[STRIDE], const rows<E> &tile, int from, int size)
{
    for (int i = (int)threadIdx.x; i < TILE * DEPTH / 4; i += THREADS) {
        int row = i / (DEPTH / 4), channel = i % (DEPTH / 4) * 4;
        float4 x = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
        if (row < tile.rows)
            x = channels_load(tile.at + row * tile.stride, from + channel, size);
        to[channel][row] = x.x;
        to[channel + 1][row] = x.y;
        to[channel + 2][row] = x.z;
        to[channel + 3][row] = x.w;
    }
}

/* Computes sum[i][j] = left row 4y + i times right row 4x + j. When it begins and ends, no thread reads staged data. */
template <typename E>
static __device__ inline void across(float sum[4][4], tiles *s, const rows<E> &left, const rows<E> &right, int size)
{
    const int x = (int)threadIdx.x % 16 * 4, y = (int)threadIdx.x / 16 * 4;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            sum[i][j] = 0.0F;
    for (int from = 0; from < size; from += DEPTH) {
        stage_across(s->across[0], left, from, size);
        stage_across(s->across[1], right, from, size);
        __syncthreads();
        for (int c = 0; c < DEPTH; c++)
            outer(sum, *(const float4 *)&s->across[0][c][y], *(const float4 *)&s->across[1][c][x]);
        __syncthreads();
    }
}

/* Computes sum[c] += factor^T times the channels [64c, 64c + 64) of a tile: row 4y + i of the sum takes factor[t][4y +
 * i] of each of the tile's rows t. When it begins, factor is written but not synchronized; when it ends, no thread
 * reads staged data. */
template <typename E, int C>
static __device__ inline void along(float sum[C][4][4], tiles *s, const rows<E> &tile, int size)
{
    const int x = (int)threadIdx.x % 16 * 4, y = (int)threadIdx.x / 16 * 4;
    float *staged = &s->across[0][0][0];
    for (int from = 0; from < TILE && from < tile.rows; from += ROWS) {
        for (int i = (int)threadIdx.x; i < ROWS * C * 16; i += THREADS) {
            int row = i / (C * 16), channel = i % (C * 16) * 4;
            float4 value = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
            if (from + row < tile.rows)
                value = channels_load(tile.at + (from + row) * tile.stride, channel, size);
            *(float4 *)(void *)(staged + row * C * 64 + channel) = value;
        }
        __syncthreads();
        for (int t = 0; t < ROWS; t++) {
            const float4 left = *(const float4 *)&s->factor[from + t][y];
#pragma unroll
            for (int c = 0; c < C; c++)
                outer(sum[c], left, *(const float4 *)(const void *)(staged + t * C * 64 + c * 64 + x));
        }
        __syncthreads();
    }
}

/* Stores factor[key][query] from [query][key]; or without transposing. */
static __device__ inline void factor_put(tiles *s, const float part[4][4], bool across)
{
    const int x = (int)threadIdx.x % 16 * 4, y = (int)threadIdx.x / 16 * 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (across)
            *(float4 *)&s->factor[x + i][y] = make_float4(part[0][i], part[1][i], part[2][i], part[3][i]);
        else
            *(float4 *)&s->factor[y + i][x] = make_float4(part[i][0], part[i][1], part[i][2], part[i][3]);
    }
}

/* Stores the thread's part of a tile of results: = or += sum * factor of its row. */
template <typename E, int C>
static __device__ inline void tile_store(E *to, int64_t stride, int64_t rows, int size, const float sum[C][4][4],
                                         const float factor[4], bool adds)
{
    const int x = (int)threadIdx.x % 16 * 4, y = (int)threadIdx.x / 16 * 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (y + i >= rows)
            continue;
#pragma unroll
        for (int c = 0; c < C; c++) {
            E *row = to + (y + i) * stride;
            float4 before = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
            if (adds)
                before = channels_load(row, c * 64 + x, size);
            channels_store(row, c * 64 + x, size,
                           make_float4(fmaf(sum[c][i][0], factor[i], before.x), fmaf(sum[c][i][1], factor[i], before.y),
                                       fmaf(sum[c][i][2], factor[i], before.z),
                                       fmaf(sum[c][i][3], factor[i], before.w)));
        }
    }
}

#endif
