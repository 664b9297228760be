#include "dev/cpu/device.h"

#include <string.h>
#include <sys/prctl.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "base/hash.h"

/* Denormals slow arithmetic several times; every thread treats them as zero, so that results do not depend on the thread. */
static void denormals_off(void)
{
#if defined(__SSE2__)
    _mm_setcsr(_mm_getcsr() | 0x8040u);
#endif
}

/* A random delay of up to 200 us when the device was opened with a jitter seed. */
static void jitter(struct ah_cpu_lane *lane)
{
    enum { MOST_NS = 200000 };
    if (!lane->cpu->jitter_seed)
        return;
    uint64_t stream = ah__hash_int((uint64_t)lane->lane, lane->cpu->jitter_seed);
    uint64_t bits = ah__random_bits(stream, lane->jitter_count++);
    ah__cpu_sleep_until(ah__cpu_now_ns() + (int64_t)(bits % (MOST_NS + 1)));
}

static int task_run(struct ah_cpu_lane *lane, const struct ah_task *task)
{
    AH_TRY(ah__cpu_check(lane->cpu, lane->lane, task));
    bool link = lane->lane == AH_LANE_H2D || lane->lane == AH_LANE_D2H;
    switch (task->type) {
    case AH_TASK_PROGRAM:
        return ah__cpu_program(lane->pool, task->as.program.prepared->program, task->as.program.base);
    case AH_TASK_COPY:
        ah__cpu_transfer(task->as.copy.to, task->as.copy.from, task->as.copy.bytes, link ? lane->cpu->link_bytes_per_s : 0);
        return AH_OK;
    case AH_TASK_ADAM:
        return ah__cpu_adam(lane->pool, task);
    case AH_TASK_SQNORM:
        return ah__cpu_sqnorm(lane->pool, task);
    case AH_TASK_CAST:
    case AH_TASK_COLLECTIVE:
    case AH_TASK_DELAY:
        break;
    }
    return AH_OK;
}

/* Runs a slot's tasks and stamps it. On failure the message names the item. */
static int slot_run(struct ah_cpu_lane *lane, struct ah_cpu_slot *slot)
{
    const struct ah_work *work = &slot->work;
    int status = AH_OK;
    jitter(lane);
    slot->start_ns = ah__cpu_now_ns();
    for (int i = 0; status == AH_OK && i < work->tasks; i++)
        status = task_run(lane, &work->task[i]);
    slot->end_ns = ah__cpu_now_ns();
    jitter(lane);
    if (status != AH_OK)
        status = ah__fail_prefix(status, "lane %s: %s, partition %d, iteration %lld", ah_lane_name(lane->lane),
                                 work->label.what ? work->label.what : "work", work->label.partition,
                                 (long long)work->label.iteration);
    return status;
}

/* With the mutex held: sleeps until `needs` has passed ({0,0}: until there is an item) or the device stops. */
static void lane_sleep(struct ah_cpu_lane *lane, struct ah_event needs)
{
    lane->needs = needs;
    lane->asleep = true;
    while (lane->asleep && !lane->cpu->stop)
        pthread_cond_wait(&lane->wake, &lane->cpu->mutex);
    lane->asleep = false;
}

/* With the mutex held: the next slot, once its waits have passed; null when the device stops. */
static struct ah_cpu_slot *slot_next(struct ah_cpu_lane *lane)
{
    struct ah_cpu *cpu = lane->cpu;
    if (lane->finished == lane->submitted)
        lane_sleep(lane, (struct ah_event){0});
    if (cpu->stop)
        return NULL;
    struct ah_cpu_slot *slot = &lane->ring[lane->finished % AH_CPU_RING];
    for (int i = 0; i < slot->work.waits; i++) {
        struct ah_event event = slot->work.wait[i];
        if (cpu->lanes[event.lane].finished < event.sequence)
            lane_sleep(lane, event);
    }
    return cpu->stop ? NULL : slot;
}

/* With the mutex held: publishes the completion of the lane's oldest item. */
static void slot_finish(struct ah_cpu_lane *lane, struct ah_cpu_slot *slot, int status)
{
    struct ah_cpu *cpu = lane->cpu;
    if (status != AH_OK && cpu->failed == AH_OK) {
        cpu->failed = status;
        snprintf(cpu->message, sizeof cpu->message, "%s", ah_error());
    }
    slot->status = status;
    lane->finished++;
    cpu->order[cpu->order_in++ % AH_LENGTH(cpu->order)] = (unsigned char)lane->lane;
    for (int i = 0; i < AH_LANE_COUNT; i++)
        if (cpu->lanes[i].needs.sequence && cpu->lanes[i].needs.lane == lane->lane)
            ah__cpu_lane_wake(&cpu->lanes[i]);
    if (cpu->driver_asleep) {
        cpu->driver_asleep = false;
        pthread_cond_signal(&cpu->finished);
    }
}

void ah__cpu_lane_wake(struct ah_cpu_lane *lane)
{
    if (!lane->asleep || lane->cpu->lanes[lane->needs.lane].finished < lane->needs.sequence)
        return;
    lane->asleep = false;
    pthread_cond_signal(&lane->wake);
}

static void *lane_main(void *argument)
{
    struct ah_cpu_lane *lane = argument;
    struct ah_cpu *cpu = lane->cpu;
    /* The default slack of 50 us would make every throttled copy late. */
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    denormals_off();
    if (lane->pool)
        ah__pool_enter(lane->pool);
    else if (lane->core >= 0)
        ah__cpu_pin(lane->core);
    pthread_mutex_lock(&cpu->mutex);
    for (struct ah_cpu_slot *slot; (slot = slot_next(lane));) {
        int status = cpu->failed;
        pthread_mutex_unlock(&cpu->mutex);
        if (status == AH_OK)
            status = slot_run(lane, slot);
        else
            slot->start_ns = slot->end_ns = ah__cpu_now_ns();
        pthread_mutex_lock(&cpu->mutex);
        slot_finish(lane, slot, status);
    }
    pthread_mutex_unlock(&cpu->mutex);
    return NULL;
}

int ah__cpu_lane_start(struct ah_cpu_lane *lane)
{
    int error = pthread_create(&lane->thread, NULL, lane_main, lane);
    if (error)
        return ah__fail(AH_ENOMEM, "cpu device: no thread for lane %s: %s", ah_lane_name(lane->lane), strerror(error));
    lane->started = true;
    return AH_OK;
}

void ah__cpu_lane_join(struct ah_cpu_lane *lane)
{
    if (lane->started)
        pthread_join(lane->thread, NULL);
    lane->started = false;
}
