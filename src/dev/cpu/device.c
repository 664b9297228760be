#include "dev/cpu/device.h"

#include <sched.h>
#include <string.h>

#include "base/hash.h"

static struct ah_cpu *cpu_of(struct ah_dev *dev)
{
    return (struct ah_cpu *)dev;
}

/* ---- memory */

static int cpu_device_memory(struct ah_dev *dev, int64_t bytes, char **base)
{
    struct ah_cpu *cpu = cpu_of(dev);
    if (cpu->device.base)
        return ah__fail(AH_EINTERNAL, "cpu device: its memory was already handed out");
    AH_TRY(ah__cpu_region_new(&cpu->device, bytes, "device memory"));
    atomic_store(&cpu->high_water, 0);
    *base = cpu->device.base;
    return AH_OK;
}

static int cpu_host_memory(struct ah_dev *dev, int64_t bytes, char **base)
{
    struct ah_cpu *cpu = cpu_of(dev);
    int count = atomic_load(&cpu->host_count);
    if (count == AH_CPU_REGIONS)
        return ah__fail(AH_EINTERNAL, "cpu device: host memory asked for more than %d times", AH_CPU_REGIONS);
    AH_TRY(ah__cpu_region_new(&cpu->host[count], bytes, "host memory"));
    *base = cpu->host[count].base;
    atomic_store_explicit(&cpu->host_count, count + 1, memory_order_release);
    return AH_OK;
}

static uint64_t in_flight(const struct ah_cpu *cpu)
{
    uint64_t count = 0;
    for (int i = 0; i < AH_LANE_COUNT; i++)
        count += cpu->lanes[i].submitted - cpu->lanes[i].reported;
    return count;
}

static int cpu_memory_release(struct ah_dev *dev)
{
    struct ah_cpu *cpu = cpu_of(dev);
    pthread_mutex_lock(&cpu->mutex);
    uint64_t busy = in_flight(cpu);
    if (!busy)
        cpu->failed = AH_OK;
    pthread_mutex_unlock(&cpu->mutex);
    if (busy)
        return ah__fail(AH_EINTERNAL, "cpu device: memory released with %llu items in flight", (unsigned long long)busy);
    ah__cpu_region_free(&cpu->device);
    for (int i = 0; i < atomic_load(&cpu->host_count); i++)
        ah__cpu_region_free(&cpu->host[i]);
    atomic_store(&cpu->host_count, 0);
    return AH_OK;
}

/* ---- work */

/* With the mutex held. A wait for something never submitted would block the lane for ever. */
static int work_check(const struct ah_cpu *cpu, const struct ah_work *work)
{
    if ((unsigned)work->lane >= AH_LANE_COUNT || !cpu->lanes[work->lane].started)
        return ah__fail(AH_EINTERNAL, "cpu device: no lane %d", (int)work->lane);
    if (work->waits < 0 || work->waits > AH_WORK_MAX_WAITS || work->tasks < 0 || work->tasks > AH_WORK_MAX_TASKS)
        return ah__fail(AH_EINTERNAL, "cpu device: %d waits and %d tasks in one item", work->waits, work->tasks);
    for (int i = 0; i < work->waits; i++) {
        struct ah_event event = work->wait[i];
        if ((unsigned)event.lane >= AH_LANE_COUNT || event.sequence > cpu->lanes[event.lane].submitted)
            return ah__fail(AH_EINTERNAL, "cpu device: %s of partition %d waits for item %llu of lane %d, not submitted yet",
                            work->label.what ? work->label.what : "work", work->label.partition, (unsigned long long)event.sequence, (int)event.lane);
    }
    const struct ah_cpu_lane *lane = &cpu->lanes[work->lane];
    if (lane->submitted - lane->reported == AH_CPU_RING)
        return ah__fail(AH_EINTERNAL, "cpu device: more than %d items in flight on lane %s", AH_CPU_RING,
                        ah_lane_name(work->lane));
    return AH_OK;
}

static int cpu_submit(struct ah_dev *dev, const struct ah_work *work, struct ah_event *done)
{
    struct ah_cpu *cpu = cpu_of(dev);
    pthread_mutex_lock(&cpu->mutex);
    int status = work_check(cpu, work);
    if (status == AH_OK) {
        struct ah_cpu_lane *lane = &cpu->lanes[work->lane];
        lane->ring[lane->submitted % AH_CPU_RING].work = *work;
        *done = (struct ah_event){.lane = work->lane, .sequence = ++lane->submitted};
        if (!lane->needs.sequence)
            ah__cpu_lane_wake(lane);
    }
    pthread_mutex_unlock(&cpu->mutex);
    return status;
}

static int cpu_wait_any(struct ah_dev *dev, struct ah_done *done)
{
    struct ah_cpu *cpu = cpu_of(dev);
    pthread_mutex_lock(&cpu->mutex);
    if (!in_flight(cpu)) {
        pthread_mutex_unlock(&cpu->mutex);
        return ah__fail(AH_EINTERNAL, "cpu device: waited with nothing in flight");
    }
    while (cpu->order_in == cpu->order_out) {
        cpu->driver_asleep = true;
        pthread_cond_wait(&cpu->finished, &cpu->mutex);
    }
    struct ah_cpu_lane *lane = &cpu->lanes[cpu->order[cpu->order_out++ % AH_LENGTH(cpu->order)]];
    const struct ah_cpu_slot *slot = &lane->ring[lane->reported++ % AH_CPU_RING];
    *done = (struct ah_done){
        .lane = lane->lane, .start_ns = slot->start_ns, .end_ns = slot->end_ns, .status = slot->status};
    if (done->status != AH_OK)
        ah__fail(done->status, "%s", cpu->message);
    pthread_mutex_unlock(&cpu->mutex);
    return AH_OK;
}

static int cpu_prepare(struct ah_dev *dev, const struct ah_program *program, struct ah_prepared **out)
{
    struct ah_prepared *prepared;
    (void)dev;
    AH_TRY(ah__new(&prepared, 1, sizeof *prepared));
    prepared->program = program;
    *out = prepared;
    return AH_OK;
}

static void cpu_prepared_free(struct ah_dev *dev, struct ah_prepared *prepared)
{
    (void)dev;
    ah__free(prepared);
}

static int64_t cpu_now_ns(struct ah_dev *dev)
{
    (void)dev;
    return ah__cpu_now_ns();
}

static void cpu_info(struct ah_dev *dev, struct ah_dev_info *out)
{
    struct ah_cpu *cpu = cpu_of(dev);
    int64_t host_bytes = 0;
    for (int i = 0; i < atomic_load(&cpu->host_count); i++)
        host_bytes += cpu->host[i].bytes;
    *out = (struct ah_dev_info){
        .name = "cpu",
        .threads = cpu->threads,
        .host_threads = cpu->host_threads,
        .link_bytes_per_s = cpu->link_bytes_per_s,
        .align_bytes = AH_CPU_ALIGN,
        .device_high_water_bytes = atomic_load(&cpu->high_water),
        .host_bytes = host_bytes,
        .machine_bytes = cpu->machine_bytes,
        .signature = cpu->signature,
    };
}

/* ---- opening and closing */

/* Cores this process may use, and whether they are numbered 0..count-1, as pinning needs. */
static int core_count(bool *in_order)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        *in_order = false;
        return 1;
    }
    int count = CPU_COUNT(&set);
    *in_order = true;
    for (int i = 0; i < count; i++)
        *in_order = *in_order && CPU_ISSET((size_t)i, &set);
    return count;
}

/* What timings depend on: the processor's name, its instruction set, cores, threads and the link. */
static uint64_t signature_make(const struct ah_cpu *cpu, int cores)
{
    uint64_t hash = ah__hash_text(ah__cpu_isa(), ah__hash_text("cpu", 0));
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "model name", 10) == 0) {
            hash = ah__hash_text(line, hash);
            break;
        }
    if (file)
        fclose(file);
    hash = ah__hash_int((uint64_t)cores, hash);
    hash = ah__hash_int((uint64_t)cpu->threads, hash);
    hash = ah__hash_int((uint64_t)cpu->host_threads, hash);
    return ah__hash_int((uint64_t)cpu->link_bytes_per_s, hash);
}

static void cpu_close(struct ah_dev *dev)
{
    struct ah_cpu *cpu = cpu_of(dev);
    pthread_mutex_lock(&cpu->mutex);
    cpu->stop = true;
    for (int i = 0; i < AH_LANE_COUNT; i++)
        pthread_cond_signal(&cpu->lanes[i].wake);
    pthread_mutex_unlock(&cpu->mutex);
    for (int i = 0; i < AH_LANE_COUNT; i++) {
        ah__cpu_lane_join(&cpu->lanes[i]);
        ah__pool_free(cpu->lanes[i].pool);
        pthread_cond_destroy(&cpu->lanes[i].wake);
        ah__free(cpu->lanes[i].ring);
    }
    ah__cpu_region_free(&cpu->device);
    for (int i = 0; i < atomic_load(&cpu->host_count); i++)
        ah__cpu_region_free(&cpu->host[i]);
    pthread_cond_destroy(&cpu->finished);
    pthread_mutex_destroy(&cpu->mutex);
    ah__free(cpu);
}

static int lanes_start(struct ah_cpu *cpu, const struct ah_dev_options *options)
{
    bool in_order;
    int cores = core_count(&in_order);
    cpu->threads = options->threads ? options->threads : cores;
    cpu->host_threads = options->host_threads ? options->host_threads : 1;
    cpu->signature = signature_make(cpu, cores);
    cpu->machine_bytes = ah__cpu_memory_available();
    bool pinned = in_order && cpu->threads + cpu->host_threads <= cores;
    AH_TRY(ah__pool_new(&cpu->lanes[AH_LANE_COMPUTE].pool, cpu->threads, pinned ? 0 : -1));
    AH_TRY(ah__pool_new(&cpu->lanes[AH_LANE_HOST].pool, cpu->host_threads, pinned ? cpu->threads : -1));
    for (int i = 0; i < AH_LANE_COUNT; i++) {
        if (i == AH_LANE_COMM)
            continue;
        /* Copies are the host's business: they must not disturb the cores that play the device. */
        cpu->lanes[i].core = pinned ? cpu->threads : -1;
        AH_TRY(ah__new(&cpu->lanes[i].ring, AH_CPU_RING, sizeof *cpu->lanes[i].ring));
        AH_TRY(ah__cpu_lane_start(&cpu->lanes[i]));
    }
    return AH_OK;
}

int ah__dev_cpu_open(struct ah_dev **out, const struct ah_dev_options *options)
{
    static const struct ah_dev_ops ops = {
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
    struct ah_cpu *cpu;
    AH_TRY(ah__new(&cpu, 1, sizeof *cpu));
    cpu->dev.ops = &ops;
    cpu->link_bytes_per_s = options->link_bytes_per_s;
    cpu->jitter_seed = options->jitter_seed;
    pthread_mutex_init(&cpu->mutex, NULL);
    pthread_cond_init(&cpu->finished, NULL);
    for (int i = 0; i < AH_LANE_COUNT; i++) {
        cpu->lanes[i].cpu = cpu;
        cpu->lanes[i].lane = (enum ah_lane)i;
        pthread_cond_init(&cpu->lanes[i].wake, NULL);
    }
    int status = lanes_start(cpu, options);
    if (status != AH_OK) {
        cpu_close(&cpu->dev);
        return status;
    }
    *out = &cpu->dev;
    return AH_OK;
}
