/* Inside the CUDA device: failed calls of CUDA as statuses. */
#ifndef AH_DEV_CUDA_ERROR_H
#define AH_DEV_CUDA_ERROR_H

#include <cuda_runtime_api.h>

#include "base/status.h"

/* Returns AH_OK for cudaSuccess; else AH_ENOMEM for missing memory and AH_EDEVICE for all others, with the message
 * "CALL: text of CUDA". */
int ah__cuda_status(const char *call, cudaError_t error);
/* The message names the call up to its '('. */
#define AH_CUDA_TRY(call) AH_TRY(ah__cuda_status(#call, call))

#endif
