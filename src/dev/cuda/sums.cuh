/* Finishes sums that blocks have begun: of norms' weights and biases, and of columns. Private to kernels. */
#ifndef AH_DEV_CUDA_SUMS_CUH
#define AH_DEV_CUDA_SUMS_CUH

#include "dev/cuda/kernels.h"

/* One array or two, whose partial sums are side by side. */
struct ah_cuda_sums {
    float *to[2]; /* null: not needed */
    bool add[2];
    const float *partials; /* [count][arrays][cols] */
    int64_t count, cols;
    int arrays;
};

/* Adds up partial sums in double precision, in an order that follows from the shape. */
cudaError_t ah__cuda_sums_enqueue(cudaStream_t stream, const struct ah_cuda_sums *s);

#endif
