/* The space of plans: rows of the table, the steps of recomputation, and what completes a plan. */
#include "test.h"

#include <limits.h>

#include "plan/fit.h"
#include "plan/space.h"
#include "plan/world.h"
#include "sched/switches.h"

static void levels_go_from_none_by_selective_to_all(void **state)
{
    static const int expected[2][7][2] = {{{0, 0}, {1, 0}, {2, 0}, {3, 0}},
                                          {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 2}, {2, 1}, {3, 0}}};
    for (int selective = 0; selective < 2; selective++) {
        struct world world;
        struct ah_policy policy = ah__policy_autohete;
        world_init(&world, 31, 3, "autohete");
        world.profile.costs.selective_ns[AH_CLASS_BLOCK] = 1; /* it pays */
        policy.without |= selective ? 0 : 1U << AH_SWITCH_selective;
        world.predictor.policy = &policy;
        int last = ah__space_levels(&world.predictor);
        assert_int_equal(last, selective ? 6 : 3);
        for (int level = 0; level <= last; level++) {
            struct ah_switches switches = {.layers = 3};
            ah__space_set_level(&switches, level, &world.predictor);
            assert_int_equal(switches.checkpoint, expected[selective][level][0]);
            assert_int_equal(switches.selective, expected[selective][level][1]);
        }
        ah__predictor_fini(&world.predictor);
    }
}

/* Any switches, within their rows' limits or not. */
static struct ah_plan draw_plan(struct world *world)
{
    struct fixture *f = &world->fixture;
    int layers = f->partition.layers;
    struct ah_plan plan = {.switches = {.layers = layers, .world_size = 1}};
    for (int i = 0; i < ah__row_count(&world->predictor); i++)
        ah__switch_set(&plan.switches, ah__rows[i].at, (int)fixture_draw(f, -2, layers + 2));
    if (fixture_draw(f, 0, 1))
        plan.switches.buffers = plan.switches.out_of_order = INT_MAX;
    return plan;
}

/* What is completed can run within the budget, has each switch within its row, and the peaks that it says. */
static void what_is_completed_can_run(void **state)
{
    int completed = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct world world;
        int64_t least, most;
        world_init(&world, 4000 + seed, 1 + (int)(seed % 12), seed % 4 ? "autohete" : "autohete-paper");
        smallest_and_largest(&least, &most, &world.fixture.partition);
        struct ah_budget budget = {.device_bytes = least + (most - least) / (1 + (int64_t)(seed % 5))};
        for (int i = 0; i < 20; i++) {
            struct ah_plan plan = draw_plan(&world), measured, settled;
            if (!ah__space_complete(&plan, i % 2 ? AH_COMPLETES_BUFFERS : AH_COMPLETES_RECOMPUTATION, &world.predictor,
                                    &budget))
                continue;
            completed++;
            measured = settled = plan;
            ah__plan_measure(&measured, &world.predictor);
            ah__space_settle(&settled.switches, &world.predictor);
            assert_true(ah__switches_valid(&plan.switches) && ah__plan_within(&measured, &budget));
            assert_int_equal(measured.device_peak_bytes, plan.device_peak_bytes);
            assert_int_equal(measured.host_peak_bytes, plan.host_peak_bytes);
            for (int row = 0; row < ah__row_count(&world.predictor); row++)
                assert_int_equal(ah__switch_get(&settled.switches, ah__rows[row].at),
                                 ah__switch_get(&plan.switches, ah__rows[row].at));
            assert_true(plan.switches.buffers >= ah__plan_min_buffers(&plan.switches, &world.predictor));
        }
        ah__predictor_fini(&world.predictor);
    }
    assert_true(completed > 1000);
}

/* Whether one level less does not fit with as many buffers; true too where there is no level less, or where the last
 * one is not enough. */
static bool is_least(const struct ah_plan *plan, const struct world *world, const struct ah_budget *budget,
                     int *between)
{
    struct ah_plan less = *plan;
    struct ah_switches *switches = &less.switches;
    int level = switches->checkpoint + switches->selective, last = ah__space_levels(&world->predictor);
    if (last > switches->layers && level == switches->layers)
        level += switches->checkpoint;
    if (level == 0 || level == last)
        return true;
    ++*between;
    switches->unsharded = switches->shadows = 0;
    ah__space_set_level(switches, level - 1, &world->predictor);
    ah__plan_measure(&less, &world->predictor);
    return !ah__plan_within(&less, budget);
}

static void recomputation_is_the_least(void **state)
{
    int between = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct world world;
        int64_t least, most;
        world_init(&world, 4500 + seed, 2 + (int)(seed % 10), "autohete");
        smallest_and_largest(&least, &most, &world.fixture.partition);
        struct ah_budget budget = {.device_bytes = least + (most - least) / 3};
        struct ah_plan plan = draw_plan(&world);
        if (ah__space_complete(&plan, AH_COMPLETES_RECOMPUTATION, &world.predictor, &budget))
            assert_true(is_least(&plan, &world, &budget, &between));
        ah__predictor_fini(&world.predictor);
    }
    assert_true(between > 0);
}

AH_TEST_CASES("plan/space", levels_go_from_none_by_selective_to_all, what_is_completed_can_run,
              recomputation_is_the_least)
