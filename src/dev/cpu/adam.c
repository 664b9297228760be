/* The optimizer step and the sum of squares of a gradient, in chunks over the pool. */
#include "dev/cpu/kernels.h"

enum { ADAM_CHUNK = 1 << 16, SQUARES_CHUNK = 1 << 16 };

struct update {
    const struct ah_kernels *kernels;
    const struct ah_task *task;
    struct ah_cut cut;
    double *partial;
};

static int dtype_check(const char *what, enum ah_dtype dtype)
{
    if (dtype != AH_F32)
        return ah__fail(AH_EDEVICE, "cpu: %s: gradient is %s, expected F32", what, ah__dtype_name(dtype));
    return AH_OK;
}

static void adam_range(const struct update *job, int64_t from, int64_t to, float decay_factor)
{
    const struct ah_task *t = job->task;
    if (from < to)
        job->kernels->adam(t->as.adam.p + from, t->as.adam.m + from, t->as.adam.v + from, (const float *)t->as.adam.g + from,
                           to - from, &t->as.adam.adam, decay_factor);
}

static void adam_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct update *job = context;
    int64_t from = index * job->cut.size, to = from + ah__cut_length(&job->cut, index);
    int64_t decayed = job->task->as.adam.decayed;
    int64_t middle = decayed < from ? from : decayed > to ? to : decayed;
    adam_range(job, from, middle, job->task->as.adam.adam.decay_factor);
    adam_range(job, middle, to, 1.0F); /* exact */
}

int ah__cpu_adam(struct ah_pool *pool, const struct ah_task *task)
{
    AH_TRY(dtype_check("update", task->as.adam.grad_dtype));
    if (task->as.adam.half)
        return ah__fail(AH_EDEVICE, "cpu: update: a half-precision copy is asked for, expected none");
    struct update job = {.kernels = ah__kernels(), .task = task, .cut = ah__cut(task->as.adam.count, ADAM_CHUNK)};
    ah__pool_run(pool, adam_piece, job.cut.count, &job);
    return AH_OK;
}

static void squares_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct update *job = context;
    job->partial[index] = job->kernels->sum_squares((const float *)job->task->as.sqnorm.g + index * job->cut.size,
                                                    ah__cut_length(&job->cut, index));
}

int ah__cpu_sqnorm(struct ah_pool *pool, const struct ah_task *task)
{
    AH_TRY(dtype_check("norm", task->as.sqnorm.dtype));
    int64_t count = task->as.sqnorm.count, least = (count + AH_POOL_PARTIALS - 1) / AH_POOL_PARTIALS;
    struct update job = {.kernels = ah__kernels(), .task = task, .partial = ah__pool_partials(pool),
                         .cut = ah__cut(count, least > SQUARES_CHUNK ? least : SQUARES_CHUNK)};
    ah__pool_run(pool, squares_piece, job.cut.count, &job);
    double sum = 0;
    for (int i = 0; i < job.cut.count; i++)
        sum += job.partial[i];
    *task->as.sqnorm.out = sum;
    return AH_OK;
}
