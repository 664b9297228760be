/* Collectives of the CUDA device, on emulated GPUs and an emulated NCCL: ranks are threads, each with a GPU of its own.
 * Sums have the bits that the CPU device's have; whatever fails ends all ranks, each with one line. */
#include "emulated.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"
#include "comm/threads.h"
#include "dev/cuda/collective.h"
#include "op/bf16.h"

enum { DEVICES = 4 };

/* Threads must not change the environment: it is as wanted before they start. */
static void ranks_run(int ranks, int devices, void (*work)(int rank, void *context), void *context)
{
    char text[16];
    snprintf(text, sizeof text, "%d", devices);
    setenv("AUTOHETE_EMULATION_DEVICES", text, 1);
    emulated_begin();
    threads_run(ranks, work, context);
    emulated_end();
    unsetenv("AUTOHETE_EMULATION_DEVICES");
}

/* ---- bits -------------------------------------------------------------------------------------------------------- */

struct sizes {
    int ranks;
    int64_t part; /* elements */
};

struct scene {
    struct ah_dev *dev;
    char *device, *host;
    int64_t bytes;
};

static int scene_open(struct scene *scene, int64_t bytes, uint64_t jitter_seed)
{
    *scene = (struct scene){.bytes = bytes};
    AH_TRY(ah_dev_open(&scene->dev, "cuda",
                       &(struct ah_dev_options){.host_threads = 1, .jitter_seed = jitter_seed}));
    AH_TRY(scene->dev->ops->device_memory(scene->dev, bytes, &scene->device));
    return scene->dev->ops->host_memory(scene->dev, bytes, &scene->host);
}

static struct ah_work copy_work(enum ah_lane lane, void *to, const void *from, int64_t bytes)
{
    struct ah_work work = {.lane = lane, .tasks = 1, .task = {{.type = AH_TASK_COPY}}, .label = {"copy", 1, 2}};
    work.task[0].as.copy.to = to;
    work.task[0].as.copy.from = from;
    work.task[0].as.copy.bytes = bytes;
    return work;
}

static struct ah_work collective_work(enum ah_collective kind, void *buffer, int64_t count, enum ah_dtype dtype)
{
    struct ah_work work = {
        .lane = AH_LANE_COMM, .tasks = 1, .task = {{.type = AH_TASK_COLLECTIVE}}, .label = {"gather", 3, 4}};
    work.task[0].as.collective.kind = kind;
    work.task[0].as.collective.buffer = buffer;
    work.task[0].as.collective.part_count = count;
    work.task[0].as.collective.dtype = dtype;
    return work;
}

/* Each waits for the one before; none is waited for before all are submitted. The first failure. */
static int works_run(const struct scene *scene, const struct ah_work *works, int count)
{
    struct ah_event before = {0};
    int first = AH_OK;
    for (int i = 0; i < count; i++) {
        struct ah_work work = works[i];
        if (before.sequence)
            work.wait[work.waits++] = before;
        assert_ok(scene->dev->ops->submit(scene->dev, &work, &before));
    }
    for (int i = 0; i < count; i++) {
        struct ah_done done = {0};
        assert_ok(scene->dev->ops->wait_any(scene->dev, &done));
        first = first == AH_OK ? done.status : first;
    }
    return first;
}

/* Up from the host, the collective, down again. */
static int there_and_back(const struct scene *scene, enum ah_collective kind, int64_t count, enum ah_dtype dtype)
{
    const struct ah_work works[] = {copy_work(AH_LANE_H2D, scene->device, scene->host, scene->bytes),
                                    collective_work(kind, scene->device, count, dtype),
                                    copy_work(AH_LANE_D2H, scene->host, scene->device, scene->bytes)};
    return works_run(scene, works, AH_LENGTH(works));
}

/* Values whose sum depends on the order in which they are added. */
static double value_of(int rank, int64_t index)
{
    double u = ah__random_uniform(7, (uint64_t)index * THREADS_MOST + (uint64_t)rank);
    return (u - 0.5) * exp2((double)(ah__random_bits(8, (uint64_t)(index + rank)) % 20));
}

enum form { FLOATS, HALVES, DOUBLES };

static void fill(void *buffer, enum form form, int rank, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (form == DOUBLES)
            ((double *)buffer)[i] = value_of(rank, i);
        else if (form == FLOATS)
            ((float *)buffer)[i] = (float)value_of(rank, i);
        else
            ((uint16_t *)buffer)[i] = ah__bf16_of((float)value_of(rank, i));
    }
}

static const struct kind {
    enum ah_collective kind;
    enum ah_dtype dtype;
    enum form form;
    int64_t bytes; /* of an element */
    bool parts;    /* one for each rank */
} kinds[] = {
    {AH_ALL_GATHER, AH_F32, FLOATS, 4, true},      {AH_ALL_GATHER, AH_BF16, HALVES, 2, true},
    {AH_REDUCE_SCATTER, AH_F32, FLOATS, 4, true},  {AH_REDUCE_SCATTER, AH_BF16, HALVES, 2, true},
    {AH_SUM_FLOATS, AH_F32, FLOATS, 4, false},     {AH_SUM_DOUBLES, AH_F32, DOUBLES, 8, false},
};

/* As the CPU device's comm lane has it: in its arithmetic denormals are zero, and none are here. */
static void as_on_the_host(int rank, void *context)
{
    const struct sizes *sizes = context;
    struct scene scene;
    void *expected;
    assert_ok(scene_open(&scene, sizes->ranks * sizes->part * (int64_t)sizeof(double), (uint64_t)rank));
    assert_ok(ah__new(&expected, (size_t)scene.bytes, 1));
    for (size_t i = 0; i < AH_LENGTH(kinds); i++) {
        int64_t count = kinds[i].parts ? sizes->ranks * sizes->part : sizes->part;
        memset(expected, 0, (size_t)scene.bytes);
        fill(expected, kinds[i].form, rank, count);
        memcpy(scene.host, expected, (size_t)scene.bytes);
        assert_ok(there_and_back(&scene, kinds[i].kind, sizes->part, kinds[i].dtype));
        assert_ok(ah__comm()->ops->collective(ah__comm(), kinds[i].kind, expected, sizes->part, kinds[i].dtype));
        assert_memory_equal(scene.host, expected, (size_t)scene.bytes);
    }
    ah__free(expected);
    ah_dev_close(scene.dev);
}

/* Parts of one element, of less than a piece, and of more than one. */
static void collectives_have_the_hosts_bits(void **state)
{
    (void)state;
    static const int64_t parts[] = {1, 1000, 65537};
    for (int ranks = 2; ranks <= DEVICES; ranks++)
        for (size_t i = 0; i < AH_LENGTH(parts); i++) {
            emulation_reset();
            ranks_run(ranks, DEVICES, as_on_the_host, &(struct sizes){ranks, parts[i]});
            emulated_assert_clean();
        }
    ranks_run(3, DEVICES, as_on_the_host, &(struct sizes){3, AH_CUDA_PIECE_BYTES / 2 + 1001});
    emulated_assert_clean();
}

AH_TEST_SUITE("dev/cuda/collective", cmocka_unit_test(collectives_have_the_hosts_bits))
