/* What code that nvcc has compiled calls of CUDA's runtime to register and launch kernels: finds their PTX in the fat
 * binary and runs it on streams of the emulated GPU. All else is the emulation's. */
#include "ptx.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <emulation.h>
#include <launch.h>

enum { FUNCTIONS_MOST = 1024, BINARIES_MOST = 64, PTX_KIND = 1, ARCHITECTURE = 80, LIMIT_BYTES = 4096 };

/* As fatbinary_section.h and the tools have it: a header, then entries with headers of their own. */
struct fat_wrapper {
    int magic, version;
    const char *data;
    void *file;
};
struct fat_header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
};
struct fat_entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t compressed, unknown;
    uint16_t minor, major;
    uint32_t architecture;
};

static struct binary {
    const char *data;
    struct ptx_module *module; /* null: not parsed yet */
} binaries[BINARIES_MOST];
static int binaries_used;

static struct function {
    const void *host;
    const char *name;
    struct binary *binary;
} functions[FUNCTIONS_MOST];
static int functions_used;

/* One launch at a time, whatever the stream; and the tables. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- registration, which happens when the plugin is loaded */

void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **binary);
void __cudaUnregisterFatBinary(void **binary);
void __cudaRegisterVar(void **binary, char *host, char *device, const char *name, int ext, size_t bytes, int constant,
                       int global);
void __cudaRegisterFunction(void **binary, const char *host, char *device, const char *name, int limit, uint3 *tid,
                            uint3 *bid, dim3 *block, dim3 *grid, int *warp);
char __cudaInitModule(void **binary);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **params, size_t shared_bytes,
                               cudaStream_t stream);

void **__cudaRegisterFatBinary(void *wrapper)
{
    const struct fat_wrapper *w = wrapper;
    int i = 0;
    while (i < binaries_used && binaries[i].data != w->data) /* the plugin may come back to where it was */
        i++;
    if (i == BINARIES_MOST)
        abort();
    binaries_used = i == binaries_used ? i + 1 : binaries_used;
    binaries[i].data = w->data;
    return (void **)&binaries[i];
}

void __cudaRegisterFatBinaryEnd(void **binary)
{
    (void)binary;
}

void __cudaRegisterFunction(void **binary, const char *host, char *device, const char *name, int limit, uint3 *tid,
                            uint3 *bid, dim3 *block, dim3 *grid, int *warp)
{
    (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    int i = 0;
    while (i < functions_used && functions[i].host != host)
        i++;
    if (i == FUNCTIONS_MOST)
        abort();
    functions_used = i == functions_used ? i + 1 : functions_used;
    functions[i] = (struct function){host, name, (struct binary *)(void *)binary};
}

/* Nothing of the host reads or writes a device's variable. */
void __cudaRegisterVar(void **binary, char *host, char *device, const char *name, int ext, size_t bytes, int constant,
                       int global)
{
    (void)binary, (void)host, (void)device, (void)name, (void)ext, (void)bytes, (void)constant, (void)global;
}

char __cudaInitModule(void **binary)
{
    (void)binary;
    return 1;
}

/* Of <<<>>>, which no source has: kernels are launched by cudaLaunchKernelEx. */
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
    (void)grid, (void)block, (void)shared_bytes, (void)stream;
    return cudaErrorNotSupported;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    (void)kernel, (void)host;
    return cudaErrorNotSupported;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **params, size_t shared_bytes,
                               cudaStream_t stream)
{
    (void)kernel, (void)grid, (void)block, (void)params, (void)shared_bytes, (void)stream;
    return cudaErrorNotSupported;
}

/* ---- PTX of a fat binary: that of the architecture that was asked for, or what is there */

static long setting(const char *name, long otherwise)
{
    const char *value = getenv(name);
    return value ? strtol(value, NULL, 10) : otherwise;
}

static const char *ptx_find(const char *data)
{
    struct fat_header header;
    const char *found = NULL;
    memcpy(&header, data, sizeof header);
    for (uint64_t at = header.header_bytes; at < header.header_bytes + header.bytes;) {
        struct fat_entry entry;
        memcpy(&entry, data + at, sizeof entry);
        if (entry.kind == PTX_KIND && !entry.compressed &&
            (!found || entry.architecture == (uint32_t)setting("AUTOHETE_PTX_ARCHITECTURE", ARCHITECTURE)))
            found = data + at + entry.header_bytes;
        at += entry.header_bytes + entry.bytes;
    }
    return found;
}

/* Parses the binary's PTX when it is first wanted. */
static struct ptx_module *module_of(struct binary *binary, char error[PTX_ERROR_BYTES])
{
    const char *text = binary->module ? NULL : ptx_find(binary->data);
    snprintf(error, PTX_ERROR_BYTES, "no PTX, or it is compressed");
    if (text)
        binary->module = ptx_module_new(text, "PTX", error);
    return binary->module;
}

static const struct ptx_entry *entry_find(const struct function *function, char error[PTX_ERROR_BYTES])
{
    struct binary *binary = function->binary;
    if (!module_of(binary, error))
        return NULL;
    const struct ptx_entry *entry = ptx_module_entry(binary->module, function->name);
    if (!entry)
        snprintf(error, PTX_ERROR_BYTES, "no entry %s", function->name);
    return entry;
}

/* ---- coverage: at the end, a line for each entry: its name, launches, and whether each instruction was executed */

static void coverage_write(FILE *file, const struct ptx_module *module)
{
    for (const struct ptx_entry *e = NULL; (e = ptx_module_next(module, e)) != NULL;) {
        struct ptx_coverage c = ptx_entry_coverage(e);
        fprintf(file, "%s %ld ", ptx_entry_name(e), c.launches);
        for (long i = 0; i < c.instructions; i++) {
            int line;
            fputc('0' + ptx_entry_executed(e, i, &line), file);
        }
        fputc('\n', file);
    }
}

/* What was not launched is parsed for it, too. */
void __cudaUnregisterFatBinary(void **handle)
{
    struct binary *binary = (struct binary *)(void *)handle;
    const char *folder = getenv("AUTOHETE_PTX_COVERAGE");
    char path[4096], error[PTX_ERROR_BYTES];
    snprintf(path, sizeof path, "%s/%ld-%ld", folder ? folder : "", setting("AUTOHETE_PTX_ARCHITECTURE", ARCHITECTURE),
             (long)getpid());
    FILE *file = folder ? fopen(path, "a") : NULL;
    if (file && module_of(binary, error))
        coverage_write(file, binary->module);
    else if (file)
        fprintf(file, "! %s\n", error);
    if (file)
        fclose(file);
    if (binary->module)
        ptx_module_free(binary->module);
    binary->module = NULL;
}

/* ---- launches */

static bool extent(uint64_t address, uint64_t *from, uint64_t *to)
{
    const void *base;
    size_t bytes;
    if (!emulation_device_range((const void *)(uintptr_t)address, &base, &bytes))
        return false;
    *from = (uint64_t)(uintptr_t)base;
    *to = *from + bytes;
    return true;
}

static const struct function *function_of(const void *host)
{
    int i = 0;
    while (i < functions_used && functions[i].host != host)
        i++;
    return i < functions_used ? &functions[i] : NULL;
}

/* On the stream's thread. */
static int blocks_run(const struct emulation_launch *launch, unsigned long long seed)
{
    static const struct ptx_memory memory = {extent};
    dim3 grid = launch->grid, block = launch->block;
    char error[PTX_ERROR_BYTES];
    pthread_mutex_lock(&lock);
    struct ptx_launch run = {entry_find(function_of(launch->kernel), error),
                             {grid.x, grid.y, grid.z},
                             {block.x, block.y, block.z},
                             launch->shared_bytes,
                             launch->bound,
                             &memory,
                             seed,
                             (enum ptx_approximate)setting("AUTOHETE_PTX_APPROXIMATE", PTX_EXACT)};
    int status = run.entry ? ptx_run(&run, error) : -1;
    pthread_mutex_unlock(&lock);
    return status ? emulation_object(cudaErrorLaunchFailure, "%s", error) : 0;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *host, void **params)
{
    const struct function *function = function_of(host);
    struct emulation_launch launch = {.kernel = host, .run_all = blocks_run};
    char error[PTX_ERROR_BYTES], bound[LIMIT_BYTES];
    pthread_mutex_lock(&lock);
    const struct ptx_entry *entry = function ? entry_find(function, error) : NULL;
    if (entry && (launch.bound_bytes = ptx_entry_param_bytes(entry)) <= sizeof bound)
        ptx_entry_pack(entry, bound, params);
    pthread_mutex_unlock(&lock);
    if (!entry)
        return (cudaError_t)emulation_object(cudaErrorInvalidDeviceFunction, "%s",
                                             function ? error : "a kernel that was never registered");
    launch.bound = bound;
    return emulation_launch_enqueue(&launch, config);
}
