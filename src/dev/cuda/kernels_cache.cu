/* The key/value cache: keys and values are written row by row, and one query at a time attends to them.
 *
 * A block is for one head of one token. Its warps take the rows of the cache in turn, each with an online softmax of
 * its own; in the end they are joined in their order, so the bits follow from position and shape alone. */
#include <float.h>

#include "dev/cuda/attention.h"
#include "dev/cuda/element.cuh"
#include "dev/cuda/kernels.h"

enum { WARPS = 8, THREADS = WARPS * WARP, LANE_CHANNELS = AH_CUDA_ATTENTION_MAX_HEAD / WARP };

static __device__ inline int64_t position_of(const ah_cuda_cache &job, int64_t token)
{
    return job.positions ? job.positions[token] : token % job.seq;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

template <typename E> static __global__ void __launch_bounds__(THREADS) cache_write(ah_cuda_cache job)
{
    const int64_t token = blockIdx.x, position = position_of(job, token);
    if (position < 0 || position >= job.rows)
        return;
    E *row = (E *)job.cache + (token / job.seq * job.rows + position) * 2 * job.keys;
    for (int64_t c = threadIdx.x; c < job.keys; c += THREADS) {
        const int64_t from = token * job.stride + c / job.size * job.head + c % job.size;
        row[c] = ((const E *)job.k)[from];
        row[job.keys + c] = ((const E *)job.v)[from];
    }
}

/* ---- seeing ------------------------------------------------------------------------------------------------------ */

/* The sums of a warp; a lane has the channels lane, lane + 32, ... of the values. */
struct seen {
    float most, total, value[LANE_CHANNELS];
};

/* Adds the sums of another warp, after rescaling both to the larger maximum. */
static __device__ inline void join(seen *to, float most, float total, const float value[LANE_CHANNELS])
{
    const float larger = fmaxf(to->most, most), mine = expf(to->most - larger), other = expf(most - larger);
    to->total = to->total * mine + total * other;
#pragma unroll
    for (int i = 0; i < LANE_CHANNELS; i++)
        to->value[i] = to->value[i] * mine + value[i] * other;
    to->most = larger;
}

template <typename E> static __device__ inline void lane_load(float to[LANE_CHANNELS], const E *from, int size)
{
#pragma unroll
    for (int i = 0; i < LANE_CHANNELS; i++) {
        const int c = (int)threadIdx.x % WARP + i * WARP;
        to[i] = c < size ? wide(from[c]) : 0.0F;
    }
}

template <typename E> static __device__ inline void lane_store(E *to, const seen &s, int size)
{
#pragma unroll
    for (int i = 0; i < LANE_CHANNELS; i++) {
        const int c = (int)threadIdx.x % WARP + i * WARP;
        if (c < size)
            put(to + c, s.value[i] / s.total);
    }
}

template <typename E> static __global__ void __launch_bounds__(THREADS) attention_cached(ah_cuda_cache job)
{
    __shared__ seen others[WARPS][WARP];
    const int64_t token = blockIdx.x / job.heads, position = position_of(job, token);
    const int head = (int)(blockIdx.x % job.heads), warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    const E *keys = (const E *)job.cache + token / job.seq * job.rows * 2 * job.keys + head / job.group * job.size;
    const int64_t last = position < job.rows ? position : job.rows - 1;
    seen s = {-FLT_MAX, 0.0F, {}};
    if (job.sinks && warp == 0)
        s = {wide(((const E *)job.sinks)[head]), 1.0F, {}};
    float q[LANE_CHANNELS], k[LANE_CHANNELS], v[LANE_CHANNELS];
    lane_load(q, (const E *)job.q + token * job.stride + head * job.head, job.size);
    for (int64_t row = (position < job.window ? 0 : position - job.window + 1) + warp; row <= last; row += WARPS) {
        float score = 0.0F;
        lane_load(k, keys + row * 2 * job.keys, job.size);
        lane_load(v, keys + row * 2 * job.keys + job.keys, job.size);
#pragma unroll
        for (int i = 0; i < LANE_CHANNELS; i++)
            score = fmaf(q[i], k[i], score);
        score = warp_sum(score) * job.scale;
        join(&s, job.cap > 0.0F ? job.cap * tanhf(score / job.cap) : score, 1.0F, v);
    }
    others[warp][lane] = s;
    __syncthreads();
    if (warp > 0)
        return;
    for (int w = 1; w < WARPS; w++)
        join(&s, others[w][lane].most, others[w][lane].total, others[w][lane].value);
    lane_store((E *)job.y + (token * job.heads + head) * job.size, s, job.size);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

cudaError_t ah__cuda_cache_write_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_cache *job)
{
    const dim3 grid((unsigned)(job->batch * job->seq)), block(THREADS);
    return dtype == AH_BF16 ? launch(cache_write<__nv_bfloat16>, grid, block, 0, stream, *job)
                            : launch(cache_write<float>, grid, block, 0, stream, *job);
}

cudaError_t ah__cuda_attention_cached_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_cache *job)
{
    const dim3 grid((unsigned)(job->batch * job->seq * job->heads)), block(THREADS);
    return dtype == AH_BF16 ? launch(attention_cached<__nv_bfloat16>, grid, block, 0, stream, *job)
                            : launch(attention_cached<float>, grid, block, 0, stream, *job);
}
