/* Completed works: numbers that streams write, a thread that reads them, failures in order. */
#include "dev/cuda/completion.h"

#include <sys/prctl.h>

#include "dev/cuda/collective.h"
#include "dev/host/clock.h"

/* The thread spins for SPIN_NS after a change, and then sleeps for a part of the time without change. */
enum { SPIN_NS = 50000, SLEEP_LEAST_NS = 5000, SLEEP_MOST_NS = 100000, SLEEP_PART = 8, SPINS = 32 };

struct ah_cuda_slot *ah__cuda_slot(struct ah_cuda_stream *stream, uint64_t sequence)
{
    return &stream->slot[sequence % AH_LANE_RING];
}

uint64_t *ah__cuda_passed(const struct ah_cuda *cuda, enum ah_lane lane)
{
    return cuda->passed + (size_t)lane * AH_CUDA_PASSED_APART;
}

/* ---- with the device's mutex held -------------------------------------------------------------------------------- */

void ah__cuda_failure_keep(struct ah_cuda *cuda, int status)
{
    if (cuda->failed != AH_OK)
        return;
    cuda->failed = status;
    snprintf(cuda->message, sizeof cuda->message, "%s", ah_error());
}

int ah__cuda_label_prefix(int status, enum ah_lane lane, const struct ah_label *label)
{
    return ah__fail_prefix(status, "lane %s: %s, partition %d, iteration %lld", ah_lane_name(lane),
                           label->what ? label->what : "work", label->partition, (long long)label->iteration);
}

/* Reports the stream's oldest work as completed. */
static void work_finish(struct ah_cuda_stream *stream)
{
    struct ah_cuda *cuda = stream->cuda;
    struct ah_done done = {.lane = stream->lane, .status = cuda->failed};
    if (done.status != AH_OK)
        ah__fail(done.status, "%s", cuda->message);
    else
        done.status = ah__lanes_failed(cuda->lanes); /* a failure of the host lane, whose message the lanes have */
    stream->finished++;
    ah__lanes_finish(cuda->lanes, &done);
}

void ah__cuda_skipped_finish(struct ah_cuda_stream *stream)
{
    while (stream->finished >= stream->started && stream->finished < stream->submitted)
        work_finish(stream);
}

/* Reports the works up to `passed` as completed. */
static void stream_take(struct ah_cuda_stream *stream, uint64_t passed)
{
    while (stream->finished < stream->started && stream->finished < passed) {
        ah__cuda_slot(stream, stream->finished + 1)->over_ns = ah__host_now_ns();
        work_finish(stream);
    }
    ah__cuda_skipped_finish(stream);
}

static bool in_flight(struct ah_cuda *cuda)
{
    AH_EACH_STREAM(stream, cuda)
    if (stream->finished < stream->started)
        return true;
    return false;
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

/* Reports the works of all numbers that have changed since `seen`. Returns true if any has. */
static bool numbers_take(struct ah_cuda *cuda, uint64_t seen[AH_LANE_COUNT])
{
    bool any = false;
    AH_EACH_STREAM(stream, cuda)
    {
        uint64_t passed = __atomic_load_n(ah__cuda_passed(cuda, stream->lane), __ATOMIC_ACQUIRE);
        if (passed == seen[stream->lane])
            continue;
        seen[stream->lane] = passed;
        any = true;
        pthread_mutex_lock(&cuda->mutex);
        stream_take(stream, passed);
        pthread_mutex_unlock(&cuda->mutex);
    }
    return any;
}

/* Sleeps until there is work. *slept: it has slept. Returns false when the device closes. */
static bool work_await(struct ah_cuda *cuda, bool *slept)
{
    pthread_mutex_lock(&cuda->mutex);
    *slept = false;
    while (!cuda->watch_ends && !in_flight(cuda)) {
        cuda->watch_sleeps = *slept = true;
        pthread_cond_wait(&cuda->watch_wake, &cuda->mutex);
    }
    cuda->watch_sleeps = false;
    bool goes_on = !cuda->watch_ends;
    pthread_mutex_unlock(&cuda->mutex);
    return goes_on;
}

static void rest(int64_t idle_ns)
{
    int64_t sleep_ns = idle_ns / SLEEP_PART;
    sleep_ns = sleep_ns < SLEEP_LEAST_NS ? SLEEP_LEAST_NS : sleep_ns > SLEEP_MOST_NS ? SLEEP_MOST_NS : sleep_ns;
    ah__host_sleep_until(ah__host_now_ns() + sleep_ns);
}

static void *watch(void *context)
{
    struct ah_cuda *cuda = context;
    uint64_t seen[AH_LANE_COUNT] = {0};
    bool slept = true;
    int64_t change_ns = 0;
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    while (work_await(cuda, &slept)) {
        if (slept || change_ns == 0)
            change_ns = ah__host_now_ns();
        int64_t idle_ns = ah__host_now_ns() - change_ns;
        if (idle_ns >= SPIN_NS)
            rest(idle_ns);
        for (int i = 0; i < SPINS; i++) {
            if (numbers_take(cuda, seen))
                change_ns = ah__host_now_ns();
            ah__host_pause();
        }
    }
    return NULL;
}

int ah__cuda_watch_start(struct ah_cuda *cuda)
{
    if (pthread_create(&cuda->watch, NULL, watch, cuda) != 0)
        return ah__fail(AH_ENOMEM, "cuda device: no thread for completions");
    cuda->watching = true;
    return AH_OK;
}

void ah__cuda_watch_stop(struct ah_cuda *cuda)
{
    if (!cuda->watching)
        return;
    pthread_mutex_lock(&cuda->mutex);
    cuda->watch_ends = true;
    pthread_cond_signal(&cuda->watch_wake);
    pthread_mutex_unlock(&cuda->mutex);
    pthread_join(cuda->watch, NULL);
    cuda->watching = false;
}

/* ---- events from outside ----------------------------------------------------------------------------------------- */

cudaError_t ah__cuda_fault(const struct ah_cuda_stream *stream)
{
    cudaError_t error = cudaStreamQuery(stream->work);
    return error == cudaErrorNotReady ? cudaSuccess : error;
}

/* Writes the number of a lane on a thread, for which streams wait. Release order makes its earlier writes visible. */
void ah__cuda_host_passed(void *context, struct ah_event event)
{
    __atomic_store_n(ah__cuda_passed(context, event.lane), event.sequence, __ATOMIC_RELEASE);
}

/* Checks the other ranks. If they have failed, the group is abandoned, which ends all work that waits for them. */
static void look_at_ranks(struct ah_cuda *cuda)
{
    struct ah_cuda_stream *stream = &cuda->stream[AH_LANE_COMM];
    int status = ah__cuda_group_look(cuda);
    if (status == AH_OK)
        return;
    pthread_mutex_lock(&cuda->mutex);
    if (stream->finished < stream->submitted)
        ah__cuda_label_prefix(status, stream->lane, &ah__cuda_slot(stream, stream->finished + 1)->label);
    ah__cuda_failure_keep(cuda, status);
    pthread_mutex_unlock(&cuda->mutex);
    ah__cuda_group_abandon(cuda);
}

/* Ends all work after a fault of the GPU. Works that it had finished complete; the first unfinished work gives the
 * failure its label, and all others end with it. */
static void works_lose(struct ah_cuda *cuda, cudaError_t error)
{
    const struct ah_cuda_stream *first = NULL;
    int status = ah__fail(AH_EDEVICE, "%s: %s", cuda->name, cudaGetErrorString(error));
    AH_EACH_STREAM(stream, cuda)
    {
        stream_take(stream, __atomic_load_n(ah__cuda_passed(cuda, stream->lane), __ATOMIC_ACQUIRE));
        if (!first && stream->finished < stream->started)
            first = stream;
    }
    if (first)
        ah__cuda_label_prefix(status, first->lane, &first->slot[(first->finished + 1) % AH_LANE_RING].label);
    ah__cuda_failure_keep(cuda, status);
    cuda->lost = true;
    AH_EACH_STREAM(stream, cuda)
    {
        stream->started = stream->finished;
        ah__cuda_skipped_finish(stream);
    }
}

/* Called while the driver waits in vain: looks for a fault of the GPU, which then writes no numbers, and for lost
 * ranks. */
void ah__cuda_look(void *context)
{
    struct ah_cuda *cuda = context;
    cudaError_t error = cudaSuccess;
    AH_EACH_STREAM(stream, cuda)
    error = error == cudaSuccess ? ah__cuda_fault(stream) : error;
    if (error == cudaSuccess) {
        look_at_ranks(cuda);
        return;
    }
    pthread_mutex_lock(&cuda->mutex);
    works_lose(cuda, error);
    pthread_mutex_unlock(&cuda->mutex);
}
