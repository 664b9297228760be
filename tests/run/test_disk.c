/* Trainings that have every block on disk: the same bits as `resident`, whatever is trained and in whatever format.
 * What they take of device, host and disk, and what a step moves, is as predicted. */
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "bind/bind.h"
#include "dev/host/disk_file.h"
#include "layout/sizes.h"
#include "plan/config.h"
#include "plan/predict.h"
#include "run/joint.h"

static int cpu_open(struct ah_dev **out, const struct ah_dev_options *options)
{
    return ah_dev_open(out, "cpu", options);
}

static const struct exact_device cpu = {.open = cpu_open, .is_cpu = true};

/* ---- what the disk is asked for ---------------------------------------------------------------------------------- */

static atomic_llong bytes_allocated, bytes_read, bytes_written;

static int counting_allocate(int fd, int mode, off_t at, off_t bytes)
{
    (void)mode;
    bytes_allocated += at + bytes;
    return ftruncate(fd, at + bytes);
}

static ssize_t counting_read(int fd, void *to, size_t bytes, off_t at)
{
    ssize_t got = pread(fd, to, bytes, at);
    bytes_read += got > 0 ? got : 0;
    return got;
}

static ssize_t counting_write(int fd, const void *from, size_t bytes, off_t at)
{
    ssize_t got = pwrite(fd, from, bytes, at);
    bytes_written += got > 0 ? got : 0;
    return got;
}

static void counting_begins(void)
{
    static const struct ah_disk_calls calls = {
        .read = counting_read, .write = counting_write, .allocate = counting_allocate};
    ah__disk_calls(&calls);
    bytes_allocated = bytes_read = bytes_written = 0;
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

/* Every block on disk, a few chunks; the other switches are drawn. Odd ones read as far ahead as they may. */
static struct ah_plan plan_on_disk(const struct ah_partition *partition, int world_size, int number)
{
    static const int chunks[] = {1, 3, 16, 2};
    const uint32_t keep = EXACT_GIVEN | 1U << AH_SWITCH_staged | 1U << AH_SWITCH_chunks | 1U << AH_SWITCH_disk_blocks |
                          1U << AH_SWITCH_disk_ahead;
    int layers = partition->layers, trained = layers - partition->frozen_blocks;
    struct ah_plan plan = {.policy = "autohete"};
    exact_draws_begin(1, number);
    plan.switches = (struct ah_switches){.layers = layers,
                                         .world_size = world_size,
                                         .checkpoint = exact_draw(0, trained),
                                         .offload_optimizer = layers,
                                         .offload_params = number % 3 ? exact_draw(0, trained) : trained,
                                         .chunks = chunks[(size_t)number % AH_LENGTH(chunks)],
                                         .disk_blocks = layers,
                                         .disk_ahead = number % 2 ? AH_DISK_MOST_AHEAD : 0};
    exact_switches(&plan.switches, keep, partition, ah__policy_find(plan.policy));
    assert_int_equal(plan.switches.disk_blocks, layers);
    return plan;
}

static struct ah_dev_options some_options(void)
{
    return (struct ah_dev_options){
        .threads = exact_draw(1, 3), .host_threads = exact_draw(1, 3), .jitter_seed = (uint64_t)exact_draw(0, 3)};
}

enum { NEVER, SOME, EVERY }; /* which steps are clipped */

struct variant {
    enum ah_dtype dtype, master, moments;
    int clipped, micro_batches;
    bool tied;
    struct ah_tuning tuning;
};

static void tiny_of(struct tiny *tiny, const struct variant *variant)
{
    const double never = 1e9;
    tiny_init_tuned(tiny, variant->dtype, variant->tied ? tiny_tied : tiny_untied, variant->clipped ? never : 0, 1,
                    variant->micro_batches, &variant->tuning);
    tiny_states(tiny, variant->master, variant->moments);
}

static void train_resident(struct outcome *expected, struct tiny *tiny, int clipped)
{
    const struct ah_dev_options options = {.threads = 1, .host_threads = 1};
    struct ah_plan resident = exact_resident(tiny);
    int count = 0;
    if (clipped)
        tiny->clip = clipped == EVERY ? 1e-6 : exact_limit(&cpu, tiny);
    exact_train(expected, &cpu, tiny, &resident, &options);
    for (int i = 0; i < TINY_STEPS; i++)
        count += expected->factor[i] < 1;
    assert_in_range(count,
                    clipped == NEVER   ? 0
                    : clipped == EVERY ? TINY_STEPS
                                       : 1,
                    clipped == NEVER ? 0 : TINY_STEPS - (clipped == SOME));
}

static void equals_resident(const struct variant *variant, int plans)
{
    static int number;
    struct tiny tiny;
    struct outcome expected, outcome;
    tiny_of(&tiny, variant);
    train_resident(&expected, &tiny, variant->clipped);
    for (int i = 0; i < plans; i++) {
        struct ah_plan plan = plan_on_disk(tiny.partition, 1, number++);
        struct ah_dev_options options = some_options();
        counting_begins();
        exact_train(&outcome, &cpu, &tiny, &plan, &options);
        exact_same(&expected, &outcome, &plan, &options);
        assert_int_equal(bytes_allocated, ah__layout_disk_bytes(tiny.partition, &plan.switches));
        assert_true(bytes_read > 0 && bytes_written > 0);
    }
    tiny_fini(&tiny);
}

static void each_equals_resident(const struct variant *variants, size_t count)
{
    for (size_t i = 0; i < count; i++)
        equals_resident(&variants[i], ah_test_rounds(1, 3, 16));
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static void every_format_equals_resident(void **state)
{
    static const struct variant variants[] = {
        {AH_F32, AH_F32, AH_F32, NEVER, 1, true, {0}},   {AH_F32, AH_F32, AH_BF16, SOME, 1, false, {0}},
        {AH_F32, AH_F32, AH_U8, EVERY, 2, true, {0}},    {AH_BF16, AH_F32, AH_F32, SOME, 2, false, {0}},
        {AH_BF16, AH_F32, AH_BF16, NEVER, 3, true, {0}}, {AH_BF16, AH_F32, AH_U8, SOME, 1, false, {0}},
        {AH_BF16, AH_BF16, AH_F32, EVERY, 1, true, {0}}, {AH_BF16, AH_BF16, AH_BF16, SOME, 2, true, {0}},
        {AH_BF16, AH_BF16, AH_U8, NEVER, 1, false, {0}},
    };
    each_equals_resident(variants, AH_LENGTH(variants));
}

/* A speculative update, made before the norm is known, is void in each step, or in one in two. */
static void clipping_equals_resident(void **state)
{
    static const struct variant variants[] = {
        {AH_F32, AH_F32, AH_F32, EVERY, 3, false, {0}},
        {AH_F32, AH_F32, AH_F32, SOME, 3, true, {0}},
        {AH_BF16, AH_F32, AH_F32, EVERY, 1, false, {0}},
    };
    each_equals_resident(variants, AH_LENGTH(variants));
}

static void what_is_frozen_equals_resident(void **state)
{
    static const struct variant variants[] = {
        {AH_F32, AH_F32, AH_F32, NEVER, 1, true, {.lora_rank = 4, .lora_alpha = 6}},
        {AH_BF16, AH_F32, AH_U8, SOME, 2, false, {.lora_rank = 2, .lora_targets = "c_attn, mlp.c_proj"}},
        {AH_F32, AH_F32, AH_F32, SOME, 1, false, {.lora_rank = 4, .frozen = "int8"}},
        {AH_BF16, AH_F32, AH_F32, EVERY, 2, true, {.lora_rank = 4, .frozen = "nf4"}},
        {AH_BF16, AH_F32, AH_F32, SOME, 1, false, {.lora_rank = 4, .frozen = "mxfp4"}},
        {AH_F32, AH_F32, AH_F32, SOME, 2, true, {.freeze = "embedding, blocks:1-3"}},
        {AH_BF16, AH_F32, AH_BF16, NEVER, 1, false, {.freeze = "embedding, head, blocks:1-3"}},
        {AH_BF16, AH_BF16, AH_U8, SOME, 2, false, {.freeze = "transformer.h.*"}},
        {AH_F32, AH_F32, AH_F32, EVERY, 1, true, {.freeze = "*.mlp.*,*ln_1.weight"}},
    };
    each_equals_resident(variants, AH_LENGTH(variants));
}

static void joint_equals_resident(struct joint joint, int plans)
{
    static int number = 100;
    struct team_run expected;
    struct rank_run scratch = {.joint = &joint};
    const struct ah_partition *partition = joint_partition_of(&scratch, &joint);
    joint.plan = joint_resident(joint.world_size, partition->layers);
    joint.plan.switches.frozen_blocks = partition->frozen_blocks;
    joint.options = (struct ah_dev_options){.threads = 1, .host_threads = 1};
    joint.steps = TINY_STEPS;
    joint_train(&expected, &joint);
    for (int i = 0; i < plans; i++) {
        joint.plan = plan_on_disk(partition, joint.world_size, number++);
        joint.options = some_options();
        joint.steps = exact_draw(1, TINY_STEPS);
        counting_begins();
        joint_same(&expected, &joint);
        assert_int_equal(bytes_allocated, joint.world_size * ah__layout_disk_bytes(partition, &joint.plan.switches));
    }
    tiny_fini(&scratch.tiny);
    joint_free(&expected);
}

/* Each rank has files of its own. */
static void ranks_equal_resident(void **state)
{
    const struct joint joints[] = {
        {.config = tiny_tied, .world_size = 2, .micro_batches = 1, .batch = 2, .clip = 1.45},
        {.config = tiny_untied,
         .dtype = AH_BF16,
         .moments = AH_U8,
         .world_size = 2,
         .micro_batches = 2,
         .batch = 1,
         .tuning = {.freeze = "embedding,blocks:1-2"}},
        {.config = tiny_untied,
         .dtype = AH_BF16,
         .world_size = 3,
         .micro_batches = 1,
         .batch = 1,
         .clip = 0.7,
         .tuning = {.lora_rank = 4, .frozen = "nf4"}},
    };
    for (size_t i = 0; i < AH_LENGTH(joints); i++)
        joint_equals_resident(joints[i], ah_test_rounds(1, 3, 12));
}

/* ---- a drive that fails ------------------------------------------------------------------------------------------ */

static int fd_of_rank_0 = -1;
static atomic_bool fails;

static int marking_allocate(int fd, int mode, off_t at, off_t bytes)
{
    (void)mode;
    if (ah__comm()->rank == 0)
        fd_of_rank_0 = fd;
    return ftruncate(fd, at + bytes);
}

static ssize_t failing_read(int fd, void *to, size_t bytes, off_t at)
{
    if (!fails || fd != fd_of_rank_0)
        return pread(fd, to, bytes, at);
    errno = EIO;
    return -1;
}

/* Each parameter of a block twice: first while the drive fails. Rank 0's part of some may be in memory by then. */
static void store_twice(struct ah_run *run, const struct ah_partition *partition)
{
    static float values[TINY_MOST_FLOATS];
    int failed = 0;
    for (int p = 0; p < partition->param_count; p++) {
        if (partition->params[p].group != 2)
            continue;
        fails = true;
        int status = ah__run_store(run, p, AH_RUN_PARAM, values);
        fails = false;
        assert_true(status == AH_OK || status == AH_EIO);
        failed += status == AH_EIO;
        assert_ok(ah__run_store(run, p, AH_RUN_PARAM, values));
    }
    assert_true(failed > 2);
}

static void failing_one(int rank, void *context)
{
    struct rank_run self = {.joint = context};
    struct ah_dev_options options = {.threads = 1};
    struct ah_dev *dev;
    struct ah_run *run;
    joint_partition(&self);
    struct ah_plan plan = plan_on_disk(self.tiny.partition, 2, 302); /* in 16 chunks */
    assert_ok(ah_dev_open(&dev, "cpu", &options));
    assert_ok(ah__workspace_bytes(&plan.workspace_bytes, self.tiny.partition, dev));
    assert_ok(ah__run_new(&run, self.tiny.partition, &plan, dev, 0));
    assert_ok(ah__run_init(run, 11));
    if (rank == 0) {
        store_twice(run, self.tiny.partition);
        assert_ok(ah__run_served(run, AH_OK));
    } else {
        assert_ok(ah__run_serve(run));
    }
    ah__run_free(run);
    ah_dev_close(dev);
    tiny_fini(&self.tiny);
}

/* A checkpoint that cannot be written is one, and no more: ranks stay in step. */
static void ranks_go_on_when_a_part_cannot_be_read(void **state)
{
    static const struct ah_disk_calls calls = {.read = failing_read, .allocate = marking_allocate};
    ah__disk_calls(&calls);
    joint_config(tiny_tied);
    threads_run(2, failing_one, &(struct joint){.config = tiny_tied, .world_size = 2, .micro_batches = 1, .batch = 1});
}

/* ---- what a step moves ------------------------------------------------------------------------------------------- */

/* The switches' prediction of a step; the rates do not matter. */
static void predict(struct ah_plan *plan, const struct ah_partition *partition)
{
    struct ah_profile profile = {.world_size = 1, .partition_signature = partition->signature};
    struct ah_predictor predictor;
    assert_ok(ah__predictor_init(&predictor, partition, &profile, plan->policy));
    ah__plan_measure(plan, &predictor);
}

/* Steps whose updates all count, ahead of the norm or not. */
static void a_step_moves(const struct variant *variant, int number)
{
    enum { BEFORE = 1, COUNTED = 4 };
    struct tiny tiny;
    struct outcome outcome = {.steps = 0};
    struct tiny_run context = {&tiny, &outcome};
    struct ah_dev_options options = some_options();
    struct ah_dev *dev;
    struct ah_run *run;
    tiny_of(&tiny, variant);
    struct steps steps = tiny_steps(&context);
    struct ah_plan plan = plan_on_disk(tiny.partition, 1, number);
    predict(&plan, tiny.partition);
    assert_int_equal(plan.disk_peak_bytes, ah__layout_disk_bytes(tiny.partition, &plan.switches));
    assert_ok(ah_dev_open(&dev, "cpu", &options));
    assert_ok(ah__workspace_bytes(&plan.workspace_bytes, tiny.partition, dev));
    assert_ok(ah__run_new(&run, tiny.partition, &plan, dev, tiny.clip));
    assert_ok(ah__run_init(run, 11));
    steps_train(run, &steps, 0, BEFORE);
    counting_begins();
    steps_train(run, &steps, BEFORE, COUNTED);
    assert_int_equal(bytes_read, COUNTED * plan.disk_read_bytes);
    assert_int_equal(bytes_written, COUNTED * plan.disk_written_bytes);
    ah__run_free(run);
    ah_dev_close(dev);
    tiny_fini(&tiny);
}

static void what_a_step_moves_is_predicted(void **state)
{
    static const struct variant variants[] = {
        {AH_F32, AH_F32, AH_F32, NEVER, 1, true, {0}},
        {AH_F32, AH_F32, AH_F32, SOME, 3, false, {0}}, /* by a limit that no step reaches */
        {AH_BF16, AH_F32, AH_U8, NEVER, 2, true, {0}},
        {AH_BF16, AH_F32, AH_F32, SOME, 2, false, {.lora_rank = 4, .frozen = "nf4"}},
        {AH_F32, AH_F32, AH_F32, NEVER, 2, true, {.freeze = "embedding, blocks:1-3"}},
        {AH_BF16, AH_F32, AH_F32, NEVER, 1, false, {.freeze = "embedding, blocks:1-3, *.mlp.*"}},
    };
    for (size_t i = 0; i < AH_LENGTH(variants); i++)
        for (int plan = 0; plan < ah_test_rounds(2, 4, 16); plan++)
            a_step_moves(&variants[i], 201 + 20 * (int)i + plan);
}

AH_TEST_CASES("run/disk", every_format_equals_resident, clipping_equals_resident, what_is_frozen_equals_resident,
              ranks_equal_resident, ranks_go_on_when_a_part_cannot_be_read, what_a_step_moves_is_predicted)
