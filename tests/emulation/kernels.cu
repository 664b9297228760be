#include "test_kernels.h"

#include <cuda_bf16.h>

#include "dev/cuda/launch.cuh"

enum { THREADS = 256, WARPS_THREADS = 64 };

static __global__ void add_one(float *out, const float *in, int count)
{
    int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        out[i] = in[i] + 1;
}

cudaError_t test_add_one(cudaStream_t stream, float *out, const float *in, int count)
{
    return launch(add_one, dim3((count + THREADS - 1) / THREADS), dim3(THREADS), 0, stream, out, in, count);
}

static __global__ void where(unsigned *out)
{
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned at = block * blockDim.x * blockDim.y * blockDim.z + thread;
    out[at] = 1 + block * 10000 + thread;
}

cudaError_t test_where(cudaStream_t stream, unsigned *out, dim3 grid, dim3 block)
{
    return launch(where, grid, block, 0, stream, out);
}

template <bool barrier> static __global__ void block_sum(float *out, const float *in)
{
    __shared__ float part[THREADS];
    unsigned thread = threadIdx.x;
    part[thread] = in[blockIdx.x * THREADS + thread];
    for (unsigned rest = THREADS / 2; rest > 0; rest /= 2) {
        if (barrier || rest != THREADS / 2)
            __syncthreads();
        if (thread < rest)
            part[thread] += part[thread + rest];
    }
    if (thread == 0)
        out[blockIdx.x] = part[0];
}

cudaError_t test_block_sum(cudaStream_t stream, float *out, const float *in, int blocks)
{
    return launch(block_sum<true>, dim3(blocks), dim3(THREADS), 0, stream, out, in);
}

cudaError_t test_no_barrier(cudaStream_t stream, float *out, const float *in, int blocks)
{
    return launch(block_sum<false>, dim3(blocks), dim3(THREADS), 0, stream, out, in);
}

static __global__ void shared_unwritten(float *out)
{
    __shared__ float fixed[4];
    AH_SHARED(float, dynamic);
    out[blockIdx.x * 2] = fixed[3];
    out[blockIdx.x * 2 + 1] = dynamic[3];
    fixed[3] = dynamic[3] = 7;
}

cudaError_t test_shared_unwritten(cudaStream_t stream, float *out, int blocks)
{
    return launch(shared_unwritten, dim3(blocks), dim3(1), 16, stream, out);
}

static __global__ void shared_bytes(float *out, int bytes, int beyond)
{
    AH_SHARED(char, dynamic);
    dynamic[bytes - 1] = 3;
    for (int i = 0; i < beyond; i++)
        dynamic[bytes + i] = 3;
    *out = dynamic[bytes - 1];
}

cudaError_t test_shared_bytes(cudaStream_t stream, float *out, int bytes, int opt_in, int beyond)
{
    if (opt_in) {
        cudaError_t error = cudaFuncSetAttribute(reinterpret_cast<const void *>(shared_bytes),
                                                 cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        if (error)
            return error;
    }
    return launch(shared_bytes, dim3(1), dim3(1), bytes, stream, out, bytes, beyond);
}

static __global__ void shuffle(unsigned *out, const unsigned *in, int kind, int argument, int width)
{
    unsigned value = in[threadIdx.x], got = 0;
    switch (kind) {
    case TEST_SHFL:
        got = __shfl_sync(~0U, value, argument, width);
        break;
    case TEST_UP:
        got = __shfl_up_sync(~0U, value, argument, width);
        break;
    case TEST_DOWN:
        got = __shfl_down_sync(~0U, value, argument, width);
        break;
    case TEST_XOR:
        got = __shfl_xor_sync(~0U, value, argument, width);
        break;
    case TEST_BALLOT:
        got = __ballot_sync(~0U, value & 1);
        break;
    case TEST_ANY:
        got = __any_sync(~0U, value == static_cast<unsigned>(argument));
        break;
    default:
        got = __all_sync(~0U, value != static_cast<unsigned>(argument));
    }
    __syncwarp();
    out[threadIdx.x] = got;
}

cudaError_t test_shuffle(cudaStream_t stream, unsigned *out, const unsigned *in, enum test_shuffle kind, int argument,
                         int width)
{
    return launch(shuffle, dim3(1), dim3(WARPS_THREADS), 0, stream, out, in, kind, argument, width);
}

static __global__ void half_warp(unsigned *out, unsigned mask)
{
    if (mask >> threadIdx.x & 1)
        out[threadIdx.x] = __shfl_xor_sync(mask, threadIdx.x, 16);
    else
        out[threadIdx.x] = __shfl_xor_sync(~mask, threadIdx.x + 100, 1);
}

cudaError_t test_half_warp(cudaStream_t stream, unsigned *out, unsigned mask)
{
    return launch(half_warp, dim3(1), dim3(32), 0, stream, out, mask);
}

static __global__ void stuck(int kind)
{
    unsigned thread = threadIdx.x;
    if (kind == TEST_EXITED) {
        if (thread >= 40)
            return;
        __syncthreads();
    } else if (kind == TEST_TWO_PLACES) {
        if (thread & 1)
            __syncthreads();
        else
            __syncthreads();
    } else if (kind == TEST_WARP_ENDED) {
        if (thread != 5)
            __shfl_xor_sync(~0U, thread, 1);
    } else if (kind == TEST_WARP_APART) {
        if (thread & 1)
            __shfl_xor_sync(~0U, thread, 1);
        else
            __shfl_xor_sync(~0U, thread, 2);
    } else if (kind == TEST_MASK) {
        __shfl_xor_sync(0xFFFF, thread, 1);
    } else if (kind == TEST_TRAP && thread == 3) {
        __trap();
    }
}

cudaError_t test_stuck(cudaStream_t stream, enum test_stuck kind)
{
    return launch(stuck, dim3(4), dim3(WARPS_THREADS), 0, stream, kind);
}

static __global__ void order(unsigned *count, unsigned *order)
{
    order[atomicAdd(count, 1U)] = blockIdx.x;
}

cudaError_t test_order(cudaStream_t stream, unsigned *count, unsigned *out, int blocks)
{
    return launch(order, dim3(blocks), dim3(1), 0, stream, count, out);
}

static __global__ void rounding(float *out, float small)
{
    out[0] = small * small;
    out[1] = __bfloat162float(__float2bfloat16_rn(1 + 0.001953125F));
    out[2] = __fmaf_rn(small, small, 1);
}

cudaError_t test_rounding(cudaStream_t stream, float *out, float small)
{
    return launch(rounding, dim3(1), dim3(1), 0, stream, out, small);
}

cudaError_t test_geometry(cudaStream_t stream, unsigned threads, unsigned blocks)
{
    return launch(stuck, dim3(blocks), dim3(threads), 0, stream, -1);
}
