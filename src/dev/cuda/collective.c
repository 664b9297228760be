#include "dev/cuda/collective.h"

#include <sched.h>
#include <string.h>

#include "base/alloc.h"
#include "dev/cuda/kernels.h"
#include "dev/host/clock.h"

enum { EAGER_NS = 200000, PAUSE_NS = 50000, LOOK_NS = 100000000 };
static const int64_t for_ever_ns = INT64_MAX, reason_ns = 3000000000, close_ns = 2000000000;

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static int give_up(struct ah_cuda *cuda, int status)
{
    cuda->group.broken = true;
    return status;
}

void ah__cuda_group_abandon(struct ah_cuda *cuda)
{
    if (cuda->group.broken && cuda->group.nccl) {
        (void)cuda->library.ncclCommAbort(cuda->group.nccl);
        cuda->group.nccl = NULL;
    }
}

struct wait {
    int64_t begin_ns, looked_ns, patience_ns;
};

static struct wait wait_begin(int64_t patience_ns)
{
    int64_t now_ns = ah__host_now_ns();
    return (struct wait){now_ns, now_ns, patience_ns};
}

/* Waits for a moment, shorter at first. AH_EDEVICE: waiting longer is useless. */
static int wait_on(struct wait *wait, const struct ah_cuda *cuda)
{
    int64_t now_ns = ah__host_now_ns();
    if (now_ns - wait->begin_ns > wait->patience_ns)
        return ah__fail(AH_EDEVICE, "NCCL: no answer");
    if (now_ns - wait->looked_ns > LOOK_NS) {
        wait->looked_ns = now_ns;
        AH_TRY(cuda->comm->ops->look(cuda->comm));
    }
    if (now_ns - wait->begin_ns < EAGER_NS)
        sched_yield();
    else
        ah__host_sleep_until(now_ns + PAUSE_NS);
    return AH_OK;
}

/* Waits for a moment in which this rank may learn that another has failed, and returns that as the cause; else `status`
 * with the message as before. */
static int reason(struct ah_cuda *cuda, int status)
{
    struct wait wait = wait_begin(for_ever_ns);
    char own[512];
    snprintf(own, sizeof own, "%s", ah_error());
    while (ah__host_now_ns() - wait.begin_ns < reason_ns)
        AH_TRY(wait_on(&wait, cuda));
    return ah__fail(status, "%s", own);
}

/* Fails with one line: the call, NCCL's name of the error, and its last message. */
static int nccl_fail(struct ah_cuda *cuda, const char *call, ncclResult_t result)
{
    const char *last = cuda->library.ncclGetLastError(NULL);
    int name = (int)strcspn(call, "("), length = last ? (int)strcspn(last, "\n") : 0;
    int status = ah__fail(AH_EDEVICE, "%.*s: %s%s%.*s", name, call, cuda->library.ncclGetErrorString(result),
                          length ? ": " : "", length < 200 ? length : 200, length ? last : "");
    return result == ncclRemoteError ? reason(cuda, status) : status;
}

/* Waits until a non-blocking call is done: before that, the stream has nothing of it. If it fails, NCCL is not used
 * again. */
static int finished(struct ah_cuda *cuda, const char *call, ncclResult_t result, int64_t patience_ns)
{
    struct wait wait = wait_begin(patience_ns);
    int status = AH_OK;
    while (result == ncclInProgress && status == AH_OK) {
        ncclResult_t asked = cuda->library.ncclCommGetAsyncError(cuda->group.nccl, &result);
        if (asked != ncclSuccess)
            result = asked;
        if (result == ncclInProgress)
            status = wait_on(&wait, cuda);
    }
    if (status == AH_OK && result != ncclSuccess)
        status = nccl_fail(cuda, call, result);
    return status == AH_OK ? AH_OK : give_up(cuda, status);
}

/* The message names the call up to its '('. */
#define NCCL_TRY(call) AH_TRY(finished(cuda, #call, cuda->library.call, for_ever_ns))

/* Waits until all work on the stream is done. */
static int stream_wait(struct ah_cuda *cuda, cudaStream_t stream, int64_t patience_ns)
{
    struct wait wait = wait_begin(patience_ns);
    int status = AH_OK;
    cudaError_t error;
    while ((error = cudaStreamQuery(stream)) == cudaErrorNotReady && status == AH_OK)
        status = wait_on(&wait, cuda);
    if (status == AH_OK)
        status = ah__cuda_status("cudaStreamQuery", error);
    return status == AH_OK ? AH_OK : give_up(cuda, status);
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

/* Returns true if a call in a group has been accepted. It begins only when the group ends. */
static bool is_posted(ncclResult_t result)
{
    return result == ncclSuccess || result == ncclInProgress;
}

static int exchange_post(struct ah_cuda *cuda, const char *send, int64_t step, int64_t bytes, cudaStream_t stream)
{
    const struct ah_cuda_library *library = &cuda->library;
    ncclResult_t result = ncclSuccess;
    for (int peer = 0; peer < cuda->comm->world_size && is_posted(result); peer++) {
        char *place = cuda->group.scratch + (int64_t)peer * AH_CUDA_PIECE_BYTES;
        if (peer == cuda->comm->rank)
            continue;
        result = library->ncclSend(send + peer * step, (size_t)bytes, ncclUint8, peer, cuda->group.nccl, stream);
        if (is_posted(result))
            result = library->ncclRecv(place, (size_t)bytes, ncclUint8, peer, cuda->group.nccl, stream);
    }
    return is_posted(result) ? AH_OK : nccl_fail(cuda, "ncclSend, ncclRecv", result);
}

/* Exchanges data with every other rank: sends its piece of `send`, where pieces are `step` bytes apart, and receives a
 * piece into that rank's part of the scratch. */
static int exchange(struct ah_cuda *cuda, const char *send, int64_t step, int64_t bytes, cudaStream_t stream)
{
    NCCL_TRY(ncclGroupStart());
    int status = exchange_post(cuda, send, step, bytes, stream);
    if (status != AH_OK) {
        (void)cuda->library.ncclGroupEnd();
        return give_up(cuda, status);
    }
    NCCL_TRY(ncclGroupEnd());
    return AH_OK;
}

static int all_gather(struct ah_cuda *cuda, char *buffer, int64_t bytes, cudaStream_t stream)
{
    const char *own = buffer + cuda->comm->rank * bytes;
    NCCL_TRY(ncclAllGather(own, buffer, (size_t)bytes, ncclUint8, cuda->group.nccl, stream));
    return AH_OK;
}

static int64_t piece_bytes(int64_t all, int64_t first)
{
    return all - first < AH_CUDA_PIECE_BYTES ? all - first : AH_CUDA_PIECE_BYTES;
}

static int reduce_scatter(struct ah_cuda *cuda, char *buffer, int64_t part_bytes, enum ah_dtype dtype,
                          cudaStream_t stream)
{
    struct ah_cuda_rank_sum sum = {.scratch = cuda->group.scratch,
                                   .step_bytes = AH_CUDA_PIECE_BYTES,
                                   .rank = cuda->comm->rank,
                                   .world_size = cuda->comm->world_size};
    for (int64_t first = 0; first < part_bytes; first += AH_CUDA_PIECE_BYTES) {
        int64_t bytes = piece_bytes(part_bytes, first);
        AH_TRY(exchange(cuda, buffer + first, part_bytes, bytes, stream));
        sum.own = sum.to = buffer + cuda->comm->rank * part_bytes + first;
        sum.count = bytes / ah__dtype_bytes(dtype);
        AH_TRY(ah__cuda_status("sum of ranks", ah__cuda_rank_sum_enqueue(stream, dtype, &sum)));
    }
    return AH_OK;
}

/* Sums on all ranks: each gathers the data of all and adds them up in the same order. */
static int sum_all(struct ah_cuda *cuda, enum ah_collective kind, char *buffer, int64_t all_bytes, cudaStream_t stream)
{
    char *scratch = cuda->group.scratch;
    for (int64_t first = 0; first < all_bytes; first += AH_CUDA_PIECE_BYTES) {
        int64_t bytes = piece_bytes(all_bytes, first), rank = cuda->comm->rank;
        struct ah_cuda_rank_sum sum = {.to = buffer + first,
                                       .own = scratch + rank * bytes,
                                       .scratch = scratch,
                                       .step_bytes = bytes,
                                       .rank = (int)rank,
                                       .world_size = cuda->comm->world_size};
        NCCL_TRY(ncclAllGather(buffer + first, scratch, (size_t)bytes, ncclUint8, cuda->group.nccl, stream));
        bool doubles = kind == AH_SUM_DOUBLES;
        sum.count = bytes / (int64_t)(doubles ? sizeof(double) : sizeof(float));
        AH_TRY(ah__cuda_status("sum of ranks", doubles ? ah__cuda_rank_sum_doubles_enqueue(stream, &sum)
                                                       : ah__cuda_rank_sum_enqueue(stream, AH_F32, &sum)));
    }
    return AH_OK;
}

static int collective(struct ah_cuda *cuda, cudaStream_t stream, const struct ah_task *task)
{
    enum ah_collective kind = task->as.collective.kind;
    enum ah_dtype dtype = task->as.collective.dtype;
    int64_t element = kind == AH_SUM_DOUBLES ? (int64_t)sizeof(double) : ah__dtype_bytes(dtype);
    int64_t bytes = task->as.collective.part_count * element;
    char *buffer = task->as.collective.buffer;
    if (dtype == AH_BF16 && kind == AH_SUM_FLOATS)
        return ah__fail(AH_EINTERNAL, "collective: a sum of floats in bf16");
    if (!cuda->group.nccl || cuda->group.broken)
        return ah__fail(AH_EDEVICE, "NCCL has failed and joins no ranks in this process any more");
    if (bytes == 0)
        return AH_OK;
    if (kind == AH_ALL_GATHER)
        return all_gather(cuda, buffer, bytes, stream);
    return kind == AH_REDUCE_SCATTER ? reduce_scatter(cuda, buffer, bytes, dtype, stream)
                                     : sum_all(cuda, kind, buffer, bytes, stream);
}

/* With one rank, comm/ completes the collective at once. */
int ah__cuda_collective(struct ah_cuda *cuda, cudaStream_t stream, const struct ah_task *task)
{
    struct ah_comm *comm = cuda->comm;
    if (comm->world_size > 1)
        return collective(cuda, stream, task);
    return comm->ops->collective(comm, task->as.collective.kind, task->as.collective.buffer,
                                 task->as.collective.part_count, task->as.collective.dtype);
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

int ah__cuda_group_open(struct ah_cuda *cuda)
{
    AH_TRY(ah__cuda_library_open_nccl(&cuda->library));
    AH_CUDA_TRY(cudaMalloc((void **)&cuda->group.scratch, (size_t)cuda->comm->world_size * AH_CUDA_PIECE_BYTES));
    return AH_OK;
}

/* Fails if two ranks have the same GPU. Every rank compares all, so all fail alike; NCCL would refuse it, too, but only
 * on some ranks. */
static int gpus_compare(struct ah_cuda *cuda)
{
    struct ah_comm *comm = cuda->comm;
    const int64_t floats = (int64_t)(sizeof(cudaUUID_t) / sizeof(float));
    cudaUUID_t *all;
    AH_TRY(ah__new(&all, (size_t)comm->world_size, sizeof *all));
    all[comm->rank] = cuda->properties.uuid;
    int status = comm->ops->collective(comm, AH_ALL_GATHER, all, floats, AH_F32);
    for (int b = 1; b < comm->world_size; b++)
        for (int a = 0; a < b && status == AH_OK; a++)
            if (memcmp(&all[a], &all[b], sizeof *all) == 0)
                status = ah__fail(AH_EINPUT,
                                  "found one GPU for ranks %d and %d, expected one for each: NCCL takes no "
                                  "more",
                                  a, b);
    ah__free(all);
    return status;
}

/* The id that rank 0 gives all ranks to join by. */
struct invitation {
    int status;
    ncclUniqueId id;
};

static int communicator_make(struct ah_cuda *cuda)
{
    struct ah_comm *comm = cuda->comm;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    struct invitation invitation = {.status = AH_OK};
    if (comm->rank == 0)
        invitation.status =
            finished(cuda, "ncclGetUniqueId", cuda->library.ncclGetUniqueId(&invitation.id), for_ever_ns);
    AH_TRY(comm->ops->move(comm, &invitation, sizeof invitation, 0, AH_ALL_RANKS));
    if (invitation.status != AH_OK && comm->rank > 0)
        return reason(cuda, ah__fail(AH_EDEVICE, "NCCL: rank 0 cannot start it"));
    AH_TRY(invitation.status);
    config.blocking = 0;
    NCCL_TRY(ncclCommInitRankConfig(&cuda->group.nccl, comm->world_size, invitation.id, comm->rank, &config));
    return AH_OK;
}

/* Sends one piece each way. NCCL opens connections when they are first used, so this comes before anybody measures the
 * free memory. */
static int connect_all(struct ah_cuda *cuda)
{
    cudaStream_t stream = cuda->stream[AH_LANE_COMM].work;
    char *scratch = cuda->group.scratch;
    size_t bytes = (size_t)cuda->comm->world_size * AH_CUDA_PIECE_BYTES;
    AH_CUDA_TRY(cudaMemsetAsync(scratch, 0, bytes, stream));
    AH_TRY(all_gather(cuda, scratch, AH_CUDA_PIECE_BYTES, stream));
    AH_TRY(exchange(cuda, scratch + cuda->comm->rank * (int64_t)AH_CUDA_PIECE_BYTES, 0, AH_CUDA_PIECE_BYTES, stream));
    return stream_wait(cuda, stream, for_ever_ns);
}

int ah__cuda_group_join(struct ah_cuda *cuda)
{
    AH_TRY(gpus_compare(cuda));
    int status = communicator_make(cuda);
    if (status == AH_OK)
        status = connect_all(cuda);
    ah__cuda_group_abandon(cuda);
    return status;
}

/* ---- later ------------------------------------------------------------------------------------------------------- */

int ah__cuda_group_look(struct ah_cuda *cuda)
{
    ncclResult_t result = ncclSuccess;
    if (!cuda->group.nccl || cuda->group.broken)
        return AH_OK;
    ncclResult_t asked = cuda->library.ncclCommGetAsyncError(cuda->group.nccl, &result);
    if (asked != ncclSuccess || result != ncclSuccess)
        return give_up(cuda, nccl_fail(cuda, "NCCL", asked != ncclSuccess ? asked : result));
    int status = cuda->comm->ops->look(cuda->comm);
    return status == AH_OK ? AH_OK : give_up(cuda, status);
}

void ah__cuda_group_settle(struct ah_cuda *cuda)
{
    char why[512];
    snprintf(why, sizeof why, "%s", ah_error());
    if (cuda->group.nccl && stream_wait(cuda, cuda->stream[AH_LANE_COMM].work, for_ever_ns) != AH_OK)
        (void)ah__fail(AH_EDEVICE, "%s", why);
    ah__cuda_group_abandon(cuda);
}

/* Closes NCCL's communicator together with the other ranks, which needs that nothing has failed. */
static int finalize(struct ah_cuda *cuda)
{
    AH_TRY(stream_wait(cuda, cuda->stream[AH_LANE_COMM].work, close_ns));
    return finished(cuda, "ncclCommFinalize", cuda->library.ncclCommFinalize(cuda->group.nccl), close_ns);
}

void ah__cuda_group_leave(struct ah_cuda *cuda)
{
    char why[512]; /* closing must not change an earlier message */
    if (!cuda->group.nccl)
        return;
    snprintf(why, sizeof why, "%s", ah_error());
    if (finalize(cuda) == AH_OK) {
        (void)cuda->library.ncclCommDestroy(cuda->group.nccl);
        cuda->group.nccl = NULL;
        return;
    }
    (void)ah__fail(AH_EDEVICE, "%s", why);
    ah__cuda_group_abandon(cuda);
}

void ah__cuda_group_close(struct ah_cuda *cuda)
{
    if (cuda->group.scratch)
        (void)cudaFree(cuda->group.scratch);
    cuda->group = (struct ah_cuda_group){0};
}
