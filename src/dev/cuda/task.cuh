/* Declarations that the kernels of tasks share: grids, and elements widened and narrowed as on the host. */
#ifndef AH_DEV_CUDA_TASK_CUH
#define AH_DEV_CUDA_TASK_CUH

#include <stdint.h>

#include "dev/cuda/launch.cuh"

enum { THREADS = 256 };

static inline unsigned blocks_of(int64_t count, int64_t each)
{
    return static_cast<unsigned>((count + each - 1) / each);
}

static inline bool is_aligned(const void *at, uintptr_t bytes)
{
    return reinterpret_cast<uintptr_t>(at) % bytes == 0;
}

/* Returns the bits of a bfloat16. Integer arithmetic gives the host's result for NaN and for values too small for float
 * arithmetic. */
static __device__ inline unsigned short narrowed(float value)
{
    unsigned bits = __float_as_uint(value), quiet = bits | 0x400000U;
    bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
    return static_cast<unsigned short>((is_nan ? quiet : bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

static __device__ inline float widened(unsigned short narrow)
{
    return __uint_as_float(static_cast<unsigned>(narrow) << 16);
}

static __device__ inline float value_of(float value)
{
    return value;
}
static __device__ inline float value_of(unsigned short narrow)
{
    return widened(narrow);
}

#endif
