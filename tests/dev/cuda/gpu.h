/* What the tests of the CUDA device's operators share: the device on the emulated GPU, and one call on it with the
 * operands of dev/cpu/cases.h, a workspace of exactly the size asked for, and a guard behind that. */
#ifndef AH_TESTS_DEV_CUDA_GPU_H
#define AH_TESTS_DEV_CUDA_GPU_H

#include "dev/cpu/cases.h"
#include "dev/dev.h"
#include "emulation.h"

/* Device memory, and as much of the host's. */
struct test_gpu {
    struct ah_dev *dev;
    char *device, *host;
    int64_t bytes;
};

static inline void gpu_begin(struct test_gpu *gpu, int64_t bytes)
{
    *gpu = (struct test_gpu){.bytes = bytes};
    setenv("AUTOHETE_PLUGINS", AH_TEST_EMULATION, 1);
    setenv("AUTOHETE_CUDA_LIBRARIES", AH_TEST_EMULATION "/libraries", 1);
    assert_ok(ah_dev_open(&gpu->dev, "cuda", NULL));
    unsetenv("AUTOHETE_PLUGINS");
    unsetenv("AUTOHETE_CUDA_LIBRARIES");
    assert_ok(gpu->dev->ops->device_memory(gpu->dev, bytes, &gpu->device));
    assert_ok(gpu->dev->ops->host_memory(gpu->dev, bytes, &gpu->host));
}

static inline void gpu_end(struct test_gpu *gpu)
{
    ah_dev_close(gpu->dev);
    assert_int_equal(emulation_alive(), 0);
    assert_string_equal(emulation_message(), "");
}

static inline void gpu_copy(struct test_gpu *gpu, enum ah_lane lane, int64_t bytes)
{
    struct ah_done done;
    struct ah_work work = {.lane = lane, .tasks = 1, .task[0] = {.type = AH_TASK_COPY}};
    work.task[0].as.copy.to = lane == AH_LANE_H2D ? gpu->device : gpu->host;
    work.task[0].as.copy.from = lane == AH_LANE_H2D ? gpu->host : gpu->device;
    work.task[0].as.copy.bytes = bytes;
    assert_ok(ah__dev_run(gpu->dev, &work, &done));
}

/* Runs the call on what the data's memory holds, and brings all of it back. */
static inline int gpu_run(struct test_gpu *gpu, struct op_data *data)
{
    struct ah_program program = {.count = 1, .calls = &data->call};
    struct ah_prepared *prepared;
    struct ah_done done;
    AH_TRY(gpu->dev->ops->prepare(gpu->dev, &program, &prepared));
    int64_t workspace = (data->bytes + 255) / 256 * 256, guard = workspace + prepared->workspace_bytes;
    assert_in_range(guard + CASE_GUARD, 0, gpu->bytes);
    memset(gpu->host, 0xFF, (size_t)(guard + CASE_GUARD));
    memcpy(gpu->host, data->memory, (size_t)data->bytes);
    gpu_copy(gpu, AH_LANE_H2D, guard + CASE_GUARD);
    struct ah_work work = {.lane = AH_LANE_COMPUTE, .tasks = 1, .task[0] = {.type = AH_TASK_PROGRAM}};
    work.task[0].as.program.prepared = prepared;
    work.task[0].as.program.base[AH_SPACE_WORK] = gpu->device;
    work.task[0].as.program.base[AH_SPACE_WORKSPACE] = gpu->device + workspace;
    int status = ah__dev_run(gpu->dev, &work, &done);
    gpu->dev->ops->prepared_free(gpu->dev, prepared);
    AH_TRY(status);
    gpu_copy(gpu, AH_LANE_D2H, guard + CASE_GUARD);
    for (int i = 0; i < CASE_GUARD; i++)
        assert_int_equal(gpu->host[guard + i], (char)0xFF);
    memcpy(data->memory, gpu->host, (size_t)data->bytes);
    return AH_OK;
}

/* The same, twice from the same memory: the same bits. */
static inline void gpu_run_twice(struct test_gpu *gpu, struct op_data *data)
{
    char *before = malloc((size_t)data->bytes), *after = malloc((size_t)data->bytes);
    assert_non_null(before);
    assert_non_null(after);
    memcpy(before, data->memory, (size_t)data->bytes);
    assert_ok(gpu_run(gpu, data));
    memcpy(after, data->memory, (size_t)data->bytes);
    memcpy(data->memory, before, (size_t)data->bytes);
    assert_ok(gpu_run(gpu, data));
    assert_memory_equal(data->memory, after, (size_t)data->bytes);
    free(before);
    free(after);
}

#endif
