/* Devices in shared objects: found, refused with one line, and the same bits as the built-in one. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "comm/threads.h"
#include "dev/plugin.h"
#include "run/tiny.h"
#include "test_paths.h"

static int open_from(struct ah_dev **dev, const char *folder, const char *name)
{
    setenv("AUTOHETE_PLUGINS", folder, 1);
    int status = ah_dev_open(dev, name, &(struct ah_dev_options){.threads = 2});
    unsetenv("AUTOHETE_PLUGINS");
    return status;
}

static void faulty_plugins_are_refused_by_name(void **state)
{
    static const struct {
        const char *name, *words;
    } faults[] = {
        {"layout", "libautohete-layout.so: found a plugin of"},
        {"symbol", "libautohete-symbol.so: no symbol autohete_plugin, expected a plugin of this program"},
        {"none", "libautohete-none.so: autohete_plugin() gave no plugin"},
        {"name", "libautohete-name.so: found the device \"other\", expected \"name\""},
        {"open", "libautohete-open.so: the plugin has no open, every member is required"},
        {"ops", "libautohete-ops.so: the plugin has no ops, every member is required"},
        {"member", "libautohete-member.so: the device's table has no wait_any, every member is required"},
        {"refusing", "device \"refusing\": no driver found, expected version 13"},
    };
    struct ah_dev *dev = NULL;
    char words[80];
    snprintf(words, sizeof words, "libautohete-abi.so: found plugin ABI %d, expected %d", AH_PLUGIN_ABI + 1,
             AH_PLUGIN_ABI);
    assert_fails(open_from(&dev, AH_TEST_PLUGINS, "abi"), AH_EDEVICE, words);
    for (size_t i = 0; i < AH_LENGTH(faults); i++)
        assert_fails(open_from(&dev, AH_TEST_PLUGINS, faults[i].name), AH_EDEVICE, faults[i].words);
    assert_null(dev);
}

static void a_file_that_is_no_library_is_refused(void **state)
{
    char path[160];
    struct ah_dev *dev = NULL;
    const char *folder = ah_test_folder(), text[] = "not a shared object";
    snprintf(path, sizeof path, "%s/libautohete-text.so", folder);
    assert_ok(ah__file_write(path, text, strlen(text)));
    assert_fails(open_from(&dev, folder, "text"), AH_EDEVICE, "device \"text\": its plugin does not load: ");
    assert_non_null(strstr(ah_error(), path));
    assert_null(dev);
}

static void an_unknown_device_says_where_it_was_sought(void **state)
{
    struct ah_dev *dev = NULL;
    const char *folder = ah_test_folder();
    assert_fails(open_from(&dev, folder, "tpu"), AH_EINPUT,
                 "device \"tpu\": unknown, expected \"cpu\" or a plugin: no libautohete-tpu.so in /");
    assert_non_null(strstr(ah_error(), folder));
    assert_fails(open_from(&dev, folder, "../tpu"), AH_EINPUT, "device \"../tpu\": unknown");
    assert_fails(open_from(&dev, folder, ""), AH_EINPUT, "device \"\": unknown");
    assert_null(dev);
}

/* ---- the same bits from outside */

enum { ROWS = 70, COLS = 48, BYTES = 1 << 20, STATES = ROWS * COLS };

/* y = gelu(x w), and dw = x^T y: products, an activation, something to run Adam on. */
struct layer {
    struct ah_call calls[3];
    struct ah_program program;
};

static void layer_init(struct layer *layer)
{
    struct ah_meta x = {AH_F32, ah_shape2(ROWS, COLS)}, w = {AH_F32, ah_shape2(COLS, COLS)};
    struct ah_operand in = {AH_SPACE_INPUT, 0, x}, weight = {AH_SPACE_PARAM, 0, w}, grad = {AH_SPACE_GRAD, 0, w};
    struct ah_operand before = {AH_SPACE_WORK, 0, x}, out = {AH_SPACE_OUTPUT, 0, x};
    *layer = (struct layer){.calls = {{.op = AH_OP_LINEAR, .in = {in, weight}, .out = {before}},
                                      {.op = AH_OP_GELU, .in = {before}, .out = {out}},
                                      {.op = AH_OP_LINEAR_BWD_W, .in = {out, in}, .out = {grad}}}};
    layer->program = (struct ah_program){.count = 3, .calls = layer->calls};
}

static struct ah_work task_work(enum ah_lane lane, enum ah_task_type type)
{
    return (struct ah_work){.lane = lane, .tasks = 1, .task = {{.type = type}}, .label = {"step", 2, 5}};
}

static void copy(struct ah_dev *dev, enum ah_lane lane, void *to, const void *from, int64_t bytes)
{
    struct ah_work work = task_work(lane, AH_TASK_COPY);
    work.task[0].as.copy.to = to;
    work.task[0].as.copy.from = from;
    work.task[0].as.copy.bytes = bytes;
    assert_ok(ah__dev_run(dev, &work, NULL));
}

/* The program, its gradient to the host, Adam there, the parameters back. */
static void step(struct ah_dev *dev, const struct ah_prepared *prepared, float *device, float *host)
{
    enum { W = COLS * COLS };
    struct ah_work work = task_work(AH_LANE_COMPUTE, AH_TASK_PROGRAM);
    char **base = work.task[0].as.program.base;
    work.task[0].as.program.prepared = prepared;
    base[AH_SPACE_INPUT] = (char *)device;
    base[AH_SPACE_PARAM] = (char *)(device + STATES);
    base[AH_SPACE_GRAD] = (char *)(device + 2 * STATES);
    base[AH_SPACE_WORK] = (char *)(device + 3 * STATES);
    base[AH_SPACE_OUTPUT] = (char *)(device + 4 * STATES);
    uint64_t allocations = ah__alloc_count();
    assert_ok(ah__dev_run(dev, &work, NULL));
    assert_int_equal(ah__alloc_count(), allocations);
    copy(dev, AH_LANE_D2H, host + 3 * W, device + 2 * STATES, W * 4);
    work = task_work(AH_LANE_HOST, AH_TASK_ADAM);
    work.task[0].as.adam.p = host;
    work.task[0].as.adam.m = host + W;
    work.task[0].as.adam.v = host + 2 * W;
    work.task[0].as.adam.g = host + 3 * W;
    work.task[0].as.adam.count = W;
    work.task[0].as.adam.adam = (struct ah_adam){.9F, .1F, .95F, .05F, 1e-8F, 1, 1e-2F, 1.5F, 0};
    assert_ok(ah__dev_run(dev, &work, NULL));
    copy(dev, AH_LANE_H2D, device + STATES, host, W * 4);
}

static uint64_t steps_hash(struct ah_dev *dev)
{
    struct layer layer;
    struct ah_prepared *prepared;
    char *device, *host;
    layer_init(&layer);
    assert_ok(dev->ops->prepare(dev, &layer.program, &prepared));
    assert_ok(dev->ops->device_memory(dev, BYTES, &device));
    assert_ok(dev->ops->host_memory(dev, BYTES, &host));
    for (int i = 0; i < 2 * STATES; i++)
        ((float *)(void *)host)[i] = (float)ah__random_normal(1, (uint64_t)i);
    copy(dev, AH_LANE_H2D, device, host, (int64_t)2 * STATES * 4);
    memset(host, 0, BYTES);
    copy(dev, AH_LANE_D2H, host, device + STATES * 4, (int64_t)COLS * COLS * 4);
    for (int i = 0; i < 3; i++)
        step(dev, prepared, (float *)(void *)device, (float *)(void *)host);
    uint64_t hash = ah__hash(host, (size_t)4 * COLS * COLS * 4, 0);
    dev->ops->prepared_free(dev, prepared);
    return hash;
}

static void a_loaded_device_gives_the_same_bits(void **state)
{
    struct ah_dev *cpu, *loop;
    struct ah_dev_info info;
    assert_ok(ah_dev_open(&cpu, "cpu", &(struct ah_dev_options){.threads = 1}));
    assert_ok(open_from(&loop, AH_TEST_PLUGINS, "loop"));
    loop->ops->info(loop, &info);
    assert_string_equal(info.name, "loop");
    assert_null(cpu->library);
    assert_non_null(loop->library);
    assert_true(steps_hash(loop) == steps_hash(cpu));
    ah_dev_close(loop);
    ah_dev_close(cpu);
}

/* A few steps of a tiny model. Takes the device. */
static void train_take(struct outcome *outcome, struct tiny *tiny, const struct ah_plan *plan, struct ah_dev *dev)
{
    struct tiny_run context = {tiny, outcome};
    struct steps steps = tiny_steps(&context);
    struct ah_run *run;
    *outcome = (struct outcome){.steps = 0};
    assert_ok(ah__run_new(&run, tiny->partition, plan, dev, tiny->clip));
    assert_ok(ah__run_init(run, 11));
    uint64_t allocations = ah__alloc_count();
    steps_train(run, &steps, 0, TINY_STEPS);
    assert_int_equal(ah__alloc_count(), allocations);
    outcome->states = tiny_hash_states(run, tiny->partition);
    ah__run_free(run);
    ah_dev_close(dev);
}

static void training_on_a_loaded_device_is_the_same(void **state)
{
    const struct ah_plan plans[] = {
        {.switches = {.layers = TINY_LAYERS, .buffers = 1, .prefetch_distance = 1}, .policy = "resident"},
        {.switches = {.layers = TINY_LAYERS,
                      .checkpoint = 2,
                      .offload_params = 2,
                      .offload_optimizer = 3,
                      .buffers = 2,
                      .prefetch_distance = 2,
                      .embedding_on_host = true},
         .policy = "autohete"},
    };
    struct tiny tiny;
    struct ah_dev *cpu, *loop;
    struct outcome expected, outcome;
    tiny_init(&tiny, tiny_tied, 0);
    assert_ok(ah_dev_open(&cpu, "cpu", &(struct ah_dev_options){.threads = 1}));
    train_take(&expected, &tiny, &plans[0], cpu);
    for (int i = 0; i < 2; i++) {
        assert_ok(open_from(&loop, AH_TEST_PLUGINS, "loop"));
        train_take(&outcome, &tiny, &plans[i], loop);
        assert_memory_equal(&outcome, &expected, sizeof outcome);
    }
    tiny_fini(&tiny);
}

static void a_failure_reaches_the_program_whole(void **state)
{
    struct ah_dev *dev;
    struct layer layer;
    struct ah_prepared *prepared = NULL;
    char *device;
    assert_ok(open_from(&dev, AH_TEST_PLUGINS, "loop"));
    assert_ok(dev->ops->device_memory(dev, 4096, &device));
    struct ah_work work = task_work(AH_LANE_COMPUTE, AH_TASK_COPY);
    work.task[0].as.copy.to = device + 4095;
    work.task[0].as.copy.from = device;
    work.task[0].as.copy.bytes = 2;
    assert_fails(ah__dev_run(dev, &work, NULL), AH_EINTERNAL,
                 "lane compute: step, partition 2, iteration 5: copy to: 2 bytes at offset 4095");
    layer_init(&layer);
    layer.calls[1].in[0].meta.dtype = AH_F16;
    assert_fails(dev->ops->prepare(dev, &layer.program, &prepared), AH_EDEVICE,
                 "cpu: call 1, gelu: input 0 (x) is F16, expected F32 or BF16");
    ah_dev_close(dev);
}

/* Two devices of one plugin, and failing allocations while it opens. */
static void a_plugin_is_loaded_more_than_once(void **state)
{
    struct ah_dev *first, *second;
    assert_ok(open_from(&first, AH_TEST_PLUGINS, "loop"));
    assert_ok(open_from(&second, AH_TEST_PLUGINS, "loop"));
    ah_dev_close(first);
    steps_hash(second);
    ah_dev_close(second);
    for (uint64_t n = 1; n <= 8; n++) {
        struct ah_dev *dev = NULL;
        ah__alloc_fail_at(n);
        assert_fails(open_from(&dev, AH_TEST_PLUGINS, "loop"), AH_ENOMEM, "device \"loop\": out of host memory");
        ah__alloc_fail_at(0);
        assert_null(dev);
    }
}

static void open_and_close(int rank, void *context)
{
    (void)rank, (void)context;
    for (int i = 0; i < 20; i++) {
        struct ah_dev *dev;
        assert_ok(ah_dev_open(&dev, "loop", &(struct ah_dev_options){.threads = 1}));
        ah_dev_close(dev);
    }
}

/* Threads load and unload one plugin, together and in turn. */
static void a_plugin_is_loaded_by_threads(void **state)
{
    setenv("AUTOHETE_PLUGINS", AH_TEST_PLUGINS, 1);
    threads_run(3, open_and_close, NULL);
    unsetenv("AUTOHETE_PLUGINS");
}

AH_TEST_CASES("dev/plugin", faulty_plugins_are_refused_by_name, a_file_that_is_no_library_is_refused,
              an_unknown_device_says_where_it_was_sought, a_loaded_device_gives_the_same_bits,
              training_on_a_loaded_device_is_the_same, a_failure_reaches_the_program_whole,
              a_plugin_is_loaded_more_than_once, a_plugin_is_loaded_by_threads)
