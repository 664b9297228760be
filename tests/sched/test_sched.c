/* The scheduler on the simulated device: thousands of random plans, costs and policies. */
#include "test.h"

#include <string.h>

#include "sched/internal.h"
#include "sched/simulate.h"

static int draw_with(void *context, int low, int high)
{
    return draw(low, high);
}

static void random_config(struct ah_sched_config *config)
{
    *config = (struct ah_sched_config){
        .switches = {.layers = draw(1, 9), .world_size = draw(0, 2) ? 1 : 4},
        .shared_embedding = draw(0, 1),
        .clips = draw(0, 1),
        .queue_depth = draw(0, 5),
        .policy = draw(0, 1)   ? &ah__policy_autohete
                  : draw(0, 1) ? &ah__policy_autohete_paper
                               : &ah__policy_autohete_fifo,
    };
    if (draw(0, 3) == 0) /* some parameters are frozen */
        config->own_gradients = true;
    if (draw(0, 2) == 0) /* and the lowest blocks, as the embedding is */
        config->switches.frozen_blocks = draw(0, config->switches.layers - 1);
    config->frozen_embedding = config->switches.frozen_blocks > 0;
    struct ah_switches_draw how = {.draw = draw_with, .rarely = 1};
    if (config->shared_embedding || !ah__policy_uses(config->policy, AH_SWITCH_share_embedding_head))
        how.without |= 1U << AH_SWITCH_share_embedding_head;
    if (config->switches.world_size == 1)
        how.without |= 1U << AH_SWITCH_unsharded;
    ah__switches_draw(&config->switches, &how);
    config->micro_batches = draw(1, 7);
    config->sums_blocks = draw(0, 4) > 0;
    config->switches.passes = draw(0, 1) && ah__policy_uses(config->policy, AH_SWITCH_passes) ? draw(1, 8) : 1;
    config->rounds = ah__rounds(&config->switches, config->micro_batches);
    int least = ah__sched_min_buffers(config);
    config->switches.buffers = config->switches.buffers > least ? config->switches.buffers : least;
}

/* One of the published systems, in any of its placements. */
static void random_baseline(struct ah_sched_config *config)
{
    static const struct ah_policy *const baselines[] = {&ah__policy_zero_offload, &ah__policy_patrickstar,
                                                        &ah__policy_stronghold, &ah__policy_l2l, &ah__policy_resident};
    struct ah_switches placement;
    int count = 0;
    random_config(config);
    config->policy = baselines[draw(0, 4)];
    bool accumulates = config->policy->accumulates && config->switches.world_size == 1;
    config->rounds = config->switches.passes = accumulates ? config->micro_batches : 1;
    while (config->policy->placement(&placement, config->switches.layers, count))
        count++;
    assert_true(config->policy->placement(&placement, config->switches.layers, draw(0, count - 1)));
    config->switches.chunks = 1;
    config->switches.staged = config->switches.selective = config->switches.offload_activations = 0;
    config->switches.share_embedding_head = false;
    config->switches.unsharded = 0;
    config->switches.checkpoint = placement.checkpoint;
    config->switches.offload_params = placement.offload_params;
    config->switches.offload_optimizer = placement.offload_optimizer;
    config->switches.embedding_on_host = placement.embedding_on_host;
    config->switches.head_on_host = placement.head_on_host;
    config->switches.prefetch_distance = placement.prefetch_distance;
    config->switches.device_sums = placement.device_sums;
    ah__switches_clamp(&config->switches);
    int least = ah__sched_min_buffers(config);
    config->switches.buffers = placement.buffers > least ? placement.buffers : least;
    config->switches.out_of_order = config->switches.buffers;
}

static void random_any(struct ah_sched_config *config)
{
    if (draw(0, 1))
        random_config(config);
    else
        random_baseline(config);
}

static void no_plan_deadlocks_or_races(void **state)
{
    for (int round = 0; round < 4000; round++) {
        struct ah_sched_config config;
        struct ah_costs costs;
        struct ah_timeline *timeline;
        random_any(&config);
        random_costs(&costs, &config);
        assert_ok(ah__timeline_new(&timeline, config.switches.layers, config.switches.chunks, 4 * config.rounds));
        simulate(&config, &costs, timeline, 4, false);
        check_timeline(timeline, &config);
        ah_timeline_free(timeline);
    }
}

static const struct ah_span *norms_of(const struct ah_timeline *timeline, int64_t iteration)
{
    for (size_t i = 0; i < timeline->span_count; i++) {
        const struct ah_span *span = &timeline->spans[i];
        if (span->item.kind == AH_ITEM_RESULT && span->item.partition == 0 && span->item.iteration == iteration)
            return span;
    }
    return NULL;
}

/* What speculative updates have made is fetched before the norms are known, and again if it turns out not to count. */
static void parameters_are_fetched_ahead_of_the_norms(void **state)
{
    enum { LAYERS = 6, ITERATIONS = 4, ROUNDS = 40 };
    struct ah_sched_config config = {.switches = {.layers = LAYERS,
                                                  .world_size = 1,
                                                  .chunks = 2,
                                                  .offload_optimizer = LAYERS,
                                                  .buffers = 3 * LAYERS,
                                                  .out_of_order = 3 * LAYERS,
                                                  .prefetch_distance = 1,
                                                  .shadows = LAYERS},
                                     .clips = true,
                                     .policy = &ah__policy_autohete};
    int ahead = 0, prefetches = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct ah_costs costs;
        struct ah_timeline *timeline;
        random_costs(&costs, &config);
        assert_ok(ah__timeline_new(&timeline, LAYERS, config.switches.chunks, ITERATIONS));
        simulate(&config, &costs, timeline, ITERATIONS, false);
        check_timeline(timeline, &config);
        for (size_t i = 0; i < timeline->span_count; i++) {
            const struct ah_span *span = &timeline->spans[i];
            const struct ah_span *norms = norms_of(timeline, span->item.iteration - 1);
            prefetches += span->item.kind == AH_ITEM_PREFETCH;
            ahead += span->item.kind == AH_ITEM_PREFETCH && norms && span->start_ns < norms->end_ns;
        }
        ah_timeline_free(timeline);
    }
    assert_true(ahead > ROUNDS * LAYERS);
    assert_true(prefetches > ROUNDS * ITERATIONS * LAYERS * config.switches.chunks); /* some of them again */
}

static void forward_only_runs_every_forward(void **state)
{
    for (int round = 0; round < 300; round++) {
        struct ah_sched_config config;
        struct ah_costs costs;
        struct ah_timeline *timeline;
        random_any(&config);
        random_costs(&costs, &config);
        assert_ok(ah__timeline_new(&timeline, config.switches.layers, config.switches.chunks, 3 * config.rounds));
        simulate(&config, &costs, timeline, 3, true);
        int forwards = 0;
        for (size_t i = 0; i < timeline->span_count; i++) {
            forwards += timeline->spans[i].item.kind == AH_ITEM_FORWARD;
            assert_int_not_equal(timeline->spans[i].item.kind, AH_ITEM_BACKWARD);
        }
        assert_int_equal(forwards, 3 * config.rounds * (config.switches.layers + 2));
        ah_timeline_free(timeline);
    }
}

/* Trains, stops in the middle, evaluates, trains on: the scheduler starts each stretch from the same state. */
static void stretches_follow_each_other(void **state)
{
    for (int round = 0; round < 200; round++) {
        struct ah_sched_config config;
        struct ah_costs costs;
        random_any(&config);
        random_costs(&costs, &config);
        struct ah_drive drive = drive_of(&costs);
        assert_ok(ah__sched_new(&drive.sched, &config));
        int64_t limit = 0;
        for (int stretch = 0; stretch < 5; stretch++) {
            limit += draw(1, 3);
            ah__sched_limit(drive.sched, limit, stretch % 2);
            assert_false(ah__sched_drained(drive.sched));
            drive_ok(&drive, &config);
            assert_true(ah__sched_drained(drive.sched));
            assert_int_equal(ah__sched_buffers_used(drive.sched), 0);
        }
        drive.dev->ops->close(drive.dev);
        ah__sched_free(drive.sched);
    }
}

/* As a caller does that begins iterations one by one, now and then late. */
struct extending {
    struct ah_sched *sched;
    int64_t limit, last;
};

static void extend_late(void *context)
{
    struct extending *extending = context;
    int64_t ahead = extending->limit - ah__sched_iterations(extending->sched);
    if (extending->limit < extending->last && ahead < 2 && draw(0, 9) == 0)
        ah__sched_extend(extending->sched, ++extending->limit);
}

/* Whenever iterations begin, also after all others are complete, they run as if they had been allowed at once. */
static void iterations_begin_at_any_time(void **state)
{
    enum { ITERATIONS = 6 };
    for (int round = 0; round < 200; round++) {
        struct ah_sched_config config;
        struct ah_costs costs;
        random_any(&config);
        random_costs(&costs, &config);
        struct ah_drive drive = drive_of(&costs);
        assert_ok(ah__sched_new(&drive.sched, &config));
        struct extending extending = {.sched = drive.sched, .limit = 1, .last = ITERATIONS};
        drive.extend = extend_late;
        drive.extend_context = &extending;
        ah__sched_limit(drive.sched, extending.limit, false);
        drive_ok(&drive, &config);
        while (extending.limit < ITERATIONS) { /* drained too early, but not told to begin anew */
            ah__sched_extend(drive.sched, ++extending.limit);
            drive_ok(&drive, &config);
        }
        assert_int_equal(ah__sched_iterations(drive.sched), ITERATIONS);
        assert_int_equal(ah__sched_buffers_used(drive.sched), 0);
        drive.dev->ops->close(drive.dev);
        ah__sched_free(drive.sched);
    }
}

/* Items of 10 ns on a device that hears of a completion after 100: two at a time leave the lane idle, many do not. */
static void a_deep_queue_hides_what_the_driver_takes(void **state)
{
    enum { LAYERS = 9, ITERATIONS = 3, DEPTHS = 2 };
    int64_t end_ns[DEPTHS] = {0};
    struct ah_costs costs = {.layers = LAYERS, .lanes.notify_ns = 100};
    for (int kind = 0; kind < AH_ITEM_COUNT; kind++)
        for (int class = 0; class < AH_CLASS_COUNT; class ++)
            costs.ns[kind][class] = 10;
    for (int a = 0; a < AH_LANE_COUNT; a++)
        for (int b = 0; b < AH_LANE_COUNT; b++)
            costs.lanes.slowdown[a][b] = 1;
    for (int i = 0; i < DEPTHS; i++) {
        struct ah_timeline *timeline;
        struct ah_sched_config config = {
            .switches = {.layers = LAYERS, .world_size = 1, .chunks = 1, .buffers = 1, .prefetch_distance = 1},
            .queue_depth = i ? 8 : 0,
            .policy = &ah__policy_resident};
        config.switches.buffers = ah__sched_min_buffers(&config);
        assert_ok(ah__timeline_new(&timeline, LAYERS, 1, ITERATIONS));
        simulate(&config, &costs, timeline, ITERATIONS, false);
        for (size_t j = 0; j < timeline->span_count; j++)
            end_ns[i] = timeline->spans[j].end_ns > end_ns[i] ? timeline->spans[j].end_ns : end_ns[i];
        ah_timeline_free(timeline);
    }
    assert_true(end_ns[1] * 2 < end_ns[0]);
}

/* Forwards of blocks before whose end the parameters of the block above are gathered. */
static int gathered_ahead(const struct ah_timeline *timeline, int layers)
{
    int count = 0;
    for (size_t i = 0; i < timeline->span_count; i++) {
        const struct ah_span *forward = &timeline->spans[i];
        bool block = forward->item.partition >= 1 && forward->item.partition < layers;
        for (size_t j = 0; j < timeline->span_count && block && forward->item.kind == AH_ITEM_FORWARD; j++) {
            const struct ah_span *gather = &timeline->spans[j];
            count += gather->item.kind == AH_ITEM_GATHER && gather->item.phase == AH_PHASE_FORWARD &&
                     gather->item.partition == forward->item.partition + 1 &&
                     gather->item.iteration == forward->item.iteration && gather->start_ns < forward->end_ns;
        }
    }
    return count;
}

/* Of several ranks where parameters are frozen: gradients take no buffers, so that one serves, two gather ahead. */
static void ranks_need_no_buffers_for_gradients_with_places_of_their_own(void **state)
{
    enum { LAYERS = 6, ITERATIONS = 3, AHEAD = ITERATIONS * (LAYERS - 1) };
    static const struct {
        int offload_params, offload_optimizer, unsharded, least[2];
    } rows[] = {{0, 0, 0, {3, 1}},
                {0, LAYERS, 0, {3, 1}},
                {LAYERS, LAYERS, 0, {3, 1}},
                {2, 4, 1, {3, 1}},
                {0, 0, LAYERS, {3, 0}}};
    struct ah_costs costs;
    random_costs(&costs, &(struct ah_sched_config){.switches.layers = LAYERS});
    for (size_t r = 0; r < AH_LENGTH(rows); r++)
        for (int own = 0; own < 2; own++) {
            struct ah_sched_config config = {.switches = {.layers = LAYERS,
                                                          .world_size = 4,
                                                          .chunks = 1,
                                                          .offload_params = rows[r].offload_params,
                                                          .offload_optimizer = rows[r].offload_optimizer,
                                                          .unsharded = rows[r].unsharded,
                                                          .prefetch_distance = 1},
                                             .own_gradients = own,
                                             .policy = &ah__policy_autohete};
            int least = ah__sched_min_buffers(&config);
            assert_int_equal(least, rows[r].least[own]);
            for (int more = 0; more < 2; more++) {
                struct ah_timeline *timeline;
                config.switches.buffers = least + more;
                assert_ok(ah__timeline_new(&timeline, LAYERS, 1, ITERATIONS));
                simulate(&config, &costs, timeline, ITERATIONS, false);
                check_timeline(timeline, &config);
                if (rows[r].offload_params + rows[r].unsharded == 0)
                    assert_int_equal(gathered_ahead(timeline, LAYERS), more ? AHEAD : 0);
                ah_timeline_free(timeline);
            }
        }
}

static void too_few_buffers_are_refused(void **state)
{
    struct ah_sched *sched;
    struct ah_sched_config config = {.switches = {.layers = 4,
                                                  .world_size = 1,
                                                  .chunks = 1,
                                                  .offload_params = 1,
                                                  .offload_optimizer = 4,
                                                  .buffers = 3,
                                                  .prefetch_distance = 1},
                                     .policy = &ah__policy_autohete};
    assert_fails(ah__sched_new(&sched, &config), AH_EINPUT, "expected at least 4");
}

AH_TEST_CASES("sched/sched", no_plan_deadlocks_or_races, parameters_are_fetched_ahead_of_the_norms,
              forward_only_runs_every_forward, stretches_follow_each_other, iterations_begin_at_any_time,
              a_deep_queue_hides_what_the_driver_takes, ranks_need_no_buffers_for_gradients_with_places_of_their_own,
              too_few_buffers_are_refused)
