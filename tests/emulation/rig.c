#include "rig.h"

#include <cuda.h>
#include <string.h>

void rig_open(struct rig *rig)
{
    emulation_reset();
    *rig = (struct rig){0};
    assert_cuda(cudaSetDevice(0));
    assert_cuda(cudaStreamCreateWithFlags(&rig->stream, cudaStreamNonBlocking));
    assert_cuda(cudaStreamCreateWithPriority(&rig->other, cudaStreamNonBlocking, -5));
    assert_cuda(cudaMalloc((void **)&rig->device, RIG_BYTES));
    assert_cuda(cudaMalloc((void **)&rig->device2, RIG_BYTES));
    assert_cuda(cudaHostAlloc((void **)&rig->pinned, RIG_BYTES, cudaHostAllocDefault));
    assert_cuda(cudaHostAlloc((void **)&rig->flag, sizeof *rig->flag, cudaHostAllocDefault));
    *rig->flag = 0;
}

void rig_close(struct rig *rig)
{
    cudaStreamDestroy(rig->stream);
    cudaStreamDestroy(rig->other);
    cudaFree(rig->device);
    cudaFree(rig->device2);
    cudaFreeHost(rig->pinned);
    cudaFreeHost(rig->flag);
    assert_int_equal(emulation_alive(), 0);
    emulation_reset();
}

void rig_hold(struct rig *rig, cudaStream_t stream)
{
    assert_int_equal(cuStreamWaitValue64(stream, (CUdeviceptr)(uintptr_t)rig->flag, 1, CU_STREAM_WAIT_VALUE_GEQ),
                     CUDA_SUCCESS);
}

void rig_go(struct rig *rig)
{
    __atomic_store_n(rig->flag, 1, __ATOMIC_RELEASE);
}

void rig_read(struct rig *rig, const void *device, size_t bytes)
{
    assert_cuda(cudaMemcpyAsync(rig->pinned, device, bytes, cudaMemcpyDeviceToHost, rig->stream));
    assert_cuda(cudaStreamSynchronize(rig->stream));
}
