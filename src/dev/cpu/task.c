/* Runs tasks on the lanes of the CPU device. */
#include <string.h>

#include "dev/clip.h"
#include "dev/cpu/device.h"
#include "dev/host/clock.h"
#include "dev/host/task.h"

/* Sleeps for a random time if the device was opened with a jitter seed. */
static void jitter(struct ah_cpu *cpu, enum ah_lane lane)
{
    int64_t ns = cpu->jitter_seed ? ah__host_jitter_ns(cpu->jitter_seed, (int)lane, cpu->jitter_count[lane]++) : 0;
    if (ns)
        ah__host_sleep_until(ah__host_now_ns() + ns);
}

static int program_run(struct ah_pool *pool, const struct ah_task *task)
{
    const struct ah_cpu_program *first = (const struct ah_cpu_program *)task->as.program.prepared;
    const struct ah_cpu_program *then = (const struct ah_cpu_program *)task->as.program.then;
    char *base[AH_SPACE_COUNT];
    memcpy(base, task->as.program.base, sizeof base);
    for (int left = task->as.program.repeats;; left--) {
        AH_TRY(ah__cpu_program_run(first, pool, base));
        if (then)
            AH_TRY(ah__cpu_program_run(then, pool, base));
        if (left <= 1)
            return AH_OK;
        for (int i = 0; i < AH_SPACE_COUNT; i++)
            if (base[i])
                base[i] += task->as.program.step[i];
    }
}

static int collective_run(struct ah_comm *comm, const struct ah_task *task)
{
    return comm->ops->collective(comm, task->as.collective.kind, task->as.collective.buffer,
                                 task->as.collective.part_count, task->as.collective.dtype);
}

static int task_run(struct ah_cpu *cpu, enum ah_lane lane, const struct ah_task *task)
{
    bool link = lane == AH_LANE_H2D || lane == AH_LANE_D2H;
    AH_TRY(ah__regions_check(&cpu->regions, lane, task));
    switch (task->type) {
    case AH_TASK_PROGRAM:
        return program_run(cpu->pool[lane], task);
    case AH_TASK_COPY:
        ah__host_transfer(task->as.copy.to, task->as.copy.from, task->as.copy.bytes, link ? cpu->link_bytes_per_s : 0);
        return AH_OK;
    case AH_TASK_CAST:
        return ah__host_cast(cpu->pool[lane], task);
    case AH_TASK_EXPAND:
        return ah__host_expand(cpu->pool[lane], task);
    case AH_TASK_ADAM:
        return ah__host_adam(cpu->pool[lane], task);
    case AH_TASK_SQNORM:
        return ah__host_sqnorm(cpu->pool[lane], task);
    case AH_TASK_CLIP:
        *task->as.clip.scale =
            ah__clip_scale(ah__clip_norm(task->as.clip.squares, task->as.clip.count), task->as.clip.limit);
        return AH_OK;
    case AH_TASK_COLLECTIVE:
        return collective_run(cpu->comm, task);
    case AH_TASK_DISK:
        return ah__host_disk(task);
    case AH_TASK_DELAY:
        break; /* regions.h's check refuses it */
    }
    return AH_OK;
}

int ah__cpu_work(void *context, const struct ah_work *work, struct ah_done *done)
{
    struct ah_cpu *cpu = context;
    int status = AH_OK;
    jitter(cpu, work->lane);
    done->start_ns = ah__host_now_ns();
    for (int i = 0; i < work->tasks && status == AH_OK; i++)
        status = task_run(cpu, work->lane, &work->task[i]);
    done->end_ns = ah__host_now_ns();
    jitter(cpu, work->lane);
    return status;
}
