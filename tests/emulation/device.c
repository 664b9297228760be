/* Devices: how many, what they are, what errors are called. */
#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRIVER_VERSION = CUDART_VERSION, DEVICES = 1, MULTIPROCESSORS = 4, BUS = 0x17 };

static __thread int current;

int emulation_device(void)
{
    return current;
}

static int device_count(void)
{
    return (int)emulation_setting("AUTOHETE_EMULATION_DEVICES", DEVICES);
}

cudaError_t cudaGetDeviceCount(int *out)
{
    ENTER("cudaGetDeviceCount");
    *out = device_count();
    return *out ? cudaSuccess : emulation_failed(cudaErrorNoDevice);
}

/* Starts nothing, and comes before what gives back. */
cudaError_t cudaSetDevice(int device)
{
    int error = emulation_enter_release("cudaSetDevice");
    if (error || (error = emulation_sticky()) != 0)
        return emulation_failed((cudaError_t)error);
    if (device < 0 || device >= device_count())
        REFUSE(cudaErrorInvalidDevice, "cudaSetDevice: %d of %d", device, device_count());
    current = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *out)
{
    ENTER("cudaGetDevice");
    *out = current;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *out)
{
    ENTER("cudaDriverGetVersion");
    *out = DRIVER_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *out)
{
    ENTER("cudaRuntimeGetVersion");
    *out = CUDART_VERSION;
    return cudaSuccess;
}

/* An sm_90 with few multiprocessors: grids that follow from their number stay small. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device)
{
    ENTER("cudaGetDeviceProperties");
    if (!out || device < 0 || device >= device_count())
        REFUSE(cudaErrorInvalidDevice, "cudaGetDeviceProperties: of %d of %d", device, device_count());
    *out = (struct cudaDeviceProp){
        .name = "Emulated GPU",
        .totalGlobalMem = emulation_memory_bytes(),
        .sharedMemPerBlock = 48 << 10,
        .sharedMemPerBlockOptin = 227 << 10,
        .sharedMemPerMultiprocessor = 228 << 10,
        .reservedSharedMemPerBlock = 1 << 10,
        .regsPerBlock = 65536,
        .regsPerMultiprocessor = 65536,
        .warpSize = 32,
        .maxThreadsPerBlock = 1024,
        .maxThreadsDim = {1024, 1024, 64},
        .maxGridSize = {0x7FFFFFFF, 65535, 65535},
        .totalConstMem = 64 << 10,
        .major = 9,
        .minor = 0,
        .textureAlignment = 512,
        .multiProcessorCount = MULTIPROCESSORS,
        .canMapHostMemory = 1,
        .concurrentKernels = 1,
        .pciBusID = BUS + device,
        .asyncEngineCount = 3,
        .unifiedAddressing = 1,
        .memoryBusWidth = 5120,
        .l2CacheSize = 50 << 20,
        .maxThreadsPerMultiProcessor = 2048,
        .maxBlocksPerMultiProcessor = 32,
        .streamPrioritiesSupported = 1,
        .canUseHostPointerForRegisteredMem = 1,
        .hostRegisterSupported = 1,
        .hostNumaId = 0,
    };
    memcpy(out->uuid.bytes, "emulated GPU  \1", 15);
    out->uuid.bytes[15] = (char)device;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *out, enum cudaDeviceAttr attribute, int device)
{
    static const struct {
        enum cudaDeviceAttr attribute;
        int value;
    } attributes[] = {
        {cudaDevAttrMaxThreadsPerBlock, 1024},
        {cudaDevAttrMaxSharedMemoryPerBlock, 48 << 10},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, 227 << 10},
        {cudaDevAttrWarpSize, 32},
        {cudaDevAttrClockRate, 1980000},
        {cudaDevAttrMemoryClockRate, 2619000},
        {cudaDevAttrGlobalMemoryBusWidth, 5120},
        {cudaDevAttrMultiProcessorCount, MULTIPROCESSORS},
        {cudaDevAttrL2CacheSize, 50 << 20},
        {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
        {cudaDevAttrComputeCapabilityMajor, 9},
        {cudaDevAttrComputeCapabilityMinor, 0},
        {cudaDevAttrHostRegisterSupported, 1},
        {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
        {cudaDevAttrHostNumaId, 0},
    };
    ENTER("cudaDeviceGetAttribute");
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (attributes[i].attribute == attribute && device >= 0 && device < device_count()) {
            *out = attributes[i].value;
            return cudaSuccess;
        }
    REFUSE(cudaErrorInvalidValue, "cudaDeviceGetAttribute: %d of device %d", (int)attribute, device);
}

cudaError_t cudaDeviceGetPCIBusId(char *out, int bytes, int device)
{
    ENTER("cudaDeviceGetPCIBusId");
    if (!out || bytes < 13 || device < 0 || device >= device_count())
        REFUSE(cudaErrorInvalidValue, "cudaDeviceGetPCIBusId: of device %d into %d bytes", device, bytes);
    snprintf(out, (size_t)bytes, "0000:%02X:00.0", (unsigned)(BUS + device));
    return cudaSuccess;
}

/* ---- what the kernel says of a GPU's connection: the plugin on the emulated GPU is linked with --wrap=fopen */

static const char pci_folder[] = "/sys/bus/pci/devices";

FILE *__wrap_fopen(const char *path, const char *mode);

FILE *__wrap_fopen(const char *path, const char *mode)
{
    char other[512];
    const char *folder = getenv("AUTOHETE_EMULATION_PCI");
    if (!folder || strncmp(path, pci_folder, sizeof pci_folder - 1) != 0)
        return fopen(path, mode);
    snprintf(other, sizeof other, "%s%s", folder, path + sizeof pci_folder - 1);
    return fopen(other, mode);
}

/* ---- what errors are called */

#define ERRORS(X)                                                                                                      \
    X(cudaSuccess, "no error")                                                                                         \
    X(cudaErrorInvalidValue, "invalid argument")                                                                       \
    X(cudaErrorMemoryAllocation, "out of memory")                                                                      \
    X(cudaErrorInitializationError, "initialization error")                                                            \
    X(cudaErrorInvalidConfiguration, "invalid configuration argument")                                                 \
    X(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")                                            \
    X(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version")                     \
    X(cudaErrorNoDevice, "no CUDA-capable device is detected")                                                         \
    X(cudaErrorInvalidDevice, "invalid device ordinal")                                                                \
    X(cudaErrorInvalidResourceHandle, "invalid resource handle")                                                       \
    X(cudaErrorNotReady, "device not ready")                                                                           \
    X(cudaErrorIllegalAddress, "an illegal memory access was encountered")                                             \
    X(cudaErrorLaunchOutOfResources, "too many resources requested for launch")                                        \
    X(cudaErrorLaunchFailure, "unspecified launch failure")                                                            \
    X(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped")             \
    X(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region")                   \
    X(cudaErrorNotPermitted, "operation not permitted")                                                                \
    X(cudaErrorNotSupported, "operation not supported")                                                                \
    X(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device")                     \
    X(cudaErrorUnknown, "unknown error")

const char *cudaGetErrorString(cudaError_t error)
{
    switch ((int)error) {
#define X(name, text)                                                                                                  \
    case name:                                                                                                         \
        return text;
        ERRORS(X)
#undef X
    default:
        return "unrecognized error code";
    }
}

const char *cudaGetErrorName(cudaError_t error)
{
    switch ((int)error) {
#define X(name, text)                                                                                                  \
    case name:                                                                                                         \
        return #name;
        ERRORS(X)
#undef X
    default:
        return "unrecognized error code";
    }
}
