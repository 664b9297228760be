/* Plans that keep blocks on disk, on made-up machines with a drive. */
#include "test.h"

#include "plan/config.h"
#include "plan/fit.h"
#include "plan/search.h"
#include "plan/space.h"
#include "plan/world.h"

/* A world with a drive that is faster or slower than the link, and nothing that wastes space. */
static void disk_world_init(struct world *world, uint64_t seed, int layers)
{
    world_init(world, seed, layers, "autohete");
    ah__predictor_fini(&world->predictor);
    int64_t rate = fixture_draw(&world->fixture, 1, 2000) * 1000000;
    world->profile.drive = (struct ah_profile_drive){.read_bytes_per_s = rate,
                                                     .write_bytes_per_s = rate / 2 + 1,
                                                     .latency_ns = fixture_draw(&world->fixture, 0, 50)};
    assert_ok(ah__predictor_init(&world->predictor, &world->fixture.partition, &world->profile, "autohete"));
}

/* A random plan with as many buffers as it needs, if it fits the host budget; else false. */
static bool draw_plan(struct ah_plan *plan, struct world *world, const struct ah_budget *budget)
{
    struct fixture *f = &world->fixture;
    struct ah_switches_draw how = {.draw = fixture_draw_with, .context = f, .rarely = 1};
    how.without = 1U << AH_SWITCH_shadows | 1U << AH_SWITCH_unsharded | 1U << AH_SWITCH_share_embedding_head |
                  (ah__predictor_stages(&world->predictor) ? 0 : 1U << AH_SWITCH_staged);
    *plan = fixture_plan(f);
    ah__switches_draw(&plan->switches, &how);
    int least = ah__plan_min_buffers(&plan->switches, &world->predictor);
    plan->switches.buffers = plan->switches.buffers < least ? least : plan->switches.buffers;
    ah__plan_measure(plan, &world->predictor);
    return ah__plan_within(plan, budget);
}

static void no_schedule_with_a_drive_beats_the_bound(void **state)
{
    enum { WORLDS = AH_TEST_SAMPLED ? 20 : 100, DRAWS = 10 };
    const struct ah_budget all = {0};
    int busiest = 0, on_disk = 0;
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        struct world world;
        disk_world_init(&world, seed, 1 + (int)seed % 12);
        for (int i = 0; i < DRAWS; i++) {
            struct ah_plan plan;
            int64_t step;
            assert_true(draw_plan(&plan, &world, &all));
            ah__plan_bound(&plan, &world.predictor);
            assert_ok(ah__plan_step_ns(&step, &plan, &world.predictor, AH_PREDICT_ITERATIONS));
            if (plan.bound_ns > step)
                fail_msg("world %d, draw %d: a step of %lld ns, bound %lld", (int)seed, i, (long long)step,
                         (long long)plan.bound_ns);
            on_disk += plan.switches.disk_blocks > 0;
            busiest += plan.bound_lane == AH_LANE_DISK && plan.bound_ns == plan.bound_lane_ns;
        }
        ah__predictor_fini(&world.predictor);
    }
    assert_true(on_disk > WORLDS && busiest > WORLDS / 4);
}

/* The least and the most host memory of any plan of a world, and the least device memory. */
static void host_limits(int64_t *device, int64_t *least, int64_t *most, const struct world *world)
{
    struct ah_plan plan = {.switches = ah__predictor_lowest(&world->predictor)};
    struct ah_switches *s = &plan.switches;
    s->offload_optimizer = s->offload_params = s->checkpoint = s->layers;
    s->embedding_on_host = s->head_on_host = true;
    s->buffers = ah__plan_min_buffers(s, &world->predictor);
    ah__plan_measure(&plan, &world->predictor);
    *device = plan.device_peak_bytes;
    *most = plan.host_peak_bytes;
    s->disk_blocks = s->layers;
    s->chunks = AH_CHUNKS_MOST;
    ah__plan_measure(&plan, &world->predictor);
    *least = plan.host_peak_bytes;
}

/* What host memory cannot hold goes to the disk, as little as possible; and no random plan is much better. */
static void the_disk_takes_what_does_not_fit(void **state)
{
    enum { WORLDS = AH_TEST_SAMPLED ? 3 : 12, DRAWS = 150 };
    int spilled = 0;
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        struct world world;
        struct ah_search_report report;
        struct ah_plan chosen, drawn;
        struct ah_budget budget = {0};
        int64_t least, most, step;
        disk_world_init(&world, 200 + seed, 8);
        host_limits(&budget.device_bytes, &least, &most, &world);
        if (least >= most)
            continue; /* blocks as small as the disk's buffers */
        budget.device_bytes += budget.device_bytes / 3;
        budget.host_bytes = least + (most - least) * (int64_t)(seed % 4) / 4;
        assert_ok(ah__plan_search(&chosen, &report, &world.predictor, &budget));
        assert_true(ah__plan_within(&chosen, &budget));
        spilled += chosen.switches.disk_blocks > 0;
        if (chosen.switches.disk_blocks > 1) {
            struct ah_plan fewer = chosen;
            fewer.switches.disk_blocks--;
            fewer.switches.shadows = 0;
            ah__plan_measure(&fewer, &world.predictor);
            assert_true(fewer.host_peak_bytes > budget.host_bytes);
        }
        for (int i = 0; i < DRAWS; i++) {
            if (!draw_plan(&drawn, &world, &budget))
                continue;
            assert_ok(ah__plan_step_ns(&step, &drawn, &world.predictor, AH_PREDICT_ITERATIONS));
            if (chosen.step_ns > step + step / 100)
                fail_msg("world %d, draw %d: %lld ns, chosen: %lld", (int)seed, i, (long long)step,
                         (long long)chosen.step_ns);
        }
        budget.disk_bytes = chosen.disk_peak_bytes > 0 ? chosen.disk_peak_bytes / 2 : 1;
        int status = ah__plan_search(&chosen, &report, &world.predictor, &budget);
        assert_true(status == AH_EBUDGET || chosen.disk_peak_bytes <= budget.disk_bytes);
        ah__predictor_fini(&world.predictor);
    }
    assert_true(spilled > 0);
}

/* The space that a refusal names is enough, and a byte less is refused. */
static void the_space_that_is_named_is_enough(void **state)
{
    enum { WORLDS = AH_TEST_SAMPLED ? 20 : 60 };
    int refused = 0;
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        struct world world;
        struct ah_search_report report;
        struct ah_plan plan;
        struct ah_budget budget = {.disk_bytes = 1};
        int64_t least, most;
        bool fits;
        disk_world_init(&world, 300 + seed, 2 + (int)seed % 7);
        host_limits(&budget.device_bytes, &least, &most, &world);
        budget.device_bytes += budget.device_bytes * (int64_t)(seed % 3) / 6;
        budget.host_bytes = least + (most - least) * (int64_t)(seed % 4) / 4;
        assert_ok(ah__plan_any_fits(&fits, &world.predictor, &budget));
        if (least < most && !fits) {
            assert_int_equal(ah__plan_search(&plan, &report, &world.predictor, &budget), AH_EBUDGET);
            assert_true(report.least_device_over_bytes == 0 && report.least_host_over_bytes == 0);
            budget.disk_bytes = 1 + report.least_disk_over_bytes;
            assert_ok(ah__plan_any_fits(&fits, &world.predictor, &budget));
            assert_true(fits);
            budget.disk_bytes--;
            assert_ok(ah__plan_any_fits(&fits, &world.predictor, &budget));
            assert_false(fits);
            refused++;
        }
        ah__predictor_fini(&world.predictor);
    }
    assert_true(refused > WORLDS / 4);
}

/* Without a drive in its profile, or by a policy that knows none, nothing is planned there. */
static void without_a_drive_nothing_is_on_disk(void **state)
{
    struct world world;
    struct ah_search_report report;
    struct ah_plan plan;
    struct ah_budget budget = {0};
    int64_t least, most;
    disk_world_init(&world, 7, 8);
    host_limits(&budget.device_bytes, &least, &most, &world);
    budget.host_bytes = (least + most) / 2;
    world.predictor.policy = ah__policy_find("zero-offload");
    assert_false(ah__predictor_spills(&world.predictor));
    world.predictor.policy = ah__policy_find("autohete");
    assert_true(ah__predictor_spills(&world.predictor));
    world.profile.drive.read_bytes_per_s = 0;
    assert_int_equal(ah__plan_search(&plan, &report, &world.predictor, &budget), AH_EBUDGET);
    ah__predictor_fini(&world.predictor);
}

AH_TEST_CASES("plan/disk", no_schedule_with_a_drive_beats_the_bound, the_disk_takes_what_does_not_fit,
              the_space_that_is_named_is_enough, without_a_drive_nothing_is_on_disk)
