/* The optimizer step and the sum of squares of a gradient, in pieces over the pool. */
#include <math.h>

#include "dev/host/kernels.h"
#include "dev/host/states.h"
#include "dev/host/task.h"

enum { ADAM_PIECE = 1 << 16, SQUARES_PIECE = 1 << 16 };

static int moments_check(const struct ah_task *task)
{
    const struct ah_state_format *format = ah__state_format(task->as.adam.moment_dtype);
    if (!format)
        return ah__fail(AH_EDEVICE, "update: moments in %s, expected F32, BF16 or U8",
                        ah__dtype_name(task->as.adam.moment_dtype));
    if (task->as.adam.count % format->group || task->as.adam.decayed % format->group)
        return ah__fail(AH_EDEVICE, "update: %lld elements, %lld of them decayed, expected groups of %d",
                        (long long)task->as.adam.count, (long long)task->as.adam.decayed, (int)format->group);
    return AH_OK;
}

static int dtype_check(const char *what, enum ah_dtype dtype)
{
    if (dtype != AH_F32 && dtype != AH_BF16)
        return ah__fail(AH_EDEVICE, "%s in %s, expected F32 or BF16", what, ah__dtype_name(dtype));
    return AH_OK;
}

struct update {
    const struct ah_host_kernels *kernels;
    const struct ah_task *task;
    struct ah_pieces pieces;
    float scale;
};

static void adam_range(const struct update *job, int64_t from, int64_t to, float decay_factor)
{
    const struct ah_task *t = job->task;
    bool apart = t->as.adam.to_p != NULL;
    int64_t param = from * ah__dtype_bytes(t->as.adam.dtype);
    int64_t moment = ah__state_bytes(t->as.adam.moment_dtype, from);
    struct ah_adam_piece piece = {
        .p = (const char *)t->as.adam.p + param,
        .m = (const char *)t->as.adam.m + moment,
        .v = (const char *)t->as.adam.v + moment,
        .to_p = (char *)(apart ? t->as.adam.to_p : t->as.adam.p) + param,
        .to_m = (char *)(apart ? t->as.adam.to_m : t->as.adam.m) + moment,
        .to_v = (char *)(apart ? t->as.adam.to_v : t->as.adam.v) + moment,
        .rest = t->as.adam.rest ? (const uint16_t *)t->as.adam.rest + from : NULL,
        .to_rest = t->as.adam.rest ? (uint16_t *)(apart ? t->as.adam.to_rest : t->as.adam.rest) + from : NULL,
        .dtype = t->as.adam.dtype,
        .moment_dtype = t->as.adam.moment_dtype,
        .first = (uint32_t)(t->as.adam.first + from),
        .g = (const char *)t->as.adam.g + param,
        .count = to - from,
        .adam = &t->as.adam.adam,
        .decay_factor = decay_factor,
        .scale = job->scale,
    };
    if (from < to)
        job->kernels->adam(&piece);
}

static void adam_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct update *job = context;
    int64_t from = index * job->pieces.size, to = from + ah__pieces_length(&job->pieces, index);
    int64_t decayed = job->task->as.adam.decayed;
    int64_t middle = decayed < from ? from : decayed > to ? to : decayed;
    adam_range(job, from, middle, job->task->as.adam.adam.decay_factor);
    adam_range(job, middle, to, 1.0F); /* exact */
}

/* Returns pieces of whole groups of elements. */
static struct ah_pieces adam_pieces(int64_t count)
{
    struct ah_pieces pieces = ah__pieces(count, ADAM_PIECE);
    return ah__pieces(count, (pieces.size + AH_CODE8_GROUP - 1) / AH_CODE8_GROUP * AH_CODE8_GROUP);
}

int ah__host_adam(struct ah_pool *pool, const struct ah_task *task)
{
    AH_TRY(dtype_check("update: parameters", task->as.adam.dtype));
    AH_TRY(moments_check(task));
    /* A factor of one is exact, so that no scale and a scale of 1 are the same bits. */
    struct update job = {.kernels = ah__host_kernels(),
                         .task = task,
                         .pieces = adam_pieces(task->as.adam.count),
                         .scale = task->as.adam.scale ? *task->as.adam.scale : 1.0F};
    if (isnan(job.scale)) /* the step is skipped: nothing changes */
        return task->as.adam.to_p ? ah__fail(AH_EINTERNAL, "update: skipped into memory apart") : AH_OK;
    ah__pool_run(pool, adam_piece, job.pieces.count, &job);
    return AH_OK;
}

struct squares {
    const struct ah_host_kernels *kernels;
    const struct ah_task *task;
    struct ah_pieces pieces;
    double *partial;
};

static void squares_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct squares *job = context;
    enum ah_dtype dtype = job->task->as.sqnorm.dtype;
    const char *from = (const char *)job->task->as.sqnorm.g + index * job->pieces.size * ah__dtype_bytes(dtype);
    job->partial[index] = job->kernels->sum_squares(from, dtype, ah__pieces_length(&job->pieces, index));
}

int ah__host_sqnorm(struct ah_pool *pool, const struct ah_task *task)
{
    AH_TRY(dtype_check("norm: gradient", task->as.sqnorm.dtype));
    int64_t count = task->as.sqnorm.count, least = (count + AH_POOL_PARTIALS - 1) / AH_POOL_PARTIALS;
    struct squares job = {.kernels = ah__host_kernels(),
                          .task = task,
                          .partial = ah__pool_partials(pool),
                          .pieces = ah__pieces(count, least > SQUARES_PIECE ? least : SQUARES_PIECE)};
    ah__pool_run(pool, squares_piece, job.pieces.count, &job);
    double sum = 0;
    for (int i = 0; i < job.pieces.count; i++)
        sum += job.partial[i];
    *task->as.sqnorm.out = sum;
    return AH_OK;
}
