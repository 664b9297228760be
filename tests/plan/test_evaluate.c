/* What policies make of a model on a machine: the formulas, and what a refusal promises. */
#include "test.h"

#include <string.h>

#include "fixture.h"
#include "plan/search.h"

enum { LAYERS = 7, UNIT_NS = 1000 };

struct machine {
    struct fixture fixture;
    struct ah_profile profile;
};

/* Blocks of a round size; nothing slows anything. */
static void machine_init(struct machine *machine, uint64_t seed)
{
    fixture_init(&machine->fixture, seed);
    struct ah_partition *partition = &machine->fixture.partition;
    partition->layers = LAYERS;
    partition->group_count = LAYERS + 2;
    fixture_groups(&machine->fixture);
    partition->flops_forward = 3e9;
    partition->flops_backward = 6e9;
    partition->code[AH_CLASS_BLOCK].program[AH_PROGRAM_RECOMPUTE].flops = 4e8;
    machine->profile = (struct ah_profile){.partition_signature = partition->signature};
    struct ah_costs *costs = &machine->profile.costs;
    static const struct {
        enum ah_item_kind kind;
        int64_t ns;
    } times[] = {
        {AH_ITEM_FORWARD, 10 * UNIT_NS},
        {AH_ITEM_BACKWARD, 20 * UNIT_NS},
        {AH_ITEM_UPDATE_DEVICE, UNIT_NS},
        {AH_ITEM_UPDATE_HOST, 12 * UNIT_NS},
        {AH_ITEM_PREFETCH, 8 * UNIT_NS},
        {AH_ITEM_REFETCH, 8 * UNIT_NS},
        {AH_ITEM_OFFLOAD, 8 * UNIT_NS},
        {AH_ITEM_INPUT, 1},
        {AH_ITEM_RESULT, 1},
    };
    costs->layers = LAYERS;
    for (int class = 0; class < AH_CLASS_COUNT; class ++) {
        for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
            costs->ns[times[i].kind][class] = times[i].ns;
        costs->recompute_ns[class] = 9 * UNIT_NS;
    }
    for (int a = 0; a < AH_LANE_COUNT; a++)
        for (int b = 0; b < AH_LANE_COUNT; b++)
            costs->lanes.slowdown[a][b] = 1;
}

static struct ah_evaluation evaluate(const struct machine *machine, const struct ah_budget *budget, const char *policy)
{
    struct ah_evaluation evaluation;
    assert_ok(ah_plan_evaluate(&evaluation, &machine->fixture.partition, &machine->profile, budget, policy, NULL));
    assert_string_equal(evaluation.policy, policy);
    assert_string_equal(evaluation.plan.policy, policy);
    return evaluation;
}

static bool near(double a, double b)
{
    return a - b < 1e-9 * b && b - a < 1e-9 * b;
}

static void speeds_follow_their_formulas(void **state)
{
    bool checkpointed = false;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct machine machine;
        struct ah_budget none = {0};
        machine_init(&machine, seed);
        const struct ah_partition *partition = &machine.fixture.partition;
        int64_t needed = evaluate(&machine, &(struct ah_budget){.device_bytes = 1}, "autohete").over_bytes + 1;
        struct ah_budget tight = {.device_bytes = needed + needed / 10};
        struct ah_evaluation found[] = {evaluate(&machine, &none, "resident"), evaluate(&machine, &tight, "autohete"),
                                        evaluate(&machine, &tight, "l2l")};
        for (size_t i = 0; i < sizeof found / sizeof found[0]; i++) {
            double seconds = (double)found[i].plan.step_ns / 1e9;
            if (!found[i].fits)
                continue;
            assert_string_equal(found[i].reason, "");
            assert_int_equal(found[i].over_bytes, 0);
            assert_true(near(found[i].tflops_model, 9e9 / seconds / 1e12));
            assert_true(
                near(found[i].tflops_hardware, (9e9 + found[i].plan.switches.checkpoint * 4e8) / seconds / 1e12));
            assert_true(near(found[i].tokens_per_s, (double)(partition->batch * partition->seq) / seconds));
            checkpointed |= found[i].plan.switches.checkpoint > 0;
        }
        assert_true(found[0].fits && found[1].fits);
    }
    assert_true(checkpointed);
}

/* resident: the compute lane does all there is to do, so its busy time is known. */
static void lanes_are_busy_for_what_they_do(void **state)
{
    struct machine machine;
    struct ah_budget none = {0};
    machine_init(&machine, 3);
    struct ah_evaluation found = evaluate(&machine, &none, "resident");
    double compute = (LAYERS + 2) * (10 + 20 + 1) * (double)UNIT_NS, busy = found.lane_busy[AH_LANE_COMPUTE];
    assert_true(busy * (double)found.plan.step_ns > 0.999 * compute);
    assert_true(busy * (double)found.plan.step_ns < 1.001 * compute);
    assert_true(found.lane_busy[AH_LANE_HOST] == 0);
    found = evaluate(&machine, &none, "zero-offload");
    for (int lane = 0; lane < AH_LANE_COUNT; lane++)
        assert_true(found.lane_busy[lane] >= 0 && found.lane_busy[lane] <= 1);
    double host = (LAYERS + 2) * 12 * (double)UNIT_NS;
    assert_true(found.lane_busy[AH_LANE_HOST] * (double)found.plan.step_ns > 0.999 * host);
    assert_true(found.lane_busy[AH_LANE_HOST] * (double)found.plan.step_ns < 1.001 * host);
}

/* What is said to be missing is exactly what is missing: with it the policy fits, with one byte less it does not. */
static void what_is_missing_is_enough(void **state)
{
    for (const char *const *policy = ah_policy_names(); *policy; policy++) {
        struct machine machine;
        char words[96], size[32];
        machine_init(&machine, 11);
        struct ah_budget budget = {.device_bytes = 1 << 20};
        struct ah_evaluation found = evaluate(&machine, &budget, *policy);
        assert_false(found.fits);
        snprintf(words, sizeof words, "device memory: %s too much",
                 ah_size_format(size, sizeof size, found.over_bytes));
        assert_string_equal(found.reason, words);
        assert_int_equal(found.plan.device_peak_bytes, budget.device_bytes + found.over_bytes);
        assert_true(found.tflops_model == 0 && found.tokens_per_s == 0);
        budget.device_bytes += found.over_bytes - 1;
        assert_false(evaluate(&machine, &budget, *policy).fits);
        budget.device_bytes++;
        assert_true(evaluate(&machine, &budget, *policy).fits);
    }
}

static void host_memory_runs_out_by_name(void **state)
{
    struct machine machine;
    machine_init(&machine, 12);
    struct ah_budget budget = {.host_bytes = 1 << 20};
    struct ah_evaluation found = evaluate(&machine, &budget, "zero-offload");
    assert_false(found.fits);
    assert_int_equal(strncmp(found.reason, "host memory: ", 13), 0);
    budget.host_bytes += found.over_bytes - 1;
    assert_false(evaluate(&machine, &budget, "zero-offload").fits);
    budget.host_bytes++;
    assert_true(evaluate(&machine, &budget, "zero-offload").fits);
    budget = (struct ah_budget){.device_bytes = 4096, .host_bytes = 4096};
    found = evaluate(&machine, &budget, "zero-offload");
    assert_non_null(strstr(found.reason, "device memory: "));
    assert_non_null(strstr(found.reason, ", host memory: "));
}

/* Device memory for the states of all blocks but a few, host memory for theirs but one byte: the host is what lacks
 * less. */
static void the_lesser_want_is_named(void **state)
{
    struct machine machine;
    machine_init(&machine, 13);
    struct ah_budget budget = {.device_bytes = 1};
    struct ah_evaluation least = evaluate(&machine, &budget, "autohete");
    budget =
        (struct ah_budget){.device_bytes = least.plan.device_peak_bytes, .host_bytes = least.plan.host_peak_bytes - 1};
    struct ah_evaluation found = evaluate(&machine, &budget, "autohete");
    assert_false(found.fits);
    assert_int_equal(strncmp(found.reason, "host memory: 1 B too much, or device memory: ", 45), 0);
    assert_int_equal(found.over_bytes, 1);
}

static void several_ranks_count_all_tokens(void **state)
{
    struct machine machine;
    struct ah_budget none = {0};
    machine_init(&machine, 14);
    const struct ah_partition *partition = &machine.fixture.partition;
    machine.profile.world_size = 4;
    struct ah_evaluation found = evaluate(&machine, &none, "autohete");
    double seconds = (double)found.plan.step_ns / 1e9;
    assert_int_equal(found.plan.switches.world_size, 4);
    assert_true(near(found.tokens_per_s, 4 * (double)(partition->batch * partition->seq) / seconds));
    assert_true(near(found.tflops_model, 9e9 / seconds / 1e12));
}

static void policies_have_names_and_descriptions(void **state)
{
    struct machine machine;
    struct ah_budget none = {0};
    struct ah_evaluation found = {.over_bytes = 42};
    machine_init(&machine, 15);
    int count = 0;
    for (const char *const *policy = ah_policy_names(); *policy; policy++, count++) {
        assert_ptr_equal(ah__policy_find(*policy), ah__policies[count]);
        assert_true(strlen(ah_policy_description(*policy)) > 10);
        assert_true(evaluate(&machine, &none, *policy).fits);
    }
    assert_null(ah__policies[count]);
    assert_true(ah_policy_uses("autohete", "passes") && ah_policy_uses("autohete-paper", "shadows"));
    assert_true(ah_policy_uses("resident", "passes") && !ah_policy_uses("resident", "staged"));
    assert_false(ah_policy_uses("l2l", "passes") || ah_policy_uses("autohete-paper", "passes"));
    assert_false(ah_policy_uses("best", "passes") || ah_policy_uses("autohete", "passe"));
    assert_null(ah_policy_description("best"));
    assert_fails(ah_plan_evaluate(&found, &machine.fixture.partition, &machine.profile, &none, "best", NULL), AH_EINPUT,
                 "--policy: found 'best'");
    assert_int_equal(found.over_bytes, 42);
}

AH_TEST_CASES("plan/evaluate", speeds_follow_their_formulas, lanes_are_busy_for_what_they_do, what_is_missing_is_enough,
              host_memory_runs_out_by_name, the_lesser_want_is_named, several_ranks_count_all_tokens,
              policies_have_names_and_descriptions)
