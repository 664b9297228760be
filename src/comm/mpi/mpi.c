/* Ranks over MPI: libautohete-mpi-KIND.so, one library for each MPI implementation it was built with. Uses messages
 * that do not block, so that waiting can sleep, give up and notice that another rank is gone. */
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "comm/mpi/beat.h"
#include "comm/mpi/lock.h"

/* PIECE_BYTES: MPI counts in int. FAR_BYTES, FAR_LEAST_BYTES: between machines a beat waits behind the pieces that are
 * in flight to all peers, which must not take seconds over a slow link. ALARM: the tag of a transfer that alarms. */
enum { PIECE_BYTES = 1 << 30, FAR_BYTES = 1 << 20, FAR_LEAST_BYTES = 256 << 10, SETS = 2, ALARM = 1 };

static struct {
    struct ah_transport transport;
    MPI_Comm channel[AH_CHANNEL_COUNT];
    /* Requests of the pieces in flight and of the next ones, by transfer; MPI_REQUEST_NULL: no piece. Two transfers for
     * each rank. */
    MPI_Request *requests[AH_CHANNEL_COUNT][SETS];
    int64_t piece_bytes; /* the same on all ranks */
    bool started;        /* this library has started MPI */
} mpi;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static bool refused(int error, const char *what, char why[AH_TRANSPORT_WHY])
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (error == MPI_SUCCESS)
        return false;
    MPI_Error_string(error, text, &length);
    snprintf(why, AH_TRANSPORT_WHY, "MPI cannot %s: %.180s", what, text);
    return true;
}

static int pieces_start_locked(enum ah_channel channel, int set, const struct ah_transfer *transfers, int count,
                               int64_t first, char why[AH_TRANSPORT_WHY])
{
    MPI_Request *requests = mpi.requests[channel][set];
    int started = 0;
    for (int i = 0; i < count; i++)
        requests[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < count; i++) {
        const struct ah_transfer *t = &transfers[i];
        int64_t left = t->bytes - first;
        if (left <= 0 && (first > 0 || t->bytes < 0))
            continue;
        int bytes = (int)(left < mpi.piece_bytes ? left : mpi.piece_bytes);
        char *at = (char *)t->buffer + first;
        int tag = t->receives ? MPI_ANY_TAG : t->alarms ? ALARM : 0;
        int error = t->receives ? MPI_Irecv(at, bytes, MPI_BYTE, t->peer, tag, mpi.channel[channel], &requests[i])
                                : MPI_Isend(at, bytes, MPI_BYTE, t->peer, tag, mpi.channel[channel], &requests[i]);
        if (refused(error, t->receives ? "receive" : "send", why))
            return -1;
        started++;
    }
    return started;
}

/* Starts the piece of each message that begins at byte `first`; returns their number, -1 if MPI refuses. */
static int pieces_start(enum ah_channel channel, int set, const struct ah_transfer *transfers, int count, int64_t first,
                        char why[AH_TRANSPORT_WHY])
{
    ah__mpi_lock();
    int started = pieces_start_locked(channel, set, transfers, count, first, why);
    ah__mpi_unlock();
    return started;
}

/* Tests the requests; returns the first error of a message. MPI_Testall would only report that there is an error. */
static int pieces_test(bool *done, enum ah_channel channel, int set, int count)
{
    int error = MPI_SUCCESS;
    *done = true;
    ah__mpi_lock();
    for (int i = 0; i < count && error == MPI_SUCCESS; i++) {
        int there = 0; /* set by MPI_Test, also without a request */
        error = MPI_Test(&mpi.requests[channel][set][i], &there, MPI_STATUS_IGNORE);
        *done = *done && there;
    }
    ah__mpi_unlock();
    return error;
}

/* Returns a rank that has raised the alarm, or -1. */
static int alarming(void)
{
    MPI_Status status;
    int there = 0;
    ah__mpi_lock();
    MPI_Iprobe(MPI_ANY_SOURCE, ALARM, mpi.channel[AH_CHANNEL_END], &there, &status);
    ah__mpi_unlock();
    return there ? status.MPI_SOURCE : -1;
}

/* Returns true if waiting is of no use any more, with the reason in `why`: a rank that failed will not answer. A rank
 * that is done has sent all it had to. */
static bool hopeless(enum ah_channel channel, double until_s, double now, char why[AH_TRANSPORT_WHY])
{
    int gone = ah__beat_gone(), failed = channel == AH_CHANNEL_END ? -1 : alarming();
    if (failed >= 0)
        snprintf(why, AH_TRANSPORT_WHY, "rank %d has failed", failed);
    else if (gone >= 0)
        snprintf(why, AH_TRANSPORT_WHY, "rank %d has not been heard of for some seconds: it hangs, or its machine does",
                 gone);
    else if (until_s > 0 && now > until_s)
        snprintf(why, AH_TRANSPORT_WHY, "no answer");
    else
        return false;
    return true;
}

/* Tests the pieces until they are done, at first without a pause, then with longer and longer pauses: the cores have
 * other work. */
static bool pieces_wait(enum ah_channel channel, int set, int count, double until_s, char why[AH_TRANSPORT_WHY])
{
    const double eager_s = 100e-6;
    const long pause_most_ns = 500000;
    struct timespec pause = {.tv_nsec = 20000};
    double start_s = now_s();
    for (bool done = false;;) {
        if (refused(pieces_test(&done, channel, set, count), "transfer", why))
            return false;
        if (done)
            return true;
        double now = now_s();
        if (now - start_s < eager_s) {
            sched_yield();
            continue;
        }
        if (hopeless(channel, until_s, now, why))
            return false;
        nanosleep(&pause, NULL);
        pause.tv_nsec = pause.tv_nsec * 2 < pause_most_ns ? pause.tv_nsec * 2 : pause_most_ns;
    }
}

/* Gives up: cancels what is still to be received, so that later messages are not written into memory that this rank
 * uses for other things by then. */
static void pieces_abandon(enum ah_channel channel, const struct ah_transfer *transfers, int count)
{
    const double patience_s = 0.1; /* for messages that are arriving */
    double until_s = now_s() + patience_s;
    bool left = true;
    for (bool first = true; left && now_s() < until_s; first = false) {
        left = false;
        ah__mpi_lock();
        for (int i = 0; i < SETS * count; i++) {
            MPI_Request *request = &mpi.requests[channel][i / count][i % count];
            int done = 1;
            if (!transfers[i % count].receives || *request == MPI_REQUEST_NULL)
                continue;
            if (first)
                MPI_Cancel(request);
            left |= MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done;
        }
        ah__mpi_unlock();
        sched_yield();
    }
}

/* Sends and receives all pieces, always one set ahead. False if it gave up or MPI refused. */
static bool pieces_exchange(enum ah_channel channel, const struct ah_transfer *transfers, int count, double patience_s,
                            char why[AH_TRANSPORT_WHY])
{
    double until_s = patience_s > 0 ? now_s() + patience_s : 0;
    int64_t first = 0;
    int set = 0, under_way = pieces_start(channel, set, transfers, count, first, why);
    while (under_way > 0) {
        first += mpi.piece_bytes;
        int next = pieces_start(channel, !set, transfers, count, first, why);
        if (next < 0 || !pieces_wait(channel, set, count, until_s, why))
            return false;
        for (int i = 0; i < count; i++)
            if (transfers[i].receives && transfers[i].bytes >= 0)
                ah__beat_heard(transfers[i].peer);
        under_way = next;
        set = !set;
    }
    return under_way == 0;
}

static bool mpi_exchange(void *context, enum ah_channel channel, const struct ah_transfer *transfers, int count,
                         double patience_s, char why[AH_TRANSPORT_WHY])
{
    (void)context;
    if (pieces_exchange(channel, transfers, count, patience_s, why))
        return true;
    pieces_abandon(channel, transfers, count);
    return false;
}

static volatile sig_atomic_t exit_status;

static void on_alarm(int number)
{
    (void)number;
    _exit(exit_status);
}

/* Ends this process if it has not ended by itself in a few seconds: the launcher of a rank that failed may be on a
 * machine that cannot be reached any more; and over TCP, MPICH 4.0 at times waits in MPI_Finalize for ever. */
static void end_soon(int status)
{
    const unsigned patience_s = 4;
    fflush(NULL);
    exit_status = status;
    signal(SIGALRM, on_alarm);
    alarm(patience_s);
}

static bool mpi_look(void *context, char why[AH_TRANSPORT_WHY])
{
    (void)context;
    return !hopeless(AH_CHANNEL_WORK, 0, 0, why);
}

static void mpi_end(void *context, int status, bool together)
{
    /* Time for the last output to pass through the launcher's pipes, which the launcher may drop once it ends all
     * ranks. */
    const struct timespec passes_on = {.tv_nsec = 200000000};
    (void)context;
    end_soon(status);
    if (!together) {
        nanosleep(&passes_on, NULL);
        MPI_Abort(MPI_COMM_WORLD, status);
        _exit(status);
    }
    ah__beat_stop();
    if (mpi.started)
        MPI_Finalize();
    alarm(0);
}

/* ---- the start --------------------------------------------------------------------------------------------------- */

/* Finds the ranks on this machine and how many have the same cores as this one: they divide them. A rank with cores of
 * its own has them to itself. */
static bool find_shares(struct ah_transport *transport)
{
    MPI_Comm machine;
    cpu_set_t own, *all;
    int ranks, rank;
    CPU_ZERO(&own);
    sched_getaffinity(0, sizeof own, &own);
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine) != MPI_SUCCESS)
        return false;
    MPI_Comm_size(machine, &ranks);
    MPI_Comm_rank(machine, &rank);
    all = calloc((size_t)ranks, sizeof *all);
    bool known = all && MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, machine) == MPI_SUCCESS;
    transport->neighbours = ranks;
    transport->local = rank;
    for (int i = 0; known && i < ranks; i++)
        if (CPU_EQUAL(&all[i], &own)) {
            transport->share += i < rank;
            transport->shares++;
        }
    free(all);
    MPI_Comm_free(&machine);
    return known;
}

static bool channels_open(const struct ah_transport *transport)
{
    int64_t far = FAR_BYTES / (transport->world_size > 1 ? transport->world_size - 1 : 1);
    mpi.piece_bytes = far > FAR_LEAST_BYTES ? far : FAR_LEAST_BYTES;
    if (transport->neighbours == transport->world_size)
        mpi.piece_bytes = PIECE_BYTES;
    for (int i = 0; i < AH_CHANNEL_COUNT; i++) {
        for (int set = 0; set < SETS; set++) {
            mpi.requests[i][set] = calloc(2 * (size_t)transport->world_size, sizeof *mpi.requests[i][set]);
            if (!mpi.requests[i][set])
                return false;
            for (int n = 0; n < 2 * transport->world_size; n++)
                mpi.requests[i][set][n] = MPI_REQUEST_NULL;
        }
        if (MPI_Comm_dup(MPI_COMM_WORLD, &mpi.channel[i]) != MPI_SUCCESS)
            return false;
        MPI_Comm_set_errhandler(mpi.channel[i], MPI_ERRORS_RETURN);
    }
    return true;
}

__attribute__((visibility("default"))) const struct ah_transport *autohete_transport(char why[AH_TRANSPORT_WHY]);

const struct ah_transport *autohete_transport(char why[AH_TRANSPORT_WHY])
{
    struct ah_transport *transport = &mpi.transport;
    int level = MPI_THREAD_SINGLE, running = 0;
    *transport = (struct ah_transport){.abi = AH_TRANSPORT_ABI,
                                       .size = sizeof *transport,
                                       .world_size = 1,
                                       .neighbours = 1,
                                       .exchange = mpi_exchange,
                                       .look = mpi_look,
                                       .end = mpi_end};
    MPI_Initialized(&running);
    if (running)
        MPI_Query_thread(&level);
    else if (refused(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level), "start", why))
        return NULL;
    mpi.started = !running;
    if (mpi.started) /* else MPI is the program's, and so is the handler of calls without a communicator */
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (level < MPI_THREAD_SERIALIZED) {
        snprintf(why, AH_TRANSPORT_WHY, "MPI lets only its first thread call it, expected any");
        return NULL;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &transport->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &transport->world_size);
    if (!find_shares(transport) || !channels_open(transport) ||
        (level == MPI_THREAD_MULTIPLE && transport->world_size > 1 &&
         !ah__beat_start(transport->rank, transport->world_size))) {
        snprintf(why, AH_TRANSPORT_WHY, "MPI could not be readied on rank %d", transport->rank);
        return NULL;
    }
    return transport;
}
