/* In which order the scheduler submits what may be submitted. */
#include "test.h"

#include <string.h>

#include "base/hash.h"
#include "sched/internal.h"
#include "sched/simulate.h"

/* A piece of parameters that is up to date, of a block whose first piece has its buffer, has not been submitted
 * although the lane has room. */
static bool a_piece_is_left(const struct ah_sched *sched)
{
    int chunks = sched->config.switches.chunks;
    for (int g = 1; g <= sched->config.switches.layers && sched->in_flight[AH_LANE_H2D] < QUEUE_DEPTH; g++) {
        const struct group *group = &sched->groups[g];
        int updated = group->ready_for == group->param_iteration ? chunks : group->updated;
        if (group->param_buffer >= 0 && group->fetched > 0 && group->fetched < updated)
            return true;
    }
    return false;
}

/* How often a piece of parameters was left when nothing could be submitted, and how often one overtook others; how
 * often a block took a buffer before others that are needed earlier while a piece was there for a buffer that is being
 * filled; how often a gradient left while another block's had begun to; how often the host waited for the compute lane.
 * And the items, as they were submitted. */
struct looks {
    int left, overtook, began_another, passed_over, lingered;
    struct ah_item *items; /* null: none are kept; of at most most_items, owned by the caller */
    int count, most_items;
};

static void look_at(struct looks *looks, const struct ah_sched *sched, const struct ah_next *given)
{
    const struct ah_item *item = &given->item;
    int next = ah__step_next(&sched->fetch)->partition, chunks = sched->config.switches.chunks;
    if (looks->items) {
        assert_true(looks->count < looks->most_items);
        looks->items[looks->count++] = *item;
    }
    bool overtakes = item->kind == AH_ITEM_PREFETCH && item->partition > next;
    looks->overtook += overtakes && item->chunk > 0;
    looks->began_another += overtakes && item->chunk == 0 && a_piece_is_left(sched);
    for (int g = 1; g <= sched->config.switches.layers && item->kind == AH_ITEM_OFFLOAD; g++)
        looks->passed_over +=
            g != item->partition && sched->groups[g].offloaded > 0 && sched->groups[g].offloaded < chunks;
    for (int w = 0; w < given->waits && given->lane == AH_LANE_HOST; w++)
        looks->lingered += given->wait[w].lane == AH_LANE_COMPUTE;
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
        looks->left += a_piece_is_left(sched);
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

/* Random machines, all blocks on the host, in pieces; gradients that have begun to leave go first, or not. */
static struct looks look_at_pieces(bool finishing, int rounds)
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
        random_costs(&costs, LAYERS);
        config.switches.buffers = config.switches.out_of_order = ah__sched_min_buffers(&config) + draw(0, 4);
        config.switches.finishing = finishing ? config.switches.buffers : 0;
        look_at_plan(&looks, &config, &costs);
    }
    return looks;
}

/* Of a block whose first piece has come the others come, too, whatever buffers the blocks before it need, and before
 * other blocks' that would take one. */
static void pieces_come_as_soon_as_they_may(void **state)
{
    (void)state;
    enum { ROUNDS = 200 };
    struct looks looks = look_at_pieces(false, ROUNDS);
    assert_int_equal(looks.left, 0);
    assert_int_equal(looks.began_another, 0);
    assert_true(looks.overtook > ROUNDS);
}

static void gradients_that_have_begun_to_leave_are_finished(void **state)
{
    (void)state;
    enum { ROUNDS = 100 };
    assert_true(look_at_pieces(false, ROUNDS).passed_over > ROUNDS);
    assert_int_equal(look_at_pieces(true, ROUNDS).passed_over, 0);
}

static bool is_fetch(const struct ah_item *item)
{
    return item->kind == AH_ITEM_PREFETCH || item->kind == AH_ITEM_REFETCH;
}

static bool is_host_update(const struct ah_item *item)
{
    return item->kind == AH_ITEM_UPDATE_HOST || item->kind == AH_ITEM_UPDATE_SPECULATIVE;
}

static bool same_item(const struct ah_item *a, const struct ah_item *b)
{
    return a->kind == b->kind && a->partition == b->partition && a->chunk == b->chunk && a->iteration == b->iteration;
}

/* By what a drawn order first differs: until then all is the same, so that it is one rule that made the difference. */
struct differences {
    int offloads, updates, fetches, states, staged, others;
};

static void differences_count(struct differences *differences, const struct looks *own, const struct looks *drawn)
{
    int at = 0;
    while (at < own->count && at < drawn->count && same_item(&own->items[at], &drawn->items[at]))
        at++;
    if (at == own->count || at == drawn->count)
        return;
    const struct ah_item *before = &own->items[at], *after = &drawn->items[at];
    if (before->kind == AH_ITEM_OFFLOAD && after->kind == AH_ITEM_OFFLOAD)
        differences->offloads++;
    else if (is_host_update(before) && is_host_update(after))
        differences->updates++;
    else if (before->kind == AH_ITEM_STATES_IN && after->kind == AH_ITEM_STATES_IN)
        differences->staged++;
    else if (is_fetch(before) && after->kind == AH_ITEM_STATES_IN)
        differences->states++;
    else if (is_fetch(before) && is_fetch(after))
        differences->fetches++;
    else
        differences->others++;
}

/* The last piece of it. */
static const struct ah_span *block_span(const struct ah_timeline *timeline, enum ah_item_kind kind, int block)
{
    size_t i = timeline->span_count;
    while (i > 0 && (timeline->spans[i - 1].item.kind != kind || timeline->spans[i - 1].item.partition != block))
        i--;
    assert_true(i > 0);
    return &timeline->spans[i - 1];
}

/* Three buffers for three blocks that give up their parameters, and gradients leave in two pieces. When block 1's
 * parameters are due for backward, one buffer waits for block 2's gradient. Of the others one is left when block 2's
 * backward is over, and one as soon as block 3's gradient has gone home, whose second piece is not on its lane yet. Who
 * queues behind a buffer takes the former. */
static void a_fetch_takes_the_buffer_that_is_left_first(void **state)
{
    (void)state;
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

/* Where only one kind of item takes long, only what waits for that lane has an order. */
static void slow_down(struct ah_costs *costs, enum ah_item_kind slow)
{
    enum { TIMES = 100, BACKWARD_NS = 100 };
    for (int class = 0; class < AH_CLASS_COUNT; class ++) {
        costs->ns[AH_ITEM_OFFLOAD][class] = costs->ns[AH_ITEM_RESULT][class] = 1;
        costs->ns[AH_ITEM_UPDATE_HOST][class] = 1;
        costs->ns[AH_ITEM_BACKWARD][class] = BACKWARD_NS;
        costs->ns[slow][class] = TIMES * BACKWARD_NS;
    }
    memset(costs->lanes.launch_ns, 0, sizeof costs->lanes.launch_ns);
    costs->lanes.notify_ns = 0;
}

/* A drawn order is one of gradients that leave, of updates, on the host and of staged states, of parameters that
 * come, and of states among those. */
static void a_drawn_order_is_of_four_kinds(void **state)
{
    (void)state;
    enum { LAYERS = 9, ROUNDS = 60, ORDERS = 5, ITEMS = 4096, LEAST = 5, KINDS = 4 };
    static const enum ah_item_kind slow[KINDS] = {AH_ITEM_OFFLOAD, AH_ITEM_UPDATE_HOST, AH_ITEM_PREFETCH,
                                                  AH_ITEM_STATES_IN};
    static struct ah_item own_items[ITEMS], drawn_items[ITEMS];
    struct differences differences = {0};
    for (int round = 0; round < ROUNDS; round++) {
        struct ah_costs costs;
        struct ah_sched_config config = {.switches = {.layers = LAYERS,
                                                      .world_size = 1,
                                                      .chunks = draw(1, 4),
                                                      .offload_optimizer = LAYERS,
                                                      .prefetch_distance = 1},
                                         .policy = &ah__policy_autohete};
        struct looks own = {.items = own_items, .most_items = ITEMS};
        random_costs(&costs, LAYERS);
        slow_down(&costs, slow[round % KINDS]);
        config.switches.staged = slow[round % KINDS] == AH_ITEM_STATES_IN ? draw(1, LAYERS) : 0;
        config.switches.buffers = config.switches.out_of_order = ah__sched_min_buffers(&config) + draw(0, 8);
        look_at_plan(&own, &config, &costs);
        for (config.switches.order = 1; config.switches.order <= ORDERS; config.switches.order++) {
            struct looks drawn = {.items = drawn_items, .most_items = ITEMS};
            look_at_plan(&drawn, &config, &costs);
            differences_count(&differences, &own, &drawn);
        }
    }
    assert_true(differences.offloads >= LEAST && differences.updates >= LEAST && differences.fetches >= LEAST);
    assert_true(differences.states >= LEAST && differences.staged >= LEAST);
    assert_int_equal(differences.others, 0);
}

/* Updates on the host need nothing of the compute lane; some wait for it where the plan has drawn pieces that linger,
 * fewer where it draws fewer. */
static void pieces_linger_where_they_are_drawn(void **state)
{
    (void)state;
    enum { LAYERS = 9, ROUNDS = 100, MANY = 5, FEW = 9, WITHIN = 5 }; /* one piece in 8, one in 128 */
    int lingered[2] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        struct ah_costs costs;
        struct ah_sched_config config = {.switches = {.layers = LAYERS,
                                                      .world_size = 1,
                                                      .chunks = 4,
                                                      .offload_optimizer = LAYERS,
                                                      .prefetch_distance = 1},
                                         .policy = &ah__policy_autohete};
        random_costs(&costs, LAYERS);
        config.switches.buffers = config.switches.out_of_order = ah__sched_min_buffers(&config);
        for (int few = 0; few < 2; few++) {
            struct looks looks = {0};
            config.switches.order = AH_ORDERS * ((few ? FEW : MANY) + WITHIN * round) + draw(0, AH_ORDERS - 1);
            look_at_plan(&looks, &config, &costs);
            lingered[few] += looks.lingered;
        }
        struct looks looks = {0};
        config.switches.order = draw(0, AH_ORDERS - 1);
        look_at_plan(&looks, &config, &costs);
        assert_int_equal(looks.lingered, 0);
    }
    assert_true(lingered[0] > ROUNDS && lingered[1] > 0 && lingered[1] < lingered[0] / 4);
}

AH_TEST_SUITE("sched/order", cmocka_unit_test(pieces_come_as_soon_as_they_may),
              cmocka_unit_test(gradients_that_have_begun_to_leave_are_finished),
              cmocka_unit_test(a_fetch_takes_the_buffer_that_is_left_first),
              cmocka_unit_test(a_drawn_order_is_of_four_kinds), cmocka_unit_test(pieces_linger_where_they_are_drawn))
