/* The simulated device: when work that is nothing but a time begins and ends. */
#include "dev/sim.h"

#include "test.h"

static struct ah_dev *sim_open(struct ah_sim_lanes *lanes)
{
    struct ah_dev *dev;
    for (int a = 0; a < AH_LANE_COUNT; a++)
        for (int b = 0; b < AH_LANE_COUNT; b++)
            if (lanes->slowdown[a][b] < 1)
                lanes->slowdown[a][b] = 1;
    assert_ok(ah__dev_sim_open(&dev, lanes));
    return dev;
}

/* `ns` at full speed, after what *first and *second stand for (null: nothing). */
static struct ah_event submit(struct ah_dev *dev, enum ah_lane lane, int64_t ns, const struct ah_event *first,
                              const struct ah_event *second)
{
    struct ah_work work = {.lane = lane, .tasks = 1, .task = {{.type = AH_TASK_DELAY, .as.delay.ns = ns}}};
    struct ah_event done;
    if (first)
        work.wait[work.waits++] = *first;
    if (second)
        work.wait[work.waits++] = *second;
    assert_ok(dev->ops->submit(dev, &work, &done));
    return done;
}

static void next_is(struct ah_dev *dev, enum ah_lane lane, int64_t start_ns, int64_t end_ns)
{
    struct ah_done done;
    assert_ok(dev->ops->wait_any(dev, &done));
    assert_int_equal(done.lane, lane);
    assert_int_equal(done.start_ns, start_ns);
    assert_int_equal(done.end_ns, end_ns);
}

static void a_lane_takes_time_between_two_pieces_of_work(void **state)
{
    struct ah_sim_lanes lanes = {.launch_ns[AH_LANE_H2D] = 7};
    struct ah_dev *dev = sim_open(&lanes);
    submit(dev, AH_LANE_H2D, 100, NULL, NULL);
    submit(dev, AH_LANE_H2D, 50, NULL, NULL);
    next_is(dev, AH_LANE_H2D, 7, 107);
    next_is(dev, AH_LANE_H2D, 114, 164);
    dev->ops->close(dev);
}

static void work_waits_for_all_its_events(void **state)
{
    struct ah_sim_lanes lanes = {.launch_ns = {0}};
    for (int turn = 0; turn < 2; turn++) {
        struct ah_dev *dev = sim_open(&lanes);
        struct ah_event copy = submit(dev, AH_LANE_H2D, 30, NULL, NULL),
                        host = submit(dev, AH_LANE_HOST, 80, NULL, NULL);
        submit(dev, AH_LANE_COMPUTE, 5, turn ? &host : &copy, turn ? &copy : &host);
        next_is(dev, AH_LANE_H2D, 0, 30);
        next_is(dev, AH_LANE_HOST, 0, 80);
        next_is(dev, AH_LANE_COMPUTE, 80, 85);
        dev->ops->close(dev);
    }
}

/* Slowdowns add: 1 + 0.5 + 0.25 while both others run, 1.5 when one of them has ended. */
static void slowdowns_of_lanes_add(void **state)
{
    struct ah_sim_lanes lanes = {.slowdown[AH_LANE_COMPUTE] = {[AH_LANE_H2D] = 1.5, [AH_LANE_D2H] = 1.25}};
    struct ah_dev *dev = sim_open(&lanes);
    submit(dev, AH_LANE_COMPUTE, 100, NULL, NULL);
    submit(dev, AH_LANE_H2D, 1000, NULL, NULL);
    submit(dev, AH_LANE_D2H, 70, NULL, NULL);
    next_is(dev, AH_LANE_D2H, 0, 70);
    next_is(dev, AH_LANE_COMPUTE, 0, 70 + (100 - 40) * 3 / 2);
    next_is(dev, AH_LANE_H2D, 0, 1000);
    dev->ops->close(dev);
}

/* What is submitted after a completion cannot begin before the driver has heard of it. */
static void the_driver_hears_late(void **state)
{
    struct ah_sim_lanes lanes = {.notify_ns = 11};
    struct ah_dev *dev = sim_open(&lanes);
    submit(dev, AH_LANE_COMPUTE, 20, NULL, NULL);
    next_is(dev, AH_LANE_COMPUTE, 0, 20);
    assert_int_equal(dev->ops->now_ns(dev), 31);
    submit(dev, AH_LANE_COMPUTE, 20, NULL, NULL);
    next_is(dev, AH_LANE_COMPUTE, 31, 51);
    dev->ops->close(dev);
}

AH_TEST_CASES("dev/sim", a_lane_takes_time_between_two_pieces_of_work, work_waits_for_all_its_events,
              slowdowns_of_lanes_add, the_driver_hears_late)
