/* The bound of lanes that slow each other down. */
#include "test.h"

#include <math.h>

#include "plan/config.h"
#include "plan/fit.h"
#include "plan/world.h"

static void slowdowns_set(struct world *world, double all, double compute_and_host)
{
    double(*slowdown)[AH_LANE_COUNT] = world->predictor.costs.lanes.slowdown;
    for (int a = 0; a < AH_LANE_COUNT; a++)
        for (int b = 0; b < AH_LANE_COUNT; b++)
            slowdown[a][b] = a == b ? 1 : all;
    slowdown[AH_LANE_COMPUTE][AH_LANE_HOST] = slowdown[AH_LANE_HOST][AH_LANE_COMPUTE] = compute_and_host;
}

static int64_t bound_of(struct ah_plan *plan, const struct world *world)
{
    assert_ok(ah__plan_bound_contention(plan, &world->predictor));
    return plan->bound_contention_ns;
}

static double lane_of(const struct ah_plan *plan, const struct world *world, enum ah_lane lane)
{
    return (double)ah__plan_lane_ns(&plan->switches, &world->predictor, lane);
}

/* Of two lanes that slow each other by s each hour together is 2 / (1 + s) hours of work: better than one after the
 * other where s is below 1. Lanes beside them that slow nobody only matter where one has more to do. */
static void two_lanes_by_hand(void **state)
{
    (void)state;
    static const double slowdowns[] = {1, 1.1, 1.5, 2, 2.5, 8};
    for (uint64_t seed = 0; seed < 20; seed++)
        for (size_t i = 0; i < AH_LENGTH(slowdowns); i++) {
            struct world world;
            world_init(&world, 60 + seed, 3 + (int)seed % 6, "autohete");
            struct ah_plan plan = fixture_plan(&world.fixture);
            slowdowns_set(&world, 1, slowdowns[i]);
            double compute = lane_of(&plan, &world, AH_LANE_COMPUTE), host = lane_of(&plan, &world, AH_LANE_HOST);
            double expected = fmax(compute, host) + fmin(slowdowns[i] - 1, 1) * fmin(compute, host);
            expected = fmax(expected, lane_of(&plan, &world, AH_LANE_H2D));
            expected = fmax(expected, lane_of(&plan, &world, AH_LANE_D2H));
            double found = (double)bound_of(&plan, &world);
            if (!(fabs(found - expected) <= 3e-6 * expected + 1))
                fail_msg("seed %d, slowdown %g: %.1f, expected %.1f", (int)seed, slowdowns[i], found, expected);
            ah__predictor_fini(&world.predictor);
        }
}

/* Where all lanes come to a standstill beside each other, one runs after the other. */
static void lanes_in_turn(void **state)
{
    (void)state;
    struct world world;
    double sum = 0;
    world_init(&world, 91, 7, "autohete");
    struct ah_plan plan = fixture_plan(&world.fixture);
    slowdowns_set(&world, 100, 100);
    for (int lane = 0; lane < AH_LANE_COUNT; lane++)
        sum += lane_of(&plan, &world, (enum ah_lane)lane);
    double found = (double)bound_of(&plan, &world);
    assert_true(fabs(found - sum) <= 3e-6 * sum + 1);
    ah__predictor_fini(&world.predictor);
}

/* Random plans of random machines, whose lanes slow each other by up to a half. */
static void no_schedule_beats_it(void **state)
{
    (void)state;
    enum { ROUNDS = AH_TEST_SAMPLED ? 10 : 300 };
    int above = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct world world;
        int64_t step;
        world_init(&world, 7000 + round, 1 + (int)round % 12, "autohete");
        struct ah_plan plan = fixture_plan(&world.fixture);
        struct ah_sim_lanes *lanes = &world.predictor.costs.lanes;
        for (int a = 0; a < AH_LANE_COUNT; a++)
            for (int b = 0; b < AH_LANE_COUNT; b++)
                lanes->slowdown[a][b] = a == b ? 1 : 1 + (double)fixture_draw(&world.fixture, 0, 5) / 10;
        ah_dev_close(world.predictor.sim); /* which has a copy of them */
        assert_ok(ah__dev_sim_open(&world.predictor.sim, lanes));
        int least = ah__plan_min_buffers(&plan.switches, &world.predictor);
        plan.switches.buffers = plan.switches.buffers < least ? least : plan.switches.buffers;
        ah__plan_bound(&plan, &world.predictor);
        assert_ok(ah__plan_step_ns(&step, &plan, &world.predictor, AH_PREDICT_ITERATIONS));
        int64_t bound = bound_of(&plan, &world);
        if (step < bound || bound < plan.bound_lane_ns)
            fail_msg("round %d: step %lld, bound %lld, busiest lane %lld", (int)round, (long long)step,
                     (long long)bound, (long long)plan.bound_lane_ns);
        above += bound > plan.bound_ns;
        ah__predictor_fini(&world.predictor);
    }
    assert_true(above > ROUNDS / 4); /* and it says more than the others */
}

AH_TEST_SUITE("plan/contention", cmocka_unit_test(two_lanes_by_hand), cmocka_unit_test(lanes_in_turn),
              cmocka_unit_test(no_schedule_beats_it))
