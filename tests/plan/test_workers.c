/* Ways down in threads: no number of them changes a plan, and what fails in one of them is said. */
#include "test.h"

#include <sched.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "dev/host/machine.h"
#include "plan/fit.h"
#include "plan/machines.h"
#include "plan/search.h"
#include "plan/trial.h"
#include "plan/world.h"

/* About a third of what it takes to keep everything on the device. */
static struct ah_budget budget_of(const struct world *world)
{
    int64_t device, host;
    struct ah_switches all = {.layers = world->fixture.partition.layers, .world_size = 1, .chunks = 1, .buffers = 1};
    ah__layout_bytes(&device, &host, &world->fixture.partition, &all, 0);
    return (struct ah_budget){.device_bytes = device / 3};
}

static void cores_set(cpu_set_t *before, int cores)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof *before, before), 0);
    set = *before;
    for (int core = 0, kept = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET((size_t)core, &set) && ++kept > cores)
            CPU_CLR((size_t)core, &set);
    assert_int_equal(sched_setaffinity(0, sizeof set, &set), 0);
    assert_int_equal(ah__host_cores(NULL), cores);
}

/* On one core there is one thread. */
static void threads_change_no_plan(void **state)
{
    uint64_t worlds = (uint64_t)ah_test_rounds(2, 6, 6);
    if (ah__host_cores(NULL) < 2)
        skip();
    for (uint64_t seed = 0; seed < worlds; seed++) {
        struct world world;
        struct ah_search_report report[2];
        struct ah_plan plan[2];
        char *text[2];
        cpu_set_t before;
        world_init(&world, 900 + seed, 6 + (int)seed, "autohete");
        struct ah_budget budget = budget_of(&world);
        struct ah_plan known;
        struct ah_budget less = {.device_bytes = budget.device_bytes - budget.device_bytes / 10};
        const struct ah_search_options told = {.warm_start = &known}, *options = seed % 2 ? &told : NULL;
        assert_ok(ah__plan_search(&known, &report[0], &world.predictor, &less));
        assert_ok(ah__plan_search_with(&plan[0], &report[0], &world.predictor, &budget, options));
        cores_set(&before, 1);
        assert_ok(ah__plan_search_with(&plan[1], &report[1], &world.predictor, &budget, options));
        assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
        for (int i = 0; i < 2; i++)
            assert_ok(ah_plan_json(&text[i], &plan[i]));
        assert_string_equal(text[0], text[1]);
        assert_int_equal(report[0].simulated, report[1].simulated);
        for (int i = 0; i < 2; i++)
            free(text[i]);
        ah__predictor_fini(&world.predictor);
    }
}

static void refused_memory_is_said(void **state)
{
    uint64_t times = (uint64_t)ah_test_rounds(5, 20, 20);
    struct world world;
    struct ah_search_report report;
    struct ah_plan plan;
    world_init(&world, 905, 10, "autohete");
    struct ah_budget budget = budget_of(&world);
    uint64_t before = ah__alloc_count();
    assert_ok(ah__plan_search(&plan, &report, &world.predictor, &budget));
    uint64_t needed = ah__alloc_count() - before, step = 1 + needed / times;
    for (uint64_t n = 1; n <= needed; n += step) {
        ah__alloc_fail_at(n);
        assert_fails(ah__plan_search(&plan, &report, &world.predictor, &budget), AH_ENOMEM, "out of host memory");
        ah__alloc_fail_at(0);
    }
    ah__predictor_fini(&world.predictor);
}

/* What one learned, another is told: nothing is simulated twice, and a time that is known is kept. */
static void what_is_known_is_not_simulated(void **state)
{
    struct world world;
    world_init(&world, 7, 6, "autohete");
    struct ah_budget budget = {0};
    struct ah_trials first = {.predictor = &world.predictor, .budget = &budget}, second = first, third = first;
    struct ah_plan plan = {.switches = {.layers = 6,
                                        .world_size = 1,
                                        .checkpoint = 1,
                                        .offload_params = 1,
                                        .offload_optimizer = 4,
                                        .chunks = 1,
                                        .buffers = 9,
                                        .prefetch_distance = 2,
                                        .embedding_on_host = true,
                                        .head_on_host = true}};
    bool below;
    int64_t step, again;
    assert_ok(ah__trial(&below, &step, &first, &plan, INT64_MAX));
    second.known = &first;
    assert_ok(ah__trial(&below, &again, &second, &plan, INT64_MAX));
    assert_true(below && again == step && second.simulated == 0);
    plan.switches.buffers++;
    assert_ok(ah__trial(&below, &step, &second, &plan, INT64_MAX));
    assert_true(below && second.simulated == 1);
    assert_ok(ah__trial(&below, &again, &third, &plan, step / 2)); /* knows only that it is longer than that */
    assert_true(!below && third.simulated == 1);
    int64_t items = second.items + third.items + first.items;
    assert_ok(ah__trials_add(&first, &second));
    assert_ok(ah__trials_add(&first, &third));
    assert_true(first.simulated == 3 && first.items == items);
    assert_ok(ah__trial(&below, &again, &first, &plan, INT64_MAX));
    assert_true(below && again == step && first.simulated == 3);
    assert_ok(ah__trials_add(&third, &first));
    assert_ok(ah__trial(&below, &again, &third, &plan, INT64_MAX));
    assert_true(below && again == step && third.simulated == 4);
    ah__trials_fini(&first);
    ah__trials_fini(&second);
    ah__trials_fini(&third);
    ah__predictor_fini(&world.predictor);
}

/* 22B on four A100: the least recomputation that fits lets so much travel that more of it is faster, but not all of
 * it, which is where the way down ends that tries nothing between. */
static void more_is_recomputed_where_less_then_travels(void **state)
{
    enum { RANKS = 4, TILES_MOST = 8 };
    struct ah_partition *partition =
        gpt_stepped("gpt-22b", 8, &(struct ah_step_options){.clips = true, .world_size = RANKS});
    struct ah_profile *profile = machine("a100-40g-x4", partition, &(struct ah_estimate_options){.world_size = RANKS});
    struct ah_predictor predictor;
    struct ah_search_report report;
    struct ah_plan chosen;
    int64_t step_ns, best_ns = INT64_MAX;
    assert_ok(ah__predictor_init(&predictor, partition, profile, "autohete"));
    struct ah_budget budget = {.device_bytes = (int64_t)39 << 30, .host_bytes = (int64_t)108 * 1000 * 1000 * 1000};
    struct ah_plan known = {.switches = {.layers = partition->layers,
                                         .world_size = RANKS,
                                         .checkpoint = 19,
                                         .selective = 10,
                                         .offload_params = 22,
                                         .offload_optimizer = 22,
                                         .offload_activations = 17,
                                         .buffers = 4,
                                         .prefetch_distance = 1,
                                         .shadows = 16},
                            .workspace_bytes = profile->workspace_bytes};
    for (bool fits = false; !fits; known.switches.shadows -= !fits) {
        assert_true(known.switches.shadows >= 0);
        ah__plan_measure(&known, &predictor);
        fits = ah__plan_within(&known, &budget);
    }
    for (known.switches.chunks = 1; known.switches.chunks <= TILES_MOST; known.switches.chunks++)
        for (known.switches.out_of_order = 0; known.switches.out_of_order <= known.switches.buffers;
             known.switches.out_of_order++) {
            assert_ok(ah__plan_step_ns(&step_ns, &known, &predictor, AH_PREDICT_ITERATIONS));
            best_ns = step_ns < best_ns ? step_ns : best_ns;
        }
    assert_ok(ah__plan_search(&chosen, &report, &predictor, &budget));
    if (chosen.step_ns > best_ns + best_ns / 200)
        fail_msg("found %lld ns, expected at most half a percent more than %lld", (long long)chosen.step_ns,
                 (long long)best_ns);
    ah__predictor_fini(&predictor);
    ah_profile_free(profile);
    ah_partition_free(partition);
}

AH_TEST_CASES("plan/workers", more_is_recomputed_where_less_then_travels, threads_change_no_plan,
              refused_memory_is_said, what_is_known_is_not_simulated)
