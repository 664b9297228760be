/* Inside the CUDA device: failed calls of CUDA as statuses. */
#ifndef AH_DEV_CUDA_ERROR_H
#define AH_DEV_CUDA_ERROR_H

#include <cuda_runtime_api.h>

#include "base/status.h"

/* AH_OK for cudaSuccess; else AH_ENOMEM for memory and AH_EDEVICE for all else, with "CALL: what CUDA says" as
 * message. */
int ah__cuda_status(const char *call, cudaError_t error);
/* The message is cut at the '('. */
#define AH_CUDA_TRY(call) AH_TRY(ah__cuda_status(#call, call))

#endif
