/* Switches that published systems do not have are used where they gain, and cost nothing where they do not. */
#include "test.h"

#include "plan/fit.h"
#include "plan/search.h"
#include "plan/world.h"
#include "sched/switches.h"

/* A switch that only our policy knows, on machines made for it. */
struct gain {
    uint64_t seed;
    int share; /* of the memory between the least and the most: one part of so many */
    int (*count)(const struct ah_switches *switches);
    void (*favour)(struct world *world);
    void (*forbid)(struct world *world, struct ah_policy *policy); /* of a copy of ours */
};

/* No plan is faster than its bound. */
static void expect_bounded(const struct ah_plan *plan)
{
    assert_true(plan->step_ns >= plan->bound_ns && plan->bound_ns > 0);
}

/* In half of the worlds the switch is used and gains, and nowhere is it slower than none; no other policy that searches
 * uses it. */
static void gains(const struct gain *gain)
{
    int gained = 0, worlds = ah_test_rounds(2, 4, 8);
    for (uint64_t seed = 1; seed <= (uint64_t)worlds; seed++) {
        struct world world;
        struct ah_search_report report;
        struct ah_plan plan, other;
        struct ah_policy without = ah__policy_autohete;
        int64_t least, most;
        world_init(&world, gain->seed + seed, 5 + (int)seed, "autohete");
        gain->favour(&world);
        smallest_and_largest(&least, &most, &world.fixture.partition);
        struct ah_budget budget = {.device_bytes = least + (most - least) / gain->share};
        assert_ok(ah__plan_search(&plan, &report, &world.predictor, &budget));
        assert_true(ah__switches_valid(&plan.switches) && plan.device_peak_bytes <= budget.device_bytes);
        expect_bounded(&plan);
        for (int i = 0; ah__policies[i] && (seed == 1 || !ah_test_samples()); i++) {
            world.predictor.policy = ah__policies[i];
            int status = ah__plan_search(&other, &report, &world.predictor, &budget);
            assert_true(status == AH_OK || status == AH_EBUDGET);
            if (status == AH_OK && ah__policies[i] != &ah__policy_autohete && !ah__policies[i]->accumulates)
                assert_int_equal(gain->count(&other.switches), 0);
        }
        world.predictor.policy = &without;
        gain->forbid(&world, &without);
        assert_ok(ah__plan_search(&other, &report, &world.predictor, &budget));
        assert_int_equal(gain->count(&other.switches), 0);
        gained += gain->count(&plan.switches) > 0 && plan.step_ns < other.step_ns;
        if (plan.step_ns > other.step_ns + other.step_ns / 200)
            fail_msg("seed %d: with %lld, without %lld", (int)seed, (long long)plan.step_ns, (long long)other.step_ns);
        ah__predictor_fini(&world.predictor);
    }
    assert_true(gained >= worlds / 2);
}

static int selective(const struct ah_switches *switches)
{
    return switches->selective;
}

/* A device that is the slowest lane. */
static void favour_selective(struct world *world)
{
    struct ah_costs *costs = &world->predictor.costs;
    costs->ns[AH_ITEM_UPDATE_HOST][AH_CLASS_BLOCK] /= 8;
    costs->ns[AH_ITEM_PREFETCH][AH_CLASS_BLOCK] /= 4;
    costs->ns[AH_ITEM_OFFLOAD][AH_CLASS_BLOCK] /= 4;
    world->profile.costs = *costs;
}

static void forbid_selective(struct world *world, struct ah_policy *policy)
{
    policy->without |= 1U << AH_SWITCH_selective;
}

static void blocks_recompute_selectively_where_memory_is_short(void **state)
{
    gains(&(struct gain){304, 4, selective, favour_selective, forbid_selective});
}

static int leaving(const struct ah_switches *switches)
{
    return switches->offload_activations;
}

/* Recomputation that takes long beside a link that has time. */
static void favour_activations(struct world *world)
{
    enum { BLOCK = AH_CLASS_BLOCK };
    struct ah_costs *costs = &world->predictor.costs;
    costs->ns[AH_ITEM_UPDATE_HOST][BLOCK] /= 4;
    costs->recompute_ns[BLOCK] = costs->ns[AH_ITEM_FORWARD][BLOCK];
    costs->selective_ns[BLOCK] = costs->recompute_ns[BLOCK] / 2;
    for (int i = 0; i < AH_KEEPING_COUNT; i++)
        costs->in_ns[i] = costs->out_ns[i] = costs->ns[AH_ITEM_FORWARD][BLOCK] / 2;
    world->profile.costs = *costs;
}

static void forbid_activations(struct world *world, struct ah_policy *policy)
{
    policy->without |= 1U << AH_SWITCH_offload_activations;
}

static void activations_leave_where_memory_is_short(void **state)
{
    gains(&(struct gain){900, 12, leaving, favour_activations, forbid_activations});
}

static int sharing(const struct ah_switches *switches)
{
    return switches->share_embedding_head;
}

/* Embedding and head that are as large as several blocks, and a host with time for them. */
static void favour_sharing(struct world *world)
{
    struct ah_costs *costs = &world->predictor.costs;
    struct ah_partition *partition = &world->fixture.partition;
    for (int g = 0; g < partition->group_count; g += partition->layers + 1)
        partition->groups[g].count = partition->groups[g].trained = partition->groups[g].decayed =
            8 * partition->groups[1].count;
    costs->ns[AH_ITEM_UPDATE_HOST][AH_CLASS_BLOCK] /= 4;
    world->profile.costs = *costs;
}

static void forbid_sharing(struct world *world, struct ah_policy *policy)
{
    policy->without |= 1U << AH_SWITCH_share_embedding_head;
}

static void ends_share_a_place_where_memory_is_short(void **state)
{
    gains(&(struct gain){1300, 8, sharing, favour_sharing, forbid_sharing});
}

static int whole(const struct ah_switches *switches)
{
    return switches->unsharded;
}

/* Several ranks whose parameters take long to gather, and a host too slow to have their states. */
static void favour_whole(struct world *world)
{
    enum { BLOCK = AH_CLASS_BLOCK };
    struct ah_costs *costs = &world->predictor.costs;
    world->profile.world_size = world->fixture.partition.step.world_size = 4;
    costs->ns[AH_ITEM_CAST][BLOCK] = costs->ns[AH_ITEM_FORWARD][BLOCK] / 4;
    costs->ns[AH_ITEM_GATHER][BLOCK] = costs->ns[AH_ITEM_REDUCE][BLOCK] = costs->ns[AH_ITEM_FORWARD][BLOCK];
    costs->ns[AH_ITEM_UPDATE_HOST][BLOCK] += 8 * costs->ns[AH_ITEM_FORWARD][BLOCK];
    world->profile.costs = *costs;
}

static void forbid_whole(struct world *world, struct ah_policy *policy)
{
    policy->without |= 1U << AH_SWITCH_unsharded;
}

static void blocks_stay_whole_where_there_is_room(void **state)
{
    gains(&(struct gain){1700, 2, whole, favour_whole, forbid_whole});
}

/* Also where no block offloads, and its buffers are all that there are: four, or two where gradients of blocks have
 * places of their own. */
static void ranks_gather_ahead_with_everything_on_the_device(void **state)
{
    int on_device = 0;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct world world;
        struct ah_search_report report;
        struct ah_plan plan;
        struct ah_policy without = ah__policy_autohete;
        int64_t least, most;
        bool frozen = seed % 2 == 0;
        world_init(&world, 1800 + seed, 6, "autohete");
        favour_whole(&world);
        if (frozen)
            fixture_freeze(&world.fixture, 4);
        smallest_and_largest(&least, &most, &world.fixture.partition);
        world.predictor.policy = &without;
        forbid_whole(&world, &without);
        assert_ok(ah__plan_search(&plan, &report, &world.predictor, &(struct ah_budget){.device_bytes = 2 * most}));
        ah__predictor_fini(&world.predictor);
        if (plan.switches.offload_optimizer > 0)
            continue;
        on_device++;
        assert_int_equal(plan.switches.buffers, frozen ? 2 : 4);
    }
    assert_true(on_device >= 4);
}

/* A plan of which everything is on the device, filled up: the peaks are those of its layout, and no block more has room
 * to stay whole. */
static void expect_filled(const struct world *world, const struct ah_budget *budget)
{
    struct ah_plan plan = {.switches = {.layers = world->fixture.partition.layers, .world_size = 4}}, more;
    if (!ah__plan_fit(&plan, &world->predictor, budget))
        return;
    more = plan;
    ah__plan_measure(&more, &world->predictor);
    assert_true(more.device_peak_bytes == plan.device_peak_bytes && more.host_peak_bytes == plan.host_peak_bytes);
    assert_true(plan.device_peak_bytes <= budget->device_bytes);
    if (plan.switches.unsharded == plan.switches.layers)
        return;
    more.switches.unsharded++;
    ah__plan_measure(&more, &world->predictor);
    assert_true(more.device_peak_bytes > budget->device_bytes);
}

/* Whatever memory there is, and all of them with no buffer at all where there is enough. */
static void frozen_blocks_stay_whole_where_there_is_room(void **state)
{
    enum { STEPS = 8 };
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct world world;
        struct ah_search_report report;
        struct ah_plan plan;
        int64_t least, most;
        world_init(&world, 1900 + seed, 6, "autohete");
        favour_whole(&world);
        fixture_freeze(&world.fixture, 4);
        smallest_and_largest(&least, &most, &world.fixture.partition);
        for (int i = 0; i <= STEPS; i++) {
            struct ah_budget budget = {.device_bytes = least / 2 + (2 * most - least / 2) / STEPS * i};
            int status = ah__plan_search(&plan, &report, &world.predictor, &budget);
            expect_filled(&world, &budget);
            assert_true(status == AH_OK || (status == AH_EBUDGET && i < STEPS));
            if (status == AH_OK)
                assert_true(plan.switches.buffers >= ah__plan_min_buffers(&plan.switches, &world.predictor));
        }
        assert_true(plan.switches.unsharded == plan.switches.layers && plan.switches.buffers == 0);
        ah__predictor_fini(&world.predictor);
    }
}

static int rounds(const struct ah_switches *switches)
{
    return switches->passes > 1;
}

/* A step of many micro-batches, whose activations are most of the memory, on a device that is the slowest lane. */
static void favour_rounds(struct world *world)
{
    enum { MICRO_BATCHES = 12 };
    struct ah_costs *costs = &world->predictor.costs;
    world->fixture.partition.step.micro_batches = MICRO_BATCHES;
    costs->micro_batches = MICRO_BATCHES;
    for (int class = 0; class < AH_CLASS_COUNT; class ++) {
        costs->ns[AH_ITEM_FORWARD][class] *= MICRO_BATCHES;
        costs->ns[AH_ITEM_BACKWARD][class] *= MICRO_BATCHES;
        costs->recompute_ns[class] *= MICRO_BATCHES;
        costs->selective_ns[class] *= MICRO_BATCHES;
    }
    world->profile.costs = *costs;
}

static void forbid_rounds(struct world *world, struct ah_policy *policy)
{
    policy->without |= 1U << AH_SWITCH_passes;
}

static void steps_run_in_rounds_where_memory_is_short(void **state)
{
    gains(&(struct gain){2100, 12, rounds, favour_rounds, forbid_rounds});
}

static int streaming(const struct ah_switches *switches)
{
    return switches->staged;
}

/* Where a profile has no times of it nobody streams. */
static void forbid_streams(struct world *world, struct ah_policy *policy)
{
    world->predictor.costs.ns[AH_ITEM_STATES_IN][AH_CLASS_BLOCK] = 0;
}

static void states_stream_where_the_host_is_slow(void **state)
{
    gains(&(struct gain){500, 3, streaming, world_favours_streams, forbid_streams});
}

AH_TEST_CASES("plan/gains", blocks_recompute_selectively_where_memory_is_short, activations_leave_where_memory_is_short,
              ends_share_a_place_where_memory_is_short, blocks_stay_whole_where_there_is_room,
              ranks_gather_ahead_with_everything_on_the_device, frozen_blocks_stay_whole_where_there_is_room,
              steps_run_in_rounds_where_memory_is_short, states_stream_where_the_host_is_slow)
