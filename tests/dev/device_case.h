/* Programs on any device through the seam: the operands lie in memory of the test, are carried to the device, and back
 * when the program has run. */
#ifndef AH_TESTS_DEV_DEVICE_CASE_H
#define AH_TESTS_DEV_DEVICE_CASE_H

#include "dev/dev.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "test_paths.h"

enum { DEVICE_CASE_BYTES = 96 << 20, DEVICE_CASE_ALIGN = 256, DEVICE_CASE_GUARD = 256 };

/* A device with a region of DEVICE_CASE_BYTES and as much host memory beside it. */
struct test_device {
    struct ah_dev *dev;
    char *region, *host;
};

/* "cpu", or "cuda": the plugin on the emulated GPU, or the one that AUTOHETE_PLUGINS names where that is set. */
static inline struct test_device test_device_open(const char *name)
{
    struct test_device d = {0};
    struct ah_dev_options options = {.threads = strcmp(name, "cpu") == 0 ? 2 : 0, .host_threads = 1};
    bool named = getenv("AUTOHETE_PLUGINS");
#ifdef AH_TEST_EMULATION
    const char *plugins = getenv("AH_TEST_CUDA_PLUGIN"); /* another build of the plugin on the emulated GPU */
    if (!named) {
        setenv("AUTOHETE_PLUGINS", plugins ? plugins : AH_TEST_EMULATION, 1);
        setenv("AUTOHETE_CUDA_LIBRARIES", AH_TEST_EMULATION "/libraries", 1);
    }
#endif
    assert_ok(ah_dev_open(&d.dev, name, &options));
    if (!named) {
        unsetenv("AUTOHETE_PLUGINS");
        unsetenv("AUTOHETE_CUDA_LIBRARIES");
    }
    assert_ok(d.dev->ops->device_memory(d.dev, DEVICE_CASE_BYTES, &d.region));
    assert_ok(d.dev->ops->host_memory(d.dev, DEVICE_CASE_BYTES, &d.host));
    return d;
}

static inline void test_device_close(struct test_device *d)
{
    assert_ok(d->dev->ops->memory_release(d->dev));
    ah_dev_close(d->dev);
}

static inline void test_device_copy(struct test_device *d, enum ah_lane lane, void *to, const void *from, int64_t bytes)
{
    struct ah_work work = {.lane = lane, .tasks = 1, .task = {{.type = AH_TASK_COPY}}, .label = {"test copy", 0, 0}};
    work.task[0].as.copy.to = to;
    work.task[0].as.copy.from = from;
    work.task[0].as.copy.bytes = bytes;
    assert_ok(ah__dev_run(d->dev, &work, NULL));
}

/* Carries `bytes` of operands to the region, `shift` bytes from its beginning, and NaN everywhere behind them; binds
 * the workspace there, and as many bytes of guard behind it as are to stay. */
static inline void test_device_fill(struct test_device *d, const char *memory, int64_t bytes, int64_t shift,
                                    int64_t behind)
{
    assert_in_range(shift + bytes + behind, 0, DEVICE_CASE_BYTES);
    memset(d->host, 0xFF, (size_t)(shift + bytes + behind));
    memcpy(d->host + shift, memory, (size_t)bytes);
    test_device_copy(d, AH_LANE_H2D, d->region, d->host, shift + bytes + behind);
}

/* Prepares and runs the program, whose operands are in AH_SPACE_WORK at `memory`, `bytes` altogether; they lie `shift`
 * bytes from a multiple of DEVICE_CASE_ALIGN meanwhile. What the workspace is not to touch is looked at. */
static inline void test_device_run(struct test_device *d, const struct ah_program *program, char *memory, int64_t bytes,
                                   int64_t shift)
{
    struct ah_prepared *prepared;
    assert_ok(d->dev->ops->prepare(d->dev, program, &prepared));
    int64_t end = (shift + bytes + DEVICE_CASE_ALIGN - 1) / DEVICE_CASE_ALIGN * DEVICE_CASE_ALIGN;
    int64_t guard = end + prepared->workspace_bytes, all = guard + DEVICE_CASE_GUARD;
    test_device_fill(d, memory, bytes, shift, all - shift - bytes);
    struct ah_work work = {
        .lane = AH_LANE_COMPUTE, .tasks = 1, .task = {{.type = AH_TASK_PROGRAM}}, .label = {"test program", 0, 0}};
    work.task[0].as.program.prepared = prepared;
    work.task[0].as.program.base[AH_SPACE_WORK] = d->region + shift;
    work.task[0].as.program.base[AH_SPACE_WORKSPACE] = d->region + end;
    assert_ok(ah__dev_run(d->dev, &work, NULL));
    test_device_copy(d, AH_LANE_D2H, d->host, d->region, all);
    memcpy(memory, d->host + shift, (size_t)bytes);
    for (int64_t i = 0; i < DEVICE_CASE_GUARD; i++)
        assert_int_equal(d->host[guard + i], (char)0xFF);
    d->dev->ops->prepared_free(d->dev, prepared);
}

#endif
