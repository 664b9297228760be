/* Plans that a search is told: what it gives is no slower than those that can run here, and no other for the rest. */
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/fit.h"
#include "plan/search.h"
#include "plan/world.h"

static struct ah_plan search_reported(struct ah_search_report *report, const struct world *world,
                                      const struct ah_budget *budget, const struct ah_plan *known, int count)
{
    struct ah_plan plan;
    const struct ah_search_options options = {.known = known, .known_count = count};
    assert_ok(ah__plan_search_with(&plan, report, &world->predictor, budget, &options));
    assert_true(ah__plan_within(&plan, budget));
    return plan;
}

static struct ah_plan search_many(const struct world *world, const struct ah_budget *budget,
                                  const struct ah_plan *known, int count)
{
    struct ah_search_report report;
    return search_reported(&report, world, budget, known, count);
}

static struct ah_plan search(const struct world *world, const struct ah_budget *budget, const struct ah_plan *known)
{
    return search_many(world, budget, known, known != NULL);
}

/* More plans than a search keeps, the fastest of them last. */
static void expect_the_fastest_of_many(const struct world *world, const struct ah_budget *budget,
                                       const struct ah_plan *slow, const struct ah_plan *fast)
{
    enum { MANY = 40 };
    struct ah_plan known[MANY];
    for (int i = 0; i < MANY; i++) {
        known[i] = i < MANY - 1 ? *slow : *fast;
        if (i < MANY - 1)
            known[i].switches.out_of_order = i % (slow->switches.buffers + 1);
    }
    struct ah_plan plan = search_many(world, budget, known, MANY);
    assert_true(plan.step_ns <= fast->step_ns);
}

static void a_known_plan_wins(void **state)
{
    (void)state;
    enum { WORLDS = AH_TEST_SAMPLED ? 2 : 6 };
    int faster = 0;
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
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
        if (known.step_ns < alone.step_ns)
            expect_the_fastest_of_many(&world, &budget, &alone, &known);
        ah__predictor_fini(&world.predictor);
    }
    assert_true(faster > 0);
}

/* A tenth more memory of either kind, then a faster host: whoever knows the plan from before has none that is slower,
 * with more memory than it was, with the faster host than it is there. */
static void more_is_never_worse_than_what_is_known(void **state)
{
    (void)state;
    int missed = 0, worlds = ah_test_rounds(2, 4, 12);
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
        missed += search(&world, &more, NULL).step_ns > before.step_ns;
        more = budget;
        more.host_bytes += budget.host_bytes / 10;
        assert_true(search(&world, &more, &before).step_ns <= before.step_ns);
        missed += search(&world, &more, NULL).step_ns > before.step_ns;
        for (int class = 0; class < AH_CLASS_COUNT; class ++)
            world.predictor.costs.ns[AH_ITEM_UPDATE_HOST][class] -=
                world.predictor.costs.ns[AH_ITEM_UPDATE_HOST][class] / 10;
        world.profile.costs = world.predictor.costs;
        struct ah_plan kept = before;
        assert_ok(ah__plan_predict(&kept, &world.predictor));
        assert_true(search(&world, &budget, &before).step_ns <= kept.step_ns);
        missed += search(&world, &budget, NULL).step_ns > kept.step_ns;
        ah__predictor_fini(&world.predictor);
    }
    assert_true(AH_TEST_SAMPLED || missed > 0); /* else this would hold without knowing anything */
}

/* A plan that took a little less where it was made makes the search go further; one that took much less, as on another
 * kind of machine, does not, nor one of which nothing is said. */
static void what_took_less_elsewhere_is_searched_for(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, 801, 8, "autohete");
    struct ah_budget budget = world_budget(&world);
    struct ah_search_report silent, same, little, much;
    struct ah_plan known = search(&world, &budget, NULL), found;
    int64_t step_ns = known.step_ns;
    assert_true(step_ns > known.bound_ns + known.bound_ns / 1000); /* there might be more to gain */
    known.step_ns = 0;
    found = search_reported(&silent, &world, &budget, &known, 1);
    known.step_ns = found.step_ns;
    search_reported(&same, &world, &budget, &known, 1);
    known.step_ns = found.step_ns - found.step_ns / 100;
    assert_true(search_reported(&little, &world, &budget, &known, 1).step_ns <= found.step_ns);
    known.step_ns = found.step_ns - found.step_ns / 10;
    search_reported(&much, &world, &budget, &known, 1);
    assert_true(little.simulated > silent.simulated);
    assert_int_equal(same.simulated, silent.simulated);
    assert_int_equal(much.simulated, silent.simulated);
    ah__predictor_fini(&world.predictor);
}

static void what_cannot_run_changes_nothing(void **state)
{
    (void)state;
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
        if (status != AH_OK || (!ah__policies[i]->plain && !ah__policy_is_placed(ah__policies[i])))
            continue;
        plan = search(&world, &any, &known);
        expect_same_plan(&plan, &without);
    }
    world.predictor.policy = ours;
    ah__predictor_fini(&world.predictor);
}

static void a_known_plan_of_another_step_is_refused(void **state)
{
    (void)state;
    struct world world;
    world_of_pieces(&world, 51);
    struct ah_budget budget = world_budget(&world);
    struct ah_plan known = search(&world, &budget, NULL), plan;
    known.signature++;
    const struct ah_search_options options = {.known = &known, .known_count = 1};
    assert_fails(ah_plan_search_with(&plan, &world.fixture.partition, &world.profile, &budget, "autohete", &options),
                 AH_ESTALE, "known plan 1: signature: found");
    ah__predictor_fini(&world.predictor);
}

static char note_line[1024];

static void note(const char *line, void *context)
{
    ++*(int *)context;
    snprintf(note_line, sizeof note_line, "%s", line);
}

static void files_are_read_or_refused(void **state)
{
    (void)state;
    struct world world;
    struct ah_plan read[2];
    char path[512], two[1100];
    int count, noted = 0;
    const struct ah_note told = {note, &noted};
    world_of_pieces(&world, 53);
    struct ah_budget budget = world_budget(&world), less = {.device_bytes = budget.device_bytes / 2};
    struct ah_plan plan = search(&world, &budget, NULL);
    const struct ah_partition *partition = &world.fixture.partition;
    snprintf(path, sizeof path, "%s/known.json", ah_test_folder());
    snprintf(two, sizeof two, "%s,%s", path, path);
    assert_ok(ah_plan_save(&plan, path));
    assert_ok(ah_plans_load(read, &count, 2, two, partition, &world.profile, &budget, "autohete", &told));
    assert_true(count == 2 && noted == 0);
    expect_same_plan(&read[1], &plan);
    assert_ok(ah_plans_load(read, &count, 2, two, partition, &world.profile, &less, "autohete", &told));
    assert_true(count == 0 && noted == 2 && strstr(note_line, "known.json is left out: device memory: found"));
    assert_ok(ah_plans_load(read, &count, 2, path, partition, &world.profile, &budget, "zero-offload", NULL));
    assert_int_equal(count, 0);
    assert_fails(ah_plans_load(read, &count, 1, two, partition, &world.profile, &budget, "autohete", NULL), AH_EINPUT,
                 "expected at most 1");
    assert_fails(ah_plans_load(read, &count, 1, ",", partition, &world.profile, &budget, "autohete", NULL), AH_EINPUT,
                 "found ',', expected files of plans");
    plan.signature++;
    assert_ok(ah_plan_save(&plan, path));
    assert_fails(ah_plans_load(read, &count, 1, path, partition, &world.profile, &budget, "autohete", NULL), AH_ESTALE,
                 "known.json: signature: found");
    unlink(path);
    assert_fails(ah_plans_load(read, &count, 1, path, partition, &world.profile, &budget, "autohete", NULL), AH_EINPUT,
                 "known.json: cannot open");
    ah__predictor_fini(&world.predictor);
}

AH_TEST_SUITE("plan/known", cmocka_unit_test(a_known_plan_wins),
              cmocka_unit_test(more_is_never_worse_than_what_is_known),
              cmocka_unit_test(what_took_less_elsewhere_is_searched_for),
              cmocka_unit_test(what_cannot_run_changes_nothing),
              cmocka_unit_test(a_known_plan_of_another_step_is_refused), cmocka_unit_test(files_are_read_or_refused))
