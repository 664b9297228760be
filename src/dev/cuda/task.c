/* Runs a task on the lanes of the CUDA device: streams by launches and copies, the host lane by dev/host. */
#include "dev/cuda/task.h"

#include <string.h>

#include "dev/clip.h"
#include "dev/cuda/collective.h"
#include "dev/cuda/kernels.h"
#include "dev/cuda/program.h"
#include "dev/host/clock.h"
#include "dev/host/task.h"

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static int program_enqueue(cudaStream_t stream, const struct ah_task *task)
{
    const struct ah_cuda_program *first = (const struct ah_cuda_program *)task->as.program.prepared;
    const struct ah_cuda_program *then = (const struct ah_cuda_program *)task->as.program.then;
    char *base[AH_SPACE_COUNT];
    memcpy(base, task->as.program.base, sizeof base);
    for (int left = task->as.program.repeats;; left--) {
        AH_TRY(ah__cuda_program_enqueue(first, stream, base));
        if (then)
            AH_TRY(ah__cuda_program_enqueue(then, stream, base));
        if (left <= 1)
            return AH_OK;
        for (int i = 0; i < AH_SPACE_COUNT; i++)
            if (base[i])
                base[i] += task->as.program.step[i];
    }
}

static int copy_enqueue(cudaStream_t stream, enum ah_lane lane, const struct ah_task *task)
{
    enum cudaMemcpyKind kind = lane == AH_LANE_H2D   ? cudaMemcpyHostToDevice
                               : lane == AH_LANE_D2H ? cudaMemcpyDeviceToHost
                                                     : cudaMemcpyDeviceToDevice;
    if (task->as.copy.bytes)
        AH_CUDA_TRY(cudaMemcpyAsync(task->as.copy.to, task->as.copy.from, (size_t)task->as.copy.bytes, kind, stream));
    return AH_OK;
}

int ah__cuda_task(struct ah_cuda *cuda, enum ah_lane lane, const struct ah_task *task)
{
    struct ah_cuda_stream *stream = &cuda->stream[lane];
    switch (task->type) {
    case AH_TASK_PROGRAM:
        return program_enqueue(stream->work, task);
    case AH_TASK_COPY:
        return copy_enqueue(stream->work, lane, task);
    case AH_TASK_CAST:
        return ah__cuda_status("cast", ah__cuda_cast(stream->work, task));
    case AH_TASK_EXPAND:
        return ah__cuda_status("expand", ah__cuda_expand(stream->work, task));
    case AH_TASK_ADAM:
        return ah__cuda_status("adam", ah__cuda_adam(stream->work, task));
    case AH_TASK_SQNORM:
        return ah__cuda_status("sqnorm", ah__cuda_sqnorm(stream->work, task, stream->partials));
    case AH_TASK_CLIP:
        return ah__cuda_status("clip", ah__cuda_clip(stream->work, task));
    case AH_TASK_DELAY: /* regions.h's check refuses both */
    case AH_TASK_DISK:
    case AH_TASK_COLLECTIVE:
        break;
    }
    return ah__cuda_collective(cuda, stream->work, task);
}

/* ---- the host lane ----------------------------------------------------------------------------------------------- */

static int host_task(struct ah_cuda *cuda, enum ah_lane lane, const struct ah_task *task)
{
    AH_TRY(ah__regions_check(&cuda->regions, lane, task));
    switch (task->type) {
    case AH_TASK_COPY:
        memcpy(task->as.copy.to, task->as.copy.from, (size_t)task->as.copy.bytes);
        return AH_OK;
    case AH_TASK_CAST:
        return ah__host_cast(cuda->pool, task);
    case AH_TASK_EXPAND:
        return ah__host_expand(cuda->pool, task);
    case AH_TASK_ADAM:
        return ah__host_adam(cuda->pool, task);
    case AH_TASK_SQNORM:
        return ah__host_sqnorm(cuda->pool, task);
    case AH_TASK_CLIP:
        *task->as.clip.scale =
            ah__clip_scale(ah__clip_norm(task->as.clip.squares, task->as.clip.count), task->as.clip.limit);
        return AH_OK;
    case AH_TASK_DISK:
        return ah__host_disk(task);
    case AH_TASK_PROGRAM:
    case AH_TASK_COLLECTIVE:
    case AH_TASK_DELAY:
        break; /* regions.h's check refuses it */
    }
    return AH_OK;
}

int64_t ah__cuda_jitter_ns(struct ah_cuda_stream *stream)
{
    return ah__host_jitter_ns(stream->cuda->jitter_seed, (int)stream->lane, stream->jitter_count++);
}

int ah__cuda_host_work(void *context, const struct ah_work *work, struct ah_done *done)
{
    struct ah_cuda *cuda = context;
    int status = AH_OK;
    if (cuda->jitter_seed)
        ah__host_sleep_until(ah__host_now_ns() + ah__cuda_jitter_ns(&cuda->stream[work->lane]));
    done->start_ns = ah__host_now_ns();
    for (int i = 0; i < work->tasks && status == AH_OK; i++)
        status = host_task(cuda, work->lane, &work->task[i]);
    done->end_ns = ah__host_now_ns();
    return status;
}
