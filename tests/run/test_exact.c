/* The most precious invariant: a plan changes nothing but time and memory. Every (c, p, o) of a tiny model, every
 * policy, with random delays on every lane, several link speeds and thread counts: the same bits as `resident`. */
#include "run/exact.h"

#include "partition/models.h"
#include "plan/config.h"

static const double CLIP = 1.45;

static int cpu_open(struct ah_dev **out, const struct ah_dev_options *options)
{
    return ah_dev_open(out, "cpu", options);
}

static const struct exact_device cpu = {.open = cpu_open, .is_cpu = true};

/* One plan in so many. */
static int sample(void)
{
    return AH_TEST_SAMPLED ? 16 : ah_test_rounds(4, 2, 1);
}

static void every_plan(const char *config, const char *policy, double clip, int of)
{
    struct tiny tiny;
    tiny_init(&tiny, config, clip);
    exact_every_plan(&cpu, &tiny, policy, of);
    tiny_fini(&tiny);
}

static void autohete_equals_resident(void **state)
{
    every_plan(tiny_tied, "autohete", 0, AH_TEST_SAMPLED ? sample() : 1);
}

/* A limit that some steps exceed and others do not. */
static void clipping_equals_resident(void **state)
{
    every_plan(tiny_tied, "autohete", CLIP, sample());
    every_plan(tiny_untied, "autohete", CLIP, sample());
    every_plan(tiny_untied, "autohete-fifo", CLIP, sample());
}

static void autohete_fifo_equals_resident(void **state)
{
    every_plan(tiny_tied, "autohete-fifo", 0, sample());
}

/* A step in micro-batches, under every plan and with random delays on all lanes. */
static void micro_batches_equal_resident(void **state)
{
    static const struct {
        const char *config, *policy;
        double clip;
        int64_t batch;
        int micro_batches;
    } cases[] = {{tiny_tied, "autohete", 1, 2, 2}, {tiny_untied, "autohete", 0, 1, 4}};
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        struct tiny tiny;
        tiny_init_micro(&tiny, cases[i].config, cases[i].clip, cases[i].batch, cases[i].micro_batches);
        exact_every_plan(&cpu, &tiny, cases[i].policy, sample());
        tiny_fini(&tiny);
    }
    struct tiny tiny;
    tiny_init_graph(&tiny, model_graph(model_llama, TINY_LAYERS, true), 0, 2);
    exact_every_plan(&cpu, &tiny, "autohete", sample());
    tiny_fini(&tiny);
}

/* The published systems in each of their placements. */
static void every_placement(enum ah_dtype dtype, double clip, int micro_batches)
{
    struct tiny tiny;
    struct outcome expected, outcome;
    struct ah_dev_options options = {.threads = 1, .host_threads = 1};
    tiny_init_in(&tiny, dtype, tiny_tied, clip, 2, micro_batches);
    struct ah_plan resident = exact_resident(&tiny);
    exact_train(&expected, &cpu, &tiny, &resident, &options);
    for (int i = 0; ah__policies[i]; i++) {
        const struct ah_policy *policy = ah__policies[i];
        struct ah_switches at;
        int passes = policy->accumulates ? micro_batches : 1; /* each placement in one pass, too */
        for (int index = 0; policy->placement && policy->placement(&at, TINY_LAYERS, index / 2); index++) {
            struct ah_sched_config config;
            if (index % 2 && passes == 1)
                continue;
            at.layers = TINY_LAYERS;
            at.passes = index % 2 ? passes : 1;
            ah__switches_clamp(&at);
            ah__sched_config_of(&config, &at, tiny.partition, policy);
            int least = ah__sched_min_buffers(&config);
            at.buffers = at.buffers > least ? at.buffers : least;
            struct ah_plan plan = {.switches = at};
            snprintf(plan.policy, sizeof plan.policy, "%s", policy->name);
            options.jitter_seed = (uint64_t)exact_draw(0, 3);
            exact_train(&outcome, &cpu, &tiny, &plan, &options);
            exact_same(&expected, &outcome, &plan, &options);
        }
    }
    tiny_fini(&tiny);
}

static void baselines_equal_resident(void **state)
{
    every_placement(AH_F32, 0, 1);
    every_placement(AH_F32, CLIP, 1);
    every_placement(AH_F32, CLIP, 3);
    every_placement(AH_BF16, CLIP, 1);
    every_placement(AH_BF16, 0, 3);
    every_placement(AH_BF16, CLIP, 4);
}

/* Parameters are cast around the blocks that use them, gradients rounded once; clipped on some steps. */
static void bf16_equals_resident(void **state)
{
    struct tiny tiny;
    tiny_init_in(&tiny, AH_BF16, tiny_tied, CLIP, 2, 1);
    exact_every_plan(&cpu, &tiny, "autohete", sample());
    tiny_fini(&tiny);
    tiny_init_in(&tiny, AH_BF16, tiny_untied, 0, 1, 4);
    exact_every_plan(&cpu, &tiny, "autohete-fifo", sample());
    tiny_fini(&tiny);
    tiny_init_graph(&tiny, model_graph_in(AH_BF16, model_llama, TINY_LAYERS, false), 0, 2);
    exact_every_plan(&cpu, &tiny, "autohete", sample());
    tiny_fini(&tiny);
}

/* States in bf16 are rounded by what does not depend on place, time or piece. */
static void bf16_states_equal_resident(void **state)
{
    struct tiny tiny;
    tiny_init_in(&tiny, AH_F32, tiny_tied, CLIP, 2, 1);
    tiny_states(&tiny, AH_F32, AH_BF16);
    exact_every_plan(&cpu, &tiny, "autohete", sample());
    tiny_fini(&tiny);
    for (int i = 0; i < 3; i++) {
        tiny_init_in(&tiny, AH_BF16, i == 1 ? tiny_tied : tiny_untied, i == 2 ? 0 : CLIP, 1, 2);
        tiny_states(&tiny, i == 0 ? AH_F32 : AH_BF16, i == 2 ? AH_F32 : AH_BF16);
        exact_every_plan(&cpu, &tiny, i == 2 ? "autohete-fifo" : "autohete", sample());
        tiny_fini(&tiny);
    }
}

/* Moments in 8 bits have groups that nothing cuts through. */
static void coded_moments_equal_resident(void **state)
{
    struct tiny tiny;
    tiny_init_in(&tiny, AH_F32, tiny_tied, CLIP, 2, 1);
    tiny_states(&tiny, AH_F32, AH_U8);
    exact_every_plan(&cpu, &tiny, "autohete", sample());
    tiny_fini(&tiny);
    for (int i = 0; i < 3; i++) {
        tiny_init_in(&tiny, AH_BF16, i == 1 ? tiny_tied : tiny_untied, i == 2 ? 0 : CLIP, 1, 2);
        tiny_states(&tiny, i == 0 ? AH_F32 : AH_BF16, AH_U8);
        exact_every_plan(&cpu, &tiny, i == 2 ? "autohete-fifo" : "autohete", sample());
        tiny_fini(&tiny);
    }
}

static void untied_equals_resident(void **state)
{
    every_plan(tiny_untied, "autohete", 0, sample());
}

/* Blocks of rmsnorm, rotary, grouped attention and silu_mul. */
static void llama_equals_resident(void **state)
{
    struct tiny tiny;
    tiny_init_graph(&tiny, model_graph(model_llama, TINY_LAYERS, false), 0, 1);
    exact_every_plan(&cpu, &tiny, "autohete", sample());
    tiny_fini(&tiny);
}

/* Evaluations and drains between steps leave no trace, and a stop in the middle goes on to the same bits. */
static void stretches_equal(int micro_batches)
{
    struct tiny tiny;
    struct outcome expected, outcome = {.steps = 0};
    struct ah_dev_options options = {.threads = 2, .jitter_seed = 5};
    tiny_init_micro(&tiny, tiny_tied, 0, 2, micro_batches);
    struct ah_plan resident = exact_resident(&tiny);
    exact_train(&expected, &cpu, &tiny, &resident, &options);
    struct ah_plan plan = {.switches = {.layers = TINY_LAYERS,
                                        .checkpoint = 2,
                                        .offload_params = 2,
                                        .offload_optimizer = 3,
                                        .buffers = 2,
                                        .prefetch_distance = 2,
                                        .embedding_on_host = true},
                           .policy = "autohete"};
    struct tiny_run context = {&tiny, &outcome};
    struct steps steps = tiny_steps(&context);
    struct ah_dev *dev;
    struct ah_run *run;
    double loss, again;
    int32_t ids[6 * 17], targets[6 * 17];
    tiny_batch(&(struct ah_batch){ids, targets, NULL}, 100, &tiny);
    assert_ok(ah_dev_open(&dev, "cpu", &options));
    assert_ok(ah__run_new(&run, tiny.partition, &plan, dev, tiny.clip));
    assert_ok(ah__run_init(run, 11));
    steps_train(run, &steps, 0, 2);
    assert_ok(ah__run_eval(run, &(struct ah_batch){ids, targets, NULL}, &loss));
    assert_ok(ah__run_eval(run, &(struct ah_batch){ids, targets, NULL}, &again));
    assert_true(loss == again);
    steps_train(run, &steps, 2, 1);
    steps_train(run, &steps, 3, TINY_STEPS - 3);
    outcome.states = tiny_hash_states(run, tiny.partition);
    exact_same(&expected, &outcome, &plan, &options);
    ah__run_free(run);
    ah_dev_close(dev);
    tiny_fini(&tiny);
}

static void stretches_equal_one_run(void **state)
{
    stretches_equal(1);
    stretches_equal(3);
}

static void init_depends_on_the_seed_alone(void **state)
{
    struct tiny tiny;
    struct ah_dev *dev;
    struct ah_run *run;
    uint64_t hash[3];
    struct ah_dev_options options = {.threads = 1};
    tiny_init(&tiny, tiny_untied, 0);
    struct ah_plan resident = exact_resident(&tiny), plans[] = {resident, resident, resident};
    plans[1].switches.offload_optimizer = 3;
    plans[1].switches.buffers = 4;
    snprintf(plans[1].policy, sizeof plans[1].policy, "autohete");
    for (int i = 0; i < 3; i++) {
        assert_ok(ah_dev_open(&dev, "cpu", &options));
        assert_ok(ah__run_new(&run, tiny.partition, &plans[i], dev, 0));
        assert_ok(ah__run_init(run, i == 2 ? 12 : 11));
        hash[i] = tiny_hash_states(run, tiny.partition);
        ah__run_free(run);
        ah_dev_close(dev);
    }
    assert_true(hash[0] == hash[1]);
    assert_true(hash[0] != hash[2]);
    tiny_fini(&tiny);
}

AH_TEST_CASES("run/exact", autohete_equals_resident, clipping_equals_resident, autohete_fifo_equals_resident,
              baselines_equal_resident, untied_equals_resident, llama_equals_resident, micro_batches_equal_resident,
              bf16_equals_resident, bf16_states_equal_resident, coded_moments_equal_resident, stretches_equal_one_run,
              init_depends_on_the_seed_alone)
