/* In which order the scheduler submits what may be submitted. */
#include "test.h"

#include <string.h>

#include "sched/internal.h"
#include "sched/simulate.h"

/* A chunk of parameters that is up to date, of a block whose first chunk has its buffer, has not been submitted
 * although the lane may take one. */
static bool a_chunk_is_left(const struct ah_sched *sched)
{
    int chunks = sched->config.switches.chunks;
    for (int g = 1; g <= sched->config.switches.layers && sched->in_flight[AH_LANE_H2D] < QUEUE_DEPTH; g++) {
        const struct group *group = &sched->groups[g];
        int updated = group->ready_for == group->param_round ? chunks : group->updated;
        if (group->param_buffer >= 0 && group->fetched > 0 && group->fetched < updated)
            return true;
    }
    return false;
}

/* How often a chunk of parameters was left when nothing could be submitted, and how often one overtook others; how
 * often a block took a buffer before others that are needed earlier while a chunk was there for a buffer that is being
 * filled. */
struct looks {
    int left, overtook, began_another;
};

static void look_at(struct looks *looks, const struct ah_sched *sched, const struct ah_next *given)
{
    const struct ah_item *item = &given->item;
    int next = ah__step_next(&sched->fetch)->partition;
    bool overtakes = item->kind == AH_ITEM_PREFETCH && item->partition > next;
    looks->overtook += overtakes && item->chunk > 0;
    looks->began_another += overtakes && item->chunk == 0 && a_chunk_is_left(sched);
}

/* As ah__drive(). */
static void drive_looking(struct looks *looks, struct ah_sched *sched, struct ah_dev *dev, struct ah_costs *costs)
{
    struct ah_in_flight in_flight = {.count = 0};
    do {
        struct ah_next next;
        struct ah_done done;
        while (ah__sched_next(sched, &next)) {
            struct ah_work work = {.lane = next.lane, .waits = next.waits};
            struct ah_event event;
            memcpy(work.wait, next.wait, sizeof work.wait);
            assert_ok(ah__costs_bind(&work, &next.item, costs));
            assert_ok(ah__in_flight_push(&in_flight, next.lane, &next.item));
            look_at(looks, sched, &next);
            assert_ok(dev->ops->submit(dev, &work, &event));
            ah__sched_submitted(sched, &next, event);
        }
        looks->left += a_chunk_is_left(sched);
        assert_ok(dev->ops->wait_any(dev, &done));
        struct ah_span span = ah__in_flight_pop(&in_flight, &done);
        ah__sched_complete(sched, span.lane, &span.item);
    } while (!ah__sched_drained(sched));
}

static void look_at_plan(struct looks *looks, const struct ah_sched_config *config, struct ah_costs *costs)
{
    enum { ITERATIONS = 4 };
    struct ah_sched *sched;
    struct ah_dev *dev;
    assert_ok(ah__sched_new(&sched, config));
    assert_ok(ah__dev_sim_open(&dev, &costs->lanes));
    ah__sched_limit(sched, ITERATIONS, false);
    drive_looking(looks, sched, dev, costs);
    ah_dev_close(dev);
    ah__sched_free(sched);
}

/* Random machines, all blocks on the host, in chunks. */
static struct looks look_at_chunks(int rounds)
{
    enum { LAYERS = 9 };
    struct looks looks = {0};
    for (int round = 0; round < rounds; round++) {
        struct ah_sched_config config = {.switches = {.layers = LAYERS,
                                                      .world_size = 1,
                                                      .chunks = draw(2, 8),
                                                      .offload_optimizer = LAYERS,
                                                      .offload_params = draw(0, LAYERS),
                                                      .prefetch_distance = 1},
                                         .policy = &ah__policy_autohete};
        struct ah_costs costs;
        random_costs(&costs, &config);
        config.switches.buffers = config.switches.out_of_order = ah__sched_min_buffers(&config) + draw(0, 4);
        look_at_plan(&looks, &config, &costs);
    }
    return looks;
}

/* Of a block whose first chunk has come the others come, too, whatever buffers the blocks before it need, and before
 * other blocks' that would take one. */
static void chunks_come_as_soon_as_they_may(void **state)
{
    enum { ROUNDS = 200 };
    struct looks looks = look_at_chunks(ROUNDS);
    assert_int_equal(looks.left, 0);
    assert_int_equal(looks.began_another, 0);
    assert_true(looks.overtook > ROUNDS);
}

/* The last chunk of it. */
static const struct ah_span *block_span(const struct ah_timeline *timeline, enum ah_item_kind kind, int block)
{
    size_t i = timeline->span_count;
    while (i > 0 && (timeline->spans[i - 1].item.kind != kind || timeline->spans[i - 1].item.partition != block))
        i--;
    assert_true(i > 0);
    return &timeline->spans[i - 1];
}

/* Three buffers for three blocks that give up their parameters, and gradients leave in two chunks. When block 1's
 * parameters are due for backward, one buffer waits for block 2's gradient. Of the others one is left when block 2's
 * backward is over, and one as soon as block 3's gradient has gone home, whose second chunk is not on its lane yet. Who
 * queues behind a buffer takes the former. */
static void a_fetch_takes_the_buffer_that_is_left_first(void **state)
{
    enum { LAYERS = 3, BACKWARD_NS = 1000, LINK_NS = 100 };
    struct ah_policy queues = ah__policy_autohete;
    queues.waits_off_lane = false;
    for (int off_lane = 0; off_lane < 2; off_lane++) {
        struct ah_sched_config config = {.switches = {.layers = LAYERS,
                                                      .world_size = 1,
                                                      .chunks = 2,
                                                      .buffers = 3,
                                                      .offload_optimizer = LAYERS,
                                                      .offload_params = LAYERS,
                                                      .prefetch_distance = LAYERS},
                                         .policy = off_lane ? &ah__policy_autohete : &queues};
        struct ah_costs costs = {.layers = LAYERS};
        struct ah_timeline *timeline;
        for (int kind = 0; kind < AH_ITEM_COUNT; kind++)
            for (int class = 0; class < AH_CLASS_COUNT; class ++)
                costs.ns[kind][class] = kind == AH_ITEM_BACKWARD ? BACKWARD_NS : LINK_NS;
        for (int a = 0; a < AH_LANE_COUNT; a++)
            for (int b = 0; b < AH_LANE_COUNT; b++)
                costs.lanes.slowdown[a][b] = 1;
        assert_ok(ah__timeline_new(&timeline, LAYERS, config.switches.chunks, 1));
        simulate(&config, &costs, timeline, 1, false);
        check_timeline(timeline, &config);
        enum ah_item_kind left_by = off_lane ? AH_ITEM_OFFLOAD : AH_ITEM_BACKWARD;
        assert_int_equal(block_span(timeline, AH_ITEM_REFETCH, 1)->start_ns,
                         block_span(timeline, left_by, off_lane ? 3 : 2)->end_ns);
        assert_int_equal(block_span(timeline, AH_ITEM_BACKWARD, 1)->start_ns,
                         block_span(timeline, AH_ITEM_BACKWARD, 2)->end_ns + (off_lane ? 0 : LINK_NS));
        ah_timeline_free(timeline);
    }
}

/* While the topmost block's is under way all others have come: of them the earliest block goes first, which the next
 * iteration needs first; or what came first. */
static void the_earliest_of_those_that_wait_goes_first(void **state)
{
    enum { LAYERS = 4, LONG_NS = 1000, SHORT_NS = 10 };
    static const enum ah_item_kind slow[] = {AH_ITEM_UPDATE_HOST, AH_ITEM_OFFLOAD};
    static const int orders[2][LAYERS] = {{4, 1, 2, 3}, {4, 3, 2, 1}};
    for (int turn = 0; turn < 4; turn++) {
        struct ah_sched_config config = {.switches = {.layers = LAYERS,
                                                      .world_size = 1,
                                                      .chunks = 1,
                                                      .offload_optimizer = LAYERS,
                                                      .buffers = 2 * LAYERS},
                                         .policy = turn / 2 ? &ah__policy_autohete_fifo : &ah__policy_autohete};
        struct ah_costs costs = {.layers = LAYERS};
        struct ah_timeline *timeline;
        for (int kind = 0; kind < AH_ITEM_COUNT; kind++)
            for (int class = 0; class < AH_CLASS_COUNT; class ++)
                costs.ns[kind][class] = kind == (int)slow[turn % 2] ? LONG_NS : SHORT_NS;
        for (int a = 0; a < AH_LANE_COUNT; a++)
            for (int b = 0; b < AH_LANE_COUNT; b++)
                costs.lanes.slowdown[a][b] = 1;
        assert_ok(ah__timeline_new(&timeline, LAYERS, 1, 1));
        simulate(&config, &costs, timeline, 1, false);
        for (int i = 1; i < LAYERS; i++)
            assert_true(block_span(timeline, slow[turn % 2], orders[turn / 2][i])->start_ns >=
                        block_span(timeline, slow[turn % 2], orders[turn / 2][i - 1])->end_ns);
        ah_timeline_free(timeline);
    }
}

/* What a block does once for all micro-batches is done again in every round. */
static void a_round_takes_its_share_and_what_is_done_once(void **state)
{
    enum { LAYERS = 9 };
    struct ah_costs costs = {.layers = LAYERS, .micro_batches = 4, .widen_ns = 100};
    struct ah_item item = {.kind = AH_ITEM_BACKWARD, .partition = 1, .recompute = true};
    costs.ns[AH_ITEM_BACKWARD][AH_CLASS_BLOCK] = costs.ns[AH_ITEM_BACKWARD][AH_CLASS_HEAD] = 1000;
    costs.recompute_ns[AH_CLASS_BLOCK] = 500;
    assert_int_equal(ah__costs_item_ns(&costs, &item), 1500);
    item.micro_batches = 1;
    assert_int_equal(ah__costs_item_ns(&costs, &item), 100 + 1400 / 4);
    item.partition = LAYERS + 1; /* the head widens nothing */
    item.recompute = false;
    assert_int_equal(ah__costs_item_ns(&costs, &item), 250);
}

AH_TEST_CASES("sched/order", a_round_takes_its_share_and_what_is_done_once, chunks_come_as_soon_as_they_may,
              a_fetch_takes_the_buffer_that_is_left_first, the_earliest_of_those_that_wait_goes_first)
