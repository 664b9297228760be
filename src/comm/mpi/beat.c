#include "comm/mpi/beat.h"

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "comm/mpi/lock.h"

pthread_mutex_t ah__mpi_mutex = PTHREAD_MUTEX_INITIALIZER;

/* A rank sends a beat every quarter of a second. A rank that did not run for two seconds itself cannot judge the
 * silence of others; on machines with much other work a rank did not run for more than six. */
static const long pause_ns = 250000000;
static const double silence_s = 20, own_silence_s = 2, last_s = 2;
enum { LAST = 1 }; /* content of the last beat */

struct peer {
    MPI_Request send, receive;
    char sent, received;
    double heard_s;
    atomic_bool worked; /* one of its other messages has arrived since it was last looked at */
};

static struct {
    MPI_Comm channel;
    int rank, world_size;
    struct peer *peers;
    pthread_t thread;
    bool running;
    atomic_int gone;
    atomic_bool stop;
} beat = {.gone = -1};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Receives the beats of a peer that have arrived, and stops listening after its last one. Returns true if there was
 * one, or if the peer has ended. */
static bool peer_hear(struct peer *peer, int index)
{
    bool heard = false;
    int done = 1;
    while (peer->receive != MPI_REQUEST_NULL && done) {
        MPI_Test(&peer->receive, &done, MPI_STATUS_IGNORE);
        heard |= done;
        if (done && peer->received != LAST)
            MPI_Irecv(&peer->received, 1, MPI_BYTE, index, 0, beat.channel, &peer->receive);
    }
    return heard || peer->receive == MPI_REQUEST_NULL;
}

static void peer_beat(int index, double now)
{
    struct peer *peer = &beat.peers[index];
    int done = 0;
    ah__mpi_lock();
    MPI_Test(&peer->send, &done, MPI_STATUS_IGNORE); /* sets `done`, also without a request */
    if (done)
        MPI_Isend(&peer->sent, 1, MPI_BYTE, index, 0, beat.channel, &peer->send);
    if (peer_hear(peer, index) || atomic_exchange(&peer->worked, false))
        peer->heard_s = now;
    ah__mpi_unlock();
    if (now - peer->heard_s > silence_s && atomic_load(&beat.gone) < 0)
        atomic_store(&beat.gone, index);
}

static void *beat_main(void *unused)
{
    const struct timespec pause = {.tv_nsec = pause_ns};
    double before = now_s();
    while (!atomic_load(&beat.stop)) {
        double now = now_s();
        for (int i = 0; i < beat.world_size; i++) {
            if (now - before > own_silence_s)
                beat.peers[i].heard_s = now;
            if (i != beat.rank)
                peer_beat(i, now);
        }
        before = now;
        nanosleep(&pause, NULL);
    }
    return unused;
}

bool ah__beat_start(int rank, int ranks)
{
    double now = now_s();
    beat.rank = rank;
    beat.world_size = ranks;
    beat.peers = calloc((size_t)ranks, sizeof *beat.peers);
    if (!beat.peers || MPI_Comm_dup(MPI_COMM_WORLD, &beat.channel) != MPI_SUCCESS)
        return false;
    MPI_Comm_set_errhandler(beat.channel, MPI_ERRORS_RETURN);
    for (int i = 0; i < ranks; i++) {
        beat.peers[i].send = beat.peers[i].receive = MPI_REQUEST_NULL;
        beat.peers[i].heard_s = now;
        if (i != rank)
            MPI_Irecv(&beat.peers[i].received, 1, MPI_BYTE, i, 0, beat.channel, &beat.peers[i].receive);
    }
    beat.running = pthread_create(&beat.thread, NULL, beat_main, NULL) == 0;
    return beat.running;
}

void ah__beat_stop(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    if (!beat.running)
        return;
    atomic_store(&beat.stop, true);
    pthread_join(beat.thread, NULL);
    beat.running = false;
    for (int i = 0; i < beat.world_size; i++)
        if (i != beat.rank) {
            MPI_Wait(&beat.peers[i].send, MPI_STATUS_IGNORE);
            beat.peers[i].sent = LAST;
            MPI_Isend(&beat.peers[i].sent, 1, MPI_BYTE, i, 0, beat.channel, &beat.peers[i].send);
        }
    double until_s = now_s() + last_s;
    for (int taken = 0; taken < beat.world_size && now_s() < until_s; nanosleep(&pause, NULL)) {
        taken = 0;
        for (int i = 0; i < beat.world_size; i++) {
            peer_hear(&beat.peers[i], i);
            taken += beat.peers[i].receive == MPI_REQUEST_NULL;
        }
    }
    for (int i = 0; i < beat.world_size; i++)
        if (beat.peers[i].send != MPI_REQUEST_NULL)
            MPI_Wait(&beat.peers[i].send, MPI_STATUS_IGNORE);
}

void ah__beat_heard(int rank)
{
    if (beat.peers)
        atomic_store(&beat.peers[rank].worked, true);
}

int ah__beat_gone(void)
{
    return atomic_load(&beat.gone);
}
