/* Mixtures of experts: which experts a token has, the sort of tokens' copies by expert, and copies and sums of rows. */
#include <math.h>

#include "dev/cuda/element.cuh"
#include "dev/cuda/kernels.h"

enum { THREADS = 256, WARPS = THREADS / WARP };

/* ---- picks: a warp for each token ------------------------------------------------------------------------------- */

/* Returns a number that is the larger, the earlier the expert `turn` places behind the token's first one is picked: by
 * its logit, then by its turn. All keys of a token differ; none is 0. */
static __device__ inline uint64_t key_of(float logit, uint32_t turn)
{
    uint32_t bits = __float_as_uint(logit + 0.0F); /* one zero */
    bits = bits >> 31 ? ~bits : bits | 0x80000000U;
    if (isnan(logit))
        bits = 0xFFC00000U;
    return (uint64_t)bits << 32 | (0xFFFFFFFFU - turn);
}

static __device__ inline int64_t expert_at(int64_t first, int64_t turn, int64_t experts)
{
    int64_t at = first + turn;
    return at < experts ? at : at - experts;
}

/* Returns the largest key of the lane's experts that is less than `below`; 0: none. */
template <typename E>
static __device__ inline uint64_t lane_most(const E *logits, int64_t first, int64_t experts, uint64_t below)
{
    uint64_t most = 0;
    for (int64_t turn = threadIdx.x % WARP; turn < experts; turn += WARP) {
        uint64_t key = key_of(wide(logits[expert_at(first, turn, experts)]), (uint32_t)turn);
        if (key < below && key > most)
            most = key;
    }
    return most;
}

static __device__ inline uint64_t warp_most(uint64_t x)
{
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) {
        uint64_t other = __shfl_xor_sync(0xFFFFFFFFU, (unsigned long long)x, step);
        x = other > x ? other : x;
    }
    return x;
}

/* Returns the expert that the token picks as its lane-th. */
template <typename E>
static __device__ inline int picks_take(const E *logits, int64_t first, int64_t experts, int picks)
{
    uint64_t best = lane_most(logits, first, experts, ~0ULL);
    int mine = 0;
    for (int k = 0; k < picks; k++) {
        uint64_t most = warp_most(best);
        if (k == (int)(threadIdx.x % WARP))
            mine = (int)expert_at(first, 0xFFFFFFFFU - (uint32_t)most, experts);
        if (best == most)
            best = lane_most(logits, first, experts, most);
    }
    return mine;
}

/* Returns the sum of e^(logit - shift) of all experts. */
template <typename E> static __device__ inline float exps_sum(const E *logits, int64_t experts, float shift)
{
    float sum = 0;
    for (int64_t i = threadIdx.x % WARP; i < experts; i += WARP)
        sum += expf(wide(logits[i]) - shift);
    return warp_sum(sum);
}

template <typename E>
static __global__ void __launch_bounds__(THREADS) route_picks(struct ah_cuda_route job, int32_t *expert_of)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP, at = row * job.picks + threadIdx.x % WARP;
    if (row >= job.rows)
        return;
    const bool has = (int)(threadIdx.x % WARP) < job.picks;
    const E *logits = (const E *)job.logits + row * job.experts;
    int expert = picks_take(logits, row * job.picks % job.experts, job.experts, job.picks);
    float largest = wide(logits[__shfl_sync(0xFFFFFFFFU, expert, 0)]);
    float e = has ? expf(wide(logits[expert]) - largest) : 0.0F;
    float sum = job.normalised ? warp_sum(e) : exps_sum(logits, job.experts, largest);
    if (!has)
        return;
    job.weights[at] = e / sum;
    expert_of[at] = expert;
}

/* ---- sort: the copies of tokens by expert, those of one expert in their order ----------------------------------- */

/* Copies are cut into chunks. A thread has an expert: it counts the expert's copies in a chunk, and later gives them
 * their places. */
enum { STAGE = 1024, MOST_CHUNKS = 128, SCAN_THREADS = 1024, SCAN_WARPS = SCAN_THREADS / WARP };

/* Returns the copies in a chunk. */
static __host__ __device__ inline int64_t chunk_of(int64_t copies)
{
    int64_t stages = (copies + STAGE - 1) / STAGE;
    return (stages + MOST_CHUNKS - 1) / MOST_CHUNKS * STAGE;
}

/* Stages the experts of the copies from `from` on; -1 where there are no more. */
static __device__ inline void stage_load(int32_t *stage, const int32_t *expert_of, int64_t from, int64_t copies)
{
    __syncthreads();
    for (int i = (int)threadIdx.x; i < STAGE; i += THREADS)
        stage[i] = from + i < copies ? expert_of[from + i] : -1;
    __syncthreads();
}

static __device__ inline int thread_expert()
{
    return (int)(blockIdx.y * THREADS + threadIdx.x);
}

static __global__ void __launch_bounds__(THREADS)
    copies_count(int32_t *counts, const int32_t *expert_of, int64_t copies, int64_t experts)
{
    __shared__ int32_t stage[STAGE];
    int64_t chunk = chunk_of(copies), from = blockIdx.x * chunk;
    int expert = thread_expert(), count = 0;
    for (int64_t at = from; at < from + chunk && at < copies; at += STAGE) {
        stage_load(stage, expert_of, at, copies);
#pragma unroll 16
        for (int i = 0; i < STAGE; i++)
            count += stage[i] == expert;
    }
    if (expert < experts)
        counts[blockIdx.x * experts + expert] = count;
}

/* Returns the expert's copies in the first chunks. */
static __device__ inline int32_t chunks_sum(const int32_t *counts, int64_t chunks, int64_t expert, int64_t experts)
{
    int32_t sum = 0;
#pragma unroll 8
    for (int64_t i = 0; i < chunks; i++)
        sum += counts[i * experts + expert];
    return sum;
}

/* Returns the sum of x of this lane and those before it. */
static __device__ inline int32_t warp_scan(int32_t x)
{
    const int lane = (int)threadIdx.x % WARP;
#pragma unroll
    for (int step = 1; step < WARP; step *= 2) {
        int32_t before = __shfl_up_sync(0xFFFFFFFFU, x, (unsigned)step);
        x += lane >= step ? before : 0;
    }
    return x;
}

/* One block. */
static __global__ void __launch_bounds__(SCAN_THREADS)
    ends_write(int32_t *ends, const int32_t *counts, int64_t chunks, int64_t experts)
{
    __shared__ int32_t of_warp[SCAN_WARPS];
    int32_t before = 0;
    for (int64_t from = 0; from < experts; from += SCAN_THREADS) {
        int64_t expert = from + threadIdx.x;
        int32_t end = warp_scan(expert < experts ? chunks_sum(counts, chunks, expert, experts) : 0);
        if (threadIdx.x % WARP == WARP - 1)
            of_warp[threadIdx.x / WARP] = end;
        __syncthreads();
        int32_t here = before;
        for (int i = 0; i < SCAN_WARPS; i++) {
            here += i < (int)threadIdx.x / WARP ? of_warp[i] : 0;
            before += of_warp[i];
        }
        if (expert < experts)
            ends[expert] = here + end;
        __syncthreads();
    }
}

static __global__ void __launch_bounds__(THREADS)
    copies_place(struct ah_cuda_route job, const int32_t *counts, const int32_t *expert_of)
{
    __shared__ int32_t stage[STAGE];
    int64_t copies = job.rows * job.picks, chunk = chunk_of(copies), from = blockIdx.x * chunk;
    int expert = thread_expert();
    int32_t place = 0;
    if (expert < job.experts)
        place = (expert ? job.ends[expert - 1] : 0) + chunks_sum(counts, blockIdx.x, expert, job.experts);
    for (int64_t at = from; at < from + chunk && at < copies; at += STAGE) {
        stage_load(stage, expert_of, at, copies);
#pragma unroll 16
        for (int i = 0; i < STAGE; i++)
            if (stage[i] == expert) {
                job.slots[at + i] = place;
                job.source[place++] = (int32_t)(at + i);
            }
    }
}

/* The workspace: the expert of each copy, and how many of them each chunk has for each expert. */
int64_t ah__cuda_route_workspace(int64_t copies, int64_t experts)
{
    return (copies + blocks_for(copies, chunk_of(copies)) * experts) * (int64_t)sizeof(int32_t);
}

static cudaError_t copies_sort(cudaStream_t stream, const struct ah_cuda_route *job, const int32_t *expert_of,
                               int32_t *counts)
{
    int64_t copies = job->rows * job->picks;
    unsigned chunks = blocks_for(copies, chunk_of(copies));
    dim3 grid(chunks, blocks_for(job->experts, THREADS));
    cudaError_t error = launch(copies_count, grid, dim3(THREADS), 0, stream, counts, expert_of, copies, job->experts);
    if (error == cudaSuccess)
        error = launch(ends_write, dim3(1), dim3(SCAN_THREADS), 0, stream, job->ends, counts, chunks, job->experts);
    if (error == cudaSuccess)
        error = launch(copies_place, grid, dim3(THREADS), 0, stream, *job, counts, expert_of);
    return error;
}

cudaError_t ah__cuda_route_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_route *job)
{
    int32_t *expert_of = (int32_t *)job->workspace, *counts = expert_of + job->rows * job->picks;
    dim3 grid(blocks_for(job->rows, WARPS));
    cudaError_t error = dtype == AH_BF16
                            ? launch(route_picks<__nv_bfloat16>, grid, dim3(THREADS), 0, stream, *job, expert_of)
                            : launch(route_picks<float>, grid, dim3(THREADS), 0, stream, *job, expert_of);
    return error != cudaSuccess ? error : copies_sort(stream, job, expert_of, counts);
}

/* ---- gradient of the picks -------------------------------------------------------------------------------------- */

/* Returns the expert whose rows hold `slot`. */
static __device__ inline int64_t holder_of(const int32_t *ends, int64_t experts, int32_t slot)
{
    int64_t low = 0, high = experts - 1;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (ends[middle] > slot)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Writes the gradients of experts as if none were picked. */
template <typename E>
static __device__ inline void others_write(E *dlogits, const E *logits, const struct ah_cuda_route_bwd &job,
                                           int64_t likeliest, float sum)
{
    float largest = 0, factor = 0;
    if (!job.normalised) {
        largest = wide(logits[likeliest]);
        factor = -sum / exps_sum(logits, job.experts, largest);
    }
    for (int64_t i = threadIdx.x % WARP; i < job.experts; i += WARP)
        put(dlogits + i, job.normalised ? 0.0F : expf(wide(logits[i]) - largest) * factor);
}

template <typename E> static __global__ void __launch_bounds__(THREADS) route_bwd(struct ah_cuda_route_bwd job)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP, at = row * job.picks + threadIdx.x % WARP;
    if (row >= job.rows)
        return;
    const bool has = (int)(threadIdx.x % WARP) < job.picks;
    E *dlogits = (E *)job.dlogits + row * job.experts;
    float weight = has ? job.weights[at] : 0.0F, dweight = has ? job.dweights[at] : 0.0F;
    int64_t expert = has ? holder_of(job.ends, job.experts, job.slots[at]) : 0;
    float sum = warp_sum(dweight * weight);
    others_write(dlogits, (const E *)job.logits + row * job.experts, job,
                 (int64_t)__shfl_sync(0xFFFFFFFFU, (int)expert, 0), sum);
    __syncwarp();
    if (has)
        put(dlogits + expert, weight * (dweight - sum));
}

cudaError_t ah__cuda_route_bwd_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_route_bwd *job)
{
    dim3 grid(blocks_for(job->rows, WARPS)), block(THREADS);
    return dtype == AH_BF16 ? launch(route_bwd<__nv_bfloat16>, grid, block, 0, stream, *job)
                            : launch(route_bwd<float>, grid, block, 0, stream, *job);
}

/* ---- weights as a matrix ---------------------------------------------------------------------------------------- */

/* A warp for each token. */
template <typename E> static __global__ void __launch_bounds__(THREADS) shares(struct ah_cuda_shares job)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP, at = row * job.picks + threadIdx.x % WARP;
    if (row >= job.rows)
        return;
    E *y = (E *)job.y + row * job.experts;
    for (int64_t i = threadIdx.x % WARP; i < job.experts; i += WARP)
        put(y + i, 0.0F);
    __syncwarp();
    if ((int)(threadIdx.x % WARP) < job.picks)
        put(y + holder_of(job.ends, job.experts, job.slots[at]), job.weights[at]);
}

cudaError_t ah__cuda_shares_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_shares *job)
{
    dim3 grid(blocks_for(job->rows, WARPS)), block(THREADS);
    return dtype == AH_BF16 ? launch(shares<__nv_bfloat16>, grid, block, 0, stream, *job)
                            : launch(shares<float>, grid, block, 0, stream, *job);
}

/* A thread for each weight. */
template <typename E> static __global__ void __launch_bounds__(THREADS) shares_bwd(struct ah_cuda_shares job)
{
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (at >= job.rows * job.picks)
        return;
    int64_t expert = holder_of(job.ends, job.experts, job.slots[at]);
    job.dweights[at] = wide(((const E *)job.dy)[at / job.picks * job.experts + expert]);
}

cudaError_t ah__cuda_shares_bwd_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_shares *job)
{
    dim3 grid(blocks_for(job->rows * job->picks, THREADS)), block(THREADS);
    return dtype == AH_BF16 ? launch(shares_bwd<__nv_bfloat16>, grid, block, 0, stream, *job)
                            : launch(shares_bwd<float>, grid, block, 0, stream, *job);
}

/* ---- sums of each expert's rows --------------------------------------------------------------------------------- */

/* A block has the columns of a warp's packs and one expert; its warps take rows in turn. */
template <typename E, int N>
static __global__ void __launch_bounds__(THREADS) grouped_sum(struct ah_cuda_grouped_sum job)
{
    __shared__ float shared[WARPS][N][WARP];
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    int64_t col = ((int64_t)blockIdx.x * WARP + lane) * N, expert = blockIdx.y;
    int64_t begin = expert ? job.ends[expert - 1] : 0, end = job.ends[expert];
    float sum[N] = {};
#pragma unroll 4
    for (int64_t row = begin + warp; row < end; row += WARPS) {
        pack<E, N> x = col < job.cols ? pack_load<E, N>((const E *)job.x + row * job.cols + col) : pack_zero<E, N>();
#pragma unroll
        for (int u = 0; u < N; u++)
            sum[u] += wide(x.lane[u]);
    }
#pragma unroll
    for (int u = 0; u < N; u++)
        shared[warp][u][lane] = sum[u];
    __syncthreads();
    if (warp > 0 || col >= job.cols)
        return;
    float *to = job.sums + expert * job.cols + col;
#pragma unroll
    for (int u = 0; u < N; u++) {
        for (int i = 1; i < WARPS; i++)
            sum[u] += shared[i][u][lane];
        to[u] = job.adds ? to[u] + sum[u] : sum[u];
    }
}

template <typename E, int N>
static cudaError_t grouped_sum_launch(cudaStream_t stream, const struct ah_cuda_grouped_sum *job)
{
    return launch(grouped_sum<E, N>, dim3(blocks_for(job->cols, N * WARP), (unsigned)job->experts), dim3(THREADS), 0,
                  stream, *job);
}

template <typename E> static cudaError_t grouped_sum_of(cudaStream_t stream, const struct ah_cuda_grouped_sum *job)
{
    return job->cols % lanes16<E> == 0 ? grouped_sum_launch<E, lanes16<E>>(stream, job)
                                       : grouped_sum_launch<E, 1>(stream, job);
}

cudaError_t ah__cuda_grouped_sum_enqueue(cudaStream_t stream, enum ah_dtype dtype,
                                         const struct ah_cuda_grouped_sum *job)
{
    return dtype == AH_BF16 ? grouped_sum_of<__nv_bfloat16>(stream, job) : grouped_sum_of<float>(stream, job);
}

/* ---- rows: a warp for each -------------------------------------------------------------------------------------- */

/* Writes the row `to` as the sum of rows, in their order. */
template <typename E, int N>
static __device__ inline void rows_add(E *to, const E *from, const int32_t *ids, int count, int64_t cols)
{
    for (int64_t col = threadIdx.x % WARP * N; col < cols; col += WARP * N) {
        pack<float, N> sum = pack_zero<float, N>();
#pragma unroll 4
        for (int k = 0; k < count; k++) {
            pack<E, N> x = pack_load<E, N>(from + ids[k] * cols + col);
#pragma unroll
            for (int u = 0; u < N; u++)
                sum.lane[u] += wide(x.lane[u]);
        }
        pack<E, N> y;
#pragma unroll
        for (int u = 0; u < N; u++)
            put(&y.lane[u], sum.lane[u]);
        pack_store<E, N>(to + col, y);
    }
}

/* Writes the row `to` as a row times a factor; returns the sum of the row's products with the row `other`, if there is
 * one. `to` may be `from`. */
template <typename E, int N>
static __device__ inline float row_scale(E *to, const E *from, const E *other, float factor, int64_t cols)
{
    float sum = 0;
#pragma unroll 2
    for (int64_t col = threadIdx.x % WARP * N; col < cols; col += WARP * N) {
        pack<E, N> x = pack_load<E, N>(from + col), y, z = other ? pack_load<E, N>(other + col) : pack_zero<E, N>();
#pragma unroll
        for (int u = 0; u < N; u++) {
            sum = fmaf(wide(x.lane[u]), wide(z.lane[u]), sum);
            put(&y.lane[u], wide(x.lane[u]) * factor);
        }
        pack_store<E, N>(to + col, y);
    }
    return sum;
}

template <typename E, int N> static __global__ void __launch_bounds__(THREADS) dispatch(struct ah_cuda_rows job)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    if (row >= job.rows)
        return;
    const E *from = (const E *)job.from + job.ids[row] / job.picks * job.cols;
#pragma unroll 4
    for (int64_t col = threadIdx.x % WARP * N; col < job.cols; col += WARP * N)
        pack_store<E, N>((E *)job.to + row * job.cols + col, pack_load<E, N>(from + col));
}

template <typename E, int N> static __global__ void __launch_bounds__(THREADS) combine(struct ah_cuda_rows job)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    if (row < job.rows)
        rows_add<E, N>((E *)job.to + row * job.cols, (const E *)job.from, job.ids + row * job.picks, job.picks,
                       job.cols);
}

/* With `other` also the gradients of weights. */
template <typename E, int N> static __global__ void __launch_bounds__(THREADS) scale_rows(struct ah_cuda_rows job)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP, at = row * job.cols;
    if (row >= job.rows)
        return;
    int32_t source = job.ids[row];
    const E *other = job.other ? (const E *)job.other + at : nullptr;
    float sum =
        warp_sum(row_scale<E, N>((E *)job.to + at, (const E *)job.from + at, other, job.weights[source], job.cols));
    if (other && threadIdx.x % WARP == 0)
        job.dweights[source] = sum;
}

/* With `other` also the gradients of gates. */
template <typename E, int N> static __global__ void __launch_bounds__(THREADS) gate_rows(struct ah_cuda_rows job)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP, at = row * job.cols;
    if (row >= job.rows)
        return;
    float e = expf(fminf(-wide(((const E *)job.gate)[row]), 88.3F)), share = 1.0F / (1.0F + e);
    const E *other = job.other ? (const E *)job.other + at : nullptr;
    float sum = warp_sum(row_scale<E, N>((E *)job.to + at, (const E *)job.from + at, other, share, job.cols));
    if (other && threadIdx.x % WARP == 0)
        put((E *)job.dgate + row, share * (e * share) * sum);
}

template <typename E, int N>
static cudaError_t rows_launch(cudaStream_t stream, enum ah_op op, const struct ah_cuda_rows *job)
{
    dim3 grid(blocks_for(job->rows, WARPS)), block(THREADS);
    switch ((int)op) {
    case AH_OP_DISPATCH:
        return launch(dispatch<E, N>, grid, block, 0, stream, *job);
    case AH_OP_COMBINE:
        return launch(combine<E, N>, grid, block, 0, stream, *job);
    case AH_OP_SCALE_ROWS:
    case AH_OP_SCALE_ROWS_BWD:
        return launch(scale_rows<E, N>, grid, block, 0, stream, *job);
    case AH_OP_GATE_ROWS:
    case AH_OP_GATE_ROWS_BWD:
        return launch(gate_rows<E, N>, grid, block, 0, stream, *job);
    default:
        return cudaErrorNotSupported;
    }
}

template <typename E> static cudaError_t rows_of(cudaStream_t stream, enum ah_op op, const struct ah_cuda_rows *job)
{
    return job->cols % lanes16<E> == 0 ? rows_launch<E, lanes16<E>>(stream, op, job)
                                       : rows_launch<E, 1>(stream, op, job);
}

cudaError_t ah__cuda_rows_enqueue(cudaStream_t stream, enum ah_op op, enum ah_dtype dtype,
                                  const struct ah_cuda_rows *job)
{
    return dtype == AH_BF16 ? rows_of<__nv_bfloat16>(stream, op, job) : rows_of<float>(stream, op, job);
}
