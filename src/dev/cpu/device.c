#include "dev/cpu/device.h"

#include "base/hash.h"
#include "dev/cpu/sgemm.h"
#include "dev/host/clock.h"
#include "dev/host/isa.h"
#include "dev/host/machine.h"
#include "dev/ranks.h"

static struct ah_cpu *cpu_of(struct ah_dev *dev)
{
    return (struct ah_cpu *)dev;
}

/* Does nothing: ranks exchange data through the host. */
static int cpu_join(struct ah_dev *dev)
{
    (void)dev;
    return AH_OK;
}

/* ---- memory */

static int cpu_device_memory(struct ah_dev *dev, int64_t bytes, char **base)
{
    struct ah_cpu *cpu = cpu_of(dev);
    if (cpu->device_pages.base)
        return ah__fail(AH_EINTERNAL, "cpu device: its memory was already handed out");
    AH_TRY(ah__pages_new(&cpu->device_pages, bytes, "device memory"));
    *base = cpu->device_pages.base;
    ah__regions_device(&cpu->regions, *base, bytes);
    return AH_OK;
}

static int cpu_host_memory(struct ah_dev *dev, int64_t bytes, char **base)
{
    struct ah_cpu *cpu = cpu_of(dev);
    struct ah_pages pages;
    AH_TRY(ah__pages_new(&pages, bytes, "host memory"));
    int count = atomic_load(&cpu->regions.host_count);
    if (ah__regions_host(&cpu->regions, pages.base, bytes) != AH_OK) {
        ah__pages_free(&pages);
        return ah__fail_prefix(AH_EINTERNAL, "cpu device");
    }
    cpu->host_pages[count] = pages;
    *base = pages.base;
    return AH_OK;
}

static void memory_free(struct ah_cpu *cpu)
{
    ah__pages_free(&cpu->device_pages);
    for (int i = 0; i < atomic_load(&cpu->regions.host_count); i++)
        ah__pages_free(&cpu->host_pages[i]);
    ah__regions_clear(&cpu->regions);
}

static int cpu_memory_release(struct ah_dev *dev)
{
    struct ah_cpu *cpu = cpu_of(dev);
    AH_TRY(ah__lanes_settle(cpu->lanes));
    memory_free(cpu);
    return AH_OK;
}

/* ---- work */

static int cpu_submit(struct ah_dev *dev, const struct ah_work *work, struct ah_event *done)
{
    return ah__lanes_submit(cpu_of(dev)->lanes, work, done);
}

static int cpu_wait_any(struct ah_dev *dev, struct ah_done *done)
{
    return ah__lanes_wait_any(cpu_of(dev)->lanes, done);
}

static int cpu_prepare(struct ah_dev *dev, const struct ah_program *program, struct ah_prepared **out)
{
    struct ah_cpu_program *made;
    AH_TRY(ah__cpu_program_new(&made, program, cpu_of(dev)->threads));
    *out = &made->prepared;
    return AH_OK;
}

static void cpu_prepared_free(struct ah_dev *dev, struct ah_prepared *prepared)
{
    (void)dev;
    ah__cpu_program_free((struct ah_cpu_program *)prepared);
}

static int64_t cpu_now_ns(struct ah_dev *dev)
{
    (void)dev;
    return ah__host_now_ns();
}

static void cpu_info(struct ah_dev *dev, struct ah_dev_info *out)
{
    struct ah_cpu *cpu = cpu_of(dev);
    *out = (struct ah_dev_info){
        .name = "cpu",
        .model = cpu->model,
        .count = 1,
        .threads = cpu->threads,
        .host_threads = cpu->host_threads,
        .link_bytes_per_s = cpu->link_bytes_per_s,
        .align_bytes = AH_CPU_ALIGN,
        .device_high_water_bytes = atomic_load(&cpu->regions.high_water),
        .host_bytes = ah__regions_host_bytes(&cpu->regions),
        .memory_bytes = cpu->machine_bytes,
        .machine_bytes = cpu->machine_bytes,
        .signature = cpu->signature,
    };
    snprintf(out->arithmetic, sizeof out->arithmetic, "%s", cpu->arithmetic);
}

/* ---- opening and closing */

/* Hashes what timings depend on: the processor's name, its instruction set, cores, threads and the link. */
static uint64_t signature_make(const struct ah_cpu *cpu, int cores)
{
    uint64_t hash = ah__hash_text(ah__host_isa_name(), ah__hash_text("cpu", 0));
    hash = ah__hash_text(cpu->model, hash);
    hash = ah__hash_int((uint64_t)cores, hash);
    hash = ah__hash_int((uint64_t)cpu->threads, hash);
    hash = ah__hash_int((uint64_t)cpu->host_threads, hash);
    return ah__hash_int((uint64_t)cpu->link_bytes_per_s, hash);
}

static void cpu_close(struct ah_dev *dev)
{
    struct ah_cpu *cpu = cpu_of(dev);
    ah__lanes_free(cpu->lanes);
    for (int i = 0; i < AH_LANE_COUNT; i++)
        ah__pool_free(cpu->pool[i]);
    memory_free(cpu);
    ah__free(cpu);
}

/* Starts the lanes. `core`: the core of lanes without a pool, -1: any core. */
static int lanes_start(struct ah_cpu *cpu, int core)
{
    struct ah_lanes_config config = {.device = "cpu", .run = ah__cpu_work, .context = cpu};
    for (int i = 0; i < AH_LANE_COUNT; i++) {
        config.kind[i] = AH_LANE_THREAD;
        config.pool[i] = cpu->pool[i];
        /* Copies run on the host's core: they must not disturb the cores that simulate the device. */
        config.core[i] = core;
    }
    return ah__lanes_new(&cpu->lanes, &config);
}

static int threads_start(struct ah_cpu *cpu, const struct ah_dev_options *options)
{
    bool in_order;
    int cores = ah__ranks_cores(cpu->comm, ah__host_cores(&in_order)), first = cpu->comm->share * cores;
    ah__host_model(cpu->model, sizeof cpu->model);
    cpu->threads = options->threads ? options->threads : cores;
    cpu->host_threads = options->host_threads ? options->host_threads : 1;
    cpu->signature = signature_make(cpu, cores);
    cpu->machine_bytes = ah__ranks_memory(cpu->comm, ah__pages_available());
    bool pinned = in_order && cpu->threads + cpu->host_threads <= cores;
    AH_TRY(ah__pool_new(&cpu->pool[AH_LANE_COMPUTE], cpu->threads, pinned ? first : -1));
    AH_TRY(ah__pool_new(&cpu->pool[AH_LANE_HOST], cpu->host_threads, pinned ? first + cpu->threads : -1));
    AH_TRY(ah__pool_new(&cpu->pool[AH_LANE_D2H], 1, -1)); /* for staged device updates */
    if (cpu->comm->world_size > 1) /* norms of this rank's shards are computed where they are summed */
        AH_TRY(ah__pool_new(&cpu->pool[AH_LANE_COMM], 1, pinned ? first + cpu->threads : -1));
    return lanes_start(cpu, pinned ? first + cpu->threads : -1);
}

const struct ah_dev_ops ah__dev_cpu_ops = {
    .join = cpu_join,
    .device_memory = cpu_device_memory,
    .host_memory = cpu_host_memory,
    .memory_release = cpu_memory_release,
    .prepare = cpu_prepare,
    .prepared_free = cpu_prepared_free,
    .submit = cpu_submit,
    .wait_any = cpu_wait_any,
    .now_ns = cpu_now_ns,
    .info = cpu_info,
    .close = cpu_close,
};

int ah__dev_cpu_open(struct ah_dev **out, const struct ah_dev_options *options)
{
    struct ah_cpu *cpu;
    if (options->ordinal)
        return ah__fail(AH_EINPUT, "device \"cpu:%d\": there is one cpu device, expected \"cpu\"", options->ordinal);
    AH_TRY(ah__cpu_products_ready());
    AH_TRY(ah__new(&cpu, 1, sizeof *cpu));
    cpu->dev.ops = &ah__dev_cpu_ops;
    cpu->link_bytes_per_s = options->link_bytes_per_s;
    cpu->jitter_seed = options->jitter_seed;
    cpu->comm = ah__comm();
    cpu->regions.world_size = cpu->comm->world_size;
    int status = ah__cpu_arithmetic(cpu->arithmetic, sizeof cpu->arithmetic);
    if (status == AH_OK)
        status = threads_start(cpu, options);
    if (status != AH_OK) {
        cpu_close(&cpu->dev);
        return status;
    }
    *out = &cpu->dev;
    return AH_OK;
}
