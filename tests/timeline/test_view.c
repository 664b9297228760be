/* Which iterations are shown, and the sums over them. */
#include "test.h"
#include "timeline/view.h"

static void span(struct ah_timeline *timeline, enum ah_item_kind kind, int64_t iteration, int64_t start, int64_t end)
{
    struct ah_span span = {
        .item = {.kind = kind, .iteration = iteration}, .lane = AH_LANE_COMPUTE, .start_ns = start, .end_ns = end};
    if (kind == AH_ITEM_UPDATE_HOST)
        span.lane = AH_LANE_HOST;
    ah__timeline_span(timeline, &span);
}

/* Iterations of 100 ns each, from `first` on, with computing from 20 to 90 and a host update from 95 to 115. */
static struct ah_timeline *plain(int64_t first, int count)
{
    struct ah_timeline *timeline;
    assert_ok(ah__timeline_new(&timeline, 1, 1, count + 1));
    for (int64_t k = first; k < first + count; k++) {
        span(timeline, AH_ITEM_FORWARD, k, k * 100 + 20, k * 100 + 50);
        span(timeline, AH_ITEM_BACKWARD, k, k * 100 + 50, k * 100 + 90);
        span(timeline, AH_ITEM_UPDATE_HOST, k, k * 100 + 95, k * 100 + 115);
    }
    return timeline;
}

static void last_followed_pair(void **state)
{
    static const struct {
        int64_t from;
        int count;
        int64_t first, last, start_ns, end_ns;
    } rows[] = {
        {0, 5, 2, 3, 190, 390}, {7, 4, 8, 9, 790, 990}, {0, 3, 1, 2, 90, 290},
        {0, 2, 0, 1, 20, 190},  {4, 1, 4, 4, 420, 490},
    };
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        struct ah_timeline *timeline = plain(rows[i].from, rows[i].count);
        struct ah_view view;
        assert_ok(ah__view_init(&view, timeline));
        assert_int_equal(view.first, rows[i].first);
        assert_int_equal(view.last, rows[i].last);
        assert_int_equal(view.start_ns, rows[i].start_ns);
        assert_int_equal(view.boundary_ns, rows[i].first * 100 + 90);
        assert_int_equal(view.end_ns, rows[i].end_ns);
        int64_t mean_ns = (rows[i].end_ns - rows[i].start_ns) / (rows[i].last - rows[i].first + 1);
        assert_int_equal(view.step_ns, rows[i].count > 2 ? 100 : mean_ns);
        ah_timeline_free(timeline);
    }
}

/* A record says any numbers: none takes memory for all iterations between two of them. */
static void far_iterations_are_refused(void **state)
{
    struct ah_timeline *timeline = plain(0, 3);
    struct ah_view view;
    span(timeline, AH_ITEM_FORWARD, (int64_t)1 << 50, 320, 350);
    assert_fails(ah__view_init(&view, timeline), AH_EINPUT, "found iterations 0 to 1125899906842624, expected at most");
    ah_timeline_free(timeline);
}

static void iterations_without_backward_do_not_count(void **state)
{
    struct ah_timeline *timeline = plain(0, 3);
    span(timeline, AH_ITEM_FORWARD, 3, 320, 350);
    struct ah_view view;
    assert_ok(ah__view_init(&view, timeline));
    assert_int_equal(view.first, 1);
    assert_int_equal(view.last, 2);
    ah__timeline_clear(timeline);
    span(timeline, AH_ITEM_FORWARD, 0, 0, 5);
    assert_fails(ah__view_init(&view, timeline), AH_EINPUT, "no complete iteration");
    ah__timeline_clear(timeline);
    assert_fails(ah__view_init(&view, timeline), AH_EINPUT, "no complete iteration");
    ah_timeline_free(timeline);
}

static void lanes_are_cut_to_the_view(void **state)
{
    struct ah_timeline *timeline = plain(0, 5);
    struct ah_view view;
    assert_ok(ah__view_init(&view, timeline));
    struct ah_view_lane compute, host, comm;
    ah__view_lane(&compute, timeline, &view, AH_LANE_COMPUTE);
    ah__view_lane(&host, timeline, &view, AH_LANE_HOST);
    ah__view_lane(&comm, timeline, &view, AH_LANE_COMM);
    assert_int_equal(compute.busy_ns, 140);
    assert_int_equal(compute.items, 4);
    assert_int_equal(compute.longest_gap_ns, 30);
    /* 195..215 and 295..315; the next starts at 395, after the view's end at 390 */
    assert_int_equal(host.busy_ns, 40);
    assert_int_equal(host.longest_gap_ns, 80);
    assert_int_equal(comm.items, 0);
    assert_int_equal(comm.longest_gap_ns, 200);
    ah_timeline_free(timeline);
}

AH_TEST_CASES("timeline/view", far_iterations_are_refused, last_followed_pair, iterations_without_backward_do_not_count,
              lanes_are_cut_to_the_view)
