/* Rotation by position. A block is for one place in the sequence: a thread computes the sines of its pairs once and
 * rotates them in all of its heads and batches. A token with a given position is a sequence of its own. */
#include <math.h>

#include "dev/cuda/element.cuh"
#include "dev/cuda/kernels.h"

enum { THREADS = 256, BLOCKS_WANTED = 2048, MOST_SLICES = 64 };

/* Computes the sine and cosine of `turn` in parts of 2^-64 of a turn: quarters are removed exactly; the rest is within
 * an eighth of a turn, where the Taylor sums are exact to the last place. */
static __device__ inline void sine_cosine(uint64_t turn, float *sine, float *cosine)
{
    const float tick = 3.4061215800e-19F; /* 2 pi / 2^64 */
    unsigned quarter = (unsigned)((turn + (1ULL << 61)) >> 62);
    float x = (float)(int64_t)(turn - ((uint64_t)quarter << 62)) * tick, square = x * x;
    float s = fmaf(square, 2.75573192e-6F, -1.98412698e-4F);
    s = fmaf(square, s, 8.33333333e-3F);
    s = fmaf(square, s, -1.66666667e-1F);
    s = fmaf(square * x, s, x);
    float c = fmaf(square, -2.75573192e-7F, 2.48015873e-5F);
    c = fmaf(square, c, -1.38888889e-3F);
    c = fmaf(square, c, 4.16666667e-2F);
    c = fmaf(square, c, -0.5F);
    c = fmaf(square, c, 1.0F);
    *sine = quarter & 1 ? c : s;
    *cosine = quarter & 1 ? s : c;
    *sine = quarter & 2 ? -*sine : *sine;
    *cosine = (quarter + 1) & 2 ? -*cosine : *cosine;
}

template <typename E, int N>
static __device__ void pairs_turn(E *left, E *right, const float sine[N], const float cosine[N])
{
    pack<E, N> a = pack_load<E, N>(left), b = pack_load<E, N>(right);
#pragma unroll
    for (int u = 0; u < N; u++) {
        float x = wide(a.lane[u]), y = wide(b.lane[u]);
        put(&a.lane[u], x * cosine[u] - y * sine[u]);
        put(&b.lane[u], y * cosine[u] + x * sine[u]);
    }
    pack_store<E, N>(left, a);
    pack_store<E, N>(right, b);
}

template <typename E, int N> static __global__ void __launch_bounds__(THREADS) rotary(struct ah_cuda_rotary job)
{
    int packs = (int)job.pairs / N, mine = (int)threadIdx.x % packs, abreast = THREADS / packs;
    int64_t channels = (job.by_head ? job.heads / 2 * 3 : job.heads) * job.size, heads = job.batch * job.heads;
    const int64_t position = job.positions ? job.positions[blockIdx.x] : (int64_t)blockIdx.x;
    float sine[N], cosine[N];
    if ((int)threadIdx.x >= abreast * packs)
        return;
#pragma unroll
    for (int u = 0; u < N; u++) {
        sine_cosine(job.turn[mine * N + u] * (uint64_t)position, &sine[u], &cosine[u]);
        sine[u] *= job.magnitude;
        cosine[u] *= job.magnitude;
    }
    /* The heads of all batches, numbered consecutively. */
    for (int64_t i = (int64_t)blockIdx.y * abreast + threadIdx.x / packs; i < heads;
         i += (int64_t)gridDim.y * abreast) {
        int64_t token = i / job.heads * job.seq + blockIdx.x, head = i % job.heads;
        head += job.by_head ? head / 2 : 0;
        E *at = (E *)job.x + token * channels + head * job.size + job.first + mine * N;
        pairs_turn<E, N>(at, at + job.half, sine, cosine);
    }
}

template <typename E> static cudaError_t rotary_of(cudaStream_t stream, const struct ah_cuda_rotary *job)
{
    constexpr int N = lanes16<E>;
    int64_t slices = (BLOCKS_WANTED + job->seq - 1) / job->seq;
    dim3 grid((unsigned)job->seq, (unsigned)least(slices, MOST_SLICES));
    if (job->size % N == 0 && job->half % N == 0 && job->first % N == 0 && job->pairs % N == 0)
        return launch(rotary<E, N>, grid, dim3(THREADS), 0, stream, *job);
    return launch(rotary<E, 1>, grid, dim3(THREADS), 0, stream, *job);
}

cudaError_t ah__cuda_rotary_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_rotary *job)
{
    return dtype == AH_BF16 ? rotary_of<__nv_bfloat16>(stream, job) : rotary_of<float>(stream, job);
}
