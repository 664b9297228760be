/* Loads, stores and sums of kernels: elements of the compute dtype, 16 bytes of them at a time if rows allow, widened
 * to float and rounded once when stored; and sums over the threads that share a row. */
#ifndef AH_DEV_CUDA_ELEMENT_CUH
#define AH_DEV_CUDA_ELEMENT_CUH

#include <cuda_bf16.h>
#include <stdint.h>

#include "dev/cuda/launch.cuh"
#include "dev/dev.h"

enum { WARP = 32 };

static __device__ inline float wide(float x)
{
    return x;
}

static __device__ inline float wide(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

static __device__ inline void put(float *to, float x)
{
    *to = x;
}

/* Stores x, rounded to nearest even. */
static __device__ inline void put(__nv_bfloat16 *to, float x)
{
    *to = __float2bfloat16_rn(x);
}

/* N adjacent elements: one access to memory, or two if they are more than 16 bytes. */
template <typename E, int N> struct alignas(N * sizeof(E) < 16 ? N * sizeof(E) : 16) pack {
    E lane[N];
};

/* Elements in 16 bytes. */
template <typename E> constexpr int lanes16 = 16 / (int)sizeof(E);

static inline int lanes16_of(enum ah_dtype dtype)
{
    return dtype == AH_BF16 ? lanes16<__nv_bfloat16> : lanes16<float>;
}

template <typename E, int N> static __device__ inline pack<E, N> pack_load(const E *from)
{
    return *reinterpret_cast<const pack<E, N> *>(from);
}

template <typename E, int N> static __device__ inline void pack_store(E *to, const pack<E, N> &value)
{
    *reinterpret_cast<pack<E, N> *>(to) = value;
}

template <typename E, int N> static __device__ inline pack<E, N> pack_zero()
{
    pack<E, N> zero;
#pragma unroll
    for (int u = 0; u < N; u++)
        put(&zero.lane[u], 0.0F);
    return zero;
}

/* Returns the sum of all lanes of a warp, by the tree lane i with lane i ^ 16, ^ 8, ... ^ 1: every lane has the same
 * bits. */
static __device__ inline float warp_sum(float x)
{
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xFFFFFFFFU, x, step);
    return x;
}

/* Two sums that are computed together. */
struct twin {
    float a, b;
};

static __device__ inline struct twin operator+(struct twin x, struct twin y)
{
    struct twin sum = {x.a + y.a, x.b + y.b};
    return sum;
}

static __device__ inline struct twin warp_sum(struct twin x)
{
    struct twin sum = {warp_sum(x.a), warp_sum(x.b)};
    return sum;
}

static __device__ inline float warp_largest(float x)
{
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFU, x, step));
    return x;
}

/* Warps of a block that share a row. `lane` is less than `lanes`; `first` is the team's first warp in the block. */
struct team {
    int lane, lanes, index, warps, first;
};

static __device__ inline struct team team_of(int warps)
{
    struct team t;
    t.lanes = warps * WARP;
    t.lane = (int)threadIdx.x % t.lanes;
    t.index = (int)threadIdx.x / t.lanes;
    t.warps = warps;
    t.first = t.index * warps;
    return t;
}

/* Returns the sum over the team, in order of its warps. `shared` has one element for each warp of the block; calls
 * alternate between two of them, so that none overwrites what a thread still reads for the one before. All threads of
 * the block take part. */
template <typename T> static __device__ inline T team_sum(const struct team *t, T *shared, T x)
{
    x = warp_sum(x);
    if (t->warps == 1)
        return x;
    if (threadIdx.x % WARP == 0)
        shared[threadIdx.x / WARP] = x;
    __syncthreads();
    x = shared[t->first];
    for (int i = 1; i < t->warps; i++)
        x = x + shared[t->first + i];
    return x;
}

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline unsigned blocks_for(int64_t work, int64_t of_each)
{
    return (unsigned)((work + of_each - 1) / of_each);
}

#endif
