/* Casts, collectives, updates in half precision and prepared programs behind the seam: what they do and what is
 * refused. */
#include "test.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "dev/dev.h"

enum { BYTES = 1 << 16, COUNT = 1000 };

/* A device whose host memory holds COUNT numbers at the start. */
struct rig {
    struct ah_dev *dev;
    char *device, *host;
};

static void rig_memory(struct rig *rig)
{
    assert_ok(rig->dev->ops->device_memory(rig->dev, BYTES, &rig->device));
    assert_ok(rig->dev->ops->host_memory(rig->dev, BYTES, &rig->host));
    for (int i = 0; i < COUNT; i++)
        ((float *)(void *)rig->host)[i] = (float)ah__random_normal(1, (uint64_t)i);
}

static struct rig rig_open(void)
{
    struct rig rig;
    assert_ok(ah_dev_open(&rig.dev, "cpu", &(struct ah_dev_options){.threads = 2}));
    rig_memory(&rig);
    return rig;
}

static struct ah_work work_of(enum ah_lane lane, enum ah_task_type type)
{
    return (struct ah_work){.lane = lane, .tasks = 1, .task = {{.type = type}}};
}

static struct ah_work cast_work(enum ah_lane lane, void *to, enum ah_dtype to_dtype, const void *from,
                                enum ah_dtype from_dtype)
{
    struct ah_work work = work_of(lane, AH_TASK_CAST);
    work.task[0].as.cast.to = to;
    work.task[0].as.cast.from = from;
    work.task[0].as.cast.to_dtype = to_dtype;
    work.task[0].as.cast.from_dtype = from_dtype;
    work.task[0].as.cast.count = COUNT;
    return work;
}

static struct ah_work collective_work(enum ah_lane lane, enum ah_collective kind, void *buffer, int64_t count)
{
    struct ah_work work = work_of(lane, AH_TASK_COLLECTIVE);
    work.task[0].as.collective.kind = kind;
    work.task[0].as.collective.buffer = buffer;
    work.task[0].as.collective.part_count = count;
    work.task[0].as.collective.dtype = AH_BF16;
    return work;
}

/* Host: float -> half; over the link; device: half -> float, which is the float with its lower bits rounded away. */
static void casts_run_on_both_sides(void **state)
{
    struct rig rig = rig_open();
    float back[COUNT], *given = (float *)(void *)rig.host;
    struct ah_work work = cast_work(AH_LANE_HOST, rig.host + 8192, AH_BF16, rig.host, AH_F32);
    assert_ok(ah__dev_run(rig.dev, &work, NULL));
    work = work_of(AH_LANE_H2D, AH_TASK_COPY);
    work.task[0].as.copy.to = rig.device;
    work.task[0].as.copy.from = rig.host + 8192;
    work.task[0].as.copy.bytes = 2 * COUNT;
    assert_ok(ah__dev_run(rig.dev, &work, NULL));
    work = cast_work(AH_LANE_COMPUTE, rig.device + 8192, AH_F32, rig.device, AH_BF16);
    assert_ok(ah__dev_run(rig.dev, &work, NULL));
    memcpy(back, rig.device + 8192, sizeof back);
    for (int i = 0; i < COUNT; i++) {
        uint32_t bits;
        memcpy(&bits, &back[i], sizeof bits);
        assert_int_equal(bits & 0xFFFF, 0);
        float error = back[i] - given[i], most = (back[i] < 0 ? -back[i] : back[i]) / 256;
        assert_true(error <= most && -error <= most);
    }
    ah_dev_close(rig.dev);
}

static void one_rank_gathers_and_reduces_what_it_has(void **state)
{
    struct rig rig = rig_open();
    char before[256];
    memset(rig.device, 0x3F, sizeof before);
    memcpy(before, rig.device, sizeof before);
    struct ah_work work = collective_work(AH_LANE_COMM, AH_ALL_GATHER, rig.device, 128);
    assert_ok(ah__dev_run(rig.dev, &work, NULL));
    work = collective_work(AH_LANE_COMM, AH_REDUCE_SCATTER, rig.device, 128);
    assert_ok(ah__dev_run(rig.dev, &work, NULL));
    assert_memory_equal(rig.device, before, sizeof before);
    ah_dev_close(rig.dev);
}

/* An update on the host whose scale is in host memory and written after the work was submitted. */
static void the_scale_is_read_when_the_update_runs(void **state)
{
    struct rig rig = rig_open();
    float *scale = (float *)(void *)(rig.host + 60000), *p = (float *)(void *)(rig.host + 16384);
    struct ah_event written, updated;
    struct ah_done done;
    *scale = 0; /* Adam with a gradient of zero moves nothing */
    ((float *)(void *)(rig.device))[0] = 1;
    struct ah_work work = work_of(AH_LANE_D2H, AH_TASK_COPY);
    work.task[0].as.copy.to = scale;
    work.task[0].as.copy.from = rig.device;
    work.task[0].as.copy.bytes = sizeof *scale;
    assert_ok(rig.dev->ops->submit(rig.dev, &work, &written));
    work = work_of(AH_LANE_HOST, AH_TASK_ADAM);
    work.waits = 1;
    work.wait[0] = written;
    work.task[0].as.adam.p = p;
    work.task[0].as.adam.m = p + COUNT;
    work.task[0].as.adam.v = p + 2 * COUNT;
    work.task[0].as.adam.g = rig.host;
    work.task[0].as.adam.count = COUNT;
    work.task[0].as.adam.scale = scale;
    work.task[0].as.adam.adam = (struct ah_adam){.9F, .1F, .95F, .05F, 1e-8F, 1, 1e-2F, 1.5F, 0};
    assert_ok(rig.dev->ops->submit(rig.dev, &work, &updated));
    for (int i = 0; i < 2; i++) {
        assert_ok(rig.dev->ops->wait_any(rig.dev, &done));
        assert_int_equal(done.status, AH_OK);
    }
    assert_true(p[0] != 0 && p[COUNT - 1] != 0);
    ah_dev_close(rig.dev);
}

static struct ah_work scaled_work(struct rig *rig, const float *scale, void *rest)
{
    struct ah_work work = work_of(AH_LANE_HOST, AH_TASK_ADAM);
    work.task[0].as.adam.p = work.task[0].as.adam.m = work.task[0].as.adam.v = (float *)(void *)rig->host;
    work.task[0].as.adam.g = rig->host;
    work.task[0].as.adam.count = 1;
    work.task[0].as.adam.scale = scale;
    work.task[0].as.adam.rest = rest;
    work.task[0].as.adam.dtype = rest ? AH_BF16 : AH_F32;
    return work;
}

/* Each is refused before it touches anything. */
static void tasks_on_the_wrong_lane_or_side_are_refused(void **state)
{
    enum { CASES = 10 };
    struct rig rig = rig_open();
    for (int i = 0; i < CASES; i++) {
        char *d = rig.device, *h = rig.host;
        struct {
            struct ah_work work;
            int status;
            const char *words;
        } wrong[CASES] = {
            {cast_work(AH_LANE_HOST, d, AH_BF16, h, AH_F32), AH_EINTERNAL, "cast to: 2000 bytes"},
            {cast_work(AH_LANE_COMPUTE, d, AH_BF16, h, AH_F32), AH_EINTERNAL, "cast from: 4000 bytes"},
            {cast_work(AH_LANE_H2D, d, AH_BF16, h, AH_F32), AH_EINTERNAL,
             "lane h2d: work, partition 0, iteration 0: cast: "
             "this lane does none"},
            {cast_work(AH_LANE_HOST, h + 100, AH_BF16, h, AH_F32), AH_EINTERNAL, "cast: output and input overlap"},
            {cast_work(AH_LANE_HOST, h, AH_F16, h, AH_F32), AH_EDEVICE, "cast to: dtype 2, expected F32 or BF16"},
            {collective_work(AH_LANE_COMM, AH_ALL_GATHER, h, 8), AH_EINTERNAL, "collective buffer: 16 bytes"},
            {collective_work(AH_LANE_COMPUTE, AH_ALL_GATHER, d, 8), AH_EINTERNAL, "collective: this lane does none"},
            {cast_work(AH_LANE_COMM, h + 8192, AH_BF16, d, AH_F32), AH_EINTERNAL, "cast to: 2000 bytes"},
            {scaled_work(&rig, (float *)(void *)d, NULL), AH_EINTERNAL, "adam scale: 4 bytes"},
            {scaled_work(&rig, NULL, d), AH_EINTERNAL, "adam rest: 2 bytes"},
        };
        assert_fails(ah__dev_run(rig.dev, &wrong[i].work, NULL), wrong[i].status, wrong[i].words);
        assert_ok(rig.dev->ops->memory_release(rig.dev));
        rig_memory(&rig);
    }
    ah_dev_close(rig.dev);
}

/* ---- what prepare refuses */

static struct ah_operand operand(enum ah_dtype dtype, struct ah_shape shape)
{
    return (struct ah_operand){AH_SPACE_WORK, 0, {dtype, shape}};
}

static void prepare_names_what_it_cannot_run(void **state)
{
    struct ah_shape x = ah_shape2(6, 8), w = ah_shape2(8, 4), y = ah_shape2(6, 4);
    const struct ah_call fine = {
        .op = AH_OP_LINEAR, .in = {operand(AH_F32, x), operand(AH_F32, w)}, .out = {operand(AH_F32, y)}};
    struct ah_call half = fine, absent = fine, shape = fine, unknown = fine, space = fine,
                   heads = {.op = AH_OP_ATTENTION};
    half.in[1].meta.dtype = AH_BF16;
    absent.in[1] = (struct ah_operand){0};
    shape.out[0].meta.shape = ah_shape2(6, 5);
    unknown.op = AH_OP_COUNT;
    space.in[0].space = AH_SPACE_COUNT;
    heads.attr.heads = 1;
    heads.in[0] = operand(AH_F32, (struct ah_shape){3, {1, 2, 3 * 300, 0}});
    heads.out[0] = operand(AH_F32, (struct ah_shape){3, {1, 2, 300, 0}});
    heads.out[1] = operand(AH_F32, (struct ah_shape){3, {1, 1, 2, 0}});
    const struct {
        struct ah_call call;
        const char *words;
    } wrong[] = {
        {half, "cpu: call 1, linear: input 1 (weight) is BF16, expected F32"},
        {absent, "cpu: call 1, linear: input 1 (weight) is absent"},
        {shape, "cpu: call 1, linear: output 0 (y) is [6,5], expected [6,4]"},
        {unknown, "cpu: call 1: operator"},
        {space, "cpu: call 1, linear: input 0 (x) lies in space"},
        {heads, "cpu: call 1, attention: 300 channels in 1 heads, expected heads of at most 256 channels each"},
    };
    struct ah_dev *dev;
    struct ah_prepared *prepared = NULL;
    assert_ok(ah_dev_open(&dev, "cpu", &(struct ah_dev_options){.threads = 1}));
    for (size_t i = 0; i < AH_LENGTH(wrong); i++) {
        struct ah_call calls[2] = {fine, wrong[i].call};
        struct ah_program program = {.count = 2, .calls = calls};
        assert_fails(dev->ops->prepare(dev, &program, &prepared), AH_EDEVICE, wrong[i].words);
        assert_null(prepared);
    }
    struct ah_program empty = {0};
    assert_ok(dev->ops->prepare(dev, &empty, &prepared));
    dev->ops->prepared_free(dev, prepared);
    for (uint64_t n = 1; n <= 2; n++) {
        struct ah_program program = {.count = 1, .calls = &fine};
        ah__alloc_fail_at(n);
        assert_fails(dev->ops->prepare(dev, &program, &prepared), AH_ENOMEM, "out of host memory");
        ah__alloc_fail_at(0);
    }
    ah_dev_close(dev);
}

/* What a program asked for besides its operands must lie in the device's region like them. */
static void a_workspace_outside_the_region_is_refused(void **state)
{
    enum { SEQ = 3, HEAD = 4, WORKSPACE = 2 * 16 * 16 * 4 }; /* of two threads, 16 rows of 16 floats */
    const struct ah_shape y = {3, {1, SEQ, HEAD, 0}}, qkv = {3, {1, SEQ, 3 * HEAD, 0}}, lse = {3, {1, 1, SEQ, 0}};
    struct ah_call call = {
        .op = AH_OP_ATTENTION_BWD,
        .attr.heads = 1,
        .in = {operand(AH_BF16, y), operand(AH_BF16, qkv), operand(AH_BF16, y), operand(AH_F32, lse)},
        .out = {operand(AH_BF16, qkv)}};
    call.out[0].offset = 1024;
    struct ah_program program = {.count = 1, .calls = &call};
    struct rig rig = rig_open();
    struct ah_prepared *prepared;
    assert_ok(rig.dev->ops->prepare(rig.dev, &program, &prepared));
    assert_int_equal(prepared->workspace_bytes, WORKSPACE);
    char *const wrong[] = {NULL, rig.host, rig.device + BYTES - WORKSPACE + 64};
    for (size_t i = 0; i <= AH_LENGTH(wrong); i++) {
        struct ah_work work = work_of(AH_LANE_COMPUTE, AH_TASK_PROGRAM);
        work.task[0].as.program.prepared = prepared;
        work.task[0].as.program.base[AH_SPACE_WORK] = rig.device;
        work.task[0].as.program.base[AH_SPACE_WORKSPACE] = i == 0 ? rig.device + BYTES - WORKSPACE : wrong[i - 1];
        if (i == 0)
            assert_ok(ah__dev_run(rig.dev, &work, NULL));
        else
            assert_fails(ah__dev_run(rig.dev, &work, NULL), AH_EINTERNAL, "call 0, workspace 0");
        if (i > 0) {
            assert_ok(rig.dev->ops->memory_release(rig.dev));
            rig_memory(&rig);
        }
    }
    rig.dev->ops->prepared_free(rig.dev, prepared);
    ah_dev_close(rig.dev);
}

AH_TEST_CASES("dev/tasks", casts_run_on_both_sides, one_rank_gathers_and_reduces_what_it_has,
              the_scale_is_read_when_the_update_runs, tasks_on_the_wrong_lane_or_side_are_refused,
              prepare_names_what_it_cannot_run, a_workspace_outside_the_region_is_refused)
