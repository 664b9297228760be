/* Whatever fails on the CUDA device ends in one line and an orderly end: nothing hangs, nothing leaks, and CUDA is not
 * asked for more after it has failed. */
#include "emulated.h"

#include <string.h>
#include <time.h>

#include "base/status.h"

enum { BYTES = 1 << 16, COUNT = 1000, WORKS = 12 };

struct scene {
    struct ah_dev *dev;
    char *device, *host;
    struct ah_call call;
    struct ah_program program;
    struct ah_prepared *prepared;
};

static struct ah_work copy_work(enum ah_lane lane, void *to, const void *from)
{
    struct ah_work work = {.lane = lane, .tasks = 1, .task = {{.type = AH_TASK_COPY}}, .label = {"copy", 1, 2}};
    work.task[0].as.copy.to = to;
    work.task[0].as.copy.from = from;
    work.task[0].as.copy.bytes = COUNT * 4;
    return work;
}

static struct ah_work adam_work(enum ah_lane lane, char *base)
{
    struct ah_work work = {.lane = lane, .tasks = 1, .task = {{.type = AH_TASK_ADAM}}, .label = {"update", 3, 4}};
    float *at = (float *)(void *)base;
    work.task[0].as.adam.p = at;
    work.task[0].as.adam.m = at + COUNT;
    work.task[0].as.adam.v = at + 2 * COUNT;
    work.task[0].as.adam.g = at + 3 * COUNT;
    work.task[0].as.adam.rest = at + 4 * COUNT;
    work.task[0].as.adam.dtype = AH_BF16;
    work.task[0].as.adam.count = COUNT;
    return work;
}

static struct ah_work norm_work(enum ah_lane lane, char *base)
{
    struct ah_work work = {.lane = lane, .tasks = 3, .label = {"norm", 5, 6}};
    work.task[0].type = AH_TASK_SQNORM;
    work.task[0].as.sqnorm.g = base;
    work.task[0].as.sqnorm.count = COUNT;
    work.task[0].as.sqnorm.out = (double *)(void *)(base + 40000);
    work.task[1].type = AH_TASK_CLIP;
    work.task[1].as.clip.squares = (double *)(void *)(base + 40000);
    work.task[1].as.clip.count = 1;
    work.task[1].as.clip.limit = 1;
    work.task[1].as.clip.scale = (float *)(void *)(base + 40008);
    work.task[2].type = AH_TASK_CAST;
    work.task[2].as.cast.from = base;
    work.task[2].as.cast.to = base + 50000;
    work.task[2].as.cast.to_dtype = AH_BF16;
    work.task[2].as.cast.count = COUNT;
    return work;
}

static struct ah_work program_work(const struct scene *scene)
{
    struct ah_work work = {
        .lane = AH_LANE_COMPUTE, .tasks = 1, .task = {{.type = AH_TASK_PROGRAM}}, .label = {"forward", 7, 8}};
    work.task[0].as.program.prepared = scene->prepared;
    work.task[0].as.program.base[AH_SPACE_INPUT] = scene->device;
    work.task[0].as.program.base[AH_SPACE_OUTPUT] = scene->device + BYTES / 2;
    return work;
}

/* Opens all there is to open; what was opened when a call fails is in *scene. */
static int scene_open(struct scene *scene, uint64_t jitter_seed)
{
    struct ah_meta meta = {AH_F32, ah_shape1(COUNT)};
    *scene = (struct scene){.call = {.op = AH_OP_COPY}};
    scene->call.in[0] = (struct ah_operand){AH_SPACE_INPUT, 0, meta};
    scene->call.out[0] = (struct ah_operand){AH_SPACE_OUTPUT, 0, meta};
    scene->program = (struct ah_program){.count = 1, .calls = &scene->call};
    AH_TRY(emulated_open(&scene->dev, &(struct ah_dev_options){.host_threads = 1, .jitter_seed = jitter_seed}));
    AH_TRY(scene->dev->ops->device_memory(scene->dev, BYTES, &scene->device));
    AH_TRY(scene->dev->ops->host_memory(scene->dev, BYTES, &scene->host));
    return scene->dev->ops->prepare(scene->dev, &scene->program, &scene->prepared);
}

static void scene_close(struct scene *scene)
{
    if (scene->prepared)
        scene->dev->ops->prepared_free(scene->dev, scene->prepared);
    ah_dev_close(scene->dev);
}

/* A little of everything: each work waits for the one before, across all lanes. */
static void works_submit(const struct scene *scene)
{
    const struct ah_work works[WORKS] = {
        copy_work(AH_LANE_H2D, scene->device, scene->host),
        norm_work(AH_LANE_COMPUTE, scene->device),
        program_work(scene),
        copy_work(AH_LANE_D2H, scene->host, scene->device),
        adam_work(AH_LANE_HOST, scene->host),
        norm_work(AH_LANE_HOST, scene->host),
        copy_work(AH_LANE_H2D, scene->device, scene->host),
        adam_work(AH_LANE_COMPUTE, scene->device),
        copy_work(AH_LANE_COMPUTE, scene->device + BYTES / 2, scene->device),
        {.lane = AH_LANE_COMM, .label = {"gather", 9, 10}},
        copy_work(AH_LANE_D2H, scene->host + BYTES / 2, scene->device + BYTES / 2),
        adam_work(AH_LANE_HOST, scene->host),
    };
    struct ah_event before = {0};
    for (int i = 0; i < WORKS; i++) {
        struct ah_work work = works[i];
        if (before.sequence)
            work.wait[work.waits++] = before;
        assert_ok(scene->dev->ops->submit(scene->dev, &work, &before));
    }
}

static void one_line(const char *message)
{
    assert_true(strlen(message) > 0);
    assert_null(strchr(message, '\n'));
}

/* Takes in all works in flight: the first failure's status is that of all that follow on its lane and of all that were
 * submitted later; its message comes with each. */
static int works_wait(const struct scene *scene)
{
    int first = AH_OK;
    char message[512] = "";
    for (int i = 0; i < WORKS; i++) {
        struct ah_done done = {0};
        assert_ok(scene->dev->ops->wait_any(scene->dev, &done));
        assert_true(done.end_ns >= done.start_ns);
        if (done.status == AH_OK)
            continue;
        if (first == AH_OK)
            snprintf(message, sizeof message, "%s", ah_error());
        first = done.status;
        one_line(ah_error());
        assert_string_equal(ah_error(), message);
    }
    struct ah_done none;
    assert_fails(scene->dev->ops->wait_any(scene->dev, &none), AH_EINTERNAL, "nothing in flight");
    if (first != AH_OK)
        ah__fail(first, "%s", message);
    return first;
}

/* The whole life of a device with some work, until something fails. */
static int life(uint64_t jitter_seed)
{
    struct scene scene;
    int status = scene_open(&scene, jitter_seed);
    if (status == AH_OK) {
        works_submit(&scene);
        status = works_wait(&scene);
        if (status == AH_OK)
            status = scene.dev->ops->memory_release(scene.dev);
    }
    if (status != AH_OK)
        one_line(ah_error());
    scene_close(&scene);
    return status;
}

/* Whether all is well when the n-th call that starts something fails. */
static bool life_fails(long n)
{
    emulation_reset();
    emulation_fail("any", n, cudaErrorUnknown);
    int status = life(0);
    assert_true(status == AH_OK || status == AH_EDEVICE);
    emulated_assert_clean();
    return status != AH_OK;
}

/* Most calls make the events of the lanes' rings, one as the other. */
static void any_call_may_fail(void **state)
{
    long calls = 1 << 12, dense = ah_test_samples() ? 5 : 30;
    assert_false(life_fails(calls));
    for (long step = calls / 2; step; step /= 2)
        if (!life_fails(calls - step))
            calls -= step;
    assert_true(calls > 100); /* the first that is never made */
    for (long n = 1; n < calls; n += n < dense || n > calls - 3 * dense ? 1 : ah_test_samples() ? 401 : 61)
        assert_true(life_fails(n));
    emulation_reset();
}

/* Each lane's kinds of work in turn, with delays that let the fault come early or late. */
static void a_fault_on_the_gpu_ends_everything(void **state)
{
    static const struct {
        const char *what;
        int nth;
    } faults[] = {{"kernel", 1}, {"kernel", 2}, {"kernel", 4}, {"kernel", 5}, {"copy", 1}, {"copy", 2}, {"copy", 4}};
    for (size_t i = 0; i < AH_LENGTH(faults) * 2; i++) {
        struct scene scene;
        struct ah_event event;
        char *base;
        emulation_reset();
        assert_ok(scene_open(&scene, i % 2 ? i : 0));
        emulation_fail(faults[i / 2].what, faults[i / 2].nth, cudaErrorIllegalAddress);
        works_submit(&scene);
        assert_fails(works_wait(&scene), AH_EDEVICE, "cuda:0: ");
        assert_non_null(strstr(ah_error(), "lane "));
        struct ah_work work = copy_work(AH_LANE_D2H, scene.host, scene.device);
        assert_ok(scene.dev->ops->submit(scene.dev, &work, &event));
        struct ah_done done;
        assert_ok(scene.dev->ops->wait_any(scene.dev, &done));
        assert_fails(done.status, AH_EDEVICE, "cuda:0: ");
        assert_fails(scene.dev->ops->memory_release(scene.dev), AH_EDEVICE,
                     "cuda:0 has failed and runs nothing more in this process");
        assert_fails(scene.dev->ops->device_memory(scene.dev, 4096, &base), AH_EDEVICE, "cuda");
        work = (struct ah_work){.lane = AH_LANE_COMPUTE};
        assert_fails(ah__dev_run(scene.dev, &work, NULL), AH_EDEVICE, "cuda:0: ");
        scene_close(&scene);
        assert_int_equal(emulation_alive(), 0);
    }
    emulation_reset();
}

static void closing_does_not_wait_to_be_asked(void **state)
{
    static const char *const faults[] = {"none", "kernel", "copy", "cudaEventRecord"};
    for (size_t i = 0; i < AH_LENGTH(faults) * 2; i++) {
        struct scene scene;
        emulation_reset();
        assert_ok(scene_open(&scene, i % 2 ? 3 : 0));
        emulation_fail(faults[i / 2], 3, cudaErrorLaunchFailure);
        works_submit(&scene);
        scene_close(&scene); /* with everything in flight */
        assert_int_equal(emulation_alive(), 0);
    }
    emulation_reset();
}

/* The host's own failure stops the streams, and is forgotten with the memory. */
static void a_failure_of_the_host_lane_ends_everything(void **state)
{
    struct scene scene;
    struct ah_event event, before;
    emulation_reset();
    assert_ok(scene_open(&scene, 5));
    struct ah_work wrong = adam_work(AH_LANE_HOST, scene.host + BYTES - 8000);
    struct ah_work works[] = {copy_work(AH_LANE_H2D, scene.device, scene.host), program_work(&scene),
                              copy_work(AH_LANE_D2H, scene.host, scene.device), adam_work(AH_LANE_HOST, scene.host)};
    assert_ok(scene.dev->ops->submit(scene.dev, &wrong, &before));
    for (size_t i = 0; i < AH_LENGTH(works); i++) {
        works[i].wait[works[i].waits++] = before;
        assert_ok(scene.dev->ops->submit(scene.dev, &works[i], &event));
        before = event;
    }
    for (size_t i = 0; i < AH_LENGTH(works) + 1; i++) {
        struct ah_done done;
        assert_ok(scene.dev->ops->wait_any(scene.dev, &done));
        assert_fails(done.status, AH_EINTERNAL, "lane host: update, partition 3, iteration 4: adam ");
    }
    assert_ok(scene.dev->ops->memory_release(scene.dev));
    assert_ok(scene.dev->ops->device_memory(scene.dev, BYTES, &scene.device));
    assert_ok(scene.dev->ops->host_memory(scene.dev, BYTES, &scene.host));
    works_submit(&scene);
    assert_ok(works_wait(&scene));
    scene_close(&scene);
    emulated_assert_clean();
}

/* Launches that fail when they are put on a stream: the work that was half on it has run out before memory goes. */
static void a_launch_that_fails_is_settled_by_release(void **state)
{
    static const char *const calls[] = {"cudaLaunchKernelEx",  "cudaMemcpyAsync",      "cudaEventRecord",
                                        "cudaStreamWaitEvent", "cuStreamWriteValue64", "cuStreamWaitValue64"};
    for (size_t i = 0; i < AH_LENGTH(calls); i++) {
        struct scene scene;
        emulation_reset();
        assert_ok(scene_open(&scene, i + 1));
        emulation_fail(calls[i], 1, i >= 4 ? 999 : cudaErrorLaunchOutOfResources);
        works_submit(&scene);
        assert_fails(works_wait(&scene), AH_EDEVICE, i == 0 ? "lane compute: " : calls[i]);
        assert_ok(scene.dev->ops->memory_release(scene.dev));
        emulation_reset();
        assert_ok(scene.dev->ops->device_memory(scene.dev, BYTES, &scene.device));
        assert_ok(scene.dev->ops->host_memory(scene.dev, BYTES, &scene.host));
        works_submit(&scene);
        assert_ok(works_wait(&scene));
        scene_close(&scene);
        emulated_assert_clean();
    }
    emulation_reset();
}

/* Times are the host clock's, whatever passes between two works. */
static void times_follow_the_hosts_clock(void **state)
{
    enum { ROUNDS = 3, SLACK_NS = 200000000 };
    struct scene scene;
    int64_t last_ns = 0;
    emulation_reset();
    assert_ok(scene_open(&scene, 0));
    for (int i = 0; i < ROUNDS; i++) {
        struct ah_work work = copy_work(AH_LANE_H2D, scene.device, scene.host);
        struct ah_done done;
        int64_t before_ns = scene.dev->ops->now_ns(scene.dev);
        assert_ok(ah__dev_run(scene.dev, &work, &done));
        int64_t after_ns = scene.dev->ops->now_ns(scene.dev);
        assert_true(done.start_ns >= last_ns && done.end_ns >= done.start_ns);
        assert_true(done.start_ns > before_ns - SLACK_NS && done.end_ns < after_ns + SLACK_NS);
        last_ns = done.end_ns;
        nanosleep(&(struct timespec){.tv_nsec = 600000000}, NULL);
    }
    scene_close(&scene);
    emulated_assert_clean();
}

AH_TEST_CASES("dev/cuda/faults", any_call_may_fail, a_fault_on_the_gpu_ends_everything,
              closing_does_not_wait_to_be_asked, a_failure_of_the_host_lane_ends_everything,
              a_launch_that_fails_is_settled_by_release, times_follow_the_hosts_clock)
