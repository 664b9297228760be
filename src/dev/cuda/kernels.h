/* The device's own kernels as C functions: each puts launches on a stream and returns what the launch says. Elements are
 * of `dtype` where an address is `void *`; arithmetic is fp32, results are rounded once, and sums have one order that
 * follows from shapes alone. Addresses are 16-byte aligned unless said otherwise.
 *
 * The .cu files behind it launch through launch.cuh only. */
#ifndef AH_DEV_CUDA_KERNELS_H
#define AH_DEV_CUDA_KERNELS_H

#include <cuda_runtime_api.h>

#include "dev/dev.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- kernels_task.cu: tasks that are no programs; the struct is as in dev.h */

cudaError_t ah__cuda_adam(cudaStream_t stream, const struct ah_task *task);
/* Narrowing in place included; `zeros` become zero. */
cudaError_t ah__cuda_cast(cudaStream_t stream, const struct ah_task *task);
/* `partials`: AH_CUDA_PARTIALS doubles. */
cudaError_t ah__cuda_sqnorm(cudaStream_t stream, const struct ah_task *task, double *partials);
cudaError_t ah__cuda_clip(cudaStream_t stream, const struct ah_task *task);

#ifdef __cplusplus
}
#endif

#endif
