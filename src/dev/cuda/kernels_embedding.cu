/* Tables of vectors for tokens and positions. */
#include <math.h>

#include "dev/cuda/element.cuh"
#include "dev/cuda/kernels.h"

enum { THREADS = 256, WARPS = THREADS / WARP, MOST_BATCH = 256 };

/* ---- looking up -------------------------------------------------------------------------------------------------- */

/* Looks up tokens, with a warp for each. */
template <typename E, int N>
static __global__ void __launch_bounds__(THREADS)
    embedding(E *x, const E *table, const int32_t *ids, int64_t rows, int64_t cols, int64_t vocabulary)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    if (row >= rows)
        return;
    int64_t id = ids[row];
    bool known = id >= 0 && id < vocabulary;
    const E *from = table + (known ? id : 0) * cols;
    pack<E, N> nan;
#pragma unroll
    for (int u = 0; u < N; u++)
        put(&nan.lane[u], NAN);
#pragma unroll 4
    for (int64_t col = threadIdx.x % WARP * N; col < cols; col += WARP * N)
        pack_store<E, N>(x + row * cols + col, known ? pack_load<E, N>(from + col) : nan);
}

template <typename E>
static cudaError_t embedding_of(cudaStream_t stream, void *x, const void *table, const int32_t *ids, int64_t rows,
                                int64_t cols, int64_t vocabulary)
{
    dim3 grid(blocks_for(rows, WARPS));
    if (cols % lanes16<E> == 0)
        return launch(embedding<E, lanes16<E>>, grid, dim3(THREADS), 0, stream, (E *)x, (const E *)table, ids, rows,
                      cols, vocabulary);
    return launch(embedding<E, 1>, grid, dim3(THREADS), 0, stream, (E *)x, (const E *)table, ids, rows, cols,
                  vocabulary);
}

cudaError_t ah__cuda_embedding_enqueue(cudaStream_t stream, enum ah_dtype dtype, void *x, const void *table,
                                       const int32_t *ids, int64_t rows, int64_t cols, int64_t vocabulary)
{
    return dtype == AH_BF16 ? embedding_of<__nv_bfloat16>(stream, x, table, ids, rows, cols, vocabulary)
                            : embedding_of<float>(stream, x, table, ids, rows, cols, vocabulary);
}

/* ---- positions --------------------------------------------------------------------------------------------------- */

/* Adds positions. `count`: elements of one sequence; the sequences of a batch follow each other. */
template <typename E, int N>
static __global__ void __launch_bounds__(THREADS)
    add_position(E *y, const E *x, const E *table, int64_t batch, int64_t count)
{
    int64_t at = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * N;
    if (at >= count)
        return;
    pack<E, N> position = pack_load<E, N>(table + at);
    for (int64_t b = blockIdx.y; b < batch; b += gridDim.y) {
        pack<E, N> value = pack_load<E, N>(x + b * count + at);
#pragma unroll
        for (int u = 0; u < N; u++)
            put(&value.lane[u], wide(value.lane[u]) + wide(position.lane[u]));
        pack_store<E, N>(y + b * count + at, value);
    }
}

template <typename E, int N>
static cudaError_t add_position_launch(cudaStream_t stream, void *y, const void *x, const void *table, int64_t batch,
                                       int64_t count)
{
    dim3 grid(blocks_for(count, THREADS * N), (unsigned)least(batch, MOST_BATCH));
    return launch(add_position<E, N>, grid, dim3(THREADS), 0, stream, (E *)y, (const E *)x, (const E *)table, batch,
                  count);
}

template <typename E>
static cudaError_t add_position_of(cudaStream_t stream, void *y, const void *x, const void *table, int64_t batch,
                                   int64_t count)
{
    if (count % lanes16<E> == 0 && (uintptr_t)table % 16 == 0)
        return add_position_launch<E, lanes16<E>>(stream, y, x, table, batch, count);
    return add_position_launch<E, 1>(stream, y, x, table, batch, count);
}

cudaError_t ah__cuda_add_position_enqueue(cudaStream_t stream, enum ah_dtype dtype, void *y, const void *x,
                                          const void *table, int64_t batch, int64_t seq, int64_t cols)
{
    return dtype == AH_BF16 ? add_position_of<__nv_bfloat16>(stream, y, x, table, batch, seq * cols)
                            : add_position_of<float>(stream, y, x, table, batch, seq * cols);
}

/* Computes the gradient of positions, and adds it as a finished sum. The table's rows before `skip`, and after `count`
 * elements from there, belong to no token. */
template <typename E, int N>
static __global__ void __launch_bounds__(THREADS)
    position_bwd(float *dtable, const E *dx, int64_t batch, int64_t count, int64_t skip, int64_t whole, bool adds)
{
    int64_t at = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * N;
    const bool taken = at >= skip && at < skip + count;
    if (at >= whole || (adds && !taken))
        return;
    pack<float, N> before = adds ? pack_load<float, N>(dtable + at) : pack_zero<float, N>(),
                   sum = pack_zero<float, N>();
#pragma unroll 4
    for (int64_t b = 0; b < (taken ? batch : 0); b++) {
        pack<E, N> value = pack_load<E, N>(dx + b * count + at - skip);
#pragma unroll
        for (int u = 0; u < N; u++)
            sum.lane[u] += wide(value.lane[u]);
    }
#pragma unroll
    for (int u = 0; u < N; u++)
        sum.lane[u] += before.lane[u];
    pack_store<float, N>(dtable + at, sum);
}

/* Chooses packs of 16 bytes of floats, or half as much of bf16. */
template <typename E>
static cudaError_t position_bwd_of(cudaStream_t stream, float *dtable, const void *dx, int64_t batch, int64_t count,
                                   int64_t skip, int64_t whole, bool adds)
{
    constexpr int N = lanes16<float>;
    if (count % N == 0 && skip % N == 0 && whole % N == 0)
        return launch(position_bwd<E, N>, dim3(blocks_for(whole, THREADS * N)), dim3(THREADS), 0, stream, dtable,
                      (const E *)dx, batch, count, skip, whole, adds);
    return launch(position_bwd<E, 1>, dim3(blocks_for(whole, THREADS)), dim3(THREADS), 0, stream, dtable, (const E *)dx,
                  batch, count, skip, whole, adds);
}

cudaError_t ah__cuda_position_bwd_enqueue(cudaStream_t stream, enum ah_dtype dtype, float *dtable, const void *dx,
                                          int64_t batch, int64_t seq, int64_t cols, int64_t positions, int64_t first,
                                          bool adds)
{
    const int64_t count = seq * cols, skip = first * cols, whole = positions * cols;
    return dtype == AH_BF16 ? position_bwd_of<__nv_bfloat16>(stream, dtable, dx, batch, count, skip, whole, adds)
                            : position_bwd_of<float>(stream, dtable, dx, batch, count, skip, whole, adds);
}

/* ---- tokens, backward: sorted ------------------------------------------------------------------------------------ */

/* A key is id and position, so all keys differ and every sort gives the same order; this one is a bitonic network.
 * Spans of keys are sorted, and merged in the end, within a block; steps over longer distances go through memory. */
enum { SPAN = 2048, SPAN_THREADS = SPAN / 2, UNKNOWN = 0x7FFFFFFF };

static __device__ inline void exchange(uint64_t *low, uint64_t *high, bool up)
{
    uint64_t a = *low, b = *high;
    if ((a > b) == up) {
        *low = b;
        *high = a;
    }
}

static __device__ inline uint64_t key_of(const int32_t *ids, int64_t at, int64_t rows, int64_t vocabulary)
{
    if (at >= rows)
        return ~0ULL;
    int64_t id = ids[at];
    if (id < 0 || id >= vocabulary)
        id = UNKNOWN;
    return (uint64_t)id << 32 | (uint64_t)at;
}

/* Does the steps below `span` of the stage that sorts runs of `stage` keys, alternately up and down. */
static __device__ void span_merge(uint64_t *key, int64_t first, int64_t stage, int span)
{
    for (int step = (stage < span ? (int)stage : span) / 2; step > 0; step /= 2) {
        int low = (int)threadIdx.x / step * 2 * step + (int)threadIdx.x % step;
        __syncthreads();
        exchange(&key[low], &key[low + step], ((first + low) & stage) == 0);
    }
}

/* Makes keys of ids and sorts them in runs of a span; or, with a stage, does its last steps. Each thread has two
 * keys. */
static __global__ void __launch_bounds__(SPAN_THREADS)
    span_sort(uint64_t *keys, const int32_t *ids, int64_t rows, int64_t vocabulary, int64_t stage)
{
    __shared__ uint64_t key[SPAN];
    int span = 2 * (int)blockDim.x, mine = (int)threadIdx.x;
    int64_t first = (int64_t)blockIdx.x * span;
    for (int i = mine; i < span; i += (int)blockDim.x)
        key[i] = stage ? keys[first + i] : key_of(ids, first + i, rows, vocabulary);
    if (stage)
        span_merge(key, first, stage, span);
    else
        for (int64_t early = 2; early <= span; early *= 2)
            span_merge(key, first, early, span);
    __syncthreads();
    for (int i = mine; i < span; i += (int)blockDim.x)
        keys[first + i] = key[i];
}

static __global__ void __launch_bounds__(THREADS) wide_step(uint64_t *keys, int64_t stage, int64_t step)
{
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, low = at / step * 2 * step + at % step;
    exchange(&keys[low], &keys[low + step], (low & stage) == 0);
}

/* Returns the number of keys: a power of two. */
static int64_t keys_of(int64_t rows)
{
    int64_t keys = 2 * WARP;
    while (keys < rows)
        keys *= 2;
    return keys;
}

static cudaError_t keys_sort(cudaStream_t stream, uint64_t *keys, const struct ah_cuda_embedding_bwd *job)
{
    int64_t count = keys_of(job->rows), span = least(count, SPAN);
    dim3 grid((unsigned)(count / span)), block((unsigned)(span / 2));
    cudaError_t error = launch(span_sort, grid, block, 0, stream, keys, job->ids, job->rows, job->vocabulary, 0);
    for (int64_t stage = 2 * span; stage <= count && error == cudaSuccess; stage *= 2) {
        for (int64_t step = stage / 2; step >= span && error == cudaSuccess; step /= 2)
            error =
                launch(wide_step, dim3((unsigned)(count / 2 / THREADS)), dim3(THREADS), 0, stream, keys, stage, step);
        if (error == cudaSuccess)
            error = launch(span_sort, grid, block, 0, stream, keys, job->ids, job->rows, job->vocabulary, stage);
    }
    return error;
}

/* ---- tokens, backward: summed ------------------------------------------------------------------------------------ */

/* Sorted tokens are summed by tiles of TILE, so that a very frequent token does not keep one block busy for long. If a
 * tile begins in the middle of a run of one id, the sum of that part goes to the tile's row of `parts`, and is added
 * when the run's beginning is in the table. */
enum { TILE = 64, AHEAD = 8, COLUMN_THREADS = 128 };

static __device__ inline int64_t id_at(const uint64_t *keys, int64_t at)
{
    return (int64_t)(keys[at] >> 32);
}

/* Returns true if the tile that begins at `at` begins within a run. */
static __device__ inline bool continues(const uint64_t *keys, int64_t at)
{
    return at > 0 && id_at(keys, at) == id_at(keys, at - 1);
}

template <int N> static __device__ void row_put(float *to, const float sum[N], bool adds)
{
    pack<float, N> out;
#pragma unroll
    for (int u = 0; u < N; u++)
        out.lane[u] = sum[u];
    if (adds) {
        pack<float, N> before = pack_load<float, N>(to);
#pragma unroll
        for (int u = 0; u < N; u++)
            out.lane[u] += before.lane[u];
    }
    pack_store<float, N>(to, out);
}

/* Sums N columns of a tile. */
template <typename E, int N>
static __global__ void __launch_bounds__(COLUMN_THREADS)
    tile_sum(struct ah_cuda_embedding_bwd job, const uint64_t *keys, float *parts)
{
    int64_t first = (int64_t)blockIdx.x * TILE, end = first + TILE < job.rows ? first + TILE : job.rows;
    int64_t col = ((int64_t)blockIdx.y * COLUMN_THREADS + threadIdx.x) * N, id = id_at(keys, first);
    bool inside = continues(keys, first);
    float sum[N] = {};
    if (col >= job.cols)
        return;
    for (int64_t from = first; from < end; from += AHEAD) {
        pack<E, N> dx[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (from + i < end)
                dx[i] = pack_load<E, N>((const E *)job.dx + (int64_t)(uint32_t)keys[from + i] * job.cols + col);
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (from + i >= end)
                break;
            int64_t next = id_at(keys, from + i);
            if (next != id) {
                if (inside)
                    row_put<N>(parts + blockIdx.x * job.cols + col, sum, false);
                else
                    row_put<N>(job.dtable + id * job.cols + col, sum, job.adds);
#pragma unroll
                for (int u = 0; u < N; u++)
                    sum[u] = 0;
                inside = false;
                id = next;
            }
            if (id == UNKNOWN)
                return;
#pragma unroll
            for (int u = 0; u < N; u++)
                sum[u] += wide(dx[i].lane[u]);
        }
    }
    if (inside)
        row_put<N>(parts + blockIdx.x * job.cols + col, sum, false);
    else
        row_put<N>(job.dtable + id * job.cols + col, sum, job.adds);
}

/* Adds the parts of a run to the table. The run's first tile that begins within it does this for all of them. */
template <int N>
static __global__ void __launch_bounds__(COLUMN_THREADS)
    tiles_join(struct ah_cuda_embedding_bwd job, const uint64_t *keys, const float *parts)
{
    int64_t first = (int64_t)blockIdx.x * TILE, id = id_at(keys, first);
    int64_t col = ((int64_t)blockIdx.y * COLUMN_THREADS + threadIdx.x) * N;
    if (col >= job.cols || id == UNKNOWN || !continues(keys, first))
        return;
    if (continues(keys, first - TILE) && id_at(keys, first - TILE) == id)
        return;
    float sum[N] = {};
    for (int64_t at = first; at < job.rows && id_at(keys, at) == id; at += TILE) {
        pack<float, N> part = pack_load<float, N>(parts + at / TILE * job.cols + col);
#pragma unroll
        for (int u = 0; u < N; u++)
            sum[u] += part.lane[u];
    }
    row_put<N>(job.dtable + id * job.cols + col, sum, true);
}

static int64_t keys_bytes(int64_t rows)
{
    return keys_of(rows) * (int64_t)sizeof(uint64_t);
}

int64_t ah__cuda_embedding_bwd_workspace(int64_t rows, int64_t cols)
{
    return keys_bytes(rows) + (rows + TILE - 1) / TILE * cols * (int64_t)sizeof(float);
}

template <typename E, int N>
static cudaError_t tiles_launch(cudaStream_t stream, const struct ah_cuda_embedding_bwd *job, const uint64_t *keys,
                                float *parts)
{
    dim3 grid(blocks_for(job->rows, TILE), blocks_for(job->cols, COLUMN_THREADS * N)), block(COLUMN_THREADS);
    cudaError_t error = launch(tile_sum<E, N>, grid, block, 0, stream, *job, keys, parts);
    return error != cudaSuccess ? error : launch(tiles_join<N>, grid, block, 0, stream, *job, keys, parts);
}

template <typename E>
static cudaError_t tiles_of(cudaStream_t stream, const struct ah_cuda_embedding_bwd *job, const uint64_t *keys,
                            float *parts)
{
    if (job->cols % lanes16<E> == 0)
        return tiles_launch<E, lanes16<E>>(stream, job, keys, parts);
    return tiles_launch<E, 1>(stream, job, keys, parts);
}

cudaError_t ah__cuda_embedding_bwd_enqueue(cudaStream_t stream, enum ah_dtype dtype,
                                           const struct ah_cuda_embedding_bwd *job)
{
    uint64_t *keys = (uint64_t *)job->workspace;
    float *parts = (float *)(job->workspace + keys_bytes(job->rows));
    cudaError_t error = keys_sort(stream, keys, job);
    if (error == cudaSuccess && !job->adds)
        error = cudaMemsetAsync(job->dtable, 0, (size_t)(job->vocabulary * job->cols) * sizeof(float), stream);
    if (error != cudaSuccess)
        return error;
    return dtype == AH_BF16 ? tiles_of<__nv_bfloat16>(stream, job, keys, parts)
                            : tiles_of<float>(stream, job, keys, parts);
}
