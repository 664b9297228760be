/* Casts between float and bfloat16, in pieces over the pool. */
#include <string.h>

#include "dev/host/kernels.h"
#include "dev/host/task.h"

enum { CAST_PIECE = 1 << 16 };

struct cast {
    const struct ah_host_kernels *kernels;
    const struct ah_task *task;
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
    int64_t at = index * job->pieces.size, n = ah__pieces_length(&job->pieces, index);
    char *to = (char *)job->task->as.cast.to + at * ah__dtype_bytes(to_dtype);
    const char *from = (const char *)job->task->as.cast.from + at * ah__dtype_bytes(from_dtype);
    if (to_dtype == from_dtype)
        memcpy(to, from, (size_t)(n * ah__dtype_bytes(to_dtype)));
    else if (to_dtype == AH_BF16)
        job->kernels->to_bf16((uint16_t *)(void *)to, (const float *)(const void *)from, n);
    else
        job->kernels->from_bf16((float *)(void *)to, (const uint16_t *)(const void *)from, n);
}

int ah__host_cast(struct ah_pool *pool, const struct ah_task *task)
{
    AH_TRY(dtype_check("output", task->as.cast.to_dtype));
    AH_TRY(dtype_check("input", task->as.cast.from_dtype));
    struct cast job = {
        .kernels = ah__host_kernels(), .task = task, .pieces = ah__pieces(task->as.cast.count, CAST_PIECE)};
    ah__pool_run(pool, cast_piece, job.pieces.count, &job);
    return AH_OK;
}
