/* Products for each expert, of rows that only the device knows. A block computes a tile of 128 rows and 128 columns of
 * one expert's result; there are as many blocks as the worst division of rows needs, and one without rows ends at once.
 * Each element is one sum in fp32 whose terms are added from the first to the last: in fp32 one by one, in bf16 sixteen
 * at a time, by tensor cores. */
#include <string.h>

#include "dev/cuda/element.cuh"
#include "dev/cuda/kernels.h"
#include "dev/cuda/mma.cuh"

enum {
    THREADS = 256,
    SIDE = 128,           /* rows and columns of a tile */
    PIECE = 8,            /* elements that a thread loads at once */
    ALONG = SIDE / PIECE, /* pieces in a row of one term */
    SUMS = SIDE * SIDE / THREADS
};

/* Pieces that a thread loads of each factor at a time, and the terms of sums that are staged by that. */
template <typename E> constexpr int pieces = 4 / (int)sizeof(E);
template <typename E> constexpr int depth = 16 * pieces<E>;

/* Blocks that a multiprocessor has room for. Two are twice as many loads on their way, but in fp32 sums and loads want
 * more registers than two have. */
template <typename E> constexpr int together = sizeof(E) == 2 ? 2 : 1;

/* A factor of a block's tile: rows [0, rows) of [0, cols) elements, `stride` apart. Terms lie side by side in a row, or
 * each row is one term. */
template <typename E> struct factor {
    const E *at;
    int64_t stride, rows, cols;
};

/* ---- loads ------------------------------------------------------------------------------------------------------ */

/* A thread's part of a factor, loaded. */
template <typename E> struct held {
    pack<E, PIECE> piece[pieces<E>];
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

/* Loads the thread's part of the terms from `term` on. If each row is a term, the pieces are of adjacent rows. */
template <bool SIDE_BY_SIDE, bool WHOLE, typename E>
static __device__ inline void terms_load(held<E> *to, const factor<E> &f, int64_t term)
{
    constexpr int across = depth<E> / PIECE;
#pragma unroll
    for (int p = 0; p < pieces<E>; p++) {
        const int t = (int)threadIdx.x, i = t + p * THREADS;
        to->piece[p] = SIDE_BY_SIDE ? piece_load<E, WHOLE>(f, i / across, term + i % across * PIECE)
                                    : piece_load<E, WHOLE>(f, term + t / ALONG * pieces<E> + p, t % ALONG * PIECE);
    }
}

/* ---- fp32: [term][row or column], a thread has 8 by 8 sums: 4 of each in either half of the tile ---------------- */

enum { PITCH = SIDE + 4 }; /* from one term to the next: 16-byte aligned, in other banks */

template <typename E> struct alignas(16) tiles {
    float a[2][depth<float> * PITCH], b[2][depth<float> * PITCH];
};

template <bool SIDE_BY_SIDE> static __device__ inline void terms_stage(float *to, const held<float> &x)
{
    const int t = (int)threadIdx.x, across = depth<float> / PIECE;
#pragma unroll
    for (int u = 0; u < PIECE; u++)
        to[SIDE_BY_SIDE ? (t % across * PIECE + u) * PITCH + t / across : t / ALONG * PITCH + t % ALONG * PIECE + u] =
            x.piece[0].lane[u];
}

static __device__ inline void eight_load(float to[8], const float *from)
{
    const pack<float, 4> low = pack_load<float, 4>(from), high = pack_load<float, 4>(from + SIDE / 2);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        to[i] = low.lane[i];
        to[4 + i] = high.lane[i];
    }
}

template <bool A_SIDE, bool B_SIDE>
static __device__ inline void terms_add(float sum[SUMS], const float *a, const float *b)
{
#pragma unroll
    for (int term = 0; term < depth<float>; term++) {
        float left[8], right[8];
        eight_load(left, a + term * PITCH + threadIdx.x / 16 * 4);
        eight_load(right, b + term * PITCH + threadIdx.x % 16 * 4);
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            sum[i] = fmaf(left[i / 8], right[i % 8], sum[i]);
    }
}

/* ---- bf16: words of two terms; a warp has 64 rows and 32 columns, as 4 by 4 matrices of tensor cores ------------ */

/* Words from one row to the next, and from one pair of terms to the next: aligned to 16 bytes, and a warp's loads hit
 * different banks. */
enum { ROW_PITCH = 20, PAIR_PITCH = SIDE + 8, WORDS = SIDE * ROW_PITCH };
static_assert(depth<__nv_bfloat16> / 2 * PAIR_PITCH <= WORDS, "either order of words has room");

template <> struct alignas(16) tiles<__nv_bfloat16> {
    uint32_t a[2][WORDS], b[2][WORDS];
};

static __device__ inline pack<uint32_t, 4> words_of(const pack<__nv_bfloat16, PIECE> &x)
{
    pack<uint32_t, 4> words;
    memcpy(&words, &x, sizeof words);
    return words;
}

template <bool SIDE_BY_SIDE> static __device__ inline void terms_stage(uint32_t *to, const held<__nv_bfloat16> &x)
{
    const int t = (int)threadIdx.x, across = depth<__nv_bfloat16> / PIECE;
    const pack<uint32_t, 4> first = words_of(x.piece[0]), second = words_of(x.piece[1]);
    if constexpr (SIDE_BY_SIDE) {
        pack_store<uint32_t, 4>(to + t / across * ROW_PITCH + t % across * 4, first);
        pack_store<uint32_t, 4>(to + (t + THREADS) / across * ROW_PITCH + t % across * 4, second);
    } else {
        pack<uint32_t, 4> pairs[2];
#pragma unroll
        for (int u = 0; u < 4; u++) {
            pairs[u / 2].lane[u % 2 * 2] = (first.lane[u] & 0xFFFFU) | second.lane[u] << 16;
            pairs[u / 2].lane[u % 2 * 2 + 1] = first.lane[u] >> 16 | (second.lane[u] & 0xFFFF0000U);
        }
        pack_store<uint32_t, 4>(to + t / ALONG * PAIR_PITCH + t % ALONG * PIECE, pairs[0]);
        pack_store<uint32_t, 4>(to + t / ALONG * PAIR_PITCH + t % ALONG * PIECE + 4, pairs[1]);
    }
}

/* Returns a pair of terms of a row or column. */
template <bool SIDE_BY_SIDE> static __device__ inline uint32_t word_at(const uint32_t *words, int line, int pair)
{
    return words[SIDE_BY_SIDE ? line * ROW_PITCH + pair : pair * PAIR_PITCH + line];
}

/* The warp's first row or column in the tile, plus the lane's in a matrix. */
static __device__ inline int warp_row()
{
    return (int)threadIdx.x / WARP / 4 * 64 + (int)threadIdx.x % WARP / 4;
}

static __device__ inline int warp_col()
{
    return (int)threadIdx.x / WARP % 4 * 32;
}

template <bool A_SIDE, bool B_SIDE>
static __device__ inline void terms_add(float sum[SUMS], const uint32_t *a, const uint32_t *b)
{
    const int row = warp_row(), col = warp_col() + (int)threadIdx.x % WARP / 4;
#pragma unroll
    for (int step = 0; step < depth<__nv_bfloat16> / 16; step++) {
        const int pair = step * 8 + (int)threadIdx.x % 4;
        uint32_t left[4][4], right[4][2];
#pragma unroll
        for (int m = 0; m < 4; m++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                left[m][i] = word_at<A_SIDE>(a, row + m * 16 + i % 2 * 8, pair + i / 2 * 4);
#pragma unroll
        for (int n = 0; n < 4; n++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                right[n][i] = word_at<B_SIDE>(b, col + n * 8, pair + i * 4);
#pragma unroll
        for (int i = 0; i < 16; i++)
            tensor_add(sum + 4 * i, left[i / 4], right[i % 4]);
    }
}

/* ---- tiles ------------------------------------------------------------------------------------------------------ */

/* Computes the thread's sums of `terms` terms. While some are added the next are on their way. */
template <bool A_SIDE, bool B_SIDE, bool WHOLE, typename E>
static __device__ inline void tile_sum(float sum[SUMS], tiles<E> *s, const factor<E> &a, const factor<E> &b,
                                       int64_t terms)
{
    int turn = 0;
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sum[i] = 0.0F;
    for (int64_t term = 0; term < terms + depth<E>; term += depth<E>, turn ^= 1) {
        held<E> next_a, next_b;
        if (term < terms) {
            terms_load<A_SIDE, WHOLE>(&next_a, a, term);
            terms_load<B_SIDE, WHOLE>(&next_b, b, term);
        }
        if (term > 0)
            terms_add<A_SIDE, B_SIDE>(sum, s->a[turn ^ 1], s->b[turn ^ 1]);
        if (term < terms) {
            terms_stage<A_SIDE>(s->a[turn], next_a);
            terms_stage<B_SIDE>(s->b[turn], next_b);
            __syncthreads();
        }
    }
}

/* A tile's place in the result: its first element, and how many rows and columns it has. */
template <typename C> struct target {
    C *at;
    int64_t stride, rows, cols;
    bool adds;
    const C *bias; /* [cols], added to each row; null: none */
};

/* Stores N elements of a row. */
template <bool WHOLE, int N, typename C>
static __device__ inline void some_store(const target<C> &to, int64_t row, int64_t col, const float *x)
{
    C *at = to.at + row * to.stride + col;
    if (row >= to.rows || col >= to.cols)
        return;
    if constexpr (WHOLE) {
        const C *more = to.bias ? to.bias + col : at; /* a result with a bias is no sum */
        pack<C, N> y, before = to.adds || to.bias ? pack_load<C, N>(more) : pack_zero<C, N>();
#pragma unroll
        for (int u = 0; u < N; u++)
            put(&y.lane[u], x[u] + wide(before.lane[u]));
        pack_store<C, N>(at, y);
    } else {
#pragma unroll
        for (int u = 0; u < N; u++)
            if (col + u < to.cols)
                put(at + u, x[u] + (to.bias ? wide(to.bias[col + u]) : to.adds ? wide(at[u]) : 0.0F));
    }
}

/* Stores the thread's sums, as they are divided in fp32. */
template <bool WHOLE, typename C>
static __device__ inline void tile_store(const tiles<float> *, const target<C> &to, const float sum[SUMS])
{
    const int x = (int)threadIdx.x % 16 * 4, y = (int)threadIdx.x / 16 * 4;
#pragma unroll
    for (int i = 0; i < 16; i++)
        some_store<WHOLE, 4>(to, i / 8 * (SIDE / 2) + y + i / 2 % 4, i % 2 * (SIDE / 2) + x, sum + 4 * i);
}

/* In bf16. */
template <bool WHOLE, typename C>
static __device__ inline void tile_store(const tiles<__nv_bfloat16> *, const target<C> &to, const float sum[SUMS])
{
    const int row = warp_row(), col = warp_col() + (int)threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < 32; i++)
        some_store<WHOLE, 2>(to, row + i / 8 * 16 + i % 2 * 8, col + i / 2 % 4 * 8, sum + 2 * i);
}

/* ---- rows times matrices ---------------------------------------------------------------------------------------- */

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
static __global__ void __launch_bounds__(THREADS, together<E>) grouped_rows(struct ah_cuda_grouped job)
{
    __shared__ tiles<E> s;
    const int64_t cols = BACKWARD ? job.inner : job.outer, terms = BACKWARD ? job.outer : job.inner;
    const int64_t across = (cols + SIDE - 1) / SIDE, col = blockIdx.x % across * SIDE;
    const struct span span = span_find(job.ends, job.experts, blockIdx.x / across);
    float sum[SUMS];
    if (span.rows <= 0)
        return;
    const E *matrix = (const E *)job.b + span.expert * job.outer * job.inner;
    const factor<E> a = {(const E *)job.a + span.row * terms, terms, span.rows, terms};
    const factor<E> b = BACKWARD ? factor<E>{matrix + col, cols, terms, cols - col}
                                 : factor<E>{matrix + col * terms, terms, cols - col, terms};
    const E *bias = job.bias ? (const E *)job.bias + span.expert * cols + col : nullptr;
    const target<E> to = {(E *)job.c + span.row * cols + col, cols, span.rows, cols - col, job.adds, bias};
    tile_sum<true, !BACKWARD, WHOLE>(sum, &s, a, b, terms);
    tile_store<WHOLE>(&s, to, sum);
}

/* ---- gradients of matrices -------------------------------------------------------------------------------------- */

/* dW (+)= dy^T x over the rows of each expert. */
template <typename E, bool WHOLE>
static __global__ void __launch_bounds__(THREADS, together<E>) grouped_weights(struct ah_cuda_grouped job)
{
    __shared__ tiles<E> s;
    const int64_t across = (job.inner + SIDE - 1) / SIDE, down = (job.outer + SIDE - 1) / SIDE;
    const int64_t col = blockIdx.x % across * SIDE, row = blockIdx.x / across % down * SIDE;
    const int64_t expert = blockIdx.x / across / down, begin = begin_of(job.ends, expert);
    const int64_t terms = job.ends[expert] - begin;
    float sum[SUMS];
    if (job.adds && terms == 0)
        return;
    const factor<E> a = {(const E *)job.a + begin * job.outer + row, job.outer, terms, job.outer - row};
    const factor<E> b = {(const E *)job.b + begin * job.inner + col, job.inner, terms, job.inner - col};
    const target<float> to = {(float *)job.c + (expert * job.outer + row) * job.inner + col,
                              job.inner,
                              job.outer - row,
                              job.inner - col,
                              job.adds,
                              nullptr};
    tile_sum<false, false, WHOLE>(sum, &s, a, b, terms);
    tile_store<WHOLE>(&s, to, sum);
}

/* ---- launches --------------------------------------------------------------------------------------------------- */

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
