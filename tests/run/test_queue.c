/* A run's queue: iterations run without their caller, results come in order, what fails on the run's thread is said on
 * the caller's. */
#include "run/exact.h"

#include <time.h>

#include "base/alloc.h"
#include "bind/bind.h"

struct queue_run {
    struct tiny tiny;
    struct ah_dev *dev;
    struct ah_run *run;
};

static void queue_open(struct queue_run *q, struct ah_plan plan)
{
    const struct ah_dev_options options = {.threads = 1, .link_bytes_per_s = 400000000};
    tiny_init(&q->tiny, tiny_tied, 0);
    assert_ok(ah_dev_open(&q->dev, "cpu", &options));
    assert_ok(ah__workspace_bytes(&plan.workspace_bytes, q->tiny.partition, q->dev));
    assert_ok(ah__run_new(&q->run, q->tiny.partition, &plan, q->dev, 0));
    assert_ok(ah__run_init(q->run, 11));
}

static void queue_close(struct queue_run *q)
{
    ah__run_free(q->run);
    ah_dev_close(q->dev);
    tiny_fini(&q->tiny);
}

/* Optimizer and parameters on the host, so that every lane has work. */
static struct ah_plan offloading(void)
{
    return (struct ah_plan){.switches = {.layers = TINY_LAYERS,
                                         .checkpoint = 2,
                                         .offload_params = 2,
                                         .offload_optimizer = TINY_LAYERS,
                                         .buffers = 4,
                                         .prefetch_distance = 1,
                                         .embedding_on_host = true,
                                         .head_on_host = true},
                            .policy = "autohete"};
}

static void begin(struct queue_run *q, int64_t iteration)
{
    struct tiny_run context = {.tiny = &q->tiny};
    struct steps steps = {.batch = tiny_run_batch, .adam = tiny_adam, .context = &context};
    steps_begin(q->run, &steps, iteration);
}

static const struct ah_span *span_of(struct ah_run *run, enum ah_item_kind kind, int64_t iteration)
{
    const struct ah_timeline *timeline = ah__run_timeline(run);
    for (size_t i = 0; i < timeline->span_count; i++)
        if (timeline->spans[i].item.kind == kind && timeline->spans[i].item.iteration == iteration)
            return &timeline->spans[i];
    fail_msg("no span of iteration %lld", (long long)iteration);
    return NULL;
}

/* Both run to their end, one into the other, before the caller asks for anything. */
static void two_iterations_run_while_the_caller_is_away(void **state)
{
    struct queue_run q;
    struct ah_run_result result;
    queue_open(&q, offloading());
    begin(&q, 0);
    begin(&q, 1);
    assert_ok(ah__run_drain(q.run));
    int64_t back_ns = q.dev->ops->now_ns(q.dev);
    assert_true(span_of(q.run, AH_ITEM_INPUT, 1)->start_ns < span_of(q.run, AH_ITEM_RESULT, 0)->end_ns);
    for (int iteration = 0; iteration < 2; iteration++) {
        assert_ok(ah__run_wait(q.run, &result));
        assert_int_equal(result.iteration, iteration);
        assert_true(result.now_ns <= back_ns);
        for (int lane = 0; lane < AH_LANE_COMM; lane++)
            assert_true(result.busy_ns[lane] > 0);
    }
    queue_close(&q);
}

/* The caller is away behind every result: one iteration is in flight then, and ends when it will. The bits are those of
 * a caller that hurries. */
static void a_slow_caller_trains_the_same_bits(void **state)
{
    static const struct timespec nap = {.tv_nsec = 20000000};
    const struct exact_device cpu = {.open = ah__dev_cpu_open, .is_cpu = true};
    const struct ah_dev_options options = {.threads = 1};
    struct queue_run q;
    struct outcome expected, slow = {.steps = 0};
    struct ah_plan plan = offloading();
    queue_open(&q, plan);
    exact_train(&expected, &cpu, &q.tiny, &plan, &options);
    uint64_t allocations = ah__alloc_count();
    begin(&q, 0);
    for (int64_t iteration = 0; iteration < TINY_STEPS; iteration++) {
        struct ah_run_result result;
        if (iteration + 1 < TINY_STEPS)
            begin(&q, iteration + 1);
        assert_ok(ah__run_wait(q.run, &result));
        slow.loss[iteration] = result.loss;
        slow.norm[iteration] = result.grad_norm;
        slow.factor[iteration] = result.clip_factor;
        slow.steps++;
        nanosleep(&nap, NULL);
    }
    assert_ok(ah__run_drain(q.run));
    assert_int_equal(ah__alloc_count() - allocations, 0);
    slow.states = tiny_hash_states(q.run, q.tiny.partition);
    exact_same(&expected, &slow, &plan, &options);
    queue_close(&q);
}

static void a_queue_is_as_long_as_it_says(void **state)
{
    struct queue_run q;
    struct ah_run_result result;
    static int32_t ids[STEPS_MOST_TOKENS];
    const struct ah_batch batch = {ids, ids, NULL};
    const struct ah_adam adam = {0};
    struct ah_plan plan = offloading();
    queue_open(&q, plan);
    assert_fails(ah__run_wait(q.run, &result), AH_EINTERNAL, "run: waited with nothing in flight");
    begin(&q, 0);
    begin(&q, 1);
    assert_fails(ah__run_begin(q.run, &batch, &adam, 0), AH_EINTERNAL,
                 "run: found 2 iterations begun and not waited for, expected fewer");
    assert_ok(ah__run_wait(q.run, &result));
    begin(&q, 2);
    for (int64_t iteration = 1; iteration <= 2; iteration++) {
        assert_ok(ah__run_wait(q.run, &result));
        assert_int_equal(result.iteration, iteration);
    }
    assert_ok(ah__run_drain(q.run));
    assert_fails(ah__run_wait(q.run, &result), AH_EINTERNAL, "run: waited with nothing in flight");
    queue_close(&q);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static const struct ah_dev_ops *whole_ops;

/* All but the update of iteration 1 works. */
static int submit_until(struct ah_dev *dev, const struct ah_work *work, struct ah_event *done)
{
    if (work->lane == AH_LANE_HOST && work->label.iteration == 1)
        return ah__fail(AH_EDEVICE, "the host lane is gone");
    return whole_ops->submit(dev, work, done);
}

static void a_failure_reaches_the_caller_behind_the_results(void **state)
{
    struct queue_run q;
    struct ah_run_result result;
    static int32_t ids[STEPS_MOST_TOKENS];
    const struct ah_batch batch = {ids, ids, NULL};
    const struct ah_adam adam = {0};
    double loss;
    queue_open(&q, offloading());
    whole_ops = q.dev->ops;
    struct ah_dev_ops ops = *whole_ops;
    ops.submit = submit_until;
    q.dev->ops = &ops;
    begin(&q, 0);
    begin(&q, 1);
    ah__fail(AH_EINTERNAL, "another message");
    assert_ok(ah__run_wait(q.run, &result));
    assert_int_equal(result.iteration, 0);
    int status = ah__run_wait(q.run, &result);
    if (status == AH_OK) /* the norm came before the update */
        status = ah__run_drain(q.run);
    assert_fails(status, AH_EDEVICE, "the host lane is gone");
    assert_fails(ah__run_drain(q.run), AH_EDEVICE, "the host lane is gone");
    assert_fails(ah__run_begin(q.run, &batch, &adam, 0), AH_EDEVICE, "the host lane is gone");
    assert_fails(ah__run_eval(q.run, &batch, &loss), AH_EDEVICE, "the host lane is gone");
    q.dev->ops = whole_ops;
    queue_close(&q);
}

/* What is in flight ends before the memory is given back. */
static void a_run_may_be_freed_at_any_time(void **state)
{
    for (int begun = 0; begun <= 2; begun++) {
        struct queue_run q;
        queue_open(&q, offloading());
        for (int64_t iteration = 0; iteration < begun; iteration++)
            begin(&q, iteration);
        queue_close(&q);
    }
}

AH_TEST_CASES("run/queue", two_iterations_run_while_the_caller_is_away, a_slow_caller_trains_the_same_bits,
              a_queue_is_as_long_as_it_says, a_failure_reaches_the_caller_behind_the_results,
              a_run_may_be_freed_at_any_time)
