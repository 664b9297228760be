/* Functions that the CUDA device calls and that are not part of every installation: cuBLASLt, cuDNN, NCCL, and
 * functions of the driver. Found once for each opening; the CUDA runtime itself is linked in. */
#ifndef AH_DEV_CUDA_LIBRARY_H
#define AH_DEV_CUDA_LIBRARY_H

#include <cublasLt.h>
#include <cuda.h>
#include <cudnn.h>
#include <nccl.h>

#include "base/status.h"

#define AH_CUBLASLT_LIST(X)                                                                                            \
    X(cublasLtCreate)                                                                                                  \
    X(cublasLtDestroy)                                                                                                 \
    X(cublasLtGetVersion)                                                                                              \
    X(cublasLtGetStatusString)                                                                                         \
    X(cublasLtMatmul)                                                                                                  \
    X(cublasLtMatmulAlgoGetHeuristic)                                                                                  \
    X(cublasLtMatmulDescCreate)                                                                                        \
    X(cublasLtMatmulDescDestroy)                                                                                       \
    X(cublasLtMatmulDescSetAttribute)                                                                                  \
    X(cublasLtMatmulPreferenceCreate)                                                                                  \
    X(cublasLtMatmulPreferenceDestroy)                                                                                 \
    X(cublasLtMatmulPreferenceSetAttribute)                                                                            \
    X(cublasLtMatrixLayoutCreate)                                                                                      \
    X(cublasLtMatrixLayoutDestroy)                                                                                     \
    X(cublasLtMatrixLayoutSetAttribute)

#define AH_CUDNN_LIST(X)                                                                                               \
    X(cudnnCreate)                                                                                                     \
    X(cudnnDestroy)                                                                                                    \
    X(cudnnSetStream)                                                                                                  \
    X(cudnnGetVersion)                                                                                                 \
    X(cudnnGetErrorString)                                                                                             \
    X(cudnnGetLastErrorString)                                                                                         \
    X(cudnnBackendCreateDescriptor)                                                                                    \
    X(cudnnBackendDestroyDescriptor)                                                                                   \
    X(cudnnBackendSetAttribute)                                                                                        \
    X(cudnnBackendGetAttribute)                                                                                        \
    X(cudnnBackendFinalize)                                                                                            \
    X(cudnnBackendExecute)

#define AH_NCCL_LIST(X)                                                                                                \
    X(ncclGetUniqueId)                                                                                                 \
    X(ncclGetErrorString)                                                                                              \
    X(ncclGetLastError)                                                                                                \
    X(ncclCommInitRankConfig)                                                                                          \
    X(ncclCommGetAsyncError)                                                                                           \
    X(ncclCommFinalize)                                                                                                \
    X(ncclCommDestroy)                                                                                                 \
    X(ncclCommAbort)                                                                                                   \
    X(ncclGroupStart)                                                                                                  \
    X(ncclGroupEnd)                                                                                                    \
    X(ncclSend)                                                                                                        \
    X(ncclRecv)                                                                                                        \
    X(ncclAllGather)

/* Streams wait for a number in memory, which a thread of the host writes as an event, and write numbers, which are
 * events for that thread. */
#define AH_CUDA_DRIVER_LIST(X)                                                                                         \
    X(cuStreamWaitValue64)                                                                                             \
    X(cuStreamWriteValue64)

struct ah_cuda_library {
    void *cublaslt_library, *cudnn_library; /* handles of dlopen; cudnn_library is null if there is no cuDNN */
    void *nccl_library;                     /* null: not needed */
#define AH_CUDA_MEMBER(name) __typeof__(name) *name;
    AH_CUBLASLT_LIST(AH_CUDA_MEMBER)
    AH_CUDNN_LIST(AH_CUDA_MEMBER) /* null without cuDNN */
    AH_NCCL_LIST(AH_CUDA_MEMBER)  /* null: not needed */
    AH_CUDA_DRIVER_LIST(AH_CUDA_MEMBER)
#undef AH_CUDA_MEMBER
};

/* Opens the libraries in the folders that the environment variable AUTOHETE_CUDA_LIBRARIES names (separated by ':'),
 * and only there; if it names none, where the system looks. AH_EDEVICE names the missing library and where it was
 * looked for; cuDNN may be missing. */
int ah__cuda_library_open(struct ah_cuda_library *out);
/* Opens NCCL, too, in the same way. AH_EDEVICE. */
int ah__cuda_library_open_nccl(struct ah_cuda_library *library);
void ah__cuda_library_close(struct ah_cuda_library *library); /* all zero is fine */

#endif
