/* Streams: each a thread that runs a queue in order.
 *
 * Like the rest of the emulation this is not instrumented for threads: what a GPU orders is told to ThreadSanitizer by
 * ORDER_RELEASE and ORDER_ACQUIRE. The host orders what it did before a call with what the stream then does; a stream
 * orders its past with whoever waits for an event of it or for itself. That a thread of the host touches a stream's
 * queue orders nothing. */
#include "inside.h"

#include <cuda.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <xmmintrin.h>

enum { STREAMS_MOST = 256, COPY_PIECE = 64 << 10, POLL_NS = 20000, JITTER_NS = 300000 };

struct CUstream_st {
    struct operation *first, **last;
    uint64_t pushed, done;
    bool ending;
    struct emulation_bell bell; /* its thread: there is something to do */
    int device, priority;
    pthread_t thread;
    uint64_t number, launches, operations, seed, jitter;
    struct emulation_blocks *blocks;
};

static struct CUstream_st *streams[STREAMS_MOST]; /* alive */
static uint64_t numbers;

/* ---- what a stream's thread does */

static void copy_run(const struct operation *operation)
{
    int error = emulation_fault_here("copy");
    if (error) {
        emulation_sticky_set(error);
        return;
    }
    for (size_t at = 0; at < operation->as.copy.bytes; at += COPY_PIECE) {
        size_t left = operation->as.copy.bytes - at, piece = left < COPY_PIECE ? left : COPY_PIECE;
        char *to = (char *)operation->as.copy.to + at;
        if (operation->kind == COPY)
            emulation_copy(to, (const char *)operation->as.copy.from + at, piece);
        else
            emulation_fill(to, operation->as.copy.byte, piece);
    }
}

static void launch_run(struct CUstream_st *stream, struct operation *operation)
{
    int error = emulation_fault_here("kernel");
    struct emulation_launch *launch = &operation->as.launch;
    launch->bound = operation->behind;
    uint64_t seed = stream->seed ? emulation_random(stream->seed, stream->number << 40 | stream->launches++) : 0;
    if (!error)
        error = launch->run_all ? launch->run_all(launch, seed) : emulation_blocks_run(stream->blocks, launch, seed);
    if (error)
        emulation_sticky_set(error);
}

static bool value_holds(const struct operation *operation)
{
    uint64_t now = emulation_value_read(operation->as.value.at), value = operation->as.value.value;
    switch (operation->as.value.flags) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return (int64_t)(now - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & value) != 0;
    default:
        return (now | value) != ~(uint64_t)0;
    }
}

static void value_run(const struct operation *operation)
{
    if (operation->kind == WRITE_VALUE && !emulation_sticky())
        emulation_value_write(operation->as.value.at, operation->as.value.value);
    if (operation->kind == WAIT_VALUE)
        while (!value_holds(operation) && !emulation_sticky())
            emulation_sleep_ns(POLL_NS);
}

static void callback_run(struct CUstream_st *stream, const struct operation *operation)
{
    if (operation->kind == CALLBACK && emulation_fault_here("callback"))
        return; /* it never comes */
    emulation_count(COUNT_CALLBACKS, 1);
    emulation_in_callback(true);
    if (operation->kind == CALLBACK)
        operation->as.callback.function(stream, (cudaError_t)emulation_sticky(), operation->as.callback.argument);
    else if (!emulation_sticky())
        operation->as.callback.host(operation->as.callback.argument);
    emulation_in_callback(false);
}

/* After a kernel's fault nothing runs, but everything ends. */
static void operation_run(struct CUstream_st *stream, struct operation *operation)
{
    bool lost = emulation_sticky() != 0;
    switch (operation->kind) {
    case RUN:
        if (!lost)
            operation->as.run.run(operation->behind);
        break;
    case COPY:
    case FILL:
        if (!lost)
            copy_run(operation);
        break;
    case LAUNCH:
        if (!lost)
            launch_run(stream, operation);
        break;
    case RECORD:
        event_passed(operation->as.event.event, operation->as.event.version);
        break;
    case WAIT_EVENT:
        event_wait(operation->as.event.event, operation->as.event.version);
        break;
    case WAIT_VALUE:
    case WRITE_VALUE:
        value_run(operation);
        break;
    case CALLBACK:
    case HOST_FUNCTION:
        callback_run(stream, operation);
        break;
    }
}

static struct operation *operation_next(struct CUstream_st *stream)
{
    emulation_lock();
    while (!stream->first && !stream->ending)
        emulation_await(&stream->bell);
    struct operation *operation = stream->first;
    if (operation) {
        stream->first = operation->next;
        if (!stream->first)
            stream->last = &stream->first;
    }
    emulation_unlock();
    return operation;
}

static void operation_done(struct CUstream_st *stream, struct operation *operation)
{
    ORDER_RELEASE(stream);
    emulation_lock();
    if (operation->kind == RECORD || operation->kind == WAIT_EVENT)
        event_release(operation->as.event.event);
    stream->done++;
    emulation_unlock();
    emulation_ring(&emulation_progress);
    free(operation);
}

static void *stream_main(void *context)
{
    struct CUstream_st *stream = context;
    struct operation *operation;
    emulation_on_stream();
    _mm_setcsr(_mm_getcsr() | 0x8040); /* denormals are zero, as nvcc -ftz=true has it */
    while ((operation = operation_next(stream)) != NULL) {
        ORDER_ACQUIRE(operation);
        if (stream->jitter)
            emulation_sleep_ns((long)(emulation_random(stream->jitter, stream->operations++) % JITTER_NS));
        operation_run(stream, operation);
        operation_done(stream, operation);
    }
    return NULL;
}

/* ---- operations from the host's side */

struct operation *operation_new(enum operation_kind kind, const char *what, size_t bytes)
{
    struct operation *operation = calloc(1, sizeof *operation + bytes);
    if (!operation)
        abort();
    operation->kind = kind;
    operation->what = what;
    return operation;
}

static bool is_alive(const struct CUstream_st *stream)
{
    for (int i = 0; i < STREAMS_MOST; i++)
        if (stream && streams[i] == stream)
            return true;
    return false;
}

cudaError_t operation_push(cudaStream_t stream, struct operation *operation)
{
    const char *what = operation->what;
    ORDER_RELEASE(operation);
    emulation_lock();
    bool alive = is_alive(stream);
    if (alive) {
        *stream->last = operation;
        stream->last = &operation->next;
        stream->pushed++;
        emulation_ring(&stream->bell);
    }
    emulation_unlock();
    if (alive)
        return cudaSuccess;
    free(operation);
    REFUSE(cudaErrorInvalidResourceHandle, "%s: %s", what, stream ? "no such stream" : "on the default stream");
}

static void stream_await(struct CUstream_st *stream)
{
    while (stream->done < stream->pushed)
        emulation_await(&emulation_progress);
}

void emulation_drain(void)
{
    int device = emulation_device();
    emulation_lock();
    for (int i = 0; i < STREAMS_MOST; i++)
        if (streams[i] && streams[i]->device == device) {
            stream_await(streams[i]);
            ORDER_ACQUIRE(streams[i]);
        }
    emulation_unlock();
}

/* ---- the runtime's functions */

static cudaError_t stream_new(cudaStream_t *out, unsigned flags, int priority)
{
    if (!out || flags != cudaStreamNonBlocking)
        REFUSE(cudaErrorInvalidValue, "cudaStreamCreate: flags %u, expected cudaStreamNonBlocking", flags);
    struct CUstream_st *stream = calloc(1, sizeof *stream);
    if (!stream)
        abort();
    stream->last = &stream->first;
    stream->device = emulation_device();
    stream->priority = priority;
    stream->seed = (uint64_t)emulation_setting("AUTOHETE_EMULATION_SEED", 1);
    stream->blocks = emulation_blocks_new();
    emulation_lock();
    int slot = 0;
    while (slot < STREAMS_MOST && streams[slot])
        slot++;
    if (slot < STREAMS_MOST)
        streams[slot] = stream;
    stream->number = numbers++;
    emulation_unlock();
    long jitter = emulation_setting("AUTOHETE_EMULATION_JITTER", 0);
    stream->jitter = jitter ? emulation_random((uint64_t)jitter, stream->number) | 1 : 0;
    if (slot == STREAMS_MOST || pthread_create(&stream->thread, NULL, stream_main, stream) != 0)
        abort();
    emulation_count(COUNT_STREAMS, 1);
    *out = stream;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    ENTER("cudaStreamCreateWithFlags");
    return stream_new(out, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
    ENTER("cudaStreamCreateWithPriority");
    return stream_new(out, flags, priority);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER("cudaDeviceGetStreamPriorityRange");
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    ENTER_RELEASE("cudaStreamDestroy");
    emulation_lock();
    bool found = is_alive(stream);
    if (found) {
        stream_await(stream);
        stream->ending = true;
        emulation_ring(&stream->bell);
    }
    for (int i = 0; i < STREAMS_MOST; i++)
        if (streams[i] == stream)
            streams[i] = NULL;
    emulation_unlock();
    if (!found)
        REFUSE(cudaErrorInvalidResourceHandle, "cudaStreamDestroy: no such stream");
    pthread_join(stream->thread, NULL);
    emulation_blocks_free(stream->blocks);
    free(stream);
    emulation_count(COUNT_STREAMS, -1);
    return (cudaError_t)emulation_sticky();
}

static cudaError_t stream_wait(const char *function, cudaStream_t stream, bool block)
{
    emulation_lock();
    bool found = is_alive(stream);
    if (found && block)
        stream_await(stream);
    bool done = found && stream->done == stream->pushed;
    emulation_unlock();
    if (!found)
        REFUSE(cudaErrorInvalidResourceHandle, "%s: no such stream", function);
    if (done)
        ORDER_ACQUIRE(stream);
    int sticky = emulation_sticky();
    if (sticky)
        return emulation_failed((cudaError_t)sticky);
    return done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    ENTER_RELEASE("cudaStreamSynchronize");
    return stream_wait("cudaStreamSynchronize", stream, true);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    ENTER_RELEASE("cudaStreamQuery");
    return stream_wait("cudaStreamQuery", stream, false);
}

cudaError_t cudaDeviceSynchronize(void)
{
    ENTER_RELEASE("cudaDeviceSynchronize");
    emulation_drain();
    int sticky = emulation_sticky();
    return sticky ? emulation_failed((cudaError_t)sticky) : cudaSuccess;
}
