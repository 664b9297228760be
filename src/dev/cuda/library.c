/* Finds the functions that the CUDA device calls beside the runtime. */
#include "dev/cuda/library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

static const char cublaslt_name[] = "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR);
static const char nccl_name[] = "libnccl.so." TEXT(NCCL_MAJOR);
static const char cudnn_name[] = "libcudnn.so." TEXT(CUDNN_MAJOR);

/* ---- libraries --------------------------------------------------------------------------------------------------- */

/* Loads a library, which is never unloaded: it has state with the driver, and threads that may still be ending. */
static void *library_load(const char **why, const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    *why = library ? "" : dlerror();
    return library;
}

/* Loads a library from the first of the folders `named` (separated by ':') that has it; if no folder is named, from
 * where the system looks. Null: *why has the reason. If a file is there but does not load, no other is tried. */
static void *library_find(const char **why, const char *named, const char *name)
{
    char path[4096];
    if (!*named)
        return library_load(why, name);
    for (const char *at = named; *at; at += *at == ':') {
        int length = (int)strcspn(at, ":");
        bool fits = length && snprintf(path, sizeof path, "%.*s/%s", length, at, name) < (int)sizeof path;
        at += length;
        if (fits && access(path, F_OK) == 0)
            return library_load(why, path);
    }
    *why = "no such file in these folders";
    return NULL;
}

static int symbol_find(void *out, void *library, const char *library_name, const char *name)
{
    void *symbol = dlsym(library, name);
    if (!symbol)
        return ah__fail(AH_EDEVICE, "%s: no function %s", library_name, name);
    memcpy(out, &symbol, sizeof symbol);
    return AH_OK;
}

static int library_need(void **out, const char *named, const char *name)
{
    const char *why;
    *out = library_find(&why, named, name);
    return *out ? AH_OK
                : ah__fail(AH_EDEVICE, "%s does not load (AUTOHETE_CUDA_LIBRARIES is \"%s\"): %s", name, named, why);
}

static int cublaslt_open(struct ah_cuda_library *library, const char *named)
{
    AH_TRY(library_need(&library->cublaslt_library, named, cublaslt_name));
#define FIND(name) AH_TRY(symbol_find(&library->name, library->cublaslt_library, cublaslt_name, #name));
    AH_CUBLASLT_LIST(FIND)
#undef FIND
    return AH_OK;
}

/* Opens cuDNN, which may be missing. */
static int cudnn_open(struct ah_cuda_library *library, const char *named)
{
    const char *why;
    library->cudnn_library = library_find(&why, named, cudnn_name);
    if (!library->cudnn_library)
        return AH_OK;
#define FIND(name) AH_TRY(symbol_find(&library->name, library->cudnn_library, cudnn_name, #name));
    AH_CUDNN_LIST(FIND)
#undef FIND
    return AH_OK;
}

/* ---- the driver -------------------------------------------------------------------------------------------------- */

static int driver_find(void *out, const char *name)
{
    void *symbol = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaError_t error = cudaGetDriverEntryPointByVersion(name, &symbol, CUDART_VERSION, cudaEnableDefault, &found);
    if (error != cudaSuccess)
        return ah__fail(AH_EDEVICE, "cudaGetDriverEntryPointByVersion of %s: %s", name, cudaGetErrorString(error));
    if (found != cudaDriverEntryPointSuccess || !symbol)
        return ah__fail(AH_EDEVICE, "the driver has no %s, expected one of CUDA %d.%d or later", name,
                        CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    memcpy(out, &symbol, sizeof symbol);
    return AH_OK;
}

/* Finds the driver's functions, by names without the version that cuda.h's macros append: the version is asked for as a
 * number. */
static int driver_open(struct ah_cuda_library *library)
{
#define FIND(name) AH_TRY(driver_find(&library->name, #name));
    AH_CUDA_DRIVER_LIST(FIND)
#undef FIND
    return AH_OK;
}

static const char *folders_named(void)
{
    const char *named = secure_getenv("AUTOHETE_CUDA_LIBRARIES");
    return named ? named : "";
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

int ah__cuda_library_open(struct ah_cuda_library *out)
{
    const char *named = folders_named();
    struct ah_cuda_library library = {0};
    int status = driver_open(&library);
    if (status == AH_OK)
        status = cublaslt_open(&library, named);
    if (status == AH_OK)
        status = cudnn_open(&library, named);
    if (status != AH_OK) {
        ah__cuda_library_close(&library);
        return status;
    }
    *out = library;
    return AH_OK;
}

int ah__cuda_library_open_nccl(struct ah_cuda_library *library)
{
    AH_TRY(library_need(&library->nccl_library, folders_named(), nccl_name));
#define FIND(name) AH_TRY(symbol_find(&library->name, library->nccl_library, nccl_name, #name));
    AH_NCCL_LIST(FIND)
#undef FIND
    return AH_OK;
}

void ah__cuda_library_close(struct ah_cuda_library *library)
{
    if (library->cudnn_library)
        dlclose(library->cudnn_library);
    if (library->cublaslt_library)
        dlclose(library->cublaslt_library);
    *library = (struct ah_cuda_library){0};
}
