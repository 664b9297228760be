#include "dev/cuda/device.h"

#include <string.h>

#include "base/hash.h"
#include "dev/cuda/collective.h"
#include "dev/cuda/completion.h"
#include "dev/cuda/program.h"
#include "dev/cuda/stream.h"
#include "dev/cuda/task.h"
#include "dev/host/clock.h"
#include "dev/host/isa.h"
#include "dev/host/machine.h"
#include "dev/ranks.h"

static struct ah_cuda *cuda_of(struct ah_dev *dev)
{
    return (struct ah_cuda *)dev;
}

/* Selects the device's GPU for CUDA's calls of this thread, which may have several devices open. */
static int enter(const struct ah_cuda *cuda)
{
    AH_CUDA_TRY(cudaSetDevice(cuda->ordinal));
    return AH_OK;
}

/* Selects the GPU before memory is freed, since libraries free on the thread's GPU. Ignores the error of a GPU that has
 * failed. */
static void enter_to_free(const struct ah_cuda *cuda)
{
    if (cudaSetDevice(cuda->ordinal) != cudaSuccess)
        (void)cudaGetLastError();
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int region_refuse(const struct ah_cuda *cuda, int64_t bytes, size_t available)
{
    char need[32], have[32];
    return ah__fail(AH_ENOMEM, "device memory: %s needed, %s available on %s", ah_size_format(need, sizeof need, bytes),
                    ah_size_format(have, sizeof have, (int64_t)available), cuda->name);
}

static int region_new(struct ah_cuda *cuda, int64_t bytes)
{
    size_t available, total;
    cudaStream_t stream = cuda->stream[AH_LANE_COMPUTE].work;
    AH_TRY(enter(cuda));
    AH_CUDA_TRY(cudaMemGetInfo(&available, &total));
    if (bytes < 0 || (uint64_t)bytes > available)
        return region_refuse(cuda, bytes, available);
    cudaError_t error = cudaMalloc((void **)&cuda->region, bytes ? (size_t)bytes : 1);
    if (error != cudaSuccess)
        return ah__fail_prefix(ah__cuda_status("cudaMalloc", error), "device memory");
    AH_CUDA_TRY(cudaMemsetAsync(cuda->region, 0, bytes ? (size_t)bytes : 1, stream));
    AH_CUDA_TRY(cudaStreamSynchronize(stream));
    return AH_OK;
}

static void region_free(struct ah_cuda *cuda)
{
    if (cuda->region)
        (void)cudaFree(cuda->region);
    cuda->region = NULL;
}

static int cuda_device_memory(struct ah_dev *dev, int64_t bytes, char **base)
{
    struct ah_cuda *cuda = cuda_of(dev);
    if (cuda->region)
        return ah__fail(AH_EINTERNAL, "cuda device: its memory was already handed out");
    int status = region_new(cuda, bytes);
    if (status != AH_OK) {
        region_free(cuda);
        return status;
    }
    *base = cuda->region;
    ah__regions_device(&cuda->regions, *base, bytes);
    return AH_OK;
}

/* Pins the pages by registering them, so that copies run at the link's speed and asynchronously. */
static int pages_pin(struct ah_cuda *cuda, const struct ah_pages *pages)
{
    AH_TRY(enter(cuda));
    if (pages->bytes)
        AH_CUDA_TRY(cudaHostRegister(pages->base, (size_t)pages->bytes, cudaHostRegisterDefault));
    return AH_OK;
}

static void pages_unpin(struct ah_pages *pages)
{
    if (pages->bytes)
        (void)cudaHostUnregister(pages->base);
    ah__pages_free(pages);
}

static int cuda_host_memory(struct ah_dev *dev, int64_t bytes, char **base)
{
    struct ah_cuda *cuda = cuda_of(dev);
    struct ah_pages pages;
    AH_TRY(ah__pages_new(&pages, bytes, "host memory"));
    int status = pages_pin(cuda, &pages);
    if (status != AH_OK) {
        ah__pages_free(&pages);
        return ah__fail_prefix(status, "host memory");
    }
    int count = atomic_load(&cuda->regions.host_count);
    if (ah__regions_host(&cuda->regions, pages.base, bytes) != AH_OK) {
        pages_unpin(&pages);
        return ah__fail_prefix(AH_EINTERNAL, "cuda device");
    }
    cuda->host_pages[count] = pages;
    *base = pages.base;
    return AH_OK;
}

static void memory_free(struct ah_cuda *cuda)
{
    region_free(cuda);
    for (int i = 0; i < atomic_load(&cuda->regions.host_count); i++)
        pages_unpin(&cuda->host_pages[i]);
    ah__regions_clear(&cuda->regions);
}

/* Frees all memory. The part of a failed work that is on its stream may still run, so the streams are drained first. */
static int cuda_memory_release(struct ah_dev *dev)
{
    struct ah_cuda *cuda = cuda_of(dev);
    AH_TRY(ah__lanes_settle(cuda->lanes));
    enter_to_free(cuda);
    ah__cuda_group_settle(cuda);
    if (ah__cuda_streams_drain(cuda) != cudaSuccess)
        cuda->lost = true;
    memory_free(cuda);
    ah__cuda_streams_settle(cuda);
    if (cuda->lost)
        return ah__fail(AH_EDEVICE, "%s has failed and runs nothing more in this process", cuda->name);
    return AH_OK;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static int cuda_prepare(struct ah_dev *dev, const struct ah_program *program, struct ah_prepared **out)
{
    struct ah_cuda_program *made;
    AH_TRY(enter(cuda_of(dev)));
    AH_TRY(ah__cuda_program_new(&made, cuda_of(dev), program));
    *out = &made->prepared;
    return AH_OK;
}

static void cuda_prepared_free(struct ah_dev *dev, struct ah_prepared *prepared)
{
    enter_to_free(cuda_of(dev));
    ah__cuda_program_free((struct ah_cuda_program *)prepared);
}

/* ---- information ------------------------------------------------------------------------------------------------- */

static int64_t cuda_now_ns(struct ah_dev *dev)
{
    (void)dev;
    return ah__host_now_ns();
}

/* Returns the largest region. The rest is for the driver, which loads kernels when they are first used. */
static int64_t region_most(const struct ah_cuda *cuda)
{
    int64_t most = cuda->free_bytes - (int64_t)(cuda->properties.totalGlobalMem / 32);
    return most > 1 ? most : 1;
}

static void cuda_info(struct ah_dev *dev, struct ah_dev_info *out)
{
    struct ah_cuda *cuda = cuda_of(dev);
    *out = (struct ah_dev_info){
        .name = cuda->name,
        .model = cuda->properties.name,
        .link_kind = *cuda->link_kind ? cuda->link_kind : NULL,
        .count = cuda->count,
        .threads = cuda->properties.multiProcessorCount,
        .host_threads = cuda->host_threads,
        .queue_depth = AH_CUDA_QUEUE_DEPTH,
        .align_bytes = AH_CUDA_ALIGN,
        .device_high_water_bytes = atomic_load(&cuda->regions.high_water),
        .host_bytes = ah__regions_host_bytes(&cuda->regions),
        .memory_bytes = (int64_t)cuda->properties.totalGlobalMem,
        .device_bytes = region_most(cuda),
        .machine_bytes = cuda->machine_bytes,
        .signature = cuda->signature,
    };
    snprintf(out->arithmetic, sizeof out->arithmetic, "%s", cuda->arithmetic);
    snprintf(out->attention, sizeof out->attention, "%s", cuda->attention);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

/* Reads a line of sysfs about the GPU's connection, without its line break; "" if there is none. */
static void link_line(char *text, size_t size, const struct ah_cuda *cuda, const char *what)
{
    char path[96];
    const struct cudaDeviceProp *gpu = &cuda->properties;
    *text = 0;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%04x:%02x:%02x.0/%s", (unsigned)gpu->pciDomainID,
             (unsigned)gpu->pciBusID, (unsigned)gpu->pciDeviceID, what);
    FILE *file = fopen(path, "r");
    if (file && fgets(text, (int)size, file))
        text[strcspn(text, "\n")] = 0;
    if (file)
        fclose(file);
}

/* Finds the fastest speed of the link; its present speed depends on the load. */
static void link_find(struct ah_cuda *cuda)
{
    char speed[16], width[16];
    link_line(speed, sizeof speed, cuda, "max_link_speed");
    link_line(width, sizeof width, cuda, "max_link_width");
    if (*speed && *width)
        snprintf(cuda->link_kind, sizeof cuda->link_kind, "PCIe %.*s GT/s x%s", (int)strcspn(speed, " "), speed, width);
}

/* Hashes what timings depend on: the GPU, its connection, the driver, and the host that updates parameters. */
static int signature_make(struct ah_cuda *cuda)
{
    char model[64];
    int driver;
    const struct cudaDeviceProp *gpu = &cuda->properties;
    AH_CUDA_TRY(cudaDriverGetVersion(&driver));
    uint64_t hash = ah__hash_text(gpu->name, ah__hash_text("cuda", 0));
    hash = ah__hash_int((uint64_t)gpu->multiProcessorCount, hash);
    hash = ah__hash_int((uint64_t)gpu->totalGlobalMem, hash);
    hash = ah__hash_text(cuda->link_kind, hash);
    hash = ah__hash_int((uint64_t)driver, hash);
    hash = ah__hash_text(cuda->arithmetic, hash);
    hash = ah__hash_text(ah__host_model(model, sizeof model), hash);
    hash = ah__hash_text(ah__host_isa_name(), hash);
    hash = ah__hash_int((uint64_t)ah__host_cores(NULL), hash);
    cuda->signature = ah__hash_int((uint64_t)cuda->host_threads, hash);
    return AH_OK;
}

static void arithmetic_make(struct ah_cuda *cuda)
{
    char attention[32] = "own attention";
    if (cuda->dnn)
        snprintf(attention, sizeof attention, "cuDNN %zu", cuda->library.cudnnGetVersion());
    snprintf(cuda->arithmetic, sizeof cuda->arithmetic, "cublasLt %zu, %s, sm_%d%d", cuda->library.cublasLtGetVersion(),
             attention, cuda->properties.major, cuda->properties.minor);
}

/* Reads AUTOHETE_CUDA_ATTENTION: "own" avoids cuDNN; "cudnn", "" or unset use it if it is installed. */
static int own_attention_asked(bool *out)
{
    const char *who = secure_getenv("AUTOHETE_CUDA_ATTENTION");
    *out = who && strcmp(who, "own") == 0;
    if (!who || *out || !*who || strcmp(who, "cudnn") == 0)
        return AH_OK;
    return ah__fail(AH_EINPUT, "AUTOHETE_CUDA_ATTENTION: found \"%.40s\", expected own or cudnn", who);
}

static int libraries_open(struct ah_cuda *cuda)
{
    struct ah_cuda_library *library = &cuda->library;
    AH_TRY(ah__cuda_library_open(library));
    cublasStatus_t lt = library->cublasLtCreate(&cuda->lt);
    if (lt != CUBLAS_STATUS_SUCCESS)
        return ah__fail(AH_EDEVICE, "cublasLtCreate: %s", library->cublasLtGetStatusString(lt));
    AH_TRY(own_attention_asked(&cuda->own_attention));
    if (!library->cudnnCreate || cuda->own_attention)
        return AH_OK;
    cudnnStatus_t dnn = library->cudnnCreate(&cuda->dnn);
    if (dnn != CUDNN_STATUS_SUCCESS)
        return ah__fail(AH_EDEVICE, "cudnnCreate: %s", library->cudnnGetErrorString(dnn));
    return AH_OK;
}

static void libraries_close(struct ah_cuda *cuda)
{
    if (cuda->dnn)
        (void)cuda->library.cudnnDestroy(cuda->dnn);
    if (cuda->lt)
        (void)cuda->library.cublasLtDestroy(cuda->lt);
    ah__cuda_library_close(&cuda->library);
}

/* Opens the lanes with all cores but one, which is left to the driver and CUDA. */
static int lanes_open(struct ah_cuda *cuda)
{
    struct ah_lanes_config config = {.device = "cuda",
                                     .run = ah__cuda_host_work,
                                     .passed = ah__cuda_host_passed,
                                     .look = ah__cuda_look,
                                     .context = cuda};
    AH_TRY(ah__pool_new(&cuda->pool, cuda->host_threads, -1));
    for (int i = 0; i < AH_LANE_COUNT; i++) {
        config.kind[i] = ah__cuda_on_thread((enum ah_lane)i) ? AH_LANE_THREAD : AH_LANE_ELSEWHERE;
        config.core[i] = -1;
    }
    config.pool[AH_LANE_HOST] = cuda->pool;
    return ah__lanes_new(&cuda->lanes, &config);
}

/* Drains the streams while the lanes still run, since they may wait for each other. */
static void cuda_close(struct ah_dev *dev)
{
    struct ah_cuda *cuda = cuda_of(dev);
    enter_to_free(cuda);
    ah__cuda_group_leave(cuda);
    (void)ah__cuda_streams_drain(cuda);
    ah__cuda_group_close(cuda);
    ah__cuda_watch_stop(cuda);
    ah__lanes_free(cuda->lanes);
    ah__pool_free(cuda->pool);
    libraries_close(cuda);
    memory_free(cuda);
    ah__cuda_streams_close(cuda);
    pthread_cond_destroy(&cuda->watch_wake);
    pthread_mutex_destroy(&cuda->mutex);
    ah__free(cuda);
}

static int room_measure(struct ah_cuda *cuda)
{
    size_t available, total;
    AH_CUDA_TRY(cudaMemGetInfo(&available, &total));
    int64_t host = ah__pages_available();
    cuda->free_bytes = (int64_t)available;
    cuda->machine_bytes = host == INT64_MAX ? 0 : cuda->free_bytes + ah__ranks_memory(cuda->comm, host);
    return AH_OK;
}

static int gpu_open(struct ah_cuda *cuda)
{
    AH_CUDA_TRY(cudaGetDeviceProperties(&cuda->properties, cuda->ordinal));
    AH_TRY(enter(cuda));
    link_find(cuda);
    AH_TRY(libraries_open(cuda));
    arithmetic_make(cuda);
    AH_TRY(signature_make(cuda));
    AH_TRY(ah__cuda_streams_open(cuda));
    AH_TRY(lanes_open(cuda));
    if (cuda->comm->world_size > 1)
        AH_TRY(ah__cuda_group_open(cuda));
    return room_measure(cuda);
}

/* Joins the ranks and then measures the free memory, which NCCL has reduced. */
static int cuda_join(struct ah_dev *dev)
{
    struct ah_cuda *cuda = cuda_of(dev);
    AH_TRY(enter(cuda));
    AH_TRY(ah__cuda_group_join(cuda));
    return room_measure(cuda);
}

/* Counts the GPUs. AH_EINPUT: the machine has none, which is no fault of the machine. */
static int gpu_count(int *out)
{
    cudaError_t error = cudaGetDeviceCount(out);
    if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver || (error == cudaSuccess && *out == 0))
        return ah__fail(AH_EINPUT, "no GPU: %s",
                        error == cudaSuccess ? "the driver has none" : cudaGetErrorString(error));
    return ah__cuda_status("cudaGetDeviceCount", error);
}

/* Finds the GPU of this rank. The ranks of a machine take consecutive GPUs from the given one on, unless the launcher
 * shows each rank only its own. */
static int ordinal_find(int *out, const struct ah_dev_options *options, int count)
{
    const struct ah_comm *comm = ah__comm();
    *out = options->ordinal + (comm->world_size > 1 && count > 1 ? comm->local : 0);
    if (options->ordinal < 0 || options->ordinal >= count)
        return ah__fail(AH_EINPUT, "found GPU %d, expected 0 to %d", options->ordinal, count - 1);
    if (*out >= count)
        return ah__fail(AH_EINPUT, "found %d ranks on this machine, expected at most %d: its GPUs from number %d on",
                        comm->neighbours, count - options->ordinal, options->ordinal);
    return AH_OK;
}

static int options_check(const struct ah_dev_options *options)
{
    if (options->threads)
        return ah__fail(AH_EINPUT, "found %d device threads, expected none: a GPU computes with all it has",
                        options->threads);
    if (options->link_bytes_per_s)
        return ah__fail(AH_EINPUT, "found a link speed of %lld bytes/s, expected none: a GPU's is what it is",
                        (long long)options->link_bytes_per_s);
    return AH_OK;
}

const struct ah_dev_ops ah__dev_cuda_ops = {
    .join = cuda_join,
    .device_memory = cuda_device_memory,
    .host_memory = cuda_host_memory,
    .memory_release = cuda_memory_release,
    .prepare = cuda_prepare,
    .prepared_free = cuda_prepared_free,
    .submit = ah__cuda_submit,
    .wait_any = ah__cuda_wait_any,
    .now_ns = cuda_now_ns,
    .info = cuda_info,
    .close = cuda_close,
};

int ah__dev_cuda_open(struct ah_dev **out, const struct ah_dev_options *options)
{
    struct ah_cuda *cuda;
    int count = 0, ordinal, cores = ah__ranks_cores(ah__comm(), ah__host_cores(NULL));
    AH_TRY(gpu_count(&count));
    AH_TRY(ordinal_find(&ordinal, options, count));
    AH_TRY(options_check(options));
    AH_TRY(ah__new(&cuda, 1, sizeof *cuda));
    cuda->dev.ops = &ah__dev_cuda_ops;
    cuda->ordinal = ordinal;
    cuda->count = count;
    cuda->host_threads = options->host_threads ? options->host_threads : cores > 1 ? cores - 1 : 1;
    cuda->jitter_seed = options->jitter_seed;
    cuda->scores_bytes = AH_CUDA_SCORES_BYTES;
    cuda->comm = ah__comm();
    cuda->regions.world_size = cuda->comm->world_size;
    snprintf(cuda->name, sizeof cuda->name, "cuda:%d", cuda->ordinal);
    pthread_mutex_init(&cuda->mutex, NULL);
    pthread_cond_init(&cuda->watch_wake, NULL);
    int status = gpu_open(cuda);
    if (status != AH_OK) {
        cuda_close(&cuda->dev);
        return status;
    }
    *out = &cuda->dev;
    return AH_OK;
}
