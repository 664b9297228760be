/* NCCL as far as the CUDA plugin uses it, in a library of its own (libnccl.so.2). Ranks are threads of one process,
 * each on an emulated GPU of its own.
 *
 * Communicators are of the kind that does not block: a call leaves its communicator in progress, and what it enqueues
 * comes onto the stream only when ncclCommGetAsyncError has been asked a few times. Who records an event before that,
 * records it too early. On the stream an operation waits for those of its peers for as long as it takes: a rank that is
 * gone is not noticed, only an abort ends the waiting. */
#include "inside.h"

#include <stdio.h>
#include <string.h>

#include <nccl.h>

enum { RANKS_MOST = 8, CLIQUES_MOST = 64, PARTS_MOST = 2 * RANKS_MOST, POLLS = 3 };

/* What one rank has for another, until that one has taken it. */
struct box {
    const char *at;
    size_t bytes;
    bool full, taking;
};

/* A communicator; its number changes when the place is given back, so that operations know that theirs is gone. */
struct ncclComm {
    uint64_t number; /* 0: free */
    struct clique *clique;
    int rank, device;
    ncclResult_t state;
    int polls; /* questions until what was asked for is done */
    bool finalized;
};

static struct clique {
    uint64_t id; /* 0: free */
    int ranks, joined, left;
    struct ncclComm comm[RANKS_MOST];
    struct box box[RANKS_MOST][RANKS_MOST]; /* from, to */
} cliques[CLIQUES_MOST];

static uint64_t numbers;
static __thread char last_error[256];

/* One message of an operation. */
struct part {
    char *at;
    size_t bytes;
    int peer;
    bool receives;
};

/* What a group of calls puts on the stream. */
struct operation_of_group {
    struct ncclComm *comm;
    uint64_t number;
    int parts;
    struct part part[PARTS_MOST];
};
_Static_assert(sizeof(struct operation_of_group) <= EMULATION_ARGUMENT_BYTES, "fits behind an operation");

/* Of the calling thread. */
static __thread struct {
    int depth;
    cudaStream_t stream;
    struct operation_of_group operation;
} group;

/* What waits for questions, by communicator: a communicator's calls come from one thread. */
static __thread struct {
    cudaStream_t stream;
    struct operation_of_group operation;
} pending;

#define ENTER_NCCL(function)                                                                                           \
    do {                                                                                                               \
        int error_ = emulation_enter(function);                                                                        \
        if (error_)                                                                                                    \
            return (ncclResult_t)error_;                                                                               \
    } while (0)
#define REFUSE_NCCL(error, ...) return (ncclResult_t)emulation_object(error, __VA_ARGS__)

/* ---- on the stream's thread, with the lock ----------------------------------------------------------------------- */

static bool is_gone(const struct operation_of_group *operation)
{
    return operation->comm->number != operation->number || emulation_sticky();
}

static void boxes_fill(const struct operation_of_group *operation)
{
    struct ncclComm *comm = operation->comm;
    for (int i = 0; i < operation->parts; i++) {
        const struct part *part = &operation->part[i];
        struct box *box = &comm->clique->box[comm->rank][part->peer];
        if (part->receives)
            continue;
        *box = (struct box){.at = part->at, .bytes = part->bytes, .full = true};
        ORDER_RELEASE(box);
    }
    emulation_ring(&emulation_progress);
}

/* The lock is given away while bytes are copied: the sender waits until they are. */
static void box_take(struct box *box, const struct part *part)
{
    box->taking = true;
    emulation_unlock();
    ORDER_ACQUIRE(box);
    if (box->bytes != part->bytes)
        emulation_sticky_set(emulation_object(cudaErrorLaunchFailure, "NCCL: %zu bytes come from rank %d, expected %zu",
                                              box->bytes, part->peer, part->bytes));
    else
        emulation_copy(part->at, box->at, part->bytes);
    ORDER_RELEASE(box);
    emulation_lock();
    box->full = box->taking = false;
    emulation_ring(&emulation_progress);
}

static void boxes_take(const struct operation_of_group *operation)
{
    const struct ncclComm *comm = operation->comm;
    for (int i = 0; i < operation->parts; i++) {
        const struct part *part = &operation->part[i];
        if (!part->receives)
            continue;
        while (!is_gone(operation) && !comm->clique->box[part->peer][comm->rank].full)
            emulation_await(&emulation_progress);
        if (is_gone(operation))
            return;
        box_take(&comm->clique->box[part->peer][comm->rank], part);
    }
}

static void operation_run(void *argument)
{
    const struct operation_of_group *operation = argument;
    emulation_lock();
    if (!is_gone(operation)) {
        struct clique *clique = operation->comm->clique;
        int rank = operation->comm->rank;
        boxes_fill(operation);
        boxes_take(operation);
        for (int i = 0; i < operation->parts; i++) {
            struct box *box = &clique->box[rank][operation->part[i].peer];
            while (!operation->part[i].receives && !is_gone(operation) && box->full)
                emulation_await(&emulation_progress);
            ORDER_ACQUIRE(box);
        }
    }
    emulation_unlock();
}

/* ---- communicators ----------------------------------------------------------------------------------------------- */

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {
        "no error",         "unhandled cuda error", "unhandled system error", "internal error",
        "invalid argument", "invalid usage",        "remote process exited",  "in progress"};
    return result < ncclNumResults ? texts[result] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return last_error;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *out)
{
    ENTER_NCCL("ncclGetUniqueId");
    *out = (ncclUniqueId){""};
    emulation_lock();
    uint64_t id = ++numbers;
    emulation_unlock();
    memcpy(out->internal, &id, sizeof id);
    return ncclSuccess;
}

/* With the lock: the clique of the id, or a new one. */
static struct clique *clique_of(uint64_t id, int ranks)
{
    struct clique *unused = NULL;
    for (int i = 0; i < CLIQUES_MOST; i++) {
        if (cliques[i].id == id)
            return &cliques[i];
        if (!cliques[i].id && !unused)
            unused = &cliques[i];
    }
    if (unused)
        *unused = (struct clique){.id = id, .ranks = ranks};
    return unused;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId unique, int rank, ncclConfig_t *config)
{
    uint64_t id;
    ENTER_NCCL("ncclCommInitRankConfig");
    memcpy(&id, unique.internal, sizeof id);
    if (!config || config->magic != 0xcafebeef || config->blocking != 0 || !id || ranks < 1 || ranks > RANKS_MOST ||
        rank < 0 || rank >= ranks)
        REFUSE_NCCL(ncclInvalidArgument, "ncclCommInitRankConfig: rank %d of %d, blocking %d", rank, ranks,
                    config ? config->blocking : 1);
    emulation_lock();
    struct clique *clique = clique_of(id, ranks);
    bool good = clique && clique->ranks == ranks && !clique->comm[rank].number;
    if (good) {
        clique->comm[rank] = (struct ncclComm){.number = ++numbers,
                                               .clique = clique,
                                               .rank = rank,
                                               .device = emulation_device(),
                                               .state = ncclInProgress,
                                               .polls = POLLS};
        clique->joined++;
        *out = &clique->comm[rank];
    }
    emulation_unlock();
    if (!good)
        REFUSE_NCCL(ncclInvalidUsage, "ncclCommInitRankConfig: rank %d is no part of this clique", rank);
    emulation_library_object(1);
    return ncclInProgress;
}

/* All ranks have joined, and what was asked for has come onto its stream. */
static ncclResult_t progress(struct ncclComm *comm)
{
    if (comm->clique->joined < comm->clique->ranks)
        return ncclInProgress;
    if (comm->polls > 0 && --comm->polls > 0)
        return ncclInProgress;
    struct operation_of_group operation = pending.operation;
    pending.operation.parts = 0;
    if (operation.parts == 0)
        return ncclSuccess;
    emulation_unlock();
    cudaError_t error = emulation_enqueue(pending.stream, "NCCL", operation_run, &operation, sizeof operation);
    emulation_lock();
    return error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *out)
{
    int error = emulation_enter_release("ncclCommGetAsyncError");
    if (error)
        return (ncclResult_t)error;
    if (!comm || !comm->number)
        REFUSE_NCCL(ncclInvalidArgument, "ncclCommGetAsyncError: of no communicator");
    int fault = emulation_fault_here("nccl"); /* what happens behind calls */
    emulation_lock();
    if (fault) {
        comm->state = (ncclResult_t)fault;
        snprintf(last_error, sizeof last_error, "something\nhappened to it");
        pending.operation.parts = 0;
    } else if (comm->state == ncclInProgress)
        comm->state = progress(comm);
    *out = comm->state;
    emulation_unlock();
    return ncclSuccess;
}

/* What peers still copy is not taken from under them. */
static void comm_free(struct ncclComm *comm)
{
    emulation_lock();
    struct clique *clique = comm->clique;
    comm->number = 0;
    emulation_ring(&emulation_progress);
    for (int peer = 0; peer < clique->ranks; peer++) {
        struct box *box = &clique->box[comm->rank][peer];
        while (box->taking)
            emulation_await(&emulation_progress);
        box->full = false;
    }
    pending.operation.parts = 0;
    if (++clique->left == clique->joined)
        clique->id = 0;
    emulation_unlock();
    emulation_library_object(-1);
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    int error = emulation_enter_release("ncclCommAbort");
    if (!comm || !comm->number)
        REFUSE_NCCL(ncclInvalidArgument, "ncclCommAbort: of no communicator");
    comm_free(comm);
    return (ncclResult_t)error;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    int error = emulation_enter_release("ncclCommFinalize");
    if (error)
        return (ncclResult_t)error;
    if (!comm || !comm->number || comm->state != ncclSuccess)
        REFUSE_NCCL(ncclInvalidArgument, "ncclCommFinalize: the communicator is in progress, or is none");
    comm->state = ncclInProgress;
    comm->polls = POLLS;
    comm->finalized = true;
    return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    int error = emulation_enter_release("ncclCommDestroy");
    if (!comm || !comm->number || comm->state != ncclSuccess || !comm->finalized)
        REFUSE_NCCL(ncclInvalidArgument, "ncclCommDestroy: the communicator was not finalized");
    comm_free(comm);
    return (ncclResult_t)error;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static ncclResult_t part_add(const char *function, const void *at, size_t bytes, ncclDataType_t type, int peer,
                             struct ncclComm *comm, cudaStream_t stream, bool receives)
{
    struct operation_of_group *operation = &group.operation;
    if (!comm || !comm->number || comm->state != ncclSuccess || comm->device != emulation_device())
        REFUSE_NCCL(ncclInvalidArgument, "%s: the communicator is in progress, of another GPU, or none", function);
    if (type != ncclUint8 || !emulation_is_device(at, bytes) || peer < 0 || peer >= comm->clique->ranks ||
        peer == comm->rank || operation->parts == PARTS_MOST || group.depth == 0)
        REFUSE_NCCL(ncclInvalidArgument, "%s: of type %d, %zu bytes at %p with rank %d", function, (int)type, bytes, at,
                    peer);
    if (operation->parts && (operation->comm != comm || group.stream != stream))
        REFUSE_NCCL(ncclInvalidUsage, "%s: another communicator or stream in one group", function);
    operation->comm = comm;
    operation->number = comm->number;
    group.stream = stream;
    operation->part[operation->parts++] = (struct part){(char *)(uintptr_t)at, bytes, peer, receives};
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    ENTER_NCCL("ncclSend");
    return part_add("ncclSend", from, count, type, peer, comm, stream, false);
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    ENTER_NCCL("ncclRecv");
    return part_add("ncclRecv", to, count, type, peer, comm, stream, true);
}

static ncclResult_t group_end(void)
{
    if (--group.depth > 0 || group.operation.parts == 0)
        return ncclSuccess;
    struct ncclComm *comm = group.operation.comm;
    pending.stream = group.stream;
    pending.operation = group.operation;
    group.operation.parts = 0;
    comm->state = ncclInProgress;
    comm->polls = POLLS;
    return ncclInProgress;
}

ncclResult_t ncclGroupStart(void)
{
    ENTER_NCCL("ncclGroupStart");
    if (group.depth++ == 0)
        group.operation.parts = 0;
    return ncclSuccess;
}

/* Ends the group even when it fails. */
ncclResult_t ncclGroupEnd(void)
{
    int error = emulation_enter_release("ncclGroupEnd");
    if (group.depth == 0)
        REFUSE_NCCL(ncclInvalidUsage, "ncclGroupEnd: there is no group");
    if (error)
        group.operation.parts = 0;
    ncclResult_t result = group_end();
    return error ? (ncclResult_t)error : result;
}

/* This rank's own part must already lie in its place, or is copied there. */
ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    ncclResult_t result = ncclSuccess;
    ENTER_NCCL("ncclAllGather");
    if (!comm || !comm->number || group.depth || comm->state != ncclSuccess)
        REFUSE_NCCL(ncclInvalidArgument, "ncclAllGather: in a group, or the communicator is none or in progress");
    int ranks = comm->clique->ranks;
    char *own = (char *)to + (size_t)comm->rank * count;
    bool apart = (const char *)from + count <= (char *)to || (char *)to + (size_t)ranks * count <= (const char *)from;
    if (from != own && !apart)
        REFUSE_NCCL(ncclInvalidArgument, "ncclAllGather: what is sent overlaps what is received");
    if (from != own && cudaMemcpyAsync(own, from, count, cudaMemcpyDeviceToDevice, stream) != cudaSuccess)
        return ncclUnhandledCudaError;
    group.depth = 1;
    group.operation.parts = 0;
    for (int peer = 0; peer < ranks && result == ncclSuccess; peer++) {
        if (peer == comm->rank)
            continue;
        char *place = (char *)to + (size_t)peer * count;
        result = part_add("ncclAllGather", from, count, type, peer, comm, stream, false);
        if (result == ncclSuccess)
            result = part_add("ncclAllGather", place, count, type, peer, comm, stream, true);
    }
    if (result != ncclSuccess)
        group.operation.parts = 0;
    ncclResult_t ended = group_end();
    return result == ncclSuccess ? ended : result;
}
