/* Simulations that the search makes: given up early, remembered, compared. */
#include "test.h"

#include "plan/fit.h"
#include "plan/machines.h"
#include "plan/trial.h"
#include "plan/world.h"

enum { FIRST = 3 }; /* iterations whose step is the one between the ends of the first two */

/* A simulation that may stop early: the same step where it is below the limit, and none below it where it is not. What
 * was tried is remembered, and what was given up is simulated again only for a higher limit. */
static void a_limit_changes_no_step_below_it(void **state)
{
    enum { ROUNDS = AH_TEST_SAMPLED ? 40 : 400 };
    int given_up = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct world world;
        int64_t step, quick, simulated, all = 0, some = 0, tried = -1;
        bool below;
        world_init(&world, 7000 + round, 1 + (int)round % 12, "autohete");
        struct ah_plan plan = fixture_plan(&world.fixture);
        int least = ah__plan_min_buffers(&plan.switches, &world.predictor);
        plan.switches.buffers = plan.switches.buffers < least ? least : plan.switches.buffers;
        assert_ok(ah__plan_step_ns(&quick, &plan, &world.predictor, FIRST));
        assert_ok(ah__plan_step_ns(&step, &plan, &world.predictor, AH_PREDICT_ITERATIONS));
        int64_t limit = fixture_draw(&world.fixture, step / 2, step), longer = step > quick ? step : quick;
        assert_ok(ah__plan_step_below(&simulated, &all, &plan, &world.predictor, longer + 1));
        assert_int_equal(simulated, step);
        assert_ok(ah__plan_step_below(&simulated, &some, &plan, &world.predictor, limit));
        assert_true(simulated >= limit && simulated <= longer && some > 0 && some <= all);
        given_up += some < all;
        struct ah_trials trials = {.predictor = &world.predictor};
        assert_ok(ah__trial(&below, &tried, &trials, &plan, limit));
        assert_true(!below && tried == -1 && trials.simulated == 1);
        assert_ok(ah__trial(&below, &tried, &trials, &plan, longer + 1));
        assert_true(below && tried == step && trials.simulated == 2);
        assert_ok(ah__trial(&below, &tried, &trials, &plan, INT64_MAX));
        assert_ok(ah__trial(&below, &tried, &trials, &plan, step));
        assert_true(!below && tried == step && trials.simulated == 2);
        ah__trials_fini(&trials);
        ah__predictor_fini(&world.predictor);
    }
    assert_true(given_up > ROUNDS / 4);
}

/* What the search rests on where it drops a plan for its first step: later ones are not faster, to half a percent. */
static void the_first_step_is_not_longer(void **state)
{
    enum { ROUNDS = AH_TEST_SAMPLED ? 100 : 1000, PARTS = 200 };
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct world world;
        int64_t step, quick;
        world_init(&world, 21000 + round, 1 + (int)round % 24, "autohete");
        struct ah_plan plan = fixture_plan(&world.fixture);
        plan.switches.chunks = 1 + (int)round % 8;
        int least = ah__plan_min_buffers(&plan.switches, &world.predictor);
        plan.switches.buffers = plan.switches.buffers < least ? least : plan.switches.buffers;
        plan.switches.out_of_order = round % 2 ? plan.switches.buffers : 0;
        assert_ok(ah__plan_step_ns(&quick, &plan, &world.predictor, FIRST));
        assert_ok(ah__plan_step_ns(&step, &plan, &world.predictor, AH_PREDICT_ITERATIONS));
        assert_true(quick <= step + step / PARTS);
        ah__predictor_fini(&world.predictor);
    }
}

/* 20B on an A100, whose buffers take some iterations to fill: fast at first, and a fifth slower after that. */
static void what_is_fast_only_at_first_is_not_taken(void **state)
{
    struct ah_partition *partition = gpt("gpt-20b", 4);
    struct ah_profile *profile = a100(partition);
    struct ah_predictor predictor;
    assert_ok(ah__predictor_init(&predictor, partition, profile, "autohete"));
    struct ah_plan plan = {.switches = {.layers = 26,
                                        .world_size = 1,
                                        .checkpoint = 26,
                                        .offload_params = 18,
                                        .offload_optimizer = 20,
                                        .offload_activations = 22,
                                        .chunks = 1,
                                        .buffers = 17,
                                        .out_of_order = 17}};
    plan.switches.prefetch_distance = ah__plan_farthest_refetch(&plan.switches);
    int64_t quick, step, tried = -1;
    bool below;
    assert_ok(ah__plan_step_ns(&quick, &plan, &predictor, FIRST));
    assert_ok(ah__plan_step_ns(&step, &plan, &predictor, AH_PREDICT_ITERATIONS));
    assert_true(quick + quick / 20 < step);
    struct ah_trials trials = {.predictor = &predictor};
    assert_ok(ah__trial(&below, &tried, &trials, &plan, (quick + step) / 2));
    assert_true(!below && tried == -1);
    int64_t items = trials.items; /* of the first step, however far it is simulated after that */
    assert_ok(ah__trial(&below, &tried, &trials, &plan, step + 1));
    assert_true(below && tried == step && trials.items == 2 * items);
    ah__trials_fini(&trials);
    ah__predictor_fini(&predictor);
    ah_profile_free(profile);
    ah_partition_free(partition);
}

/* No plan is taken for another one that has been simulated. */
static void a_trial_knows_every_switch(void **state)
{
    struct world world;
    world_init(&world, 4, 6, "autohete");
    world.profile.world_size = 2; /* else no block could be unsharded */
    struct ah_budget budget = {0};
    struct ah_trials trials = {.predictor = &world.predictor, .budget = &budget};
    struct ah_plan plan = {.switches = {.layers = 6,
                                        .world_size = 2,
                                        .checkpoint = 1,
                                        .offload_params = 1,
                                        .offload_optimizer = 4,
                                        .chunks = 1,
                                        .buffers = 9,
                                        .prefetch_distance = 2,
                                        .embedding_on_host = true,
                                        .head_on_host = true}};
    struct ah_plan others[15];
    for (size_t i = 0; i < AH_LENGTH(others); i++)
        others[i] = plan;
    others[0].switches.checkpoint++;
    others[1].switches.offload_params++;
    others[2].switches.offload_optimizer++;
    others[3].switches.embedding_on_host = false;
    others[4].switches.head_on_host = false;
    others[5].switches.chunks++;
    others[6].switches.buffers++;
    others[7].switches.out_of_order++;
    others[8].switches.prefetch_distance++;
    others[9].switches.shadows++;
    others[10].switches.selective++;
    others[11].switches.offload_activations++;
    others[12].switches.share_embedding_head = true;
    others[13].switches.staged++;
    others[14].switches.unsharded++;
    bool below;
    int64_t step_ns;
    assert_ok(ah__trial(&below, &step_ns, &trials, &plan, INT64_MAX));
    for (size_t i = 0; i < AH_LENGTH(others); i++) {
        assert_ok(ah__trial(&below, &step_ns, &trials, &others[i], INT64_MAX));
        assert_int_equal(trials.simulated, i + 2);
    }
    assert_ok(ah__trial(&below, &step_ns, &trials, &plan, INT64_MAX));
    assert_int_equal(trials.simulated, AH_LENGTH(others) + 1);
    ah__trials_fini(&trials);
    ah__predictor_fini(&world.predictor);
}

/* Fewer pieces are preferred to a gain that is no gain; a limit made of a score is where the score begins. */
static void a_score_has_one_limit(void **state)
{
    struct ah_plan plan = {.step_ns = 0};
    for (uint64_t i = 0; i < 2000; i++) {
        int64_t score = 1000 + (int64_t)(ah__random_bits(3, i) % 1000000000);
        plan.switches.chunks = 1 << i % 4;
        int64_t below = ah__trial_below_ns(&plan, score);
        plan.step_ns = below - 1;
        assert_true(ah__trial_score_ns(&plan) < score);
        plan.step_ns = below + 8; /* rounding */
        assert_true(ah__trial_score_ns(&plan) >= score);
    }
}

AH_TEST_CASES("plan/trial", a_limit_changes_no_step_below_it, the_first_step_is_not_longer,
              what_is_fast_only_at_first_is_not_taken, a_trial_knows_every_switch, a_score_has_one_limit)
