/* The most precious invariant: a plan changes nothing but time and memory. Every (c, p, o) of a tiny model, every
 * policy, with random delays on every lane, several link speeds and thread counts: the same bits as `resident`. */
#include "tiny.h"

#include "base/alloc.h"
#include "partition/models.h"
#include "plan/predict.h"
#include "run/internal.h"
#include "sched/check.h"

/* Between the parameters of a group everything is zero, and stays so: see AH_PARAM_ALIGN. */
static void check_gaps(const struct ah_run *run, const struct ah_partition *partition)
{
    for (int p = 0; p < partition->param_count; p++) {
        const struct ah_param *param = &partition->params[p];
        const struct ah_group *group = &partition->groups[param->group];
        bool last = p + 1 == group->first_param + group->param_count;
        int64_t end = last ? group->count : partition->params[p + 1].offset;
        for (int which = 0; which < 3; which++) {
            const char *state = ah__run_states(run, param->group) +
                                which * ah__run_layout(run)->groups[param->group].state_bytes;
            for (int64_t i = param->offset + ah__shape_count(&param->shape); i < end; i++)
                assert_true(((const float *)(const void *)state)[i] == 0);
        }
    }
}

static void train(struct outcome *outcome, struct tiny *tiny, const struct ah_plan *given,
                  const struct ah_dev_options *options)
{
    struct ah_plan with_workspace = *given;
    const struct ah_plan *plan = &with_workspace;
    struct tiny_run context = {tiny, outcome};
    struct ah_run_hooks hooks = tiny_hooks(&context);
    struct ah_dev *dev;
    struct ah_run *run;
    struct ah_dev_info info;
    int64_t done, device_bytes, host_bytes;
    *outcome = (struct outcome){.steps = 0};
    assert_ok(ah_dev_open(&dev, "cpu", options));
    assert_ok(ah__workspace_bytes(&with_workspace.workspace_bytes, tiny->partition, dev));
    assert_ok(ah__run_new(&run, tiny->partition, plan, dev, &hooks));
    assert_ok(ah__run_init(run, 11));
    uint64_t allocations = ah__alloc_count();
    assert_ok(ah__run_steps(run, TINY_STEPS, &done));
    assert_int_equal(ah__alloc_count() - allocations, 0);
    assert_int_equal(done, TINY_STEPS);
    outcome->states = tiny_hash_states(run, tiny->partition);

    check_gaps(run, tiny->partition);
    struct ah_sched_config config;
    ah__sched_config_of(&config, &plan->switches, tiny->partition, ah__policy_find(plan->policy));
    check_timeline(ah__run_timeline(run), &config);

    dev->ops->info(dev, &info);
    ah__layout_bytes(&device_bytes, &host_bytes, tiny->partition, &plan->switches, plan->workspace_bytes);
    assert_int_equal(info.device_high_water_bytes, device_bytes);
    assert_int_equal(info.host_bytes, host_bytes);
    ah__run_free(run);
    ah_dev_close(dev);
}

static void same(const struct outcome *a, const struct outcome *b, const struct ah_plan *plan)
{
    if (memcmp(a, b, sizeof *a) == 0)
        return;
    for (int k = 0; k < TINY_STEPS; k++)
        if (a->loss[k] != b->loss[k] || a->norm[k] != b->norm[k])
            print_error("step %d: loss %.17g / %.17g, norm %.17g / %.17g\n", k, a->loss[k], b->loss[k], a->norm[k],
                        b->norm[k]);
    fail_msg("%s c=%d p=%d o=%d slots=%d ahead=%d tiles=%d embedding %d head %d differs from resident", plan->policy,
             plan->switches.checkpoint, plan->switches.offload_params, plan->switches.offload_optimizer,
             plan->switches.slots, plan->switches.refetch_ahead, plan->switches.tiles, plan->switches.embedding_on_host,
             plan->switches.head_on_host);
}

static uint64_t drawn;

static const double CLIP = 1.45;

static int draw(int from, int to)
{
    return from + (int)(ah__random_bits(21, drawn++) % (uint64_t)(to - from + 1));
}

/* Slots enough also where gradients wait for the norm and parameters are cast. */
static const struct ah_plan resident = {
    .switches = {.layers = TINY_LAYERS, .slots = TINY_LAYERS + 1, .refetch_ahead = 1}, .policy = "resident"};

/* Slots, refetch distance, places of embedding and head, device settings: drawn. */
static void one_plan(struct tiny *tiny, const struct outcome *expected, struct ah_plan plan, const char *policy)
{
    static const int64_t links[] = {0, 0, 50000000, 400000000};
    struct outcome outcome;
    struct ah_sched_config config;
    snprintf(plan.policy, sizeof plan.policy, "%s", policy);
    ah__sched_config_of(&config, &plan.switches, tiny->partition, ah__policy_find(policy));
    plan.switches.spares = draw(0, plan.switches.offload_optimizer);
    plan.switches.slots = ah__sched_min_slots(&config) + draw(0, 1) * draw(0, 4);
    plan.switches.overtaking = draw(0, 1) * plan.switches.slots;
    plan.switches.refetch_ahead = draw(1, TINY_LAYERS + 1);
    plan.switches.tiles = draw(0, 1) ? 1 : draw(2, 5);
    plan.switches.embedding_on_host = draw(0, 1);
    plan.switches.head_on_host = draw(0, 1);
    struct ah_dev_options options = {.threads = draw(1, 3),
                                     .host_threads = draw(1, 3),
                                     .link_bytes_per_s = links[draw(0, 3)],
                                     .jitter_seed = (uint64_t)draw(0, 3)};
    train(&outcome, tiny, &plan, &options);
    same(expected, &outcome, &plan);
}

static void every_plan_of(struct tiny *tiny, const char *policy)
{
    struct outcome expected;
    struct ah_dev_options options = {.threads = 1, .host_threads = 1};
    train(&expected, tiny, &resident, &options);
    assert_true(expected.loss[TINY_STEPS - 1] > 0);
    int clipped = 0;
    for (int i = 0; i < TINY_STEPS; i++)
        clipped += expected.factor[i] < 1;
    assert_true(tiny->clip > 0 ? clipped > 0 && clipped < TINY_STEPS : clipped == 0);
    struct ah_plan plan = {.switches.layers = TINY_LAYERS};
    for (plan.switches.checkpoint = 0; plan.switches.checkpoint <= TINY_LAYERS; plan.switches.checkpoint++)
        for (plan.switches.offload_optimizer = 0; plan.switches.offload_optimizer <= TINY_LAYERS;
             plan.switches.offload_optimizer++)
            for (plan.switches.offload_params = 0; plan.switches.offload_params <= plan.switches.offload_optimizer;
                 plan.switches.offload_params++)
                one_plan(tiny, &expected, plan, policy);
}

static void every_plan(const char *config, const char *policy, double clip)
{
    struct tiny tiny;
    tiny_init(&tiny, config, clip);
    every_plan_of(&tiny, policy);
    tiny_fini(&tiny);
}

static void autohete_equals_resident(void **state)
{
    (void)state;
    every_plan(tiny_tied, "autohete", 0);
}

/* A limit that some steps exceed and others do not. */
static void clipping_equals_resident(void **state)
{
    (void)state;
    every_plan(tiny_tied, "autohete", CLIP);
    every_plan(tiny_untied, "autohete-fifo", CLIP);
}

static void autohete_fifo_equals_resident(void **state)
{
    (void)state;
    every_plan(tiny_tied, "autohete-fifo", 0);
}

/* A step in micro-batches, under every plan and with random delays on all lanes. */
static void micro_batches_equal_resident(void **state)
{
    (void)state;
    static const struct {
        const char *config, *policy;
        double clip;
        int64_t batch;
        int micro_batches;
    } cases[] = {{tiny_tied, "autohete", 1, 2, 2}, {tiny_untied, "autohete", 0, 1, 4}};
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        struct tiny tiny;
        tiny_init_micro(&tiny, cases[i].config, cases[i].clip, cases[i].batch, cases[i].micro_batches);
        every_plan_of(&tiny, cases[i].policy);
        tiny_fini(&tiny);
    }
    struct tiny tiny;
    tiny_init_graph(&tiny, model_graph(model_llama, TINY_LAYERS, true), 0, 2);
    every_plan_of(&tiny, "autohete");
    tiny_fini(&tiny);
}

/* The published systems in each of their placements. */
static void every_placement(double clip, int micro_batches)
{
    struct tiny tiny;
    struct outcome expected, outcome;
    struct ah_dev_options options = {.threads = 1, .host_threads = 1};
    tiny_init_micro(&tiny, tiny_tied, clip, 2, micro_batches);
    train(&expected, &tiny, &resident, &options);
    for (int i = 0; ah__policies[i]; i++) {
        const struct ah_policy *policy = ah__policies[i];
        struct ah_switches at;
        for (int index = 0; policy->keeps_semantics && policy->placement(&at, TINY_LAYERS, index); index++) {
            struct ah_sched_config config;
            at.layers = TINY_LAYERS;
            ah__sched_config_of(&config, &at, tiny.partition, policy);
            int least = ah__sched_min_slots(&config);
            at.slots = at.slots > least ? at.slots : least;
            struct ah_plan plan = {.switches = at};
            snprintf(plan.policy, sizeof plan.policy, "%s", policy->name);
            options.jitter_seed = (uint64_t)draw(0, 3);
            train(&outcome, &tiny, &plan, &options);
            same(&expected, &outcome, &plan);
        }
    }
    tiny_fini(&tiny);
}

static void baselines_equal_resident(void **state)
{
    (void)state;
    every_placement(0, 1);
    every_placement(CLIP, 1);
    every_placement(CLIP, 3);
}

/* Parameters are cast around the blocks that use them, gradients rounded once; clipped on some steps. */
static void bf16_equals_resident(void **state)
{
    (void)state;
    struct tiny tiny;
    tiny_init_in(&tiny, AH_BF16, tiny_tied, CLIP, 2, 1);
    every_plan_of(&tiny, "autohete");
    tiny_fini(&tiny);
    tiny_init_in(&tiny, AH_BF16, tiny_untied, 0, 1, 4);
    every_plan_of(&tiny, "autohete-fifo");
    tiny_fini(&tiny);
    tiny_init_graph(&tiny, model_graph_in(AH_BF16, model_llama, TINY_LAYERS, false), 0, 2);
    every_plan_of(&tiny, "autohete");
    tiny_fini(&tiny);
}

static void untied_equals_resident(void **state)
{
    (void)state;
    every_plan(tiny_untied, "autohete", 0);
}

/* Blocks of rmsnorm, rotary, grouped attention and silu_mul. */
static void llama_equals_resident(void **state)
{
    (void)state;
    struct tiny tiny;
    tiny_init_graph(&tiny, model_graph(model_llama, TINY_LAYERS, false), 0, 1);
    every_plan_of(&tiny, "autohete");
    tiny_fini(&tiny);
}

/* Evaluations and drains between steps leave no trace, and a stop in the middle goes on to the same bits. */
static void stretches_equal(int micro_batches)
{
    struct tiny tiny;
    struct outcome expected, outcome = {.steps = 0};
    struct ah_dev_options options = {.threads = 2, .jitter_seed = 5};
    tiny_init_micro(&tiny, tiny_tied, 0, 2, micro_batches);
    train(&expected, &tiny, &resident, &options);
    struct ah_plan plan = {.switches = {.layers = TINY_LAYERS,
                                        .checkpoint = 2,
                                        .offload_params = 2,
                                        .offload_optimizer = 3,
                                        .slots = 2,
                                        .refetch_ahead = 2,
                                        .embedding_on_host = true},
                           .policy = "autohete"};
    struct tiny_run context = {&tiny, &outcome};
    struct ah_run_hooks hooks = tiny_hooks(&context);
    struct ah_dev *dev;
    struct ah_run *run;
    int64_t done;
    double loss, again;
    int32_t ids[6 * 17], targets[6 * 17];
    tiny_batch(ids, targets, 100, &tiny);
    assert_ok(ah_dev_open(&dev, "cpu", &options));
    assert_ok(ah__run_new(&run, tiny.partition, &plan, dev, &hooks));
    assert_ok(ah__run_init(run, 11));
    assert_ok(ah__run_steps(run, 2, &done));
    assert_ok(ah__run_eval(run, ids, targets, &loss));
    assert_ok(ah__run_eval(run, ids, targets, &again));
    assert_true(loss == again);
    assert_ok(ah__run_steps(run, 1, &done));
    assert_ok(ah__run_steps(run, TINY_STEPS - 3, &done));
    outcome.states = tiny_hash_states(run, tiny.partition);
    same(&expected, &outcome, &plan);
    ah__run_free(run);
    ah_dev_close(dev);
    tiny_fini(&tiny);
}

static void stretches_equal_one_run(void **state)
{
    (void)state;
    stretches_equal(1);
    stretches_equal(3);
}

static void init_depends_on_the_seed_alone(void **state)
{
    (void)state;
    struct tiny tiny;
    struct ah_dev *dev;
    struct ah_run *run;
    struct ah_run_hooks hooks = {0};
    uint64_t hash[3];
    struct ah_dev_options options = {.threads = 1};
    struct ah_plan plans[] = {resident, resident, resident};
    plans[1].switches.offload_optimizer = 3;
    plans[1].switches.slots = 4;
    snprintf(plans[1].policy, sizeof plans[1].policy, "autohete");
    tiny_init(&tiny, tiny_untied, 0);
    for (int i = 0; i < 3; i++) {
        assert_ok(ah_dev_open(&dev, "cpu", &options));
        assert_ok(ah__run_new(&run, tiny.partition, &plans[i], dev, &hooks));
        assert_ok(ah__run_init(run, i == 2 ? 12 : 11));
        hash[i] = tiny_hash_states(run, tiny.partition);
        ah__run_free(run);
        ah_dev_close(dev);
    }
    assert_true(hash[0] == hash[1]);
    assert_true(hash[0] != hash[2]);
    tiny_fini(&tiny);
}

AH_TEST_SUITE("run/exact", cmocka_unit_test(autohete_equals_resident),
              cmocka_unit_test(clipping_equals_resident), cmocka_unit_test(autohete_fifo_equals_resident),
              cmocka_unit_test(baselines_equal_resident), cmocka_unit_test(untied_equals_resident),
              cmocka_unit_test(llama_equals_resident), cmocka_unit_test(micro_batches_equal_resident),
              cmocka_unit_test(bf16_equals_resident),
              cmocka_unit_test(stretches_equal_one_run),
              cmocka_unit_test(init_depends_on_the_seed_alone))
