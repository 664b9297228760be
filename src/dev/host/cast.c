/* Casts between float and bfloat16, in pieces over the pool. */
#include <string.h>

#include "dev/host/kernels.h"
#include "dev/host/task.h"

enum { CAST_PIECE = 1 << 16, IN_PLACE_FIRST = 2048 };

struct cast {
    const struct ah_host_kernels *kernels;
    const struct ah_task *task;
    int64_t from; /* first element to cast */
    struct ah_pieces pieces;
};

static int dtype_check(const char *operand, enum ah_dtype dtype)
{
    if (dtype != AH_F32 && dtype != AH_BF16)
        return ah__fail(AH_EDEVICE, "cast: %s is %s, expected F32 or BF16", operand, ah__dtype_name(dtype));
    return AH_OK;
}

static void cast_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct cast *job = context;
    enum ah_dtype to_dtype = job->task->as.cast.to_dtype, from_dtype = job->task->as.cast.from_dtype;
    int64_t at = job->from + index * job->pieces.size, n = ah__pieces_length(&job->pieces, index);
    char *to = (char *)job->task->as.cast.to + at * ah__dtype_bytes(to_dtype);
    const char *from = (const char *)job->task->as.cast.from + at * ah__dtype_bytes(from_dtype);
    if (to_dtype == from_dtype)
        memcpy(to, from, (size_t)(n * ah__dtype_bytes(to_dtype)));
    else if (to_dtype == AH_BF16)
        job->kernels->to_bf16((uint16_t *)(void *)to, (const float *)(const void *)from, n);
    else
        job->kernels->from_bf16((float *)(void *)to, (const uint16_t *)(const void *)from, n);
}

static void cast_range(struct ah_pool *pool, struct cast *job, int64_t from, int64_t to)
{
    job->from = from;
    job->pieces = ah__pieces(to - from, CAST_PIECE);
    ah__pool_run(pool, cast_piece, job->pieces.count, job);
}

/* Narrows in place. Elements [n, 2n) are written where the floats [n/2, n) were, which an earlier pass has read: so
 * each pass may run in pieces, and doubles the number of narrowed elements. */
static void narrow_in_place(struct ah_pool *pool, struct cast *job)
{
    uint16_t first[IN_PLACE_FIRST];
    int64_t count = job->task->as.cast.count, done = count < IN_PLACE_FIRST ? count : IN_PLACE_FIRST;
    job->kernels->to_bf16(first, job->task->as.cast.from, done);
    memcpy(job->task->as.cast.to, first, (size_t)done * sizeof *first);
    for (int64_t to; done < count; done = to) {
        to = 2 * done < count ? 2 * done : count;
        cast_range(pool, job, done, to);
    }
}

int ah__host_cast(struct ah_pool *pool, const struct ah_task *task)
{
    AH_TRY(dtype_check("output", task->as.cast.to_dtype));
    AH_TRY(dtype_check("input", task->as.cast.from_dtype));
    struct cast job = {.kernels = ah__host_kernels(), .task = task};
    if (task->as.cast.to == task->as.cast.from && task->as.cast.to_dtype != task->as.cast.from_dtype)
        narrow_in_place(pool, &job);
    else
        cast_range(pool, &job, 0, task->as.cast.count);
    int64_t bytes = ah__dtype_bytes(task->as.cast.to_dtype);
    for (int i = 0; i < task->as.cast.zero_count; i++) {
        const struct ah_range *zero = &task->as.cast.zeros[i];
        memset((char *)task->as.cast.to + zero->from * bytes, 0, (size_t)((zero->to - zero->from) * bytes));
    }
    return AH_OK;
}
