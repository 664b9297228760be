/* The only way in which kernels are launched. */
#ifndef AH_DEV_CUDA_LAUNCH_CUH
#define AH_DEV_CUDA_LAUNCH_CUH

#include <cuda_runtime.h>

/* Launches kernel<<<grid, block, shared_bytes, stream>>>(args...), with the arguments converted to the kernel's own
 * types. */
template <typename... Params, typename... Args>
static inline cudaError_t launch(void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared_bytes,
                                 cudaStream_t stream, Args... args)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    return cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...);
}

#endif
