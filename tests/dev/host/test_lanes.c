/* Lanes: one with a thread and one whose work is done elsewhere, as a stream of an accelerator, wait for each other. */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "dev/host/clock.h"
#include "dev/host/lanes.h"

enum { ROUNDS = 200 };

/* The other side: a thread that does one work of the compute lane after the other, each after what it waits for. */
struct elsewhere {
    struct ah_lanes *lanes;
    atomic_int value;
    int ran, fail_at;
    uint64_t passed; /* the last sequence that the host lane announced */
    bool gone;
    int looks;
};

static int host_run(void *context, const struct ah_work *work, struct ah_done *done)
{
    struct elsewhere *e = context;
    done->start_ns = done->end_ns = ah__host_now_ns();
    e->ran++;
    int value = atomic_fetch_add(&e->value, 1);
    if (value != 2 * work->label.iteration)
        return ah__fail(AH_EINTERNAL, "found %d", value);
    if (e->fail_at == work->label.iteration)
        return ah__fail(AH_EDEVICE, "failed as asked");
    return AH_OK;
}

static void host_passed(void *context, struct ah_event event)
{
    struct elsewhere *e = context;
    if (event.lane == AH_LANE_HOST && event.sequence == e->passed + 1)
        e->passed++;
}

/* Where whoever does the compute lane's work is gone, it is over. */
static void look(void *context)
{
    struct elsewhere *e = context;
    if (!e->gone)
        return;
    struct ah_done done = {.lane = AH_LANE_COMPUTE, .status = ah__fail(AH_EDEVICE, "gone")};
    e->looks++;
    ah__lanes_finish(e->lanes, &done);
}

static void *stream_main(void *argument)
{
    struct elsewhere *e = argument;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        struct ah_done done = {.lane = AH_LANE_COMPUTE, .start_ns = ah__host_now_ns()};
        bool passed = ah__lanes_wait(e->lanes, (struct ah_event){AH_LANE_HOST, i});
        done.status = passed ? ah__lanes_failed(e->lanes) : AH_EINTERNAL;
        if (done.status == AH_OK && atomic_fetch_add(&e->value, 1) != (int)(2 * i - 1))
            done.status = ah__fail(AH_EINTERNAL, "the stream ran too early");
        done.end_ns = ah__host_now_ns();
        ah__lanes_finish(e->lanes, &done);
    }
    return NULL;
}

static struct ah_lanes *lanes_open(struct elsewhere *e)
{
    struct ah_lanes_config config = {
        .device = "test", .run = host_run, .passed = host_passed, .look = look, .context = e};
    config.kind[AH_LANE_HOST] = AH_LANE_THREAD;
    config.kind[AH_LANE_COMPUTE] = AH_LANE_ELSEWHERE;
    config.core[AH_LANE_HOST] = -1;
    assert_ok(ah__lanes_new(&e->lanes, &config));
    return e->lanes;
}

/* Host work i waits for stream work i - 1, which waits for host work i - 1. */
static void rounds_submit(struct ah_lanes *lanes)
{
    struct ah_event host, stream = {0};
    for (int i = 0; i < ROUNDS; i++) {
        struct ah_work work = {.lane = AH_LANE_HOST,
                               .waits = stream.sequence ? 1 : 0,
                               .wait = {stream},
                               .label = {.what = "round", .iteration = i}};
        assert_ok(ah__lanes_submit(lanes, &work, &host));
        work = (struct ah_work){.lane = AH_LANE_COMPUTE, .waits = 1, .wait = {host}};
        assert_ok(ah__lanes_submit(lanes, &work, &stream));
    }
}

static void lanes_here_and_elsewhere_wait_for_each_other(void **state)
{
    struct elsewhere e = {.fail_at = -1};
    struct ah_lanes *lanes = lanes_open(&e);
    pthread_t stream;
    struct ah_done done;
    rounds_submit(lanes);
    assert_int_equal(pthread_create(&stream, NULL, stream_main, &e), 0);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        assert_ok(ah__lanes_wait_any(lanes, &done));
        assert_int_equal(done.status, AH_OK);
        assert_int_equal(done.lane, i % 2 ? AH_LANE_COMPUTE : AH_LANE_HOST);
    }
    pthread_join(stream, NULL);
    assert_int_equal(atomic_load(&e.value), 2 * ROUNDS);
    assert_fails(ah__lanes_wait_any(lanes, &done), AH_EINTERNAL, "test device: waited with nothing in flight");
    ah__lanes_free(lanes);
    assert_int_equal(e.passed, ROUNDS);
}

static void a_failure_passes_through_both(void **state)
{
    struct elsewhere e = {.fail_at = 5};
    struct ah_lanes *lanes = lanes_open(&e);
    pthread_t stream;
    struct ah_done done;
    rounds_submit(lanes);
    assert_fails(ah__lanes_settle(lanes), AH_EINTERNAL, "in flight");
    assert_int_equal(pthread_create(&stream, NULL, stream_main, &e), 0);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        assert_ok(ah__lanes_wait_any(lanes, &done));
        assert_int_equal(done.status, i < 10 ? AH_OK : AH_EDEVICE);
        if (i >= 10)
            assert_string_equal(ah_error(), "lane host: round, partition 0, iteration 5: failed as asked");
    }
    pthread_join(stream, NULL);
    assert_int_equal(e.ran, 6);
    assert_int_equal(ah__lanes_failed(lanes), AH_EDEVICE);
    assert_ok(ah__lanes_settle(lanes));
    assert_int_equal(ah__lanes_failed(lanes), AH_OK);
    ah__lanes_free(lanes);
    assert_int_equal(e.passed, ROUNDS); /* those that were skipped too */
    ah__lanes_free(NULL);
}

/* Nobody does what the compute lane waits for: after a while the driver is asked to look. */
static void the_driver_looks_when_nothing_comes(void **state)
{
    struct elsewhere e = {.fail_at = -1, .gone = true};
    struct ah_lanes *lanes = lanes_open(&e);
    struct ah_event event;
    struct ah_done done;
    struct ah_work work = {.lane = AH_LANE_COMPUTE};
    assert_ok(ah__lanes_submit(lanes, &work, &event));
    assert_ok(ah__lanes_wait_any(lanes, &done));
    assert_fails(done.status, AH_EDEVICE, "gone");
    assert_int_equal(e.looks, 1);
    ah__lanes_free(lanes);
}

static void absent_lanes_are_refused(void **state)
{
    struct elsewhere e = {.fail_at = -1};
    struct ah_lanes *lanes = lanes_open(&e);
    struct ah_work work = {.lane = AH_LANE_COMM};
    struct ah_event event;
    assert_fails(ah__lanes_submit(lanes, &work, &event), AH_EINTERNAL, "test device: no lane 4");
    ah__lanes_free(lanes);
}

AH_TEST_CASES("dev/host/lanes", lanes_here_and_elsewhere_wait_for_each_other, a_failure_passes_through_both,
              the_driver_looks_when_nothing_comes, absent_lanes_are_refused)
