/* PatrickStar under any moving quota (bench/moving_quota.h): never slower than under the one it has, nowhere faster
 * unless something is evicted, and within what the bound may take. */
#include "test.h"

#include <string.h>

#include "moving_quota.h"
#include "plan/candidates.h"
#include "plan/machines.h"
#include "plan/search.h"
#include "plan/world.h"

struct both {
    struct ah_evaluation fixed, moving;
};

static struct both evaluate(const struct ah_partition *partition, const struct ah_profile *profile,
                            const struct ah_budget *budget)
{
    struct both both;
    assert_ok(ah_plan_evaluate(&both.fixed, partition, profile, budget, "patrickstar"));
    assert_ok(moving_quota_evaluate(&both.moving, &both.fixed, partition, profile, budget));
    assert_string_equal(both.moving.policy, "patrickstar-moving");
    return both;
}

static void assert_same_but_for_the_name(const struct both *both)
{
    const struct ah_evaluation *fixed = &both->fixed, *moving = &both->moving;
    assert_int_equal(moving->fits, fixed->fits);
    assert_string_equal(moving->reason, fixed->reason);
    assert_int_equal(moving->plan.step_ns, fixed->plan.step_ns);
    assert_memory_equal(&moving->plan.switches, &fixed->plan.switches, sizeof fixed->plan.switches);
    assert_true(moving->tokens_per_s == fixed->tokens_per_s);
    assert_memory_equal(moving->lane_busy, fixed->lane_busy, sizeof fixed->lane_busy);
}

/* The most that any of the policy's plans for a budget evicts. */
static int most_evicted(const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    struct ah_candidates candidates = {0};
    int most = 0;
    assert_ok(ah__candidates_list(&candidates, predictor, budget));
    for (size_t i = 0; i < candidates.count; i++) {
        int evicted = candidates.list[i].plan.switches.offload_params;
        most = evicted > most ? evicted : most;
    }
    ah__free(candidates.list);
    return most;
}

/* Somewhere between the least that trains and what all takes on the device. */
static struct ah_budget budget_draw(struct world *world)
{
    struct ah_budget unlimited = {0}, one = {.device_bytes = 1};
    int64_t most = evaluate(&world->fixture.partition, &world->profile, &unlimited).fixed.plan.device_peak_bytes;
    int64_t least = 1 + evaluate(&world->fixture.partition, &world->profile, &one).fixed.over_bytes;
    return (struct ah_budget){.device_bytes = fixture_draw(&world->fixture, least, most)};
}

static void no_quota_is_slower_and_none_faster_unless_it_spares_an_eviction(void **state)
{
    (void)state;
    int kept = 0, evicting = 0, shorter = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct world world;
        world_init(&world, seed, 4 + (int)(seed % 7), "patrickstar");
        struct ah_budget budget = budget_draw(&world);
        struct both both = evaluate(&world.fixture.partition, &world.profile, &budget);
        assert_true(both.fixed.fits && both.moving.fits);
        assert_true(both.moving.plan.step_ns <= both.fixed.plan.step_ns);
        assert_true(both.moving.plan.step_ns >= both.moving.plan.bound_ns);
        if (most_evicted(&world.predictor, &budget) == 0) {
            assert_same_but_for_the_name(&both);
            kept++;
        } else {
            evicting++;
            shorter += both.moving.plan.step_ns < both.fixed.plan.step_ns;
        }
        ah__predictor_fini(&world.predictor);
    }
    assert_true(kept > 20 && evicting > 20 && shorter > evicting / 2);
}

static void what_does_not_fit_does_not_fit_with_a_quota_that_moves(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, 7, 6, "patrickstar");
    struct both both = evaluate(&world.fixture.partition, &world.profile, &(struct ah_budget){.device_bytes = 1});
    assert_false(both.moving.fits);
    assert_same_but_for_the_name(&both);
    ah__predictor_fini(&world.predictor);
}

/* The first of equally fast ways is taken, the one that changes least: each change is worth something somewhere. */
static void blocks_come_back_early_and_gradients_make_room_where_that_is_faster(void **state)
{
    (void)state;
    int early = 0, hidden = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct world world;
        struct ah_candidates candidates = {0};
        world_init(&world, seed, 4 + (int)(seed % 7), "patrickstar");
        struct ah_budget budget = budget_draw(&world);
        assert_ok(ah__candidates_list(&candidates, &world.predictor, &budget));
        for (size_t i = 0; i < candidates.count; i++) {
            struct moving_quota found = {.plan = {.step_ns = 0}}, own = {.plan = candidates.list[i].plan};
            struct ah_plan plan = own.plan;
            assert_ok(ah__plan_choose_out_of_order(&plan.step_ns, &plan, &world.predictor));
            assert_ok(moving_quota_find(&found, &plan, &world.predictor));
            assert_true(found.plan.step_ns <= plan.step_ns);
            assert_true(moving_quota_least_ns(&own, &world.predictor) <= plan.step_ns);
            assert_true(moving_quota_least_ns(&found, &world.predictor) <= found.plan.step_ns);
            early += found.early > 0;
            hidden += found.hidden > 0;
        }
        ah__free(candidates.list);
        ah__predictor_fini(&world.predictor);
    }
    assert_true(early > 0 && hidden > 0);
}

/* Evaluates models/gpt-22b under both rules: at the peak as many chunks as before, elsewhere no more buffers than there
 * is room for. */
static void the_bound_takes_no_more_than_a_quota_could_give(void **state)
{
    (void)state;
    struct ah_partition *partition = gpt("gpt-22b", 8);
    struct ah_profile *profile = a100(partition);
    for (int rule = AH_MEMORY_LAYOUT; rule <= AH_MEMORY_PUBLISHED; rule++) {
        struct ah_predictor predictor;
        struct ah_budget budget = {.device_bytes = INT64_C(40) << 30, .rule = (enum ah_memory_rule)rule};
        struct both both = evaluate(partition, profile, &budget);
        const struct ah_plan *fixed = &both.fixed.plan, *moving = &both.moving.plan;
        const struct ah_switches *before = &fixed->switches, *after = &moving->switches;
        int64_t room_bytes, buffer_bytes = ah__layout_buffer_bytes(partition, before);
        assert_ok(ah__predictor_init(&predictor, partition, profile, "patrickstar"));
        predictor.rule = budget.rule;
        assert_ok(moving_quota_room_bytes(&room_bytes, fixed, &predictor));
        assert_true(before->offload_params > 0 && moving->step_ns < fixed->step_ns);
        assert_true(both.moving.tokens_per_s > both.fixed.tokens_per_s);
        assert_int_equal(after->offload_optimizer, before->offload_optimizer);
        assert_true(after->offload_optimizer - after->offload_params <= before->buffers);
        assert_true((after->buffers - before->buffers) * buffer_bytes <= room_bytes);
        assert_int_equal(moving->device_peak_bytes, fixed->device_peak_bytes);
        ah__predictor_fini(&predictor);
    }
    ah_profile_free(profile);
    ah_partition_free(partition);
}

/* More buffers alone would be worth something there: to gathers. */
static void ranks_that_evict_nothing_gain_nothing(void **state)
{
    (void)state;
    struct ah_partition *partition = gpt("gpt-14b", 2);
    struct ah_profile *profile = machine("a100-40g-x4", partition, &(struct ah_estimate_options){4, "deepspeed"});
    struct ah_budget budget = {.device_bytes = INT64_C(40) << 30};
    struct both both = evaluate(partition, profile, &budget);
    assert_true(both.fixed.fits && both.fixed.plan.switches.offload_params == 0);
    assert_same_but_for_the_name(&both);
    ah_profile_free(profile);
    ah_partition_free(partition);
}

AH_TEST_SUITE("plan/moving_quota", cmocka_unit_test(no_quota_is_slower_and_none_faster_unless_it_spares_an_eviction),
              cmocka_unit_test(what_does_not_fit_does_not_fit_with_a_quota_that_moves),
              cmocka_unit_test(blocks_come_back_early_and_gradients_make_room_where_that_is_faster),
              cmocka_unit_test(the_bound_takes_no_more_than_a_quota_could_give),
              cmocka_unit_test(ranks_that_evict_nothing_gain_nothing))
