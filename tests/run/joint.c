#include "run/joint.h"

#include "base/alloc.h"
#include "plan/config.h"
#include "run/internal.h"
#include "sched/check.h"

int joint_batch(const struct ah_batch *to, int64_t iteration, void *context)
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
    assert_int_equal(result->flags, 0);
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
    assert_ok(
        ah__new(&self->states, (size_t)self->state_count, sizeof *self->states)); /* frozen ones have no moments */
    float *at = self->states;
    for (int p = 0; p < partition->param_count; p++)
        for (int which = 0; which < (partition->params[p].frozen ? 1 : AH_RUN_STATES); which++) {
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

void joint_config(const char *config)
{
    snprintf(config_path, sizeof config_path, "%s/config.json", ah_test_folder());
    assert_ok(ah__file_write(config_path, config, strlen(config)));
}

void joint_partition(struct rank_run *self)
{
    const struct joint *joint = self->joint;
    struct ah_step_options step = {.clips = joint->clip > 0,
                                   .micro_batches = joint->micro_batches,
                                   .world_size = joint->world_size,
                                   .master = joint->master,
                                   .moments = joint->moments};
    self->tiny = (struct tiny){.clip = joint->clip};
    assert_ok(ah_model_load(&self->tiny.model, config_path));
    assert_ok(ah_model_record(&self->tiny.graph, self->tiny.model,
                              &(struct ah_record_options){
                                  .batch = joint->batch, .seq = 17, .compute = joint->dtype, .tuning = joint->tuning}));
    assert_ok(ah_partition_new(&self->tiny.partition, self->tiny.graph, &step));
}

static void train_one(int rank, void *context)
{
    struct rank_run *self = &((struct team_run *)context)->rank[rank];
    const struct joint *joint = self->joint = ((struct team_run *)context)->joint;
    struct steps steps = {.batch = joint_batch, .adam = tiny_adam, .result = joint_result, .context = self};
    struct ah_plan plan = joint->plan;
    struct ah_dev_options options = joint->options;
    struct ah_dev *dev;
    struct ah_run *run;
    joint_partition(self);
    if (options.jitter_seed)
        options.jitter_seed += (uint64_t)rank;
    assert_ok(ah_dev_open(&dev, joint->device ? joint->device : "cpu", &options));
    plan.switches.world_size = joint->world_size;
    assert_ok(ah__workspace_bytes(&plan.workspace_bytes, self->tiny.partition, dev));
    assert_ok(ah__run_new(&run, self->tiny.partition, &plan, dev, joint->clip));
    assert_ok(ah__run_init(run, 11));
    steps_train(run, &steps, 0, joint->steps);
    struct ah_sched_config config;
    ah__sched_config_of(&config, &plan.switches, self->tiny.partition, ah__policy_find(plan.policy));
    check_timeline(ah__run_timeline(run), &config);
    joint_evaluate(self, run);
    if (joint->steps < TINY_STEPS)
        steps_train(run, &steps, joint->steps, TINY_STEPS - joint->steps);
    states_take(self, run);
    peaks_are_predicted(self, &plan, dev);
    ah__run_free(run);
    ah_dev_close(dev);
    tiny_fini(&self->tiny);
}

void joint_train(struct team_run *team, const struct joint *joint)
{
    memset(team, 0, sizeof *team);
    team->joint = joint;
    joint_config(joint->config);
    threads_run(joint->world_size, train_one, team);
    for (int rank = 1; rank < joint->world_size; rank++) { /* all ranks hear the same */
        team->rank[rank].outcome.states = team->rank[0].outcome.states;
        assert_memory_equal(&team->rank[rank].outcome, &team->rank[0].outcome, sizeof team->rank[0].outcome);
        assert_true(team->rank[rank].eval == team->rank[0].eval);
    }
}

void joint_free(struct team_run *team)
{
    ah__free(team->rank[0].states);
}

struct ah_plan joint_resident(int ranks, int layers)
{
    return (struct ah_plan){
        .switches = {.layers = layers, .buffers = layers + 4, .prefetch_distance = 1, .world_size = ranks, .chunks = 1},
        .policy = "resident"};
}

const struct ah_partition *joint_partition_of(struct rank_run *scratch, const struct joint *joint)
{
    scratch->joint = joint;
    joint_config(joint->config);
    joint_partition(scratch);
    return scratch->tiny.partition;
}

/* The switches beside (c, p, o), and the device's options, drawn. */
static void draw_rest(struct joint *joint, const struct ah_partition *partition)
{
    static const int64_t links[] = {0, 0, 50000000, 400000000};
    struct ah_switches *s = &joint->plan.switches;
    s->world_size = joint->world_size;
    exact_switches(s, EXACT_GIVEN, partition, ah__policy_find(joint->plan.policy));
    joint->options = (struct ah_dev_options){.threads = exact_draw(1, 2),
                                             .host_threads = exact_draw(1, 2),
                                             .link_bytes_per_s = links[exact_draw(0, 3)],
                                             .jitter_seed = (uint64_t)exact_draw(0, 3) * 100};
    if (joint->device)
        joint->options.threads = 0, joint->options.link_bytes_per_s = 0;
    joint->steps = exact_draw(1, TINY_STEPS);
}

void joint_same(const struct team_run *expected, const struct joint *joint)
{
    struct team_run team;
    joint_train(&team, joint);
    exact_same(&expected->rank[0].outcome, &team.rank[0].outcome, &joint->plan, &joint->options);
    joint_free(&team);
}

void joint_every_plan(struct joint joint, const char *policy, int of)
{
    struct team_run expected;
    struct rank_run scratch = {.joint = &joint};
    static int loops;
    int index = 0, loop = ++loops;
    const struct ah_partition *partition = joint_partition_of(&scratch, &joint);
    int layers = partition->layers;
    joint.plan = joint_resident(joint.world_size, layers);
    joint.plan.switches.frozen_blocks = partition->frozen_blocks;
    joint.options = (struct ah_dev_options){.threads = !joint.device, .host_threads = 1};
    joint.steps = TINY_STEPS;
    joint_train(&expected, &joint);
    assert_true(expected.rank[0].outcome.loss[TINY_STEPS - 1] > 0);
    for (int c = 0; c <= layers; c++)
        for (int o = 0; o <= layers; o++)
            for (int p = 0; p <= o; p++) {
                if (index++ % of != EXACT_HEAVY % of)
                    continue;
                exact_draws_begin(loop, index);
                joint.plan = (struct ah_plan){
                    .switches = {.layers = layers, .checkpoint = c, .offload_params = p, .offload_optimizer = o}};
                snprintf(joint.plan.policy, sizeof joint.plan.policy, "%s", policy);
                draw_rest(&joint, partition);
                joint_same(&expected, &joint);
            }
    tiny_fini(&scratch.tiny);
    joint_free(&expected);
}
