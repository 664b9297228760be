#include "comm/mpi/beat.h"

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* A beat is sent every quarter of a second. Who was not run for two seconds cannot tell who else was. */
static const long pause_ns = 250000000;
static const double silence_s = 6, own_silence_s = 2;

struct peer {
    MPI_Request send, receive;
    char sent, received;
    double heard_s;
};

static struct {
    MPI_Comm channel;
    int rank, ranks;
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

static void peer_beat(int index, double now)
{
    struct peer *peer = &beat.peers[index];
    int done = 0;
    MPI_Test(&peer->send, &done, MPI_STATUS_IGNORE); /* of no request: true */
    if (done)
        MPI_Isend(&peer->sent, 1, MPI_BYTE, index, 0, beat.channel, &peer->send);
    for (done = 1; done;) {
        MPI_Test(&peer->receive, &done, MPI_STATUS_IGNORE);
        if (!done)
            break;
        peer->heard_s = now;
        MPI_Irecv(&peer->received, 1, MPI_BYTE, index, 0, beat.channel, &peer->receive);
    }
    if (now - peer->heard_s > silence_s && atomic_load(&beat.gone) < 0)
        atomic_store(&beat.gone, index);
}

static void *beat_main(void *unused)
{
    const struct timespec pause = {.tv_nsec = pause_ns};
    double before = now_s();
    while (!atomic_load(&beat.stop)) {
        double now = now_s();
        for (int i = 0; i < beat.ranks; i++) {
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
    beat.ranks = ranks;
    beat.peers = calloc((size_t)ranks, sizeof *beat.peers);
    if (!beat.peers || MPI_Comm_dup(MPI_COMM_WORLD, &beat.channel) != MPI_SUCCESS)
        return false;
    MPI_Comm_set_errhandler(beat.channel, MPI_ERRORS_RETURN);
    for (int i = 0; i < ranks; i++) {
        beat.peers[i] = (struct peer){.send = MPI_REQUEST_NULL, .receive = MPI_REQUEST_NULL, .heard_s = now};
        if (i != rank)
            MPI_Irecv(&beat.peers[i].received, 1, MPI_BYTE, i, 0, beat.channel, &beat.peers[i].receive);
    }
    beat.running = pthread_create(&beat.thread, NULL, beat_main, NULL) == 0;
    return beat.running;
}

void ah__beat_stop(void)
{
    if (!beat.running)
        return;
    atomic_store(&beat.stop, true);
    pthread_join(beat.thread, NULL);
    beat.running = false;
    for (int i = 0; i < beat.ranks; i++) {
        if (beat.peers[i].receive == MPI_REQUEST_NULL)
            continue;
        MPI_Cancel(&beat.peers[i].receive);
        MPI_Wait(&beat.peers[i].receive, MPI_STATUS_IGNORE);
        if (beat.peers[i].send != MPI_REQUEST_NULL)
            MPI_Request_free(&beat.peers[i].send);
    }
}

int ah__beat_gone(void)
{
    return atomic_load(&beat.gone);
}
