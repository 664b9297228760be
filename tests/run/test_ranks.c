/* Several ranks, as threads: a given number of them gives the same bits under every plan, policy, link and timing, and
 * what one rank gives to rounding. */
#include <math.h>

#include "base/alloc.h"
#include "comm/threads.h"
#include "plan/predict.h"
#include "run/exact.h"
#include "run/internal.h"
#include "sched/check.h"

static const double CLIP = 1.45;

/* One training of all ranks. */
struct joint {
    const char *config;
    enum ah_dtype dtype;
    int ranks, micro_batches; /* of each rank */
    int64_t batch;            /* sequences of a micro-batch */
    double clip;
    struct ah_plan plan;
    struct ah_dev_options options;
    int steps; /* trained in two stretches with an evaluation between when fewer than all */
};

struct rank_run {
    const struct joint *joint;
    struct tiny tiny;
    struct outcome outcome;
    double eval;
    float *states; /* rank 0: all parameters and moments */
    int64_t state_count;
};

struct team_run {
    const struct joint *joint;
    struct rank_run rank[THREADS_MOST];
};

/* The batch of all ranks. */
static int joint_batch(const struct ah_batch *to, int64_t iteration, void *context)
{
    int32_t *ids = to->ids, *targets = to->targets;
    const struct rank_run *self = context;
    const struct ah_partition *partition = self->tiny.partition;
    int64_t count = ah__step_ranks(partition) * ah__step_tokens(partition);
    for (int64_t i = 0; i < count; i++) {
        ids[i] = (int32_t)(ah__random_bits(3, (uint64_t)(iteration * count + i)) % (uint64_t)partition->vocab);
        targets[i] = (int32_t)(ah__random_bits(4, (uint64_t)(iteration * count + i)) % (uint64_t)partition->vocab);
        if (i % 17 == 16 || i < 30) /* ranks have unequal parts of the mean */
            targets[i] = AH_TARGET_IGNORED;
    }
    return 0;
}

static int joint_result(const struct ah_run_result *result, void *context)
{
    struct rank_run *self = context;
    assert_int_equal(result->iteration, self->outcome.steps);
    assert_false(result->words[AH_RUN_STOP]);
    self->outcome.loss[result->iteration] = result->loss;
    self->outcome.norm[result->iteration] = result->grad_norm;
    self->outcome.factor[result->iteration] = result->clip_factor;
    self->outcome.steps++;
    return 0;
}

/* Rank 0 takes all states; the others give theirs. */
static void states_take(struct rank_run *self, struct ah_run *run)
{
    const struct ah_partition *partition = self->tiny.partition;
    if (ah__comm()->rank > 0) {
        assert_ok(ah__run_serve(run));
        return;
    }
    int64_t elements = ah__partition_params(partition);
    self->state_count = AH_RUN_STATES * elements;
    assert_ok(ah__new(&self->states, (size_t)self->state_count, sizeof *self->states));
    float *at = self->states;
    for (int p = 0; p < partition->param_count; p++)
        for (int which = 0; which < AH_RUN_STATES; which++) {
            assert_ok(ah__run_store(run, p, (enum ah_run_state)which, at));
            at += ah__shape_count(&partition->params[p].shape);
        }
    assert_ok(ah__run_served(run, AH_OK));
    self->outcome.states = ah__hash(self->states, (size_t)self->state_count * sizeof *self->states, 0);
}

static void peaks_are_predicted(const struct rank_run *self, const struct ah_plan *plan, struct ah_dev *dev)
{
    struct ah_dev_info info;
    int64_t device_bytes, host_bytes;
    dev->ops->info(dev, &info);
    ah__layout_bytes(&device_bytes, &host_bytes, self->tiny.partition, &plan->switches, plan->workspace_bytes);
    assert_int_equal(info.device_high_water_bytes, device_bytes);
    assert_int_equal(info.host_bytes, host_bytes);
}

static void joint_evaluate(struct rank_run *self, struct ah_run *run)
{
    static _Thread_local int32_t ids[6 * 24 * 17], targets[6 * 24 * 17];
    const struct ah_batch batch = {ids, targets, NULL};
    joint_batch(&batch, 100, self);
    assert_ok(ah__run_eval(run, &batch, &self->eval));
}

static char config_path[160]; /* written before ranks start */

static void config_write(const char *config)
{
    snprintf(config_path, sizeof config_path, "%s/config.json", ah_test_folder());
    assert_ok(ah__file_write(config_path, config, strlen(config)));
}

static void partition_make(struct rank_run *self)
{
    const struct joint *joint = self->joint;
    struct ah_step_options step = {.clips = joint->clip > 0, .micro_batches = joint->micro_batches,
                                   .ranks = joint->ranks};
    self->tiny = (struct tiny){.clip = joint->clip};
    assert_ok(ah_model_load(&self->tiny.model, config_path));
    assert_ok(ah_model_record(&self->tiny.graph, self->tiny.model, joint->batch, 17, joint->dtype));
    assert_ok(ah_partition_new(&self->tiny.partition, self->tiny.graph, &step));
}

static void train_one(int rank, void *context)
{
    struct rank_run *self = &((struct team_run *)context)->rank[rank];
    const struct joint *joint = self->joint = ((struct team_run *)context)->joint;
    struct ah_run_hooks hooks = {.batch = joint_batch, .adam = tiny_adam, .clip = joint->clip, .result = joint_result,
                                 .context = self};
    struct ah_plan plan = joint->plan;
    struct ah_dev_options options = joint->options;
    struct ah_dev *dev;
    struct ah_run *run;
    int64_t done;
    partition_make(self);
    if (options.jitter_seed)
        options.jitter_seed += (uint64_t)rank;
    assert_ok(ah_dev_open(&dev, "cpu", &options));
    plan.switches.ranks = joint->ranks;
    assert_ok(ah__workspace_bytes(&plan.workspace_bytes, self->tiny.partition, dev));
    assert_ok(ah__run_new(&run, self->tiny.partition, &plan, dev, &hooks));
    assert_ok(ah__run_init(run, 11));
    assert_ok(ah__run_steps(run, joint->steps, &done));
    struct ah_sched_config config;
    ah__sched_config_of(&config, &plan.switches, self->tiny.partition, ah__policy_find(plan.policy));
    check_timeline(ah__run_timeline(run), &config);
    joint_evaluate(self, run);
    if (joint->steps < TINY_STEPS)
        assert_ok(ah__run_steps(run, TINY_STEPS - joint->steps, &done));
    states_take(self, run);
    peaks_are_predicted(self, &plan, dev);
    ah__run_free(run);
    ah_dev_close(dev);
    tiny_fini(&self->tiny);
}

static void joint_train(struct team_run *team, const struct joint *joint)
{
    memset(team, 0, sizeof *team);
    team->joint = joint;
    config_write(joint->config);
    threads_run(joint->ranks, train_one, team);
    for (int rank = 1; rank < joint->ranks; rank++) { /* all ranks hear the same */
        team->rank[rank].outcome.states = team->rank[0].outcome.states;
        assert_memory_equal(&team->rank[rank].outcome, &team->rank[0].outcome, sizeof team->rank[0].outcome);
        assert_true(team->rank[rank].eval == team->rank[0].eval);
    }
}

static void team_free(struct team_run *team)
{
    ah__free(team->rank[0].states);
}

/* Everything stays on the device: slots enough for what is gathered and what waits for the norm. */
static struct ah_plan resident_plan(int ranks)
{
    return (struct ah_plan){.switches = {.layers = TINY_LAYERS, .slots = TINY_LAYERS + 4, .refetch_ahead = 1,
                                         .ranks = ranks, .tiles = 1},
                            .policy = "resident"};
}

static const struct ah_partition *partition_of(struct rank_run *scratch, const struct joint *joint)
{
    scratch->joint = joint;
    config_write(joint->config);
    partition_make(scratch);
    return scratch->tiny.partition;
}

/* The switches beside (c, p, o), and the device's options, drawn. */
static void draw_rest(struct joint *joint, const struct ah_partition *partition)
{
    static const int64_t links[] = {0, 0, 50000000, 400000000};
    struct ah_switches *s = &joint->plan.switches;
    struct ah_sched_config config;
    s->ranks = joint->ranks;
    s->tiles = exact_draw(0, 1) ? 1 : exact_draw(2, 5);
    ah__sched_config_of(&config, s, partition, ah__policy_find(joint->plan.policy));
    s->spares = exact_draw(0, s->offload_optimizer);
    s->streamed = config.policy->delay ? 0 : exact_draw(0, 1) * exact_draw(0, s->offload_optimizer);
    s->slots = ah__sched_min_slots(&config) + exact_draw(0, 1) * exact_draw(0, 4);
    s->overtaking = exact_draw(0, 1) * s->slots;
    s->refetch_ahead = exact_draw(1, s->layers + 1);
    s->embedding_on_host = exact_draw(0, 1);
    s->head_on_host = exact_draw(0, 1);
    joint->options = (struct ah_dev_options){.threads = exact_draw(1, 2),
                                             .host_threads = exact_draw(1, 2),
                                             .link_bytes_per_s = links[exact_draw(0, 3)],
                                             .jitter_seed = (uint64_t)exact_draw(0, 3) * 100};
    joint->steps = exact_draw(1, TINY_STEPS);
}

static void same(const struct team_run *expected, const struct joint *joint)
{
    struct team_run team;
    joint_train(&team, joint);
    exact_same(&expected->rank[0].outcome, &team.rank[0].outcome, &joint->plan);
    team_free(&team);
}

/* Every `of`-th (c, p, o) under the policy as resident on as many ranks. */
static void every_plan(struct joint joint, const char *policy, int of)
{
    struct team_run expected;
    struct rank_run scratch = {.joint = &joint};
    int index = 0;
    joint.plan = resident_plan(joint.ranks);
    joint.options = (struct ah_dev_options){.threads = 1, .host_threads = 1};
    joint.steps = TINY_STEPS;
    joint_train(&expected, &joint);
    assert_true(expected.rank[0].outcome.loss[TINY_STEPS - 1] > 0);
    const struct ah_partition *partition = partition_of(&scratch, &joint);
    for (int c = 0; c <= TINY_LAYERS; c++)
        for (int o = 0; o <= TINY_LAYERS; o++)
            for (int p = 0; p <= o; p++) {
                if (index++ % of != 0)
                    continue;
                joint.plan = (struct ah_plan){.switches = {.layers = TINY_LAYERS, .checkpoint = c,
                                                           .offload_params = p, .offload_optimizer = o}};
                snprintf(joint.plan.policy, sizeof joint.plan.policy, "%s", policy);
                draw_rest(&joint, partition);
                same(&expected, &joint);
            }
    tiny_fini(&scratch.tiny);
    team_free(&expected);
}

static void two_ranks_equal_resident(void **state)
{
    (void)state;
    every_plan((struct joint){.config = tiny_tied, .ranks = 2, .micro_batches = 1, .batch = 2, .clip = CLIP},
               "autohete", 1);
}

/* Parts that do not divide a group: the last rank has less than the others. */
static void three_ranks_equal_resident(void **state)
{
    (void)state;
    every_plan((struct joint){.config = tiny_untied, .ranks = 3, .micro_batches = 2, .batch = 1}, "autohete-fifo", 2);
}

static void four_ranks_in_bf16_equal_resident(void **state)
{
    (void)state;
    every_plan((struct joint){.config = tiny_tied, .dtype = AH_BF16, .ranks = 4, .micro_batches = 1, .batch = 1,
                              .clip = CLIP},
               "autohete", 3);
}

static void published_systems_equal_resident(void **state)
{
    (void)state;
    struct joint joint = {.config = tiny_tied, .ranks = 2, .micro_batches = 1, .batch = 2, .clip = CLIP,
                          .options = {.threads = 1, .host_threads = 1}, .steps = TINY_STEPS};
    struct team_run expected;
    struct rank_run scratch = {.joint = &joint};
    struct ah_switches at;
    joint.plan = resident_plan(2);
    joint_train(&expected, &joint);
    const struct ah_partition *partition = partition_of(&scratch, &joint);
    for (int i = 0; ah__policies[i]; i++)
        for (int index = 0;
             ah__policies[i]->keeps_semantics && ah__policies[i]->placement(&at, TINY_LAYERS, index); index++) {
            struct ah_sched_config config;
            at.layers = TINY_LAYERS;
            at.ranks = 2;
            at.tiles = 1;
            ah__sched_config_of(&config, &at, partition, ah__policies[i]);
            int least = ah__sched_min_slots(&config);
            at.slots = at.slots > least ? at.slots : least;
            joint.plan = (struct ah_plan){.switches = at};
            snprintf(joint.plan.policy, sizeof joint.plan.policy, "%s", ah__policies[i]->name);
            joint.options.jitter_seed = (uint64_t)exact_draw(0, 3);
            same(&expected, &joint);
        }
    tiny_fini(&scratch.tiny);
    team_free(&expected);
}

/* The same sequences on one rank: losses, norms and states to rounding. */
static void ranks_equal_one(int ranks, double clip)
{
    struct joint one = {.config = tiny_tied, .ranks = 1, .micro_batches = 1, .batch = 4, .clip = clip,
                        .plan = resident_plan(1), .options = {.threads = 1}, .steps = 3};
    struct joint many = one;
    struct team_run first, second;
    many.ranks = ranks;
    many.batch = 4 / ranks;
    many.plan = resident_plan(ranks);
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
    team_free(&first);
    team_free(&second);
}

static void what_one_rank_gives(void **state)
{
    (void)state;
    ranks_equal_one(2, CLIP);
    ranks_equal_one(4, 0);
}

/* ---- stopping ---------------------------------------------------------------------------------------------------- */

enum { STOP_STEPS = 12, STOP_AT = 4 };

struct stop_run {
    struct rank_run rank;
    int64_t steps, heard; /* the first result that said so */
};

static int stop_batch(const struct ah_batch *to, int64_t iteration, void *context)
{
    return joint_batch(to, iteration, &((struct stop_run *)context)->rank);
}

/* Rank 1 alone is told, while iteration STOP_AT begins. */
static bool stop_says(enum ah_run_word word, void *context)
{
    struct stop_run *self = context;
    return word == AH_RUN_STOP && ah__comm()->rank == 1 && self->steps++ >= STOP_AT;
}

static int stop_result(const struct ah_run_result *result, void *context)
{
    struct stop_run *self = context;
    if (result->words[AH_RUN_STOP] && !self->heard)
        self->heard = result->iteration;
    return self->heard != 0;
}

static void stop_one(int rank, void *context)
{
    struct stop_run *self = &((struct stop_run *)context)[rank];
    static const struct joint joint = {.config = tiny_tied, .ranks = 3, .micro_batches = 1, .batch = 1};
    struct ah_run_hooks hooks = {.batch = stop_batch, .adam = tiny_adam, .result = stop_result, .says = stop_says,
                                 .context = self};
    struct ah_plan plan = resident_plan(3);
    struct ah_dev_options options = {.threads = 1, .jitter_seed = 50 + (uint64_t)rank};
    struct ah_dev *dev;
    struct ah_run *run;
    self->rank.joint = &joint;
    partition_make(&self->rank);
    assert_ok(ah_dev_open(&dev, "cpu", &options));
    assert_ok(ah__workspace_bytes(&plan.workspace_bytes, self->rank.tiny.partition, dev));
    assert_ok(ah__run_new(&run, self->rank.tiny.partition, &plan, dev, &hooks));
    assert_ok(ah__run_init(run, 11));
    assert_ok(ah__run_steps(run, STOP_STEPS, &self->steps));
    ah__run_free(run);
    ah_dev_close(dev);
    tiny_fini(&self->rank.tiny);
}

static void all_stop_after_the_same_step(void **state)
{
    (void)state;
    config_write(tiny_tied);
    for (int i = 0; i < 5; i++) {
        struct stop_run ranks[3];
        memset(ranks, 0, sizeof ranks);
        threads_run(3, stop_one, ranks);
        for (int rank = 0; rank < 3; rank++) {
            assert_int_equal(ranks[rank].heard, STOP_AT);
            assert_int_equal(ranks[rank].steps, STOP_AT + 1 + AH_SCHED_STOP_AHEAD);
        }
    }
}

/* A plan for another number of ranks than there are. */
static void refused_one(int rank, void *context)
{
    struct rank_run self = {.joint = context};
    struct ah_run_hooks hooks = {.clip = 0};
    struct ah_plan plan = resident_plan(3);
    struct ah_dev *dev;
    struct ah_run *run;
    (void)rank;
    partition_make(&self);
    assert_ok(ah_dev_open(&dev, "cpu", NULL));
    assert_fails(ah__run_new(&run, self.tiny.partition, &plan, dev, &hooks), AH_ESTALE,
                 "plan: found 3 ranks, a model for 2, expected 2");
    ah_dev_close(dev);
    tiny_fini(&self.tiny);
}

static void another_number_of_ranks_is_refused(void **state)
{
    (void)state;
    config_write(tiny_tied);
    threads_run(2, refused_one,
                &(struct joint){.config = tiny_tied, .ranks = 2, .micro_batches = 1, .batch = 1});
}

AH_TEST_SUITE("run/ranks", cmocka_unit_test(two_ranks_equal_resident), cmocka_unit_test(three_ranks_equal_resident),
              cmocka_unit_test(four_ranks_in_bf16_equal_resident), cmocka_unit_test(published_systems_equal_resident),
              cmocka_unit_test(what_one_rank_gives), cmocka_unit_test(all_stop_after_the_same_step),
              cmocka_unit_test(another_number_of_ranks_is_refused))
