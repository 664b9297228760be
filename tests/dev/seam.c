#include "dev/seam.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

/* What only some devices have is left out for the others. */
static struct ah_dev *device_open(void **state, const struct ah_dev_options *options)
{
    const struct seam *seam = *state;
    struct ah_dev_options own = {0};
    struct ah_dev *dev = NULL;
    if (options)
        own = *options;
    if (!seam->threads)
        own.threads = 0, own.link_bytes_per_s = 0;
    assert_ok(seam->open(&dev, &own));
    return dev;
}

static struct ah_work copy_work(enum ah_lane lane, void *to, const void *from, int64_t bytes)
{
    struct ah_work work = {.lane = lane, .tasks = 1};
    work.label.what = lane == AH_LANE_D2H ? "offload" : "prefetch";
    work.task[0].type = AH_TASK_COPY;
    work.task[0].as.copy.to = to;
    work.task[0].as.copy.from = from;
    work.task[0].as.copy.bytes = bytes;
    return work;
}

static struct ah_work sqnorm_work(enum ah_lane lane, const void *g, int64_t count, double *out)
{
    struct ah_work work = {.lane = lane, .tasks = 1};
    work.task[0].type = AH_TASK_SQNORM;
    work.task[0].as.sqnorm.g = g;
    work.task[0].as.sqnorm.count = count;
    work.task[0].as.sqnorm.out = out;
    return work;
}

static struct ah_event submit(struct ah_dev *dev, const struct ah_work *work)
{
    struct ah_event event = {0};
    assert_ok(dev->ops->submit(dev, work, &event));
    return event;
}

static struct ah_done wait_one(struct ah_dev *dev)
{
    struct ah_done done = {0};
    assert_ok(dev->ops->wait_any(dev, &done));
    return done;
}

/* Through the lanes: device memory is the device's. `to` is of its host memory. */
static void device_read(struct ah_dev *dev, void *to, const void *from, int64_t bytes)
{
    struct ah_work work = copy_work(AH_LANE_D2H, to, from, bytes);
    assert_ok(ah__dev_run(dev, &work, NULL));
}

void seam_memory_is_zeroed_and_given_back(void **state)
{
    enum { BYTES = 3 << 20 };
    struct ah_dev *dev = device_open(state, NULL);
    char *device = NULL, *host[2] = {0}, *again;
    assert_ok(dev->ops->device_memory(dev, BYTES, &device));
    assert_ok(dev->ops->host_memory(dev, BYTES, &host[0]));
    assert_ok(dev->ops->host_memory(dev, 100, &host[1]));
    assert_fails(dev->ops->device_memory(dev, BYTES, &again), AH_EINTERNAL, "already handed out");
    for (int i = 0; i < BYTES; i++)
        assert_int_equal(host[0][i], 0);
    memset(host[0], 1, BYTES);
    device_read(dev, host[0], device, BYTES);
    for (int i = 0; i < BYTES; i++)
        assert_int_equal(host[0][i], 0);
    assert_true((uintptr_t)device % 256 == 0 && (uintptr_t)host[1] % 256 == 0);
    struct ah_dev_info info;
    dev->ops->info(dev, &info);
    assert_int_equal(info.host_bytes, BYTES + 100);
    assert_ok(dev->ops->memory_release(dev));
    dev->ops->info(dev, &info);
    assert_int_equal(info.host_bytes, 0);
    assert_ok(dev->ops->device_memory(dev, 1, &again));
    ah_dev_close(dev);
}

void seam_refuses_more_than_the_machine_has(void **state)
{
    struct ah_dev *dev = device_open(state, NULL);
    char *base = NULL;
    assert_fails(dev->ops->device_memory(dev, INT64_MAX / 4, &base), AH_ENOMEM, "device memory");
    assert_fails(dev->ops->host_memory(dev, INT64_MAX / 4, &base), AH_ENOMEM, "host memory");
    assert_null(base);
    ah_dev_close(dev);
}

void seam_high_water_is_the_highest_byte_touched(void **state)
{
    struct ah_dev *dev = device_open(state, NULL);
    struct ah_dev_info info;
    char *device, *host;
    assert_ok(dev->ops->device_memory(dev, 65536, &device));
    assert_ok(dev->ops->host_memory(dev, 65536, &host));
    struct ah_work work = copy_work(AH_LANE_H2D, device + 1000, host, 24);
    assert_ok(ah__dev_run(dev, &work, NULL));
    dev->ops->info(dev, &info);
    assert_int_equal(info.device_high_water_bytes, 1024);
    work = copy_work(AH_LANE_D2H, host, device + 40000, 1000); /* reading counts, and goes higher */
    assert_ok(ah__dev_run(dev, &work, NULL));
    work = copy_work(AH_LANE_D2H, host, device, 8);
    assert_ok(ah__dev_run(dev, &work, NULL));
    dev->ops->info(dev, &info);
    assert_int_equal(info.device_high_water_bytes, 41000);
    work = copy_work(AH_LANE_H2D, device, host, 65536);
    assert_ok(ah__dev_run(dev, &work, NULL));
    dev->ops->info(dev, &info);
    assert_int_equal(info.device_high_water_bytes, 65536);
    assert_ok(dev->ops->memory_release(dev));
    assert_ok(dev->ops->device_memory(dev, 65536, &device));
    dev->ops->info(dev, &info);
    assert_int_equal(info.device_high_water_bytes, 0);
    ah_dev_close(dev);
}

/* A program of one copy of `count` floats, from INPUT + offset to OUTPUT, and the same made ready. */
struct copy_program {
    struct ah_call call;
    struct ah_program program;
    struct ah_prepared *prepared;
};

static void copy_program_init(struct copy_program *copy, struct ah_dev *dev, int64_t offset, int64_t count)
{
    struct ah_meta meta = {AH_F32, ah_shape1(count)};
    *copy = (struct copy_program){.call = {.op = AH_OP_COPY}};
    copy->call.in[0] = (struct ah_operand){AH_SPACE_INPUT, offset, meta};
    copy->call.out[0] = (struct ah_operand){AH_SPACE_OUTPUT, 0, meta};
    copy->program = (struct ah_program){.count = 1, .calls = &copy->call};
    assert_ok(dev->ops->prepare(dev, &copy->program, &copy->prepared));
    assert_ptr_equal(copy->prepared->program, &copy->program);
    assert_int_equal(copy->prepared->workspace_bytes, 0);
}

static struct ah_work program_work(const struct copy_program *copy, char *input, char *output)
{
    struct ah_work work = {.lane = AH_LANE_COMPUTE, .tasks = 1, .label = {.what = "forward", .partition = 7}};
    work.task[0].type = AH_TASK_PROGRAM;
    work.task[0].as.program.prepared = copy->prepared;
    work.task[0].as.program.base[AH_SPACE_INPUT] = input;
    work.task[0].as.program.base[AH_SPACE_OUTPUT] = output;
    return work;
}

void seam_programs_run_and_are_measured(void **state)
{
    struct ah_dev *dev = device_open(state, NULL);
    struct copy_program near, far;
    struct ah_dev_info info;
    char *device;
    assert_ok(dev->ops->device_memory(dev, 8192, &device));
    copy_program_init(&near, dev, 512, 100);
    copy_program_init(&far, dev, 8192 - 4096 - 400 + 4, 100); /* four bytes too far */
    struct ah_work work = program_work(&near, device + 4096, device);
    assert_ok(ah__dev_run(dev, &work, NULL));
    dev->ops->info(dev, &info);
    assert_int_equal(info.device_high_water_bytes, 4096 + 512 + 400);
    work = program_work(&far, device + 4096, device);
    assert_fails(ah__dev_run(dev, &work, NULL), AH_EINTERNAL, "input 0: 400 bytes at offset 7796");
    assert_non_null(strstr(ah_error(), "lane compute: forward, partition 7"));
    assert_ok(dev->ops->memory_release(dev));
    assert_ok(dev->ops->device_memory(dev, 8192, &device));
    work = program_work(&near, NULL, device);
    assert_fails(ah__dev_run(dev, &work, NULL), AH_EINTERNAL, "call 0, input 0: its space 5 has no address");
    dev->ops->prepared_free(dev, near.prepared);
    dev->ops->prepared_free(dev, far.prepared);
    dev->ops->prepared_free(dev, NULL);
    ah_dev_close(dev);
}

/* Two programs alternate over three parts of what is stepped; what has no step stays. */
void seam_programs_repeat_and_alternate(void **state)
{
    enum { COUNT = 4, REPEATS = 3, STEP = 64, BYTES = 1024 };
    struct ah_dev *dev = device_open(state, NULL);
    struct copy_program in, out;
    struct ah_dev_info info;
    char *device, *host;
    assert_ok(dev->ops->device_memory(dev, BYTES, &device));
    assert_ok(dev->ops->host_memory(dev, BYTES, &host));
    for (int i = 0; i < BYTES / 4; i++)
        ((float *)(void *)host)[i] = (float)i;
    struct ah_work work = copy_work(AH_LANE_H2D, device, host, STEP * REPEATS);
    assert_ok(ah__dev_run(dev, &work, NULL));
    copy_program_init(&in, dev, 0, COUNT);
    copy_program_init(&out, dev, 0, COUNT);
    out.call.in[0].space = AH_SPACE_WORK;
    out.call.out[0].space = AH_SPACE_SAVED;
    in.call.out[0].space = AH_SPACE_WORK;
    dev->ops->prepared_free(dev, in.prepared);
    dev->ops->prepared_free(dev, out.prepared);
    assert_ok(dev->ops->prepare(dev, &in.program, &in.prepared));
    assert_ok(dev->ops->prepare(dev, &out.program, &out.prepared));
    work = program_work(&in, device, NULL);
    work.task[0].as.program.then = out.prepared;
    work.task[0].as.program.repeats = REPEATS;
    work.task[0].as.program.base[AH_SPACE_WORK] = device + 256;
    work.task[0].as.program.base[AH_SPACE_SAVED] = device + 512;
    work.task[0].as.program.step[AH_SPACE_INPUT] = STEP;
    work.task[0].as.program.step[AH_SPACE_SAVED] = 2 * STEP;
    work.task[0].as.program.step[AH_SPACE_OUTPUT] = 4; /* of nothing */
    assert_ok(ah__dev_run(dev, &work, NULL));
    dev->ops->info(dev, &info);
    assert_int_equal(info.device_high_water_bytes, 512 + 2 * (REPEATS - 1) * STEP + COUNT * 4);
    struct ah_work back = copy_work(AH_LANE_D2H, host, device, BYTES);
    assert_ok(ah__dev_run(dev, &back, NULL));
    for (int i = 0; i < REPEATS; i++)
        assert_memory_equal(host + 512 + 2 * i * STEP, host + i * STEP, COUNT * 4);
    assert_memory_equal(host + 256, host + (REPEATS - 1) * STEP, COUNT * 4);

    /* The last repeat reaches beyond the region; bases never move back. */
    work.task[0].as.program.base[AH_SPACE_SAVED] = device + BYTES - 2 * (REPEATS - 1) * STEP;
    assert_fails(ah__dev_run(dev, &work, NULL), AH_EINTERNAL, "call 0, output 0: 16 bytes at offset 1024");
    assert_ok(dev->ops->memory_release(dev));
    assert_ok(dev->ops->device_memory(dev, BYTES, &device));
    work.task[0].as.program.base[AH_SPACE_SAVED] = device + 512;
    work.task[0].as.program.step[AH_SPACE_SAVED] = -64;
    assert_fails(ah__dev_run(dev, &work, NULL), AH_EINTERNAL, "a step of -64 bytes");
    dev->ops->prepared_free(dev, in.prepared);
    dev->ops->prepared_free(dev, out.prepared);
    ah_dev_close(dev);
}

void seam_refuses_memory_of_the_wrong_side(void **state)
{
    enum { BYTES = 4096 };
    static double foreign[BYTES / sizeof(double)];
    struct ah_dev *dev = device_open(state, NULL);
    char *device, *host;
    for (int i = 0; i < 6; i++) {
        assert_ok(dev->ops->device_memory(dev, BYTES, &device));
        assert_ok(dev->ops->host_memory(dev, BYTES, &host));
        struct {
            struct ah_work work;
            const char *words;
        } wrong[6] = {
            {copy_work(AH_LANE_H2D, host, host, 8), "h2d: prefetch, partition 0, iteration 0: copy to: 8 bytes"},
            {copy_work(AH_LANE_H2D, device, device, 8), "copy from: 8 bytes"},
            {copy_work(AH_LANE_D2H, device, device, 8), "copy to: 8 bytes"},
            {copy_work(AH_LANE_H2D, device + BYTES - 7, host, 8), "copy to: 8 bytes at offset 4089"},
            {sqnorm_work(AH_LANE_HOST, foreign, 2, (double *)(void *)host), "sqnorm g: 8 bytes"},
            {sqnorm_work(AH_LANE_COMPUTE, device, 2, (double *)(void *)host), "sqnorm out: 8 bytes"},
        };
        assert_fails(ah__dev_run(dev, &wrong[i].work, NULL), AH_EINTERNAL, wrong[i].words);
        assert_ok(dev->ops->memory_release(dev));
    }
    ah_dev_close(dev);
}

void seam_a_lane_keeps_its_order(void **state)
{
    enum { COUNT = 50, FLOATS = 256 };
    struct ah_dev *dev = device_open(state, NULL);
    char *device, *host;
    assert_ok(dev->ops->device_memory(dev, COUNT * FLOATS * 4, &device));
    assert_ok(dev->ops->host_memory(dev, 2 * FLOATS * 4, &host));
    for (int i = 0; i < FLOATS; i++)
        ((float *)(void *)host)[i] = (float)i;
    for (int i = 0; i < COUNT; i++) { /* each copy reads what the one before wrote */
        bool first = i == 0;
        char *to = device + i * FLOATS * 4;
        struct ah_work work =
            copy_work(first ? AH_LANE_H2D : AH_LANE_COMPUTE, to, first ? host : to - FLOATS * 4, FLOATS * 4);
        work.label.partition = i;
        if (i == 1)
            work.wait[work.waits++] = (struct ah_event){AH_LANE_H2D, 1};
        struct ah_event event = submit(dev, &work);
        assert_int_equal(event.sequence, first ? 1 : i);
    }
    int64_t end_ns[AH_LANE_COUNT] = {0};
    int count[AH_LANE_COUNT] = {0};
    for (int i = 0; i < COUNT; i++) { /* in order on each lane; between lanes any is right */
        struct ah_done done = wait_one(dev);
        assert_true(done.start_ns >= end_ns[done.lane] && done.end_ns >= done.start_ns);
        end_ns[done.lane] = done.end_ns;
        count[done.lane]++;
    }
    assert_true(count[AH_LANE_H2D] == 1 && count[AH_LANE_COMPUTE] == COUNT - 1);
    char *found = host + FLOATS * 4;
    device_read(dev, found, device + (COUNT - 1) * FLOATS * 4, FLOATS * 4);
    assert_memory_equal(found, host, FLOATS * 4);
    struct ah_done none;
    assert_fails(dev->ops->wait_any(dev, &none), AH_EINTERNAL, "nothing in flight");
    ah_dev_close(dev);
}

/* ---- random graphs of work over all lanes */

enum { BUFFERS = 6, FLOATS = 2048, ITEMS = 200 };

struct buffer {
    float *data;
    struct ah_event written, read[AH_LANE_COUNT]; /* the last of each */
};

struct graph {
    struct ah_dev *dev;
    struct buffer buffer[2][BUFFERS]; /* device, host */
    char *memory[2], *staging;
};

static void graph_init(struct graph *graph, struct ah_dev *dev)
{
    *graph = (struct graph){.dev = dev};
    assert_ok(dev->ops->device_memory(dev, BUFFERS * FLOATS * 4, &graph->memory[0]));
    assert_ok(dev->ops->host_memory(dev, BUFFERS * FLOATS * 4, &graph->memory[1]));
    assert_ok(dev->ops->host_memory(dev, BUFFERS * FLOATS * 4, &graph->staging));
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < BUFFERS; i++) {
            float *at = (float *)(void *)(side ? graph->memory[1] : graph->staging) + i * FLOATS;
            graph->buffer[side][i].data = (float *)(void *)graph->memory[side] + i * FLOATS;
            for (int j = 0; j < FLOATS; j++)
                at[j] = (float)ah__random_uniform((uint64_t)(side * BUFFERS + i), (uint64_t)j);
        }
    struct ah_work work = copy_work(AH_LANE_H2D, graph->memory[0], graph->staging, BUFFERS * FLOATS * 4);
    assert_ok(ah__dev_run(dev, &work, NULL));
    for (int i = 0; i < BUFFERS; i++)
        graph->buffer[0][i].written = (struct ah_event){AH_LANE_H2D, 1};
}

static void wait_for(struct ah_work *work, struct ah_event event)
{
    if (event.sequence)
        work->wait[work->waits++] = event;
}

/* Item `index`: a copy, or a norm into the first bytes of another buffer, on a random lane. */
static struct ah_work graph_work(struct graph *graph, int index, struct buffer **from, struct buffer **to)
{
    static const struct {
        enum ah_lane lane;
        int from, to;
    } lane_table[] = {{AH_LANE_COMPUTE, 0, 0}, {AH_LANE_H2D, 1, 0}, {AH_LANE_D2H, 0, 1}, {AH_LANE_HOST, 1, 1}};
    uint64_t bits = ah__random_bits(77, (uint64_t)index);
    int row = (int)(bits % 4), a = (int)(bits / 4 % BUFFERS), b = (int)(bits / 64 % BUFFERS);
    if (a == b)
        b = (b + 1) % BUFFERS;
    *from = &graph->buffer[lane_table[row].from][a];
    *to = &graph->buffer[lane_table[row].to][b];
    bool norm = (row == 0 || row == 3) && bits / 4096 % 2;
    if (norm)
        return sqnorm_work(lane_table[row].lane, (*from)->data, FLOATS, (double *)(void *)(*to)->data);
    int skip = (int)(bits / 8192 % 1000);
    return copy_work(lane_table[row].lane, (*to)->data + skip, (*from)->data, (FLOATS - 1000) * 4);
}

static void graph_submit(struct graph *graph, int index)
{
    struct buffer *from, *to;
    struct ah_work work = graph_work(graph, index, &from, &to);
    wait_for(&work, from->written);
    wait_for(&work, to->written);
    for (int i = 0; i < AH_LANE_COUNT; i++)
        wait_for(&work, to->read[i]);
    struct ah_event event = submit(graph->dev, &work);
    from->read[work.lane] = event;
    to->written = event;
}

static void graph_run(char *result, void **state, const struct ah_dev_options *options, bool at_once)
{
    struct graph graph;
    struct ah_dev *dev = device_open(state, options);
    graph_init(&graph, dev);
    for (int i = 0; i < ITEMS; i++) {
        graph_submit(&graph, i);
        if (!at_once)
            wait_one(dev);
    }
    for (int i = 0; at_once && i < ITEMS; i++)
        wait_one(dev);
    device_read(dev, graph.staging, graph.memory[0], BUFFERS * FLOATS * 4);
    memcpy(result, graph.staging, BUFFERS * FLOATS * 4);
    memcpy(result + BUFFERS * FLOATS * 4, graph.memory[1], BUFFERS * FLOATS * 4);
    ah_dev_close(dev);
}

void seam_lanes_agree_with_one_after_the_other(void **state)
{
    static char expected[2 * BUFFERS * FLOATS * 4], found[sizeof expected];
    const struct ah_dev_options options[] = {
        {.threads = 1},
        {.threads = 2, .host_threads = 2},
        {.threads = 1, .jitter_seed = 1},
        {.threads = 3, .jitter_seed = 2},
        {.threads = 1, .link_bytes_per_s = 200000000},
    };
    graph_run(expected, state, &options[0], false);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        memset(found, 0, sizeof found);
        graph_run(found, state, &options[i], true);
        assert_memory_equal(found, expected, sizeof expected);
    }
}

void seam_a_failure_stops_everything_after_it(void **state)
{
    struct ah_dev *dev = device_open(state, &(struct ah_dev_options){.threads = 1});
    char *device, *host;
    assert_ok(dev->ops->device_memory(dev, 4096, &device));
    assert_ok(dev->ops->host_memory(dev, 4096, &host));
    memset(host, 1, 16);
    struct ah_work wrong = copy_work(AH_LANE_H2D, device + 4095, host, 2);
    wrong.label.partition = 3;
    wrong.label.iteration = 11;
    struct ah_event failed = submit(dev, &wrong);
    struct ah_work later[] = {copy_work(AH_LANE_H2D, device, host, 16),
                              copy_work(AH_LANE_COMPUTE, device + 32, device, 16),
                              copy_work(AH_LANE_D2H, host + 32, host, 16)};
    for (int i = 0; i < 3; i++) {
        wait_for(&later[i], failed);
        submit(dev, &later[i]);
    }
    assert_fails(dev->ops->memory_release(dev), AH_EINTERNAL, "in flight");
    for (int i = 0; i < 4; i++)
        assert_fails(wait_one(dev).status, AH_EINTERNAL,
                     "lane h2d: prefetch, partition 3, iteration 11: copy to: 2 bytes");
    assert_int_equal(host[32], 0);
    assert_ok(dev->ops->memory_release(dev)); /* forgotten with the memory */
    assert_ok(dev->ops->device_memory(dev, 4096, &device));
    struct ah_work fine = copy_work(AH_LANE_COMPUTE, device, device + 16, 16);
    assert_ok(ah__dev_run(dev, &fine, NULL));
    ah_dev_close(dev);
}

void seam_refuses_malformed_work(void **state)
{
    struct ah_dev *dev = device_open(state, &(struct ah_dev_options){.threads = 1});
    struct ah_event event;
    struct ah_work work = {.lane = AH_LANE_COUNT};
    assert_fails(dev->ops->submit(dev, &work, &event), AH_EINTERNAL, "no lane 6");
    work = (struct ah_work){.lane = AH_LANE_HOST, .tasks = AH_WORK_MAX_TASKS + 1};
    assert_fails(dev->ops->submit(dev, &work, &event), AH_EINTERNAL, "9 tasks");
    work = (struct ah_work){.lane = AH_LANE_HOST, .waits = 1, .wait = {{AH_LANE_H2D, 1}}};
    assert_fails(dev->ops->submit(dev, &work, &event), AH_EINTERNAL, "not submitted yet");
    ah_dev_close(dev);
}

void seam_queues_refuse_rather_than_overflow(void **state)
{
    struct ah_dev *dev = device_open(state, &(struct ah_dev_options){.threads = 1});
    struct ah_work work = {.lane = AH_LANE_H2D};
    struct ah_event event;
    int queued = 0;
    while (queued < 100000 && dev->ops->submit(dev, &work, &event) == AH_OK)
        queued++;
    assert_true(queued >= 64 && queued < 100000);
    assert_non_null(strstr(ah_error(), "in flight on lane h2d"));
    for (int i = 0; i < queued; i++)
        assert_int_equal(wait_one(dev).lane, AH_LANE_H2D);
    submit(dev, &work);
    ah_dev_close(dev); /* with work in flight */
}

void seam_submitting_allocates_nothing(void **state)
{
    enum { ROUNDS = 250 };
    struct ah_dev *dev = device_open(state, &(struct ah_dev_options){.threads = 2});
    struct copy_program copy;
    char *device, *host;
    assert_ok(dev->ops->device_memory(dev, 8192, &device));
    assert_ok(dev->ops->host_memory(dev, 8192, &host));
    copy_program_init(&copy, dev, 0, 256);
    uint64_t before = ah__alloc_count();
    for (int i = 0; i < ROUNDS; i++) {
        struct ah_work works[4] = {program_work(&copy, device, device + 4096),
                                   copy_work(AH_LANE_H2D, device, host, 1024),
                                   copy_work(AH_LANE_D2H, host + 4096, device + 4096, 1024),
                                   sqnorm_work(AH_LANE_HOST, host, 256, (double *)(void *)(host + 8000))};
        for (int j = 0; j < 4; j++) {
            if (j)
                wait_for(&works[j], (struct ah_event){works[j - 1].lane, (uint64_t)i + 1});
            submit(dev, &works[j]);
        }
        for (int j = 0; j < 4; j++)
            assert_int_equal(wait_one(dev).status, AH_OK);
    }
    assert_int_equal(ah__alloc_count(), before);
    dev->ops->prepared_free(dev, copy.prepared);
    ah_dev_close(dev);
}

void seam_opening_survives_every_failed_allocation(void **state)
{
    const struct seam *seam = *state;
    struct ah_dev_options options = {.threads = seam->threads};
    for (uint64_t n = 1;; n++) {
        struct ah_dev *dev = NULL;
        ah__alloc_fail_at(n);
        int status = seam->open(&dev, &options);
        ah__alloc_fail_at(0);
        if (status == AH_OK) {
            ah_dev_close(dev);
            assert_true(n > 2);
            return;
        }
        assert_int_equal(status, AH_ENOMEM);
        assert_null(dev);
    }
}
