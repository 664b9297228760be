/* What the CUDA device calls that is not part of every installation: cuBLASLt, cuDNN, NCCL, and functions of the
 * driver. Found once for each opening; the CUDA runtime itself is linked in. */
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

/* Streams wait for a number in memory, events of a thread of the host, and write numbers, which are events for one. */
#define AH_CUDA_DRIVER_LIST(X)                                                                                         \
    X(cuStreamWaitValue64)                                                                                             \
    X(cuStreamWriteValue64)

struct ah_cuda_library {
    void *cublaslt_library, *cudnn_library; /* dlopen's; cuDNN's is null where there is none */
    void *nccl_library;                     /* null: not asked for */
#define AH_CUDA_MEMBER(name) __typeof__(name) *name;
    AH_CUBLASLT_LIST(AH_CUDA_MEMBER)
    AH_CUDNN_LIST(AH_CUDA_MEMBER) /* null without cuDNN */
    AH_NCCL_LIST(AH_CUDA_MEMBER)  /* null: not asked for */
    AH_CUDA_DRIVER_LIST(AH_CUDA_MEMBER)
#undef AH_CUDA_MEMBER
};

/* Looks in the folder that the environment variable AUTOHETE_CUDA_LIBRARIES names (several, separated by ':'), and only
 * there; where it names none, where the system looks. AH_EDEVICE names what is missing and where it was looked for;
 * cuDNN may be missing. */
int ah__cuda_library_open(struct ah_cuda_library *out);
/* Finds NCCL, too, in the same way. AH_EDEVICE. */
int ah__cuda_library_open_nccl(struct ah_cuda_library *library);
void ah__cuda_library_close(struct ah_cuda_library *library); /* all zero is fine */

#endif
