/* Heartbeats: a thread that sends each other rank a byte now and then and listens for theirs. The launcher notices a
 * rank that has died; this thread notices a rank that hangs, or whose machine does. */
#ifndef AH_COMM_MPI_BEAT_H
#define AH_COMM_MPI_BEAT_H

#include "comm/transport.h"

/* Starts the thread. Needs MPI_THREAD_MULTIPLE. Collective. False if a thread or MPI is refused. */
bool ah__beat_start(int rank, int ranks);
/* Stops the thread when all ranks are about to end: receives the beats that others have sent, so that none is left in
 * flight. */
void ah__beat_stop(void);
/* Tells that a message of a rank has arrived: it lives, whatever becomes of its beats. From any thread. */
void ah__beat_heard(int rank);
/* Returns a rank that has been silent for too long, or -1. From any thread. */
int ah__beat_gone(void);

#endif
