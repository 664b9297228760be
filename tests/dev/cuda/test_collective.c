/* Collectives of the CUDA device, on emulated GPUs and an emulated NCCL: ranks are threads, each with a GPU of its own.
 * Sums have the bits that the CPU device's have; whatever fails ends all ranks, each with one line. */
#include "emulated.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"
#include "dev/cuda/collective.h"
#include "op/bf16.h"
#include "run/joint.h"
#include "test_paths.h"

enum { DEVICES = 4 };

/* Threads must not change the environment: it is as wanted before they start. */
static void gpus_begin(int devices)
{
    char text[16];
    snprintf(text, sizeof text, "%d", devices);
    setenv("AUTOHETE_EMULATION_DEVICES", text, 1);
    emulated_begin();
    emulation_reset();
}

static void gpus_end(void)
{
    emulated_end();
    unsetenv("AUTOHETE_EMULATION_DEVICES");
}

static void ranks_run(int ranks, int devices, void (*work)(int rank, void *context), void *context)
{
    gpus_begin(devices);
    threads_run(ranks, work, context);
    gpus_end();
}

/* ---- bits -------------------------------------------------------------------------------------------------------- */

struct sizes {
    int world_size;
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
    AH_TRY(ah_dev_open(&scene->dev, "cuda", &(struct ah_dev_options){.host_threads = 1, .jitter_seed = jitter_seed}));
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
    {AH_ALL_GATHER, AH_F32, FLOATS, 4, true},     {AH_ALL_GATHER, AH_BF16, HALVES, 2, true},
    {AH_REDUCE_SCATTER, AH_F32, FLOATS, 4, true}, {AH_REDUCE_SCATTER, AH_BF16, HALVES, 2, true},
    {AH_SUM_FLOATS, AH_F32, FLOATS, 4, false},    {AH_SUM_DOUBLES, AH_F32, DOUBLES, 8, false},
};

/* As the CPU device's comm lane has it: in its arithmetic denormals are zero, and none are here. */
static void as_on_the_host(int rank, void *context)
{
    const struct sizes *sizes = context;
    struct scene scene;
    void *expected;
    assert_ok(scene_open(&scene, sizes->world_size * sizes->part * (int64_t)sizeof(double), (uint64_t)rank));
    assert_ok(ah__new(&expected, (size_t)scene.bytes, 1));
    for (size_t i = 0; i < AH_LENGTH(kinds); i++) {
        int64_t count = kinds[i].parts ? sizes->world_size * sizes->part : sizes->part;
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
    static const int64_t parts[] = {1, 1000, 65537};
    for (int ranks = 2; ranks <= DEVICES; ranks++)
        for (size_t i = 0; i < AH_LENGTH(parts); i++) {
            ranks_run(ranks, DEVICES, as_on_the_host, &(struct sizes){ranks, parts[i]});
            emulated_assert_clean();
        }
    ranks_run(3, DEVICES, as_on_the_host, &(struct sizes){3, AH_CUDA_PIECE_BYTES / 2 + 1001});
    emulated_assert_clean();
}

/* ---- which rank has which GPU ------------------------------------------------------------------------------------ */

struct choice {
    const char *device;
    int status;
    const char *words; /* of the name, or of the message; "%d": the rank */
    const char *why;   /* another was passed over */
};

static void choose_one(int rank, void *context)
{
    const struct choice *choice = context;
    struct ah_device device;
    struct ah_dev *dev;
    char words[160];
    snprintf(words, sizeof words, choice->words, rank);
    int status = ah_dev_open(&dev, choice->device, &(struct ah_dev_options){.host_threads = 1});
    if (choice->status != AH_OK) {
        assert_fails(status, choice->status, words);
        return;
    }
    assert_ok(status);
    ah_dev_get(&device, dev);
    assert_string_equal(device.name, words);
    assert_true(choice->why ? strstr(device.why, choice->why) != NULL : !*device.why);
    ah_dev_close(dev);
}

static void each_rank_has_a_gpu_of_its_own(void **state)
{
    static const char few[] = "found 2 ranks on this machine, expected at most 1: its GPUs from number 2 on";
    static const char one[] = "found one GPU for ranks 0 and 1, expected one for each";
    static const struct {
        int devices;
        struct choice choice;
    } cases[] = {
        {4, {"cuda", AH_OK, "cuda:%d", NULL}}, {2, {"auto", AH_OK, "cuda:%d", NULL}},
        {3, {"cuda:2", AH_EINPUT, few, NULL}}, {1, {"cuda", AH_EINPUT, one, NULL}},
        {1, {"auto", AH_OK, "cpu", one}},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        struct choice choice = cases[i].choice;
        ranks_run(2, cases[i].devices, choose_one, &choice);
        emulated_assert_clean();
    }
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

enum { STEPS = 3, COUNT = 2000 };

/* What every rank says in the end. */
struct team {
    int world_size, status[DEVICES];
    char message[DEVICES][512];
};

/* Opens, some collectives of each kind, closes. */
static int life(int rank)
{
    struct scene scene;
    int status = scene_open(&scene, 4 * COUNT * (int64_t)sizeof(double), (uint64_t)rank + 1);
    for (int step = 0; step < STEPS && status == AH_OK; step++)
        for (size_t i = 0; i < AH_LENGTH(kinds) && status == AH_OK; i++) {
            fill(scene.host, kinds[i].form, rank, kinds[i].parts ? 2 * COUNT : COUNT);
            status = there_and_back(&scene, kinds[i].kind, COUNT, kinds[i].dtype);
        }
    if (scene.dev && status == AH_OK)
        status = scene.dev->ops->memory_release(scene.dev);
    ah_dev_close(scene.dev);
    return status;
}

/* As the program does it: closes, then says so to the others. */
static void life_one(int rank, void *context)
{
    struct team *team = context;
    bool together = false;
    team->status[rank] = ah__comm()->ops->end(ah__comm(), life(rank), &together);
    assert_true(together);
    snprintf(team->message[rank], sizeof team->message[rank], "%s", ah_error());
}

/* Whether the fault came. Then it is every rank's. */
static bool life_fails(const char *function, long nth, int error, const char *words)
{
    struct team team = {.world_size = 2};
    gpus_begin(DEVICES);
    emulation_fail(function, nth, error);
    threads_run(2, life_one, &team);
    gpus_end();
    assert_int_equal(emulation_alive(), 0);
    assert_int_equal(team.status[0], team.status[1]);
    for (int rank = 0; rank < 2 && team.status[0] != AH_OK; rank++) {
        assert_null(strchr(team.message[rank], '\n'));
        if (!strstr(team.message[rank], words))
            fail_msg("%s, call %ld: rank %d says \"%s\", expected \"%s\"", function, nth, rank, team.message[rank],
                     words);
    }
    return team.status[0] != AH_OK;
}

/* Each function of NCCL's when it is first called, and later. */
static void whatever_fails_in_nccl_ends_all_ranks(void **state)
{
    static const struct {
        const char *function;
        int error;
        const char *words;
        long most; /* calls that may fail */
    } faults[] = {
        {"ncclGetUniqueId", ncclSystemError, "ncclGetUniqueId: unhandled system error", 1},
        {"ncclCommInitRankConfig", ncclInvalidUsage, "ncclCommInitRankConfig: invalid usage", 2},
        {"ncclGroupStart", ncclInternalError, "ncclGroupStart: internal error", 14},
        {"ncclSend", ncclInvalidArgument, "ncclSend, ncclRecv: invalid argument", 14},
        {"ncclRecv", ncclInvalidArgument, "ncclSend, ncclRecv: invalid argument", 14},
        {"ncclGroupEnd", ncclUnhandledCudaError, "ncclGroupEnd: unhandled cuda error", 14},
        {"ncclAllGather", ncclUnhandledCudaError, "ncclAllGather: unhandled cuda error", 26},
        {"ncclCommGetAsyncError", ncclInternalError, "internal error", 40},
        {"nccl", ncclSystemError, "unhandled system error: something", 40}, /* behind a call */
    };
    for (size_t i = 0; i < AH_LENGTH(faults); i++)
        for (long nth = 1; nth <= faults[i].most; nth += nth < 3 || ah_test_soaks() ? 1 : 11)
            assert_true(life_fails(faults[i].function, nth, faults[i].error, faults[i].words));
    /* for some seconds nobody says which */
    assert_true(life_fails("nccl", 9, ncclRemoteError, "remote process exited"));
}

static void whatever_fails_in_cuda_ends_all_ranks(void **state)
{
    assert_true(life_fails("cudaMalloc", 1, cudaErrorMemoryAllocation, "cudaMalloc: out of memory"));
    assert_true(life_fails("kernel", 1, cudaErrorIllegalAddress, "an illegal memory access was encountered"));
    assert_true(life_fails("cudaLaunchKernelEx", 3, cudaErrorLaunchOutOfResources, "sum of ranks: "));
    assert_true(life_fails("cudaMemsetAsync", 1, cudaErrorUnknown, "cudaMemsetAsync: unknown error"));
}

/* Nobody is asked to leave who fails to: all is done. */
static void leaving_cannot_fail(void **state)
{
    assert_false(life_fails("ncclCommFinalize", 1, ncclInternalError, ""));
    assert_false(life_fails("ncclCommDestroy", 1, ncclInternalError, ""));
    assert_false(life_fails("ncclCommAbort", 1, ncclInternalError, ""));
}

/* Rank 1 goes without a word to NCCL: the others wait on their GPUs until they hear of it. */
static void gone_one(int rank, void *context)
{
    struct scene scene;
    bool together;
    assert_ok(scene_open(&scene, 4 * COUNT * (int64_t)sizeof(float), 0));
    if (rank == 1) {
        int status = ah__fail(AH_ENOMEM, "this rank has had enough");
        ah_dev_close(scene.dev);
        assert_string_equal(ah_error(), "this rank has had enough");
        assert_int_equal(ah__comm()->ops->end(ah__comm(), status, &together), AH_ENOMEM);
        return;
    }
    assert_fails(there_and_back(&scene, AH_REDUCE_SCATTER, COUNT, AH_F32), AH_EDEVICE,
                 "lane comm: gather, partition 3, iteration 4: ");
    assert_non_null(strstr(ah_error(), "rank 1 has failed"));
    int status = ah__fail(AH_EDEVICE, "what this rank says");
    assert_ok(scene.dev->ops->memory_release(scene.dev));
    assert_ok(scene.dev->ops->device_memory(scene.dev, scene.bytes, &scene.device));
    assert_ok(scene.dev->ops->host_memory(scene.dev, scene.bytes, &scene.host));
    assert_fails(there_and_back(&scene, AH_ALL_GATHER, COUNT, AH_F32), AH_EDEVICE, "NCCL has failed");
    ah_dev_close(scene.dev);
    assert_int_equal(ah__comm()->ops->end(ah__comm(), status, &together), AH_ENOMEM);
    assert_string_equal(ah_error(), "rank 1: this rank has had enough");
}

static void a_rank_that_is_gone_is_noticed(void **state)
{
    ranks_run(3, DEVICES, gone_one, NULL);
    emulated_assert_clean();
}

/* Closes while a collective waits for a rank that never comes. */
static void close_one(int rank, void *context)
{
    struct scene scene;
    struct ah_event event;
    assert_ok(scene_open(&scene, 4 * COUNT * (int64_t)sizeof(float), 0));
    struct ah_work work = collective_work(AH_REDUCE_SCATTER, scene.device, COUNT, AH_F32);
    if (rank == 0)
        assert_ok(scene.dev->ops->submit(scene.dev, &work, &event));
    ah_dev_close(scene.dev);
}

static void closing_waits_for_nobody(void **state)
{
    ranks_run(2, DEVICES, close_one, NULL);
    emulated_assert_clean();
}

/* Told before NCCL is asked: it goes on. */
static void refused_one(int rank, void *context)
{
    struct scene scene;
    (void)rank, (void)context;
    assert_ok(scene_open(&scene, COUNT * (int64_t)sizeof(float), 0));
    assert_fails(there_and_back(&scene, AH_SUM_FLOATS, COUNT, AH_BF16), AH_EINTERNAL, "a sum of floats in bf16");
    assert_ok(scene.dev->ops->memory_release(scene.dev));
    assert_ok(scene.dev->ops->device_memory(scene.dev, scene.bytes, &scene.device));
    assert_ok(scene.dev->ops->host_memory(scene.dev, scene.bytes, &scene.host));
    assert_ok(there_and_back(&scene, AH_ALL_GATHER, 0, AH_F32));
    assert_ok(there_and_back(&scene, AH_SUM_FLOATS, COUNT, AH_F32));
    ah_dev_close(scene.dev);
}

static void what_is_no_collective_is_refused(void **state)
{
    ranks_run(2, DEVICES, refused_one, NULL);
    emulated_assert_clean();
}

static void without_nccl_one(int rank, void *context)
{
    struct scene scene;
    (void)rank, (void)context;
    assert_fails(scene_open(&scene, COUNT, 0), AH_EDEVICE, "libnccl.so.2 does not load");
}

static void a_missing_nccl_is_named(void **state)
{
    char folder[400], path[512];
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    snprintf(path, sizeof path, "%s/libcublasLt.so.13", folder);
    assert_int_equal(symlink(AH_TEST_EMULATION "/libraries/libcublasLt.so.13", path), 0);
    gpus_begin(DEVICES);
    setenv("AUTOHETE_CUDA_LIBRARIES", folder, 1);
    threads_run(2, without_nccl_one, NULL);
    gpus_end();
    emulated_assert_clean();
}

/* ---- trainings --------------------------------------------------------------------------------------------------- */

static const double CLIP = 1.45;

static void every_plan(struct joint joint, const char *policy, int of)
{
    joint.device = "cuda";
    gpus_begin(DEVICES);
    joint_every_plan(joint, policy, of);
    gpus_end();
    emulated_assert_clean();
}

/* Two ranks take their time: of all plans some, more in the long run. */
static void two_ranks_equal_resident(void **state)
{
    every_plan((struct joint){.config = tiny_tied, .world_size = 2, .micro_batches = 1, .batch = 1, .clip = CLIP},
               "autohete", ah_test_rounds(100, 18, 2));
}

static void three_ranks_in_bf16_equal_resident(void **state)
{
    every_plan((struct joint){.config = tiny_untied, .dtype = AH_BF16, .world_size = 3, .micro_batches = 2, .batch = 1},
               "autohete", ah_test_rounds(100, 36, 3));
}

static void nearly(double found, double expected, double bound)
{
    if (!(fabs(found - expected) <= bound * fabs(expected)))
        fail_msg("found %.9g, expected %.9g to within %g of it", found, expected, bound);
}

/* The same ranks, the same sequences: rounding is all that tells the devices apart. */
static void losses_are_nearly_those_of_cpu_ranks(void **state)
{
    struct joint joint = {.config = tiny_tied,
                          .world_size = 2,
                          .micro_batches = 1,
                          .batch = 1,
                          .clip = CLIP,
                          .plan = joint_resident(2, TINY_LAYERS),
                          .options = {.host_threads = 1},
                          .steps = TINY_STEPS};
    struct team_run expected, found;
    joint_train(&expected, &joint);
    joint.device = "cuda";
    gpus_begin(DEVICES);
    joint_train(&found, &joint);
    gpus_end();
    for (int i = 0; i < TINY_STEPS; i++) {
        nearly(found.rank[0].outcome.loss[i], expected.rank[0].outcome.loss[i], 1e-5);
        nearly(found.rank[0].outcome.norm[i], expected.rank[0].outcome.norm[i], 1e-5);
    }
    joint_free(&expected);
    joint_free(&found);
    emulated_assert_clean();
}

AH_TEST_CASES("dev/cuda/collective", collectives_have_the_hosts_bits, each_rank_has_a_gpu_of_its_own,
              whatever_fails_in_nccl_ends_all_ranks, whatever_fails_in_cuda_ends_all_ranks, leaving_cannot_fail,
              a_rank_that_is_gone_is_noticed, closing_waits_for_nobody, what_is_no_collective_is_refused,
              a_missing_nccl_is_named, losses_are_nearly_those_of_cpu_ranks, two_ranks_equal_resident,
              three_ranks_in_bf16_equal_resident)
