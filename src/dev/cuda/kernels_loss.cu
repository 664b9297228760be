/* Softmax cross-entropy: a block for each row of logits, which become their gradient. The row is read twice, the second
 * time mostly from the cache, and written once. Each thread keeps a largest logit and a sum of exponentials; these are
 * joined in one order. */
#include <math.h>

#include "dev/cuda/element.cuh"
#include "dev/cuda/kernels.h"

enum { MOST_THREADS = 512, SUM_THREADS = 1024 };

/* The largest logit, and the sum of e^(logit - most). */
struct softmax {
    float most, sum;
};

/* Returns a logit after the cap. */
template <bool CAPPED> static __device__ inline float counted(float logit, float cap)
{
    return CAPPED ? cap * tanhf(logit / cap) : logit;
}

/* Returns the slope of the cap, from the capped logit. */
template <bool CAPPED> static __device__ inline float slope(float counted, float cap)
{
    return CAPPED ? 1.0F - counted / cap * (counted / cap) : 1.0F;
}

static __device__ inline float warps_largest(float x, float *shared)
{
    x = warp_largest(x);
    if (threadIdx.x % WARP == 0)
        shared[threadIdx.x / WARP] = x;
    __syncthreads();
    x = shared[0];
    for (unsigned i = 1; i < blockDim.x / WARP; i++)
        x = fmaxf(x, shared[i]);
    return x;
}

/* Computes the thread's part of a row. U packs are in flight at a time. The last pack may reach beyond the columns;
 * elements there do not count. */
template <typename E, int N, bool CAPPED>
static __device__ struct softmax softmax_part(const E *logits, int64_t cols, float cap)
{
    constexpr int U = 2 * lanes16<E> / N;
    struct softmax s = {-INFINITY, 0};
    for (int64_t from = (int64_t)threadIdx.x * N; from < cols; from += (int64_t)U * N * blockDim.x) {
        float x[U * N], most = s.most;
#pragma unroll
        for (int i = 0; i < U; i++) {
            int64_t col = from + (int64_t)i * N * blockDim.x;
            pack<E, N> value = col < cols ? pack_load<E, N>(logits + col) : pack_zero<E, N>();
#pragma unroll
            for (int u = 0; u < N; u++)
                x[i * N + u] = col + u < cols ? counted<CAPPED>(wide(value.lane[u]), cap) : -INFINITY;
        }
#pragma unroll
        for (int i = 0; i < U * N; i++)
            most = fmaxf(most, x[i]);
        /* If all are -inf, the sum is 0. */
        float less = most == -INFINITY ? 0 : most;
        s.sum *= expf(s.most - less);
        s.most = most;
#pragma unroll
        for (int i = 0; i < U * N; i++)
            s.sum += expf(x[i] - less);
    }
    return s;
}

/* Writes gradient = e^(logit - most) * factor * slope. U packs are read before the first is written, since they may be
 * in place. */
template <typename E, int N, bool CAPPED>
static __device__ void gradients_write(E *to, const E *logits, int64_t cols, float most, float factor, float cap)
{
    constexpr int U = 2 * lanes16<E> / N;
    for (int64_t from = (int64_t)threadIdx.x * N; from < cols; from += (int64_t)U * N * blockDim.x) {
        pack<E, N> value[U];
#pragma unroll
        for (int i = 0; i < U; i++)
            if (from + (int64_t)i * N * blockDim.x < cols)
                value[i] = pack_load<E, N>(logits + from + (int64_t)i * N * blockDim.x);
#pragma unroll
        for (int i = 0; i < U; i++) {
            int64_t col = from + (int64_t)i * N * blockDim.x;
            if (col >= cols)
                break;
#pragma unroll
            for (int u = 0; u < N; u++) {
                float x = counted<CAPPED>(wide(value[i].lane[u]), cap);
                put(&value[i].lane[u], expf(x - most) * factor * slope<CAPPED>(x, cap));
            }
            pack_store<E, N>(to + col, value[i]);
        }
    }
}

template <typename E, int N> static __device__ void zeros_write(E *to, int64_t cols)
{
    for (int64_t col = (int64_t)threadIdx.x * N; col < cols; col += (int64_t)N * blockDim.x)
        pack_store<E, N>(to + col, pack_zero<E, N>());
}

template <typename E, int N, bool CAPPED>
static __global__ void __launch_bounds__(MOST_THREADS) cross_entropy(struct ah_cuda_cross_entropy job)
{
    __shared__ float shared[2][MOST_THREADS / WARP];
    int64_t row = blockIdx.x;
    int target = job.targets[row];
    const E *logits = (const E *)job.logits + row * job.stride;
    E *to = (E *)job.dlogits + row * job.stride;
    if (job.may_ignore && target == AH_TARGET_IGNORED) {
        zeros_write<E, N>(to, job.cols);
        if (threadIdx.x == 0)
            job.losses[row] = 0;
        return;
    }
    bool known = target >= 0 && target < job.cols;
    float at_target = known ? counted<CAPPED>(wide(logits[target]), job.cap) : NAN, scale = job.scale->gradients;
    struct team all = team_of((int)blockDim.x / WARP);
    struct softmax s = softmax_part<E, N, CAPPED>(logits, job.cols, job.cap);
    /* A thread without logits has -inf and adds nothing. */
    float most = warps_largest(s.most, shared[0]);
    float sum = team_sum(&all, shared[1], s.sum == 0 ? 0 : s.sum * expf(s.most - most)), factor = scale / sum;
    gradients_write<E, N, CAPPED>(to, logits, job.cols, most, factor, job.cap);
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    if (known)
        put(&to[target], (expf(at_target - most) * factor - scale) * slope<CAPPED>(at_target, job.cap));
    job.losses[row] = log((double)sum) + (double)most - (double)at_target;
}

template <typename E, int N>
static cudaError_t cross_entropy_launch(cudaStream_t stream, const struct ah_cuda_cross_entropy *job)
{
    int64_t warps = (job->cols + N * WARP - 1) / (N * WARP);
    int64_t threads = least(warps * WARP, MOST_THREADS);
    return launch(job->cap > 0 ? cross_entropy<E, N, true> : cross_entropy<E, N, false>, dim3((unsigned)job->rows),
                  dim3((unsigned)threads), 0, stream, *job);
}

template <typename E> static cudaError_t cross_entropy_of(cudaStream_t stream, const struct ah_cuda_cross_entropy *job)
{
    if (job->stride % lanes16<E> == 0)
        return cross_entropy_launch<E, lanes16<E>>(stream, job);
    return cross_entropy_launch<E, 1>(stream, job);
}

cudaError_t ah__cuda_cross_entropy_enqueue(cudaStream_t stream, enum ah_dtype dtype,
                                           const struct ah_cuda_cross_entropy *job)
{
    return dtype == AH_BF16 ? cross_entropy_of<__nv_bfloat16>(stream, job) : cross_entropy_of<float>(stream, job);
}

/* ---- scale and sum ----------------------------------------------------------------------------------------------- */

/* Returns the sum over a block of SUM_THREADS to thread 0. Exact for counts. */
static __device__ double block_sum(double x)
{
    __shared__ double shared[SUM_THREADS];
    shared[threadIdx.x] = x;
    __syncthreads();
    for (unsigned step = SUM_THREADS / 2; step > 0; step /= 2) {
        if (threadIdx.x < step)
            shared[threadIdx.x] += shared[threadIdx.x + step];
        __syncthreads();
    }
    return shared[0];
}

static __global__ void __launch_bounds__(SUM_THREADS)
    loss_scale(struct ah_cuda_loss_scale *scale, const float *given, const int32_t *targets, int64_t rows)
{
    double count = 0;
    for (int64_t i = threadIdx.x; targets && i < rows; i += SUM_THREADS)
        count += targets[i] != AH_TARGET_IGNORED ? 1 : 0;
    count = block_sum(count);
    if (threadIdx.x > 0)
        return;
    count = targets ? count : (double)rows;
    count = count > 0 ? count : 1;
    scale->loss = given ? (double)*given : 1 / count;
    scale->gradients = given ? *given : 1.0F / (float)count;
}

cudaError_t ah__cuda_loss_scale_enqueue(cudaStream_t stream, struct ah_cuda_loss_scale *scale, const float *given,
                                        const int32_t *targets, int64_t rows)
{
    return launch(loss_scale, dim3(1), dim3(SUM_THREADS), 0, stream, scale, given, targets, rows);
}

static __global__ void __launch_bounds__(SUM_THREADS)
    loss_sum(float *loss, const double *losses, int64_t rows, const struct ah_cuda_loss_scale *scale)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < rows; i += SUM_THREADS)
        sum += losses[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        *loss = (float)(sum * scale->loss);
}

cudaError_t ah__cuda_loss_sum_enqueue(cudaStream_t stream, float *loss, const double *losses, int64_t rows,
                                      const struct ah_cuda_loss_scale *scale)
{
    return launch(loss_sum, dim3(1), dim3(SUM_THREADS), 0, stream, loss, losses, rows, scale);
}
