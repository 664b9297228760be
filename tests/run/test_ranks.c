/* Several ranks, as threads: a given number of them gives the same bits under every plan, policy, link and timing, and
 * what one rank gives to rounding. */
#include <math.h>

#include "plan/config.h"
#include "run/internal.h"
#include "run/joint.h"

static const double CLIP = 1.45;

/* One plan in `usual`; in the full check one in two of those, in a sample, and under sanitizers, in three. */
static int one_in(int usual)
{
    return usual * ah_test_rounds(3, 2, 1);
}

static void two_ranks_equal_resident(void **state)
{
    joint_every_plan((struct joint){.config = tiny_tied, .world_size = 2, .micro_batches = 1, .batch = 2, .clip = CLIP},
                     "autohete", one_in(1));
}

/* Parts that do not divide a group: the last rank has less than the others. */
static void three_ranks_equal_resident(void **state)
{
    joint_every_plan((struct joint){.config = tiny_untied, .world_size = 3, .micro_batches = 2, .batch = 1},
                     "autohete-fifo", one_in(2));
}

/* Embedding and head in one place, in both dtypes, with an update that waits for the norm or not. */
static void ranks_of_an_untied_model_equal_resident(void **state)
{
    joint_every_plan(
        (struct joint){.config = tiny_untied, .world_size = 2, .micro_batches = 2, .batch = 1, .clip = CLIP},
        "autohete", one_in(2));
    joint_every_plan(
        (struct joint){.config = tiny_untied, .dtype = AH_BF16, .world_size = 3, .micro_batches = 1, .batch = 1},
        "autohete", one_in(2));
}

static void four_ranks_in_bf16_equal_resident(void **state)
{
    joint_every_plan(
        (struct joint){
            .config = tiny_tied, .dtype = AH_BF16, .world_size = 4, .micro_batches = 1, .batch = 1, .clip = CLIP},
        "autohete", one_in(3));
    joint_every_plan((struct joint){.config = tiny_untied,
                                    .dtype = AH_BF16,
                                    .master = AH_BF16,
                                    .moments = AH_BF16,
                                    .world_size = 2,
                                    .micro_batches = 1,
                                    .batch = 1,
                                    .clip = CLIP},
                     "autohete", one_in(4));
}

/* Parts begin where groups do; the last rank has less. */
static void ranks_with_coded_moments_equal_resident(void **state)
{
    joint_every_plan((struct joint){.config = tiny_tied,
                                    .dtype = AH_BF16,
                                    .moments = AH_U8,
                                    .world_size = 3,
                                    .micro_batches = 1,
                                    .batch = 1,
                                    .clip = CLIP},
                     "autohete", one_in(4));
}

static const struct ah_tuning lora = {.lora_rank = 4, .lora_alpha = 6};
static const struct ah_tuning frozen_ends = {.freeze = "*.wte.*, transformer.wpe.*"};
static const struct ah_tuning frozen_lowest = {.freeze = "embedding,blocks:1-2"};
static const struct ah_tuning frozen_parts = {.freeze = "*.mlp.*,*ln_1.weight,*.attn.c_attn.bias,*wte*"};
static const struct ah_tuning frozen_blocks = {.freeze = "transformer.h.*"};

/* Each rank has a part of what is trained and one of what is frozen, and both are gathered. */
static void ranks_with_adapters_equal_resident(void **state)
{
    struct joint joint = {
        .config = tiny_tied, .tuning = lora, .world_size = 2, .micro_batches = 1, .batch = 2, .clip = 0.5 * CLIP};
    joint_every_plan(joint, "autohete", one_in(2));
    joint.config = tiny_untied;
    joint.world_size = 3;
    joint.batch = 1;
    joint.dtype = AH_BF16;
    joint_every_plan(joint, "autohete", one_in(2));
    joint.moments = AH_U8;
    joint.clip = 0;
    joint_every_plan(joint, "autohete-fifo", one_in(4));
}

/* A part may end within a block of codes. */
static void ranks_with_codes_equal_resident(void **state)
{
    struct joint joint = {.config = tiny_tied,
                          .tuning = {.lora_rank = 4, .frozen = "nf4"},
                          .world_size = 3,
                          .micro_batches = 1,
                          .batch = 1,
                          .clip = 0.5 * CLIP};
    joint_every_plan(joint, "autohete", one_in(4));
    joint.config = tiny_untied;
    joint.world_size = 2;
    joint.dtype = AH_BF16;
    joint.tuning.frozen = "int8";
    joint_every_plan(joint, "autohete", one_in(4));
}

static void ranks_with_frozen_parameters_equal_resident(void **state)
{
    const struct ah_tuning *tunings[] = {&frozen_ends, &frozen_parts, &frozen_blocks, &frozen_lowest};
    for (size_t i = 0; i < AH_LENGTH(tunings); i++)
        for (int half = 0; half < 2; half++)
            joint_every_plan((struct joint){.config = i + (size_t)half == 1 ? tiny_tied : tiny_untied,
                                            .dtype = half ? AH_BF16 : AH_F32,
                                            .master = half && i == 1 ? AH_BF16 : AH_F32,
                                            .tuning = *tunings[i],
                                            .world_size = half ? 2 : 3,
                                            .micro_batches = 1 + half,
                                            .batch = 1,
                                            .clip = half ? CLIP : 0},
                             "autohete", one_in(4));
}

/* What never changes is gathered with what is trained into a buffer, and not into a place that keeps it. */
static void what_stays_is_not_gathered_again(void **state)
{
    const struct joint joint = {.config = tiny_untied, .tuning = lora, .world_size = 2, .micro_batches = 1, .batch = 1};
    struct rank_run scratch;
    char place[1] = {0};
    const struct ah_partition *partition = joint_partition_of(&scratch, &joint);
    for (int g = 0; g < partition->group_count; g++)
        for (int stays = 0; stays < 2; stays++) {
            const struct ah_group *group = &partition->groups[g];
            const struct ah_item item = {.kind = AH_ITEM_GATHER, .partition = g, .stays = stays};
            const struct ah_binding binding = {.partition = partition, .group = g};
            struct ah_work work;
            int64_t gathered = 0, all = group->trained + (stays ? 0 : ah__frozen_count(group));
            assert_ok(ah__bind(&work, &item, &binding, &(struct ah_addresses){.param = place}));
            for (int t = 0; t < work.tasks; t++)
                gathered += 2 * work.task[t].as.collective.part_count;
            assert_true(group->trained < group->count);
            assert_in_range(gathered, all, all + 2 * AH_PARAM_ALIGN - 1);
        }
    tiny_fini(&scratch.tiny);
}

static void published_systems_equal_resident(void **state)
{
    struct joint joint = {.config = tiny_tied,
                          .world_size = 2,
                          .micro_batches = 1,
                          .batch = 2,
                          .clip = CLIP,
                          .options = {.threads = 1, .host_threads = 1},
                          .steps = TINY_STEPS};
    struct team_run expected;
    struct rank_run scratch = {.joint = &joint};
    struct ah_switches at;
    joint.plan = joint_resident(2, TINY_LAYERS);
    joint_train(&expected, &joint);
    const struct ah_partition *partition = joint_partition_of(&scratch, &joint);
    for (int i = 0; ah__policies[i]; i++)
        for (int index = 0; ah__policies[i]->placement && ah__policies[i]->placement(&at, TINY_LAYERS, index);
             index++) {
            struct ah_sched_config config;
            at.layers = TINY_LAYERS;
            at.world_size = 2;
            at.chunks = 1;
            ah__sched_config_of(&config, &at, partition, ah__policies[i]);
            int least = ah__sched_min_buffers(&config);
            at.buffers = at.buffers > least ? at.buffers : least;
            joint.plan = (struct ah_plan){.switches = at};
            snprintf(joint.plan.policy, sizeof joint.plan.policy, "%s", ah__policies[i]->name);
            joint.options.jitter_seed = (uint64_t)exact_draw(0, 3);
            joint_same(&expected, &joint);
        }
    tiny_fini(&scratch.tiny);
    joint_free(&expected);
}

/* The same sequences on one rank: losses, norms and states to rounding. */
static void ranks_equal_one(int ranks, double clip, struct ah_tuning tuning)
{
    struct joint one = {.config = tiny_tied,
                        .tuning = tuning,
                        .world_size = 1,
                        .micro_batches = 1,
                        .batch = 4,
                        .clip = clip,
                        .plan = joint_resident(1, TINY_LAYERS),
                        .options = {.threads = 1},
                        .steps = 3};
    struct joint many = one;
    struct team_run first, second;
    many.world_size = ranks;
    many.batch = 4 / ranks;
    many.plan = joint_resident(ranks, TINY_LAYERS);
    joint_train(&first, &one);
    joint_train(&second, &many);
    const struct outcome *a = &first.rank[0].outcome, *b = &second.rank[0].outcome;
    for (int i = 0; i < TINY_STEPS; i++) {
        assert_true(fabs(a->loss[i] - b->loss[i]) < 1e-5 * fabs(a->loss[i]));
        assert_true(fabs(a->norm[i] - b->norm[i]) < 1e-5 * fabs(a->norm[i]));
    }
    assert_true(fabs(first.rank[0].eval - second.rank[0].eval) < 1e-5 * first.rank[0].eval);
    assert_int_equal(first.rank[0].state_count, second.rank[0].state_count);
    float largest = 0, difference = 0;
    for (int64_t i = 0; i < first.rank[0].state_count; i++) {
        largest = fmaxf(largest, fabsf(first.rank[0].states[i]));
        difference = fmaxf(difference, fabsf(first.rank[0].states[i] - second.rank[0].states[i]));
    }
    assert_true(largest > 0);
    assert_true(difference < 1e-4F * largest);
    joint_free(&first);
    joint_free(&second);
}

static void what_one_rank_gives(void **state)
{
    ranks_equal_one(2, CLIP, (struct ah_tuning){0});
    ranks_equal_one(4, 0, (struct ah_tuning){0});
    ranks_equal_one(4, 0.5 * CLIP, lora);
    ranks_equal_one(2, 0, frozen_parts);
    ranks_equal_one(2, 0, (struct ah_tuning){.lora_rank = 4, .frozen = "nf4"});
    ranks_equal_one(2, 0, (struct ah_tuning){.lora_rank = 4, .frozen = "mxfp4"});
}

/* ---- stopping ---------------------------------------------------------------------------------------------------- */

enum { STOP_STEPS = 12, STOP_AT = 4 };

struct stop_run {
    struct rank_run rank;
    int64_t steps, heard; /* the first result that said so */
};

/* Rank 1 alone sets the flag, as iteration STOP_AT begins; the one behind it has begun when all see it. */
static void stop_train(struct stop_run *self, struct ah_run *run)
{
    static _Thread_local int32_t ids[3 * 17], targets[3 * 17];
    const struct ah_batch batch = {ids, targets, NULL};
    int64_t begun = 0;
    while (self->steps < STOP_STEPS) {
        struct ah_run_result result;
        struct ah_adam adam;
        for (; begun < STOP_STEPS && !self->heard && begun < self->steps + AH_RUN_IN_FLIGHT; begun++) {
            joint_batch(&batch, begun, &self->rank);
            tiny_adam(&adam, begun, NULL);
            assert_ok(ah__run_begin(run, &batch, &adam, ah__comm()->rank == 1 && begun == STOP_AT ? AH_RUN_STOP : 0));
        }
        if (begun == self->steps)
            break;
        assert_ok(ah__run_wait(run, &result));
        assert_int_equal(result.iteration, self->steps);
        self->steps++;
        if (result.flags & AH_RUN_STOP)
            self->heard = result.iteration;
    }
    assert_ok(ah__run_drain(run));
}

static void stop_one(int rank, void *context)
{
    struct stop_run *self = &((struct stop_run *)context)[rank];
    static const struct joint joint = {.config = tiny_tied, .world_size = 3, .micro_batches = 1, .batch = 1};
    struct ah_plan plan = joint_resident(3, TINY_LAYERS);
    struct ah_dev_options options = {.threads = 1, .jitter_seed = 50 + (uint64_t)rank};
    struct ah_dev *dev;
    struct ah_run *run;
    self->rank.joint = &joint;
    joint_partition(&self->rank);
    assert_ok(ah_dev_open(&dev, "cpu", &options));
    assert_ok(ah__workspace_bytes(&plan.workspace_bytes, self->rank.tiny.partition, dev));
    assert_ok(ah__run_new(&run, self->rank.tiny.partition, &plan, dev, 0));
    assert_ok(ah__run_init(run, 11));
    stop_train(self, run);
    ah__run_free(run);
    ah_dev_close(dev);
    tiny_fini(&self->rank.tiny);
}

static void all_stop_after_the_same_step(void **state)
{
    joint_config(tiny_tied);
    for (int i = 0; i < 5; i++) {
        struct stop_run ranks[3];
        memset(ranks, 0, sizeof ranks);
        threads_run(3, stop_one, ranks);
        for (int rank = 0; rank < 3; rank++) {
            assert_int_equal(ranks[rank].heard, STOP_AT);
            assert_int_equal(ranks[rank].steps, STOP_AT + AH_RUN_IN_FLIGHT);
        }
    }
}

/* A plan for another number of ranks than there are. */
static void refused_one(int rank, void *context)
{
    struct rank_run self = {.joint = context};
    struct ah_plan plan = joint_resident(3, TINY_LAYERS);
    struct ah_dev *dev;
    struct ah_run *run;
    joint_partition(&self);
    assert_ok(ah_dev_open(&dev, "cpu", NULL));
    assert_fails(ah__run_new(&run, self.tiny.partition, &plan, dev, 0), AH_ESTALE,
                 "plan: found 3 ranks, a model for 2, expected 2");
    ah_dev_close(dev);
    tiny_fini(&self.tiny);
}

static void another_number_of_ranks_is_refused(void **state)
{
    joint_config(tiny_tied);
    threads_run(2, refused_one, &(struct joint){.config = tiny_tied, .world_size = 2, .micro_batches = 1, .batch = 1});
}

AH_TEST_CASES("run/ranks", two_ranks_equal_resident, three_ranks_equal_resident, four_ranks_in_bf16_equal_resident,
              ranks_with_coded_moments_equal_resident, ranks_of_an_untied_model_equal_resident,
              ranks_with_adapters_equal_resident, ranks_with_codes_equal_resident,
              ranks_with_frozen_parameters_equal_resident, what_stays_is_not_gathered_again,
              published_systems_equal_resident, what_one_rank_gives, all_stop_after_the_same_step,
              another_number_of_ranks_is_refused)
