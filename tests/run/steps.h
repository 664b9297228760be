/* Trains a run for some steps as its caller: two iterations in flight, batches and constants by functions. */
#ifndef AH_TESTS_RUN_STEPS_H
#define AH_TESTS_RUN_STEPS_H

#include "run/run.h"
#include "test.h"

enum { STEPS_MOST_TOKENS = 1 << 14 };

struct steps {
    /* Fills the arrays of an iteration; positions are null where the partition is not packed. */
    int (*batch)(const struct ah_batch *to, int64_t iteration, void *context);
    void (*adam)(struct ah_adam *out, int64_t iteration, void *context);
    int (*result)(const struct ah_run_result *result, void *context); /* null: nobody looks */
    void *context;
    bool packed;
};

static inline void steps_begin(struct ah_run *run, const struct steps *steps, int64_t iteration)
{
    static _Thread_local int32_t ids[STEPS_MOST_TOKENS], targets[STEPS_MOST_TOKENS], positions[STEPS_MOST_TOKENS];
    const struct ah_batch batch = {ids, targets, steps->packed ? positions : NULL};
    struct ah_adam adam;
    assert_ok(steps->batch(&batch, iteration, steps->context));
    steps->adam(&adam, iteration, steps->context);
    assert_ok(ah__run_begin(run, &batch, &adam, 0));
}

/* Iterations [first, first + count), and drains. */
static inline void steps_train(struct ah_run *run, const struct steps *steps, int64_t first, int64_t count)
{
    int64_t begun = first;
    for (int64_t iteration = first; iteration < first + count; iteration++) {
        struct ah_run_result result;
        for (; begun < first + count && begun < iteration + AH_RUN_IN_FLIGHT; begun++)
            steps_begin(run, steps, begun);
        assert_ok(ah__run_wait(run, &result));
        assert_int_equal(result.iteration, iteration);
        if (steps->result)
            assert_ok(steps->result(&result, steps->context));
    }
    assert_ok(ah__run_drain(run));
}

#endif
