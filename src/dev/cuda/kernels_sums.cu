/* Sums of columns. Blocks sum runs of rows into partial sums, and a second kernel adds these up. The number of runs
 * follows from shape and dtype alone, and so does the order of sums. */
#include "dev/cuda/element.cuh"
#include "dev/cuda/kernels.h"
#include "dev/cuda/sums.cuh"

/* RUNS: two blocks for each multiprocessor of an A100, as for norms. */
enum { WARPS = 8, RUNS = 216, SUM_LANES = 32, SUM_SLICES = 8 };

/* ---- partial sums ------------------------------------------------------------------------------------------------ */

/* Adds up partial sums: a block has SUM_LANES columns, and SUM_SLICES runs of partials in parallel. */
static __global__ void __launch_bounds__(SUM_LANES *SUM_SLICES) sums_finish(struct ah_cuda_sums s)
{
    __shared__ double shared[SUM_SLICES][SUM_LANES];
    int64_t width = s.arrays * s.cols, at = (int64_t)blockIdx.x * SUM_LANES + threadIdx.x;
    int64_t each = (s.count + SUM_SLICES - 1) / SUM_SLICES, from = threadIdx.y * each;
    int64_t to = from + each < s.count ? from + each : s.count;
    double sum = 0;
#pragma unroll 8
    for (int64_t i = from; i < to; i++)
        sum += at < width ? (double)s.partials[i * width + at] : 0.0;
    shared[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    int array = (int)(at / s.cols);
    if (threadIdx.y > 0 || at >= width || !s.to[array])
        return;
    float *out = s.to[array] + at % s.cols;
    sum = s.add[array] ? (double)*out : 0.0;
    for (int i = 0; i < SUM_SLICES; i++)
        sum += shared[i][threadIdx.x];
    *out = (float)sum;
}

cudaError_t ah__cuda_sums_enqueue(cudaStream_t stream, const struct ah_cuda_sums *s)
{
    return launch(sums_finish, dim3(blocks_for(s->arrays * s->cols, SUM_LANES)), dim3(SUM_LANES, SUM_SLICES), 0, stream,
                  *s);
}

/* ---- sums of columns --------------------------------------------------------------------------------------------- */

/* Sums the columns of one warp's packs over a run of rows; the block's warps take rows in turn. */
template <typename E, int N>
static __global__ void __launch_bounds__(WARP *WARPS)
    column_sum(const E *x, float *partials, int64_t rows, int64_t cols, int64_t each)
{
    __shared__ float shared[WARPS][N][WARP];
    int64_t col = ((int64_t)blockIdx.x * WARP + threadIdx.x) * N, first = blockIdx.y * each;
    int64_t end = first + each < rows ? first + each : rows;
    float sum[N] = {};
#pragma unroll 4
    for (int64_t row = first + threadIdx.y; row < end; row += WARPS) {
        pack<E, N> value = col < cols ? pack_load<E, N>(x + row * cols + col) : pack_zero<E, N>();
#pragma unroll
        for (int u = 0; u < N; u++)
            sum[u] += wide(value.lane[u]);
    }
#pragma unroll
    for (int u = 0; u < N; u++)
        shared[threadIdx.y][u][threadIdx.x] = sum[u];
    __syncthreads();
    if (threadIdx.y > 0 || col >= cols)
        return;
#pragma unroll
    for (int u = 0; u < N; u++) {
        for (int i = 1; i < WARPS; i++)
            sum[u] += shared[i][u][threadIdx.x];
        partials[blockIdx.y * cols + col + u] = sum[u];
    }
}

/* Returns the number of runs, which gives each multiprocessor several blocks, but no run of few rows; *each: rows of a
 * run. */
static int64_t column_runs(int64_t rows, int64_t cols, int lanes, int64_t *each)
{
    int64_t across = (cols + lanes * WARP - 1) / (lanes * WARP), wanted = (4 * RUNS + across - 1) / across;
    *each = (rows + wanted - 1) / wanted;
    *each = *each < 4 * WARPS ? 4 * WARPS : *each;
    return (rows + *each - 1) / *each;
}

static int column_lanes(enum ah_dtype dtype, int64_t cols)
{
    return cols % lanes16_of(dtype) == 0 ? lanes16_of(dtype) : 1;
}

int64_t ah__cuda_column_sum_workspace(enum ah_dtype dtype, int64_t rows, int64_t cols)
{
    int64_t each;
    return column_runs(rows, cols, column_lanes(dtype, cols), &each) * cols * (int64_t)sizeof(float);
}

template <typename E, int N>
static cudaError_t column_launch(cudaStream_t stream, const void *x, float *partials, int64_t rows, int64_t cols)
{
    int64_t each, runs = column_runs(rows, cols, N, &each);
    return launch(column_sum<E, N>, dim3(blocks_for(cols, N * WARP), (unsigned)runs), dim3(WARP, WARPS), 0, stream,
                  (const E *)x, partials, rows, cols, each);
}

template <typename E>
static cudaError_t column_of(cudaStream_t stream, const void *x, float *partials, int64_t rows, int64_t cols)
{
    if (cols % lanes16<E> == 0)
        return column_launch<E, lanes16<E>>(stream, x, partials, rows, cols);
    return column_launch<E, 1>(stream, x, partials, rows, cols);
}

cudaError_t ah__cuda_column_sum_enqueue(cudaStream_t stream, enum ah_dtype dtype, float *sum, const void *x,
                                        int64_t rows, int64_t cols, bool adds, float *partials)
{
    int64_t each, runs = column_runs(rows, cols, column_lanes(dtype, cols), &each);
    cudaError_t error = dtype == AH_BF16 ? column_of<__nv_bfloat16>(stream, x, partials, rows, cols)
                                         : column_of<float>(stream, x, partials, rows, cols);
    if (error != cudaSuccess)
        return error;
    struct ah_cuda_sums s = {{sum, nullptr}, {adds, false}, partials, runs, cols, 1};
    return ah__cuda_sums_enqueue(stream, &s);
}
