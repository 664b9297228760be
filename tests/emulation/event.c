/* Events. Each record is a version of the event; a wait is for the version that was the newest when it was put on its
 * stream. */
#include "inside.h"

#include <stdlib.h>
#include <time.h>

#define NOISE "AUTOHETE_EMULATION_NOISE"
enum { EVENTS_MOST = 16384 };

struct CUevent_st {
    uint64_t recorded, passed; /* versions */
    int64_t time_ns;           /* of the last one that passed */
    int64_t noise_ns;          /* by which a time may be off, either way */
    bool timed, alive;
    int operations; /* that need it */
};

static struct CUevent_st events[EVENTS_MOST];
static int looked_at; /* where a free one is sought first */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}

static int64_t noise_ns(const struct CUevent_st *event, uint64_t version)
{
    uint64_t random = emulation_random((uint64_t)(event - events), version);
    return event->noise_ns ? (int64_t)(random % (uint64_t)(2 * event->noise_ns)) - event->noise_ns : 0;
}

/* ---- on a stream's thread */

void event_passed(struct CUevent_st *event, uint64_t version)
{
    ORDER_RELEASE(event);
    emulation_lock();
    if (version > event->passed)
        event->passed = version;
    event->time_ns = now_ns() + noise_ns(event, version);
    emulation_unlock();
    emulation_ring(&emulation_progress);
}

void event_wait(struct CUevent_st *event, uint64_t version)
{
    emulation_lock();
    while (event->passed < version && !emulation_sticky())
        emulation_await(&emulation_progress);
    emulation_unlock();
    ORDER_ACQUIRE(event);
}

void event_release(struct CUevent_st *event)
{
    event->operations--;
}

/* ---- the runtime's functions */

static bool is_alive(const struct CUevent_st *event)
{
    return event >= events && event < events + EVENTS_MOST && event->alive;
}

/* One that is neither alive nor needed any more; with the lock held. */
static struct CUevent_st *event_unused(void)
{
    for (int i = 0; i < EVENTS_MOST; i++) {
        struct CUevent_st *event = &events[(looked_at + i) % EVENTS_MOST];
        if (!event->alive && event->operations == 0) {
            looked_at = (looked_at + i + 1) % EVENTS_MOST;
            return event;
        }
    }
    abort();
}

#define EVENT_CHECK(function, event)                                                                                   \
    do {                                                                                                               \
        emulation_lock();                                                                                              \
        bool alive_ = is_alive(event);                                                                                 \
        emulation_unlock();                                                                                            \
        if (!alive_)                                                                                                   \
            REFUSE(cudaErrorInvalidResourceHandle, "%s: no such event", function);                                     \
    } while (0)

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    ENTER("cudaEventCreateWithFlags");
    if (!out || flags & ~(unsigned)(cudaEventBlockingSync | cudaEventDisableTiming))
        REFUSE(cudaErrorInvalidValue, "cudaEventCreateWithFlags: flags %u", flags);
    emulation_lock();
    struct CUevent_st *event = event_unused();
    *event = (struct CUevent_st){
        .alive = true, .timed = !(flags & cudaEventDisableTiming), .noise_ns = emulation_setting(NOISE, 0)};
    emulation_unlock();
    emulation_count(COUNT_EVENTS, 1);
    *out = event;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    ENTER_RELEASE("cudaEventDestroy");
    EVENT_CHECK("cudaEventDestroy", event);
    emulation_lock();
    event->alive = false;
    emulation_unlock();
    emulation_count(COUNT_EVENTS, -1);
    return (cudaError_t)emulation_sticky();
}

static cudaError_t event_push(cudaStream_t stream, cudaEvent_t event, enum operation_kind kind, const char *what)
{
    struct operation *operation = operation_new(kind, what, 0);
    emulation_lock();
    event->operations++;
    operation->as.event.event = event;
    operation->as.event.version = kind == RECORD ? ++event->recorded : event->recorded;
    emulation_unlock();
    cudaError_t error = operation_push(stream, operation);
    if (error) {
        emulation_lock();
        event_release(event);
        emulation_unlock();
    }
    return error;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    ENTER("cudaEventRecord");
    EVENT_CHECK("cudaEventRecord", event);
    return event_push(stream, event, RECORD, "cudaEventRecord");
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    ENTER("cudaStreamWaitEvent");
    EVENT_CHECK("cudaStreamWaitEvent", event);
    if (flags != cudaEventWaitDefault)
        REFUSE(cudaErrorInvalidValue, "cudaStreamWaitEvent: flags %u", flags);
    return event_push(stream, event, WAIT_EVENT, "cudaStreamWaitEvent");
}

static cudaError_t event_await(cudaEvent_t event, bool block)
{
    emulation_lock();
    while (block && event->passed < event->recorded)
        emulation_await(&emulation_progress);
    bool passed = event->passed == event->recorded;
    emulation_unlock();
    if (passed)
        ORDER_ACQUIRE(event);
    int sticky = emulation_sticky();
    if (sticky)
        return emulation_failed((cudaError_t)sticky);
    return passed ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    ENTER_RELEASE("cudaEventQuery");
    EVENT_CHECK("cudaEventQuery", event);
    return event_await(event, false);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    ENTER_RELEASE("cudaEventSynchronize");
    EVENT_CHECK("cudaEventSynchronize", event);
    return event_await(event, true);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    ENTER_RELEASE("cudaEventElapsedTime");
    EVENT_CHECK("cudaEventElapsedTime", start);
    EVENT_CHECK("cudaEventElapsedTime", end);
    emulation_lock();
    bool good = start->timed && end->timed && start->recorded && end->recorded;
    bool passed = start->passed == start->recorded && end->passed == end->recorded;
    *ms = (float)((double)(end->time_ns - start->time_ns) * 1e-6);
    emulation_unlock();
    if (!good)
        REFUSE(cudaErrorInvalidResourceHandle, "cudaEventElapsedTime: an event without a time");
    return passed ? cudaSuccess : cudaErrorNotReady;
}
