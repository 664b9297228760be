/* What is put on streams: copies, launches, callbacks, values in memory. */
#include "inside.h"

#include <cuda.h>
#include <string.h>

/* ---- copies */

/* Whether an address is what the direction says: device memory, or pinned host memory; all of it. */
static const char *copy_fault(const void *address, size_t bytes, bool device)
{
    if (device)
        return emulation_is_device(address, bytes) ? NULL : "no device memory of that size";
    if (emulation_is_pinned(address, bytes))
        return NULL;
    return emulation_is_device(address, 1) ? "device memory" : "no pinned memory of that size";
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    ENTER("cudaMemcpyAsync");
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (kind == cudaMemcpyDefault) {
        to_device = emulation_is_device(to, 1);
        from_device = emulation_is_device(from, 1);
    }
    const char *to_fault = bytes ? copy_fault(to, bytes, to_device) : NULL;
    const char *from_fault = bytes ? copy_fault(from, bytes, from_device) : NULL;
    if (to_fault || from_fault)
        REFUSE(cudaErrorInvalidValue, "cudaMemcpyAsync: of %zu bytes, kind %d, %s %p is %s", bytes, (int)kind,
               to_fault ? "to" : "from", to_fault ? to : from, to_fault ? to_fault : from_fault);
    struct operation *operation = operation_new(COPY, "cudaMemcpyAsync", 0);
    operation->as.copy.to = to;
    operation->as.copy.from = from;
    operation->as.copy.bytes = bytes;
    emulation_count(COUNT_COPIES, 1);
    emulation_count(COUNT_COPIED_BYTES, (long)bytes);
    return operation_push(stream, operation);
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream)
{
    ENTER("cudaMemsetAsync");
    if (bytes && !emulation_is_device(to, bytes))
        REFUSE(cudaErrorInvalidValue, "cudaMemsetAsync: %p is no device memory of %zu bytes", to, bytes);
    struct operation *operation = operation_new(FILL, "cudaMemsetAsync", 0);
    operation->as.copy.to = to;
    operation->as.copy.byte = byte;
    operation->as.copy.bytes = bytes;
    return operation_push(stream, operation);
}

/* ---- launches */

enum { SHARED_BYTES = 48 << 10, SHARED_OPTIN_BYTES = 227 << 10, KERNELS_MOST = 1024, PARAMETER_BYTES = 4096 };
enum { THREADS_MOST = 1024, THREADS_Z = 64, GRID_YZ = 65535, GRID_X = 0x7FFFFFFF };

/* Kernels that may have more than 48 KiB of dynamic shared memory. */
static struct {
    const void *kernel;
    size_t bytes;
} opted[KERNELS_MOST];

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
    ENTER("cudaFuncSetAttribute");
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > SHARED_OPTIN_BYTES)
        REFUSE(cudaErrorInvalidValue, "cudaFuncSetAttribute: attribute %d, value %d", (int)attribute, value);
    emulation_lock();
    int slot = 0;
    while (slot < KERNELS_MOST - 1 && opted[slot].kernel && opted[slot].kernel != kernel)
        slot++;
    opted[slot].kernel = kernel;
    opted[slot].bytes = (size_t)value;
    emulation_unlock();
    return cudaSuccess;
}

static size_t shared_limit(const void *kernel)
{
    size_t limit = SHARED_BYTES;
    emulation_lock();
    for (int i = 0; i < KERNELS_MOST && opted[i].kernel; i++)
        if (opted[i].kernel == kernel && opted[i].bytes > limit)
            limit = opted[i].bytes;
    emulation_unlock();
    return limit;
}

static cudaError_t launch_check(const struct emulation_launch *launch)
{
    dim3 grid = launch->grid, block = launch->block;
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (!grid.x || !grid.y || !grid.z || !threads || threads > THREADS_MOST || block.z > THREADS_Z || grid.x > GRID_X ||
        grid.y > GRID_YZ || grid.z > GRID_YZ)
        return (cudaError_t)emulation_object(cudaErrorInvalidConfiguration, "a launch of %u,%u,%u blocks of %u,%u,%u",
                                             grid.x, grid.y, grid.z, block.x, block.y, block.z);
    if (launch->shared_bytes > shared_limit(launch->kernel))
        return (cudaError_t)emulation_object(cudaErrorInvalidValue,
                                             "a launch with %zu bytes of dynamic shared memory, %zu allowed",
                                             launch->shared_bytes, shared_limit(launch->kernel));
    if (launch->bound_bytes > PARAMETER_BYTES)
        return (cudaError_t)emulation_object(cudaErrorInvalidValue, "a launch with arguments of %zu bytes",
                                             launch->bound_bytes);
    return cudaSuccess;
}

cudaError_t emulation_launch_enqueue(struct emulation_launch *launch, const cudaLaunchConfig_t *config)
{
    ENTER("cudaLaunchKernelEx");
    launch->grid = config->gridDim;
    launch->block = config->blockDim;
    launch->shared_bytes = config->dynamicSmemBytes;
    launch->stream = config->stream;
    if (config->numAttrs)
        REFUSE(cudaErrorNotSupported, "a launch with attributes");
    cudaError_t error = launch_check(launch);
    if (error)
        return emulation_failed(error);
    struct operation *operation = operation_new(LAUNCH, "cudaLaunchKernelEx", launch->bound_bytes);
    operation->as.launch = *launch;
    memcpy(operation->behind, launch->bound, launch->bound_bytes);
    emulation_count(COUNT_LAUNCHES, 1);
    return operation_push(launch->stream, operation);
}

/* ---- libraries and callbacks */

cudaError_t emulation_enqueue(cudaStream_t stream, const char *what, void (*run)(void *argument), const void *argument,
                              size_t bytes)
{
    int sticky = emulation_sticky();
    if (sticky)
        return emulation_failed((cudaError_t)sticky);
    struct operation *operation = operation_new(RUN, what, bytes);
    operation->as.run.run = run;
    memcpy(operation->behind, argument, bytes);
    return operation_push(stream, operation);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *argument, unsigned flags)
{
    ENTER("cudaStreamAddCallback");
    if (!callback || flags)
        REFUSE(cudaErrorInvalidValue, "cudaStreamAddCallback: flags %u", flags);
    struct operation *operation = operation_new(CALLBACK, "cudaStreamAddCallback", 0);
    operation->as.callback.function = callback;
    operation->as.callback.argument = argument;
    return operation_push(stream, operation);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    ENTER("cudaLaunchHostFunc");
    if (!function)
        REFUSE(cudaErrorInvalidValue, "cudaLaunchHostFunc: no function");
    struct operation *operation = operation_new(HOST_FUNCTION, "cudaLaunchHostFunc", 0);
    operation->as.callback.host = function;
    operation->as.callback.argument = argument;
    return operation_push(stream, operation);
}

/* ---- values in memory: functions of the driver */

static CUresult value_push(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags,
                           enum operation_kind kind, const char *what)
{
    void *at = (void *)(uintptr_t)address;
    bool known = emulation_is_pinned(at, sizeof value) || emulation_is_device(at, sizeof value);
    unsigned most = kind == WAIT_VALUE ? CU_STREAM_WAIT_VALUE_NOR : 0;
    int error = emulation_enter(what);
    if (error || (error = emulation_sticky()) != 0)
        return (CUresult)error;
    if (!known || address % sizeof value || flags > most)
        return (CUresult)emulation_object(CUDA_ERROR_INVALID_VALUE, "%s: %p, flags %u", what, at, flags);
    struct operation *operation = operation_new(kind, what, 0);
    operation->as.value.at = at;
    operation->as.value.value = value;
    operation->as.value.flags = flags;
    return operation_push(stream, operation) ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
    return value_push(stream, address, value, flags, WAIT_VALUE, "cuStreamWaitValue64");
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
    return value_push(stream, address, value, flags, WRITE_VALUE, "cuStreamWriteValue64");
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **out, unsigned version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *found)
{
    static const struct {
        const char *name;
        CUresult (*function)(CUstream, CUdeviceptr, cuuint64_t, unsigned);
    } functions[] = {{"cuStreamWaitValue64", cuStreamWaitValue64}, {"cuStreamWriteValue64", cuStreamWriteValue64}};
    ENTER("cudaGetDriverEntryPointByVersion");
    if (!symbol || !out || flags != cudaEnableDefault || version > CUDA_VERSION)
        REFUSE(cudaErrorInvalidValue, "cudaGetDriverEntryPointByVersion: version %u, flags %llu", version, flags);
    *out = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(symbol, functions[i].name) == 0 && !emulation_fault_here("symbol")) /* as an older driver */
            memcpy(out, &functions[i].function, sizeof *out);
    if (found)
        *found = *out ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
