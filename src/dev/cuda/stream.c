/* Lanes as streams: enqueues work when it is submitted, followed by its number, and measures times. */
#include "dev/cuda/stream.h"

#include <string.h>

#include <nvtx3/nvToolsExt.h>

#include "dev/cuda/collective.h"
#include "dev/cuda/completion.h"
#include "dev/cuda/task.h"
#include "dev/host/clock.h"

enum { NS_PER_S = 1000000000, EPOCH_NS = NS_PER_S, EPOCH_PATIENCE_NS = 50000 };

/* ---- submitting -------------------------------------------------------------------------------------------------- */

/* Returns the address of a lane's number in the driver's type. */
static CUdeviceptr number_of(const struct ah_cuda *cuda, enum ah_lane lane)
{
    return (CUdeviceptr)(uintptr_t)ah__cuda_passed(cuda, lane);
}

/* Enqueues a wait. A reported work has passed, and its slot may be in use by another. */
static int wait_enqueue(struct ah_cuda *cuda, const struct ah_cuda_stream *stream, struct ah_event event)
{
    struct ah_cuda_stream *other = &cuda->stream[event.lane];
    if (event.sequence <= other->reported || other == stream)
        return AH_OK;
    if (!ah__cuda_on_thread(event.lane)) {
        AH_CUDA_TRY(cudaStreamWaitEvent(stream->work, ah__cuda_slot(other, event.sequence)->end, 0));
        return AH_OK;
    }
    CUresult error = cuda->library.cuStreamWaitValue64(stream->work, number_of(cuda, event.lane), event.sequence,
                                                       CU_STREAM_WAIT_VALUE_GEQ);
    return error == CUDA_SUCCESS ? AH_OK : ah__fail(AH_EDEVICE, "cuStreamWaitValue64: CUDA error %d", (int)error);
}

static void CUDART_CB jitter_sleep(void *ns)
{
    ah__host_sleep_until(ah__host_now_ns() + (int64_t)(intptr_t)ns);
}

static int jitter_enqueue(struct ah_cuda_stream *stream)
{
    int64_t ns = stream->cuda->jitter_seed ? ah__cuda_jitter_ns(stream) : 0;
    if (ns)
        AH_CUDA_TRY(cudaLaunchHostFunc(stream->work, jitter_sleep, (void *)(intptr_t)ns));
    return AH_OK;
}

/* Enqueues a work without its number. */
static int work_enqueue(struct ah_cuda_stream *stream, const struct ah_work *work, const struct ah_cuda_slot *slot)
{
    struct ah_cuda *cuda = stream->cuda;
    AH_CUDA_TRY(cudaSetDevice(cuda->ordinal));
    for (int i = 0; i < work->tasks; i++)
        AH_TRY(ah__regions_check(&cuda->regions, work->lane, &work->task[i]));
    for (int i = 0; i < work->waits; i++)
        AH_TRY(wait_enqueue(cuda, stream, work->wait[i]));
    AH_TRY(jitter_enqueue(stream));
    AH_CUDA_TRY(cudaEventRecord(slot->start, stream->work));
    for (int i = 0; i < work->tasks; i++)
        AH_TRY(ah__cuda_task(cuda, work->lane, &work->task[i]));
    AH_CUDA_TRY(cudaEventRecord(slot->end, stream->work));
    return jitter_enqueue(stream);
}

/* Opens a range that profilers show: the label's text, and the partition as a number. Costs next to nothing without a
 * profiler. */
static void range_push(const struct ah_work *work)
{
    nvtxEventAttributes_t range = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
    range.messageType = NVTX_MESSAGE_TYPE_ASCII;
    range.message.ascii = work->label.what ? work->label.what : "work";
    range.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    range.payload.llValue = work->label.partition;
    nvtxRangePushEx(&range);
}

/* Counts a work as the stream's, before its number can arrive; `by` -1 undoes this. */
static void work_count(struct ah_cuda_stream *stream, int by)
{
    struct ah_cuda *cuda = stream->cuda;
    pthread_mutex_lock(&cuda->mutex);
    stream->submitted += (uint64_t)(int64_t)by;
    stream->started += (uint64_t)(int64_t)by;
    if (cuda->watch_sleeps)
        pthread_cond_signal(&cuda->watch_wake);
    pthread_mutex_unlock(&cuda->mutex);
}

static int work_start(struct ah_cuda_stream *stream, const struct ah_work *work, const struct ah_cuda_slot *slot,
                      uint64_t sequence)
{
    struct ah_cuda *cuda = stream->cuda;
    range_push(work);
    int status = work_enqueue(stream, work, slot);
    nvtxRangePop();
    if (status != AH_OK)
        return status;
    work_count(stream, 1);
    CUresult error = cuda->library.cuStreamWriteValue64(stream->work, number_of(cuda, stream->lane), sequence, 0);
    if (error == CUDA_SUCCESS)
        return AH_OK;
    work_count(stream, -1);
    return ah__fail(AH_EDEVICE, "cuStreamWriteValue64: CUDA error %d", (int)error);
}

/* Returns true if an earlier failure prevents all work from starting; then counts this one as skipped. */
static bool work_is_skipped(struct ah_cuda_stream *stream)
{
    struct ah_cuda *cuda = stream->cuda;
    pthread_mutex_lock(&cuda->mutex);
    bool skipped = cuda->failed != AH_OK || ah__lanes_failed(cuda->lanes) != AH_OK;
    if (skipped) {
        stream->submitted++;
        ah__cuda_skipped_finish(stream);
    }
    pthread_mutex_unlock(&cuda->mutex);
    return skipped;
}

/* Enqueues a work that the lanes have taken. A failure belongs to the work, and reaches the caller of wait_any in
 * order. */
static void stream_submit(struct ah_cuda_stream *stream, const struct ah_work *work, uint64_t sequence)
{
    struct ah_cuda *cuda = stream->cuda;
    struct ah_cuda_slot *slot = ah__cuda_slot(stream, sequence);
    slot->label = work->label;
    slot->epoch = cuda->epoch_last;
    slot->sequence = 0; /* not reported yet */
    slot->next_ns = INT64_MAX;
    slot->waits = work->waits;
    memcpy(slot->wait, work->wait, sizeof slot->wait);
    if (work_is_skipped(stream))
        return;
    int status = work_start(stream, work, slot, sequence);
    if (status == AH_OK)
        return;
    cudaError_t fault = ah__cuda_fault(stream); /* a fault of the GPU: the label is only that of the work that noticed
                                                 * it */
    if (fault != cudaSuccess)
        status = ah__fail(AH_EDEVICE, "%s: %s", cuda->name, cudaGetErrorString(fault));
    ah__cuda_label_prefix(status, stream->lane, &work->label);
    pthread_mutex_lock(&cuda->mutex);
    cuda->lost = cuda->lost || fault != cudaSuccess;
    ah__cuda_failure_keep(cuda, status);
    stream->submitted++; /* only now that the failure is known, since the work may end at once */
    ah__cuda_skipped_finish(stream);
    pthread_mutex_unlock(&cuda->mutex);
    ah__cuda_group_abandon(cuda);
}

int ah__cuda_submit(struct ah_dev *dev, const struct ah_work *work, struct ah_event *done)
{
    struct ah_cuda *cuda = (struct ah_cuda *)dev;
    AH_TRY(ah__lanes_submit(cuda->lanes, work, done));
    if (!ah__cuda_on_thread(work->lane))
        stream_submit(&cuda->stream[work->lane], work, done->sequence);
    return AH_OK;
}

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

/* Returns true if an epoch's event may be recorded again: no work in flight counts from it. */
static bool epoch_is_free(const struct ah_cuda *cuda, uint64_t number)
{
    for (int i = 0; i < AH_LANE_COUNT; i++) {
        const struct ah_cuda_stream *stream = &cuda->stream[i];
        uint64_t oldest = stream->reported + 1;
        if (oldest <= stream->submitted && stream->slot[oldest % AH_LANE_RING].epoch + AH_CUDA_EPOCHS <= number)
            return false;
    }
    return true;
}

/* Records an event and waits for it for a moment. If the GPU is busy, the caller tries again later. */
static int epoch_renew(struct ah_cuda *cuda, int64_t now_ns)
{
    uint64_t number = cuda->epoch_last + 1;
    struct ah_cuda_epoch *epoch = &cuda->epoch[number % AH_CUDA_EPOCHS];
    cuda->epoch_next_ns = now_ns + EPOCH_NS;
    if (!epoch_is_free(cuda, number))
        return AH_OK;
    AH_CUDA_TRY(cudaEventRecord(epoch->event, cuda->clock));
    cudaError_t error;
    do {
        error = cudaEventQuery(epoch->event);
        epoch->ns = ah__host_now_ns();
    } while (error == cudaErrorNotReady && epoch->ns < now_ns + EPOCH_PATIENCE_NS);
    if (error == cudaSuccess)
        cuda->epoch_last = number;
    return error == cudaErrorNotReady ? AH_OK : ah__cuda_status("cudaEventQuery", error);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t event_ns(const struct ah_cuda_epoch *epoch, cudaEvent_t event)
{
    float ms;
    if (cudaEventElapsedTime(&ms, epoch->event, event) != cudaSuccess)
        return epoch->ns;
    return epoch->ns + (int64_t)((double)ms * 1e6);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Limits the ends of works for which this one waited, and which are reported after it, to its start. */
static void waits_bound(struct ah_cuda *cuda, const struct ah_cuda_slot *slot, int64_t start_ns)
{
    for (int i = 0; i < slot->waits; i++) {
        struct ah_cuda_slot *other = ah__cuda_slot(&cuda->stream[slot->wait[i].lane], slot->wait[i].sequence);
        if (!other->sequence)
            other->next_ns = earlier(other->next_ns, start_ns);
    }
}

/* Returns the end of all works for which this one waited, as far as it is still known. */
static int64_t waits_end_ns(struct ah_cuda *cuda, const struct ah_cuda_slot *slot)
{
    int64_t end_ns = 0;
    for (int i = 0; i < slot->waits; i++) {
        const struct ah_cuda_slot *other = ah__cuda_slot(&cuda->stream[slot->wait[i].lane], slot->wait[i].sequence);
        if (other->sequence && other->sequence == slot->wait[i].sequence)
            end_ns = later(end_ns, other->end_ns);
    }
    return end_ns;
}

/* Measures times by the GPU's clock, in the host's time. The clocks agree only to some microseconds, so the caller
 * makes sure that no work begins before one that it follows has ended; and no work ends after the host knew of it. */
static void times_measure(struct ah_cuda *cuda, const struct ah_cuda_slot *slot, struct ah_done *done, int64_t over_ns)
{
    struct ah_cuda_epoch *epoch = &cuda->epoch[slot->epoch % AH_CUDA_EPOCHS];
    int64_t late_ns = event_ns(epoch, slot->end) - over_ns;
    if (late_ns > 0)
        epoch->ns -= late_ns;
    done->start_ns = event_ns(epoch, slot->start);
    done->end_ns = event_ns(epoch, slot->end);
}

/* Fills the times. Returns false after a failure, when CUDA is not called and times mean nothing. */
static bool times_fill(struct ah_cuda_stream *stream, struct ah_cuda_slot *slot, struct ah_done *done)
{
    struct ah_cuda *cuda = stream->cuda;
    pthread_mutex_lock(&cuda->mutex);
    bool counts = done->status == AH_OK && cuda->failed == AH_OK;
    int64_t over_ns = slot->over_ns;
    pthread_mutex_unlock(&cuda->mutex);
    if (counts)
        times_measure(cuda, slot, done, over_ns);
    else
        done->start_ns = done->end_ns = ah__host_now_ns();
    done->start_ns = earlier(done->start_ns, slot->next_ns);
    done->start_ns = later(done->start_ns, later(stream->last_end_ns, waits_end_ns(cuda, slot)));
    stream->last_end_ns = done->end_ns = later(earlier(done->end_ns, slot->next_ns), done->start_ns);
    waits_bound(cuda, slot, done->start_ns);
    return counts;
}

int ah__cuda_wait_any(struct ah_dev *dev, struct ah_done *done)
{
    struct ah_cuda *cuda = (struct ah_cuda *)dev;
    AH_TRY(ah__lanes_wait_any(cuda->lanes, done));
    struct ah_cuda_stream *stream = &cuda->stream[done->lane];
    struct ah_cuda_slot *slot = ah__cuda_slot(stream, ++stream->reported);
    bool lives = !ah__cuda_on_thread(done->lane) && times_fill(stream, slot, done);
    slot->sequence = stream->reported;
    slot->end_ns = done->end_ns;
    int64_t now_ns = ah__host_now_ns();
    if (!lives || now_ns < cuda->epoch_next_ns || epoch_renew(cuda, now_ns) == AH_OK)
        return AH_OK;
    pthread_mutex_lock(&cuda->mutex);
    ah__cuda_failure_keep(cuda, AH_EDEVICE); /* work submitted from now on ends with this failure */
    pthread_mutex_unlock(&cuda->mutex);
    return AH_OK;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static int stream_open(struct ah_cuda_stream *stream)
{
    AH_CUDA_TRY(cudaStreamCreateWithFlags(&stream->work, cudaStreamNonBlocking));
    for (int i = 0; i < AH_LANE_RING; i++) {
        AH_CUDA_TRY(cudaEventCreateWithFlags(&stream->slot[i].start, cudaEventDefault));
        AH_CUDA_TRY(cudaEventCreateWithFlags(&stream->slot[i].end, cudaEventDefault));
    }
    if (stream->lane == AH_LANE_COMPUTE || (stream->lane == AH_LANE_COMM && stream->cuda->comm->world_size > 1))
        AH_CUDA_TRY(cudaMalloc((void **)&stream->partials, AH_CUDA_PARTIALS * sizeof(double)));
    return AH_OK;
}

/* Checks the memory operations on which ordering and completions depend: a GPU without them fails here. */
static int values_check(struct ah_cuda *cuda)
{
    CUstream stream = (CUstream)cuda->stream[AH_LANE_COMPUTE].work;
    CUresult error =
        cuda->library.cuStreamWaitValue64(stream, number_of(cuda, AH_LANE_HOST), 0, CU_STREAM_WAIT_VALUE_GEQ);
    if (error != CUDA_SUCCESS)
        return ah__fail(AH_EDEVICE,
                        "cuStreamWaitValue64: CUDA error %d: streams cannot wait for a value in memory here",
                        (int)error);
    error = cuda->library.cuStreamWriteValue64(stream, number_of(cuda, AH_LANE_COMPUTE), 0, 0);
    return error == CUDA_SUCCESS ? AH_OK
                                 : ah__fail(AH_EDEVICE,
                                            "cuStreamWriteValue64: CUDA error %d: streams cannot write a "
                                            "value to memory here",
                                            (int)error);
}

/* Initializes NVTX. Otherwise its first call would, on the thread of any device. */
static void ranges_ready(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    nvtxInitialize(NULL);
    pthread_mutex_unlock(&mutex);
}

int ah__cuda_streams_open(struct ah_cuda *cuda)
{
    ranges_ready();
    size_t numbers = (size_t)AH_LANE_COUNT * AH_CUDA_PASSED_APART * sizeof *cuda->passed;
    AH_CUDA_TRY(cudaHostAlloc((void **)&cuda->passed, numbers, cudaHostAllocMapped));
    memset(cuda->passed, 0, numbers);
    for (int i = 0; i < AH_LANE_COUNT; i++) {
        cuda->stream[i].cuda = cuda;
        cuda->stream[i].lane = (enum ah_lane)i;
        if (!ah__cuda_on_thread((enum ah_lane)i))
            AH_TRY(stream_open(&cuda->stream[i]));
    }
    AH_TRY(values_check(cuda));
    AH_CUDA_TRY(cudaStreamCreateWithFlags(&cuda->clock, cudaStreamNonBlocking));
    for (int i = 0; i < AH_CUDA_EPOCHS; i++)
        AH_CUDA_TRY(cudaEventCreateWithFlags(&cuda->epoch[i].event, cudaEventDefault));
    AH_CUDA_TRY(cudaEventRecord(cuda->epoch[0].event, cuda->clock));
    AH_CUDA_TRY(cudaEventSynchronize(cuda->epoch[0].event));
    cuda->epoch[0].ns = ah__host_now_ns();
    cuda->epoch_next_ns = cuda->epoch[0].ns + EPOCH_NS;
    return ah__cuda_watch_start(cuda);
}

cudaError_t ah__cuda_streams_drain(struct ah_cuda *cuda)
{
    cudaError_t first = cudaSuccess;
    AH_EACH_STREAM(stream, cuda)
    {
        cudaError_t error = cudaStreamSynchronize(stream->work);
        first = first != cudaSuccess ? first : error;
    }
    return first;
}

void ah__cuda_streams_settle(struct ah_cuda *cuda)
{
    pthread_mutex_lock(&cuda->mutex);
    for (int i = 0; i < AH_LANE_COUNT; i++)
        cuda->stream[i].started = cuda->stream[i].submitted;
    if (!cuda->lost)
        cuda->failed = AH_OK;
    pthread_mutex_unlock(&cuda->mutex);
}

static void stream_close(struct ah_cuda_stream *stream)
{
    for (int i = 0; i < AH_LANE_RING; i++) {
        if (stream->slot[i].start)
            (void)cudaEventDestroy(stream->slot[i].start);
        if (stream->slot[i].end)
            (void)cudaEventDestroy(stream->slot[i].end);
    }
    if (stream->partials)
        (void)cudaFree(stream->partials);
    if (stream->work)
        (void)cudaStreamDestroy(stream->work);
}

void ah__cuda_streams_close(struct ah_cuda *cuda)
{
    for (int i = 0; i < AH_CUDA_EPOCHS; i++)
        if (cuda->epoch[i].event)
            (void)cudaEventDestroy(cuda->epoch[i].event);
    for (int i = 0; i < AH_LANE_COUNT; i++)
        stream_close(&cuda->stream[i]);
    if (cuda->clock)
        (void)cudaStreamDestroy(cuda->clock);
    if (cuda->passed)
        (void)cudaFreeHost(cuda->passed);
}
