/* Published systems run a step of several micro-batches as they are published to. */
#include "test.h"

#include "plan/fit.h"
#include "plan/placed.h"
#include "plan/search.h"
#include "plan/world.h"

enum { MICRO_BATCHES = 8, LAYERS = 6 };

static void many_micro_batches(struct world *world, const char *policy)
{
    world_init(world, 7, LAYERS, policy);
    world->fixture.partition.step.micro_batches = MICRO_BATCHES;
    world->predictor.costs.micro_batches = MICRO_BATCHES;
}

static struct ah_plan first_placement(const char *policy, const char *fixed)
{
    struct world world;
    struct ah_plan plan;
    many_micro_batches(&world, policy);
    assert_ok(ah__plan_fixed(&world.predictor.fixed, fixed, LAYERS));
    assert_true(ah__placed_get(&plan, &world.predictor, 0));
    ah__predictor_fini(&world.predictor);
    return plan;
}

/* Each micro-batch has a pass of its own, unless the plan says otherwise. With one pass no sum stays. */
static void passes_are_the_systems(void **state)
{
    static const struct {
        const char *policy;
        int passes, sums;
    } systems[] = {{"resident", MICRO_BATCHES, LAYERS},   {"zero-offload", MICRO_BATCHES, 0},
                   {"patrickstar", MICRO_BATCHES, 0},     {"stronghold", MICRO_BATCHES, 1},
                   {"stronghold-best", MICRO_BATCHES, 1}, {"l2l", 1, 0}};
    for (size_t i = 0; i < AH_LENGTH(systems); i++) {
        struct ah_plan plan = first_placement(systems[i].policy, NULL);
        assert_int_equal(plan.switches.passes, systems[i].passes);
        assert_int_equal(plan.switches.device_sums, systems[i].sums);
        plan = first_placement(systems[i].policy, "passes=1");
        assert_int_equal(plan.switches.passes, 1);
        assert_int_equal(plan.switches.device_sums, 0);
    }
}

/* A longer step takes no more memory, but for sums, of which the first micro-batches have none. */
static void a_longer_step_fits(void **state)
{
    struct world world;
    struct ah_search_report report;
    struct ah_plan plan;
    many_micro_batches(&world, "resident");
    struct ah_plan in_passes = first_placement("resident", NULL), at_once = first_placement("resident", "passes=1");
    assert_true(in_passes.device_peak_bytes < at_once.device_peak_bytes);
    struct ah_budget budget = {.device_bytes = in_passes.device_peak_bytes};
    assert_ok(ah__plan_search(&plan, &report, &world.predictor, &budget));
    assert_int_equal(plan.switches.passes, MICRO_BATCHES);
    assert_int_equal(plan.device_peak_bytes, budget.device_bytes);
    budget.device_bytes--;
    assert_fails(ah__plan_search(&plan, &report, &world.predictor, &budget), AH_EBUDGET, "device memory");
    ah__predictor_fini(&world.predictor);
}

/* What a step copies between device and host besides tokens, results and, once, each group's parameters and
 * gradient. */
static void only_sums_travel(void **state)
{
    static const char *const policies[] = {"resident", "zero-offload"};
    for (int i = 0; i < 2; i++) {
        struct world world;
        struct ah_plan plan = first_placement(policies[i], NULL);
        struct ah_timeline *timeline;
        int count[AH_ITEM_COUNT] = {0};
        many_micro_batches(&world, policies[i]);
        assert_ok(ah__plan_timeline(&timeline, &plan, &world.predictor, 2));
        for (size_t s = 0; s < timeline->span_count; s++)
            count[timeline->spans[s].item.kind]++;
        int once = i * 2 * (LAYERS + 2), sums = i * 2 * (MICRO_BATCHES - 1) * LAYERS;
        assert_int_equal(count[AH_ITEM_FORWARD], 2 * MICRO_BATCHES * (LAYERS + 2));
        assert_int_equal(count[AH_ITEM_PREFETCH], once);
        assert_int_equal(count[AH_ITEM_OFFLOAD], once);
        assert_int_equal(count[AH_ITEM_REFETCH], 0);
        assert_int_equal(count[AH_ITEM_SUMS_IN], sums);
        assert_int_equal(count[AH_ITEM_SUMS_OUT], sums);
        ah_timeline_free(timeline);
        ah__predictor_fini(&world.predictor);
    }
}

/* Without passes there are no sums between them. */
static void sums_need_passes(void **state)
{
    struct world world;
    struct ah_plan plan;
    struct ah_budget none = {0};
    many_micro_batches(&world, "autohete");
    assert_fails(
        ah_plan_parse(&plan, "c=0,p=0,o=0,sums=2", &world.fixture.partition, &world.profile, &none, "autohete"),
        AH_EINPUT, "sums=2: found one pass");
    assert_ok(ah_plan_parse(&plan, "c=0,p=0,o=0,sums=2,passes=4", &world.fixture.partition, &world.profile, &none,
                            "autohete"));
    assert_int_equal(plan.switches.device_sums, 2);
    assert_ok(ah_plan_parse(&plan, "resident", &world.fixture.partition, &world.profile, &none, "resident"));
    assert_true(plan.switches.passes == MICRO_BATCHES && plan.switches.device_sums == LAYERS);
    ah__predictor_fini(&world.predictor);
}

AH_TEST_CASES("plan/placed", passes_are_the_systems, a_longer_step_fits, only_sums_travel, sums_need_passes)
