/* A CUDA driver (libcuda.so.1) that says a GPU is there and takes every kernel as loaded, so that the real cuDNN plans
 * graphs on a machine without one. What the GPU is like, cuDNN is told in a description. Nothing is executed: functions
 * that planning does not need are there and refuse.
 *
 * Callers pass more arguments than most functions here declare, which the platforms' calling conventions allow. */
#include <stddef.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 801, VERSION = 13000, ATTRIBUTE_REGISTERS = 4, REGISTERS = 128, CLUSTERS = 66 };

static char object; /* whatever is asked for */

#define DRIVER __attribute__((visibility("default"))) int

/* What succeeds without more; what gives an object, or a number, in its first argument; what refuses. */
#define DOES(name)                                                                                                     \
    DRIVER name(void);                                                                                                 \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        return SUCCESS;                                                                                                \
    }
#define GIVES(name)                                                                                                    \
    DRIVER name(void **out);                                                                                           \
    int name(void **out)                                                                                               \
    {                                                                                                                  \
        *out = &object;                                                                                                \
        return SUCCESS;                                                                                                \
    }
#define COUNTS(name, number)                                                                                           \
    DRIVER name(int *out);                                                                                             \
    int name(int *out)                                                                                                 \
    {                                                                                                                  \
        *out = number;                                                                                                 \
        return SUCCESS;                                                                                                \
    }
#define ATTRIBUTE(name)                                                                                                \
    DRIVER name(int *out, int attribute);                                                                              \
    int name(int *out, int attribute)                                                                                  \
    {                                                                                                                  \
        *out = attribute == ATTRIBUTE_REGISTERS ? REGISTERS : 0;                                                       \
        return SUCCESS;                                                                                                \
    }
#define TELLS(name)                                                                                                    \
    DRIVER name(int error, const char **out);                                                                          \
    int name(int error, const char **out)                                                                              \
    {                                                                                                                  \
        (void)error;                                                                                                   \
        *out = "no GPU, a driver for planning";                                                                        \
        return SUCCESS;                                                                                                \
    }
#define REFUSES(name)                                                                                                  \
    DRIVER name(void);                                                                                                 \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        return NOT_SUPPORTED;                                                                                          \
    }

DOES(cuInit)
DOES(cuLibraryUnload)
DOES(cuModuleUnload)
DOES(cuFuncSetAttribute)
DOES(cuKernelSetAttribute)
GIVES(cuCtxGetCurrent)
GIVES(cuLibraryLoadData)
GIVES(cuLibraryGetKernel)
GIVES(cuKernelGetFunction)
GIVES(cuModuleLoadData)
GIVES(cuModuleLoadDataEx)
GIVES(cuModuleGetFunction)
COUNTS(cuDriverGetVersion, VERSION)
COUNTS(cuDeviceGetCount, 1)
COUNTS(cuDeviceGet, 0)
COUNTS(cuCtxGetDevice, 0)
COUNTS(cuOccupancyMaxActiveBlocksPerMultiprocessor, 1)
COUNTS(cuOccupancyMaxActiveClusters, CLUSTERS)
ATTRIBUTE(cuFuncGetAttribute)
ATTRIBUTE(cuKernelGetAttribute)
TELLS(cuGetErrorString)
TELLS(cuGetErrorName)
REFUSES(cuGetExportTable)
REFUSES(cuGetProcAddress)
REFUSES(cuGetProcAddress_v2)
REFUSES(cuCtxGetLimit)
REFUSES(cuCtxPopCurrent)
REFUSES(cuCtxPopCurrent_v2)
REFUSES(cuCtxPushCurrent)
REFUSES(cuCtxPushCurrent_v2)
REFUSES(cuStreamGetCtx)
REFUSES(cuStreamGetCtx_v2)
REFUSES(cuLinkCreate)
REFUSES(cuLinkCreate_v2)
REFUSES(cuLinkAddData)
REFUSES(cuLinkAddData_v2)
REFUSES(cuLinkComplete)
REFUSES(cuLinkDestroy)
REFUSES(cuLaunchKernel)
REFUSES(cuLaunchKernelEx)
REFUSES(cuLaunchCooperativeKernel)
REFUSES(cuLibraryLoadFromFile)
REFUSES(cuOccupancyMaxPotentialClusterSize)
