/* A step in rounds over the model has the bits of one that runs block by block: under random plans, with random delays
 * on all lanes, for every kind of state and beside frozen parameters. */
#include "run/exact.h"

#include "plan/config.h"

enum { MICRO_BATCHES = 4, PLANS = 6 };

static int cpu_open(struct ah_dev **out, const struct ah_dev_options *options)
{
    return ah_dev_open(out, "cpu", options);
}

static const struct exact_device cpu = {.open = cpu_open, .is_cpu = true};

static void one_plan(struct tiny *tiny, const struct outcome *expected, int passes)
{
    static const int64_t links[] = {0, 50000000, 400000000};
    int layers = tiny->partition->layers;
    struct outcome outcome;
    struct ah_plan plan = {.switches.layers = layers, .policy = "autohete"};
    exact_switches(&plan.switches, 0, tiny->partition, ah__policy_find(plan.policy));
    plan.switches.passes = passes;
    struct ah_sched_config config;
    ah__sched_config_of(&config, &plan.switches, tiny->partition, ah__policy_find(plan.policy));
    int least = ah__sched_min_buffers(&config); /* of several passes, which may be more */
    plan.switches.buffers = plan.switches.buffers > least ? plan.switches.buffers : least;
    struct ah_dev_options options = {.threads = exact_draw(1, 3),
                                     .host_threads = exact_draw(1, 3),
                                     .link_bytes_per_s = links[exact_draw(0, 2)],
                                     .jitter_seed = (uint64_t)exact_draw(0, 3)};
    exact_train(&outcome, &cpu, tiny, &plan, &options);
    exact_same(expected, &outcome, &plan, &options);
}

static void every_number_of_rounds(struct tiny *tiny)
{
    struct ah_dev_options options = {.threads = 1, .host_threads = 1};
    struct ah_plan resident = exact_resident(tiny);
    struct outcome expected;
    exact_train(&expected, &cpu, tiny, &resident, &options);
    assert_true(expected.loss[TINY_STEPS - 1] > 0);
    int plans = ah_test_rounds(PLANS, 2 * PLANS, 12 * PLANS);
    for (int passes = 2; passes <= MICRO_BATCHES; passes++)
        for (int i = 0; i < plans; i++) {
            exact_draws_begin(passes, i);
            one_plan(tiny, &expected, passes);
        }
    tiny_fini(tiny);
}

static void rounds_equal_one(void **state)
{
    struct tiny tiny;
    for (int clips = 0; clips < 2; clips++)
        for (int untied = 0; untied < 2; untied++) {
            tiny_init_micro(&tiny, untied ? tiny_untied : tiny_tied, clips ? 1.45 : 0, 1, MICRO_BATCHES);
            every_number_of_rounds(&tiny);
        }
}

static void rounds_equal_one_in_bf16(void **state)
{
    struct tiny tiny;
    for (int clips = 0; clips < 2; clips++)
        for (int untied = 0; untied < 2; untied++) {
            tiny_init_in(&tiny, AH_BF16, untied ? tiny_untied : tiny_tied, clips ? 1.45 : 0, 1, MICRO_BATCHES);
            every_number_of_rounds(&tiny);
        }
}

/* Moments and masters in other types; blocks of which little is trained, or nothing. */
static void rounds_equal_one_for_all_states(void **state)
{
    struct tiny tiny;
    const struct ah_step_options coded = {.micro_batches = MICRO_BATCHES, .moments = AH_U8};
    const struct ah_step_options narrow = {
        .micro_batches = MICRO_BATCHES, .master = AH_BF16, .moments = AH_BF16, .clips = true};
    for (int i = 0; i < 2; i++) {
        tiny_init_in(&tiny, i ? AH_BF16 : AH_F32, i ? tiny_untied : tiny_tied, i ? 1.45 : 0, 1, MICRO_BATCHES);
        ah_partition_free(tiny.partition);
        assert_ok(ah_partition_new(&tiny.partition, tiny.graph, i ? &narrow : &coded));
        every_number_of_rounds(&tiny);
    }
}

static void rounds_equal_one_beside_frozen_parameters(void **state)
{
    const struct ah_tuning lora = {.lora_rank = 4, .lora_alpha = 6}, head = {.freeze = "embedding,blocks"};
    const struct ah_tuning codes = {.lora_rank = 2, .lora_alpha = 2, .frozen = "int8"};
    const struct ah_tuning lowest = {.freeze = "embedding,blocks:1-2"};
    const struct ah_tuning *const tunings[] = {&lora, &codes, &head, &lowest};
    struct tiny tiny;
    for (size_t i = 0; i < AH_LENGTH(tunings); i++) {
        tiny_init_tuned(&tiny, i == 1 ? AH_F32 : AH_BF16, tiny_untied, 0, 1, MICRO_BATCHES, tunings[i]);
        every_number_of_rounds(&tiny);
    }
}

AH_TEST_CASES("run/rounds", rounds_equal_one, rounds_equal_one_in_bf16, rounds_equal_one_for_all_states,
              rounds_equal_one_beside_frozen_parameters)
