/* A warm start: the plan that comes out is no slower than one that can run here, and no other one matters. */
#include "test.h"

#include "plan/fit.h"
#include "plan/search.h"
#include "plan/world.h"

static struct ah_plan search(const struct world *world, const struct ah_budget *budget, const struct ah_plan *warm)
{
    struct ah_plan plan;
    struct ah_search_report report;
    const struct ah_search_options options = {.warm_start = warm};
    assert_ok(ah__plan_search_with(&plan, &report, &world->predictor, budget, &options));
    assert_true(ah__plan_within(&plan, budget));
    return plan;
}

static void a_warm_start_is_never_left_behind(void **state)
{
    int faster = 0, worlds = AH_TEST_SAMPLED ? 2 : ah_test_rounds(3, 6, 6);
    for (uint64_t seed = 1; seed <= (uint64_t)worlds; seed++) {
        struct world world;
        world_of_pieces(&world, 55 + seed);
        struct ah_budget budget = world_budget(&world);
        struct ah_plan alone = search(&world, &budget, NULL), known = world_in_pieces(&world, &alone), lost = known;
        faster += known.step_ns < alone.step_ns;
        lost.step_ns = lost.device_peak_bytes = 0; /* as is what it takes here */
        struct ah_plan told = search(&world, &budget, &lost);
        assert_true(told.step_ns <= known.step_ns && told.step_ns <= alone.step_ns + alone.step_ns / 100);
        struct ah_plan again = search(&world, &budget, &known);
        expect_same_plan(&told, &again);
        ah__predictor_fini(&world.predictor);
    }
    assert_true(faster > 0);
}

/* A tenth more memory of either kind, then a faster host: a search that starts from the plan before has none that is
 * slower, with more memory than it was, with the faster host than it is there. */
static void more_is_never_worse_from_a_warm_start(void **state)
{
    int worlds = ah_test_rounds(2, 4, 12);
    for (uint64_t seed = 0; seed < (uint64_t)worlds; seed++) {
        struct world world;
        world_init(&world, 800 + seed, 7 + (int)seed % 6, "autohete");
        struct ah_budget budget = world_budget(&world), more;
        budget.device_bytes += budget.device_bytes * fixture_draw(&world.fixture, 0, 20) / 10;
        struct ah_plan before = search(&world, &budget, NULL);
        budget.host_bytes = before.host_peak_bytes;
        before = search(&world, &budget, &before);
        more = budget;
        more.device_bytes += budget.device_bytes / 10;
        assert_true(search(&world, &more, &before).step_ns <= before.step_ns);
        more = budget;
        more.host_bytes += budget.host_bytes / 10;
        assert_true(search(&world, &more, &before).step_ns <= before.step_ns);
        for (int class = 0; class < AH_CLASS_COUNT; class ++)
            world.predictor.costs.ns[AH_ITEM_UPDATE_HOST][class] -=
                world.predictor.costs.ns[AH_ITEM_UPDATE_HOST][class] / 10;
        world.profile.costs = world.predictor.costs;
        struct ah_plan kept = before;
        assert_ok(ah__plan_predict(&kept, &world.predictor));
        assert_true(search(&world, &budget, &before).step_ns <= kept.step_ns);
        ah__predictor_fini(&world.predictor);
    }
}

static void what_cannot_run_changes_nothing(void **state)
{
    struct world world;
    world_of_pieces(&world, 50);
    struct ah_budget budget = world_budget(&world);
    struct ah_plan alone = search(&world, &budget, NULL), known = world_in_pieces(&world, &alone), plan;
    known.switches.buffers = 2 * world.fixture.partition.layers;
    known.switches.checkpoint = known.switches.selective = 0;
    ah__plan_measure(&known, &world.predictor);
    assert_false(ah__plan_within(&known, &budget));
    plan = search(&world, &budget, &known);
    expect_same_plan(&plan, &alone);
    const struct ah_policy *ours = world.predictor.policy;
    for (int i = 0; ah__policies[i]; i++) { /* pieces are ours alone, and published systems bring their own plans */
        struct ah_search_report report;
        struct ah_plan without;
        struct ah_budget any = {0};
        world.predictor.policy = ah__policies[i];
        int status = ah__plan_search(&without, &report, &world.predictor, &any);
        if (status != AH_OK || (ah__policies[i]->uses != AH_USE_PAPER && !ah__policy_is_placed(ah__policies[i])))
            continue;
        plan = search(&world, &any, &known);
        expect_same_plan(&plan, &without);
    }
    world.predictor.policy = ours;
    ah__predictor_fini(&world.predictor);
}

static void one_of_another_step_is_refused(void **state)
{
    struct world world;
    world_of_pieces(&world, 51);
    struct ah_budget budget = world_budget(&world);
    struct ah_plan known = search(&world, &budget, NULL), plan;
    known.signature++;
    const struct ah_search_options options = {.warm_start = &known};
    assert_fails(ah_plan_search(&plan, &world.fixture.partition, &world.profile, &budget, "autohete", &options),
                 AH_ESTALE, "warm start: signature: found");
    ah__predictor_fini(&world.predictor);
}

AH_TEST_CASES("plan/warm_start", a_warm_start_is_never_left_behind, more_is_never_worse_from_a_warm_start,
              what_cannot_run_changes_nothing, one_of_another_step_is_refused)
