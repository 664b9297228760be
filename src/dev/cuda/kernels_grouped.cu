/* Products for each expert, of rows that only the device knows. A block computes a tile of 128 rows and 128 columns of
 * one expert's result, each thread 8 by 8 elements; there are as many blocks as the worst division of rows needs, and
 * those without rows end at once. Each element is one sum in fp32, in the order of its terms. */
#include "dev/cuda/element.cuh"
#include "dev/cuda/kernels.h"

enum {
    THREADS = 256,
    SIDE = 128,             /* rows and columns of a tile */
    DEPTH = 16,             /* terms of the sums that are staged at a time */
    PIECE = 8,              /* elements that a thread loads of each factor at a time */
    PITCH = SIDE + 4,       /* from one term to the next in shared memory */
    ACROSS = DEPTH / PIECE, /* pieces in a staged row whose terms are side by side */
    ALONG = SIDE / PIECE    /* pieces in a staged row of one term */
};
static_assert(SIDE * DEPTH == THREADS * PIECE, "each thread loads one piece of either factor");

/* Terms of a factor, [term][row or column]. */
typedef float staged[DEPTH][PITCH];

struct alignas(16) tiles {
    staged a[2], b[2];
};

/* A factor of a block's tile: rows [0, rows) of [0, cols) elements, `stride` apart. Terms lie side by side in a row, or
 * each row is one term. */
template <typename E> struct factor {
    const E *at;
    int64_t stride, rows, cols;
};

/* Loads elements [col, col + 8) of a row, zeros where there are none. WHOLE: cols is a multiple of 8, so that all are
 * there or none. */
template <typename E, bool WHOLE>
static __device__ inline pack<E, PIECE> piece_load(const factor<E> &f, int64_t row, int64_t col)
{
    pack<E, PIECE> x = pack_zero<E, PIECE>();
    if (row >= f.rows || col >= f.cols)
        return x;
    const E *at = f.at + row * f.stride + col;
    if constexpr (WHOLE) {
        x = pack_load<E, PIECE>(at);
    } else {
#pragma unroll
        for (int u = 0; u < PIECE; u++)
            if (col + u < f.cols)
                x.lane[u] = at[u];
    }
    return x;
}

/* Loads the thread's piece of the terms from `term` on. */
template <typename E, bool SIDE_BY_SIDE, bool WHOLE>
static __device__ inline pack<E, PIECE> terms_load(const factor<E> &f, int64_t term)
{
    const int t = (int)threadIdx.x;
    return SIDE_BY_SIDE ? piece_load<E, WHOLE>(f, t / ACROSS, term + t % ACROSS * PIECE)
                        : piece_load<E, WHOLE>(f, term + t / ALONG, t % ALONG * PIECE);
}

template <typename E, bool SIDE_BY_SIDE> static __device__ inline void terms_stage(staged &to, const pack<E, PIECE> &x)
{
    const int t = (int)threadIdx.x;
#pragma unroll
    for (int u = 0; u < PIECE; u++) {
        if (SIDE_BY_SIDE)
            to[t % ACROSS * PIECE + u][t / ACROSS] = wide(x.lane[u]);
        else
            to[t / ALONG][t % ALONG * PIECE + u] = wide(x.lane[u]);
    }
}

/* Loads the thread's 8 elements of a term: 4 in each half of the tile, from 4 * `place` on. */
static __device__ inline void eight_load(float to[8], const float *term, int place)
{
    const float4 low = *(const float4 *)(const void *)(term + 4 * place);
    const float4 high = *(const float4 *)(const void *)(term + SIDE / 2 + 4 * place);
    to[0] = low.x, to[1] = low.y, to[2] = low.z, to[3] = low.w;
    to[4] = high.x, to[5] = high.y, to[6] = high.z, to[7] = high.w;
}

static __device__ inline void terms_add(float sum[8][8], const staged &a, const staged &b)
{
#pragma unroll
    for (int term = 0; term < DEPTH; term++) {
        float left[8], right[8];
        eight_load(left, a[term], (int)threadIdx.x / 16);
        eight_load(right, b[term], (int)threadIdx.x % 16);
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < 8; j++)
                sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
    }
}

/* Computes the thread's part of a tile, sums of `terms` terms. While some are added the next are on their way. */
template <typename E, bool A_SIDE, bool B_SIDE, bool WHOLE>
static __device__ inline void tile_sum(float sum[8][8], tiles *s, const factor<E> &a, const factor<E> &b, int64_t terms)
{
#pragma unroll
    for (int i = 0; i < 64; i++)
        sum[i / 8][i % 8] = 0.0F;
    int turn = 0;
    for (int64_t term = 0; term < terms + DEPTH; term += DEPTH, turn ^= 1) {
        pack<E, PIECE> next_a, next_b;
        if (term < terms) {
            next_a = terms_load<E, A_SIDE, WHOLE>(a, term);
            next_b = terms_load<E, B_SIDE, WHOLE>(b, term);
        }
        if (term > 0)
            terms_add(sum, s->a[turn ^ 1], s->b[turn ^ 1]);
        if (term < terms) {
            terms_stage<E, A_SIDE>(s->a[turn], next_a);
            terms_stage<E, B_SIDE>(s->b[turn], next_b);
            __syncthreads();
        }
    }
}

/* Stores four elements of a row, added to what is there if `adds`. */
template <typename C, bool WHOLE>
static __device__ inline void four_store(C *row, int64_t col, int64_t cols, const float *x, bool adds)
{
    if constexpr (WHOLE) {
        if (col >= cols)
            return;
        pack<C, 4> y, before = adds ? pack_load<C, 4>(row + col) : pack_zero<C, 4>();
#pragma unroll
        for (int u = 0; u < 4; u++)
            put(&y.lane[u], x[u] + wide(before.lane[u]));
        pack_store<C, 4>(row + col, y);
    } else {
#pragma unroll
        for (int u = 0; u < 4; u++)
            if (col + u < cols)
                put(row + col + u, x[u] + (adds ? wide(row[col + u]) : 0.0F));
    }
}

/* Stores the thread's part of a tile that begins at `to`, has rows that are `stride` apart, and is cut off at `rows`
 * and `cols`. */
template <typename C, bool WHOLE>
static __device__ inline void tile_store(C *to, int64_t stride, int64_t rows, int64_t cols, const float sum[8][8],
                                         bool adds)
{
    const int x = (int)threadIdx.x % 16 * 4, y = (int)threadIdx.x / 16 * 4;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int64_t row = i / 4 * (SIDE / 2) + y + i % 4;
        if (row >= rows)
            continue;
        four_store<C, WHOLE>(to + row * stride, x, cols, &sum[i][0], adds);
        four_store<C, WHOLE>(to + row * stride, SIDE / 2 + x, cols, &sum[i][4], adds);
    }
}

/* ---- rows times matrices -------------------------------------------------------------------------------------------- */

/* The tile of rows of a block: rows [row, row + rows) are of `expert`. */
struct span {
    int64_t expert, row, rows;
};

static __device__ inline int64_t begin_of(const int32_t *ends, int64_t expert)
{
    return expert ? ends[expert - 1] : 0;
}

/* Returns the number of an expert's first tile. From it to the next one's there are as many as its rows need, or one
 * more. */
static __device__ inline int64_t first_tile(const int32_t *ends, int64_t expert)
{
    return begin_of(ends, expert) / SIDE + expert;
}

/* Finds a tile by its number, which is below that of the expert behind the last. Rows may be none. */
static __device__ inline struct span span_find(const int32_t *ends, int64_t experts, int64_t tile)
{
    int64_t low = 0, high = experts - 1;
    while (low < high) { /* the last expert that begins at the tile or before */
        int64_t middle = (low + high + 1) / 2;
        if (first_tile(ends, middle) <= tile)
            low = middle;
        else
            high = middle - 1;
    }
    struct span s = {low, begin_of(ends, low) + (tile - first_tile(ends, low)) * SIDE, 0};
    s.rows = ends[low] - s.row;
    return s;
}

/* BACKWARD: dx = dy times the matrix; else y = x times its transpose. Tiles of the same rows are neighbours. */
template <typename E, bool BACKWARD, bool WHOLE>
static __global__ void __launch_bounds__(THREADS, 2) grouped_rows(struct ah_cuda_grouped job)
{
    __shared__ tiles s;
    const int64_t cols = BACKWARD ? job.inner : job.outer, terms = BACKWARD ? job.outer : job.inner;
    const int64_t across = (cols + SIDE - 1) / SIDE, col = blockIdx.x % across * SIDE;
    const struct span span = span_find(job.ends, job.experts, blockIdx.x / across);
    float sum[8][8];
    if (span.rows <= 0)
        return;
    const E *matrix = (const E *)job.b + span.expert * job.outer * job.inner;
    const factor<E> a = {(const E *)job.a + span.row * terms, terms, span.rows, terms};
    const factor<E> b = BACKWARD ? factor<E>{matrix + col, cols, terms, cols - col}
                                 : factor<E>{matrix + col * terms, terms, cols - col, terms};
    tile_sum<E, true, !BACKWARD, WHOLE>(sum, &s, a, b, terms);
    tile_store<E, WHOLE>((E *)job.c + span.row * cols + col, cols, span.rows, cols - col, sum, false);
}

/* ---- gradients of matrices ------------------------------------------------------------------------------------------ */

/* dW (+)= dy^T x over the rows of each expert. */
template <typename E, bool WHOLE>
static __global__ void __launch_bounds__(THREADS, 2) grouped_weights(struct ah_cuda_grouped job)
{
    __shared__ tiles s;
    const int64_t across = (job.inner + SIDE - 1) / SIDE, down = (job.outer + SIDE - 1) / SIDE;
    const int64_t col = blockIdx.x % across * SIDE, row = blockIdx.x / across % down * SIDE;
    const int64_t expert = blockIdx.x / across / down, begin = begin_of(job.ends, expert);
    const int64_t terms = job.ends[expert] - begin;
    float sum[8][8];
    if (job.adds && terms == 0)
        return;
    const factor<E> a = {(const E *)job.a + begin * job.outer + row, job.outer, terms, job.outer - row};
    const factor<E> b = {(const E *)job.b + begin * job.inner + col, job.inner, terms, job.inner - col};
    tile_sum<E, false, false, WHOLE>(sum, &s, a, b, terms);
    tile_store<float, WHOLE>((float *)job.c + (expert * job.outer + row) * job.inner + col, job.inner, job.outer - row,
                             job.inner - col, sum, job.adds);
}

/* ---- launches ------------------------------------------------------------------------------------------------------- */

template <typename E, bool WHOLE>
static cudaError_t grouped_launch(cudaStream_t stream, enum ah_op op, const struct ah_cuda_grouped *job)
{
    const unsigned outer = blocks_for(job->outer, SIDE), inner = blocks_for(job->inner, SIDE);
    const unsigned spans = (unsigned)(job->rows / SIDE + job->experts);
    switch ((int)op) {
    case AH_OP_GROUPED_LINEAR:
        return launch(grouped_rows<E, false, WHOLE>, dim3(outer * spans), dim3(THREADS), 0, stream, *job);
    case AH_OP_GROUPED_LINEAR_BWD_X:
        return launch(grouped_rows<E, true, WHOLE>, dim3(inner * spans), dim3(THREADS), 0, stream, *job);
    case AH_OP_GROUPED_LINEAR_BWD_W:
        return launch(grouped_weights<E, WHOLE>, dim3(outer * inner * (unsigned)job->experts), dim3(THREADS), 0, stream,
                      *job);
    default:
        return cudaErrorNotSupported;
    }
}

template <typename E>
static cudaError_t grouped_of(cudaStream_t stream, enum ah_op op, const struct ah_cuda_grouped *job)
{
    return job->outer % PIECE == 0 && job->inner % PIECE == 0 ? grouped_launch<E, true>(stream, op, job)
                                                              : grouped_launch<E, false>(stream, op, job);
}

cudaError_t ah__cuda_grouped_enqueue(cudaStream_t stream, enum ah_op op, enum ah_dtype dtype,
                                     const struct ah_cuda_grouped *job)
{
    return dtype == AH_BF16 ? grouped_of<__nv_bfloat16>(stream, op, job) : grouped_of<float>(stream, op, job);
}
