/* Converts CUDA's errors to a status and one line. */
#include "dev/cuda/error.h"

#include <string.h>

static int status_of(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? AH_ENOMEM : AH_EDEVICE;
}

int ah__cuda_status(const char *call, cudaError_t error)
{
    if (error == cudaSuccess)
        return AH_OK;
    (void)cudaGetLastError(); /* clears the error: libraries would take an old failure for their own */
    return ah__fail(status_of(error), "%.*s: %s", (int)strcspn(call, "("), call, cudaGetErrorString(error));
}
