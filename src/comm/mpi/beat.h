/* Whether the other ranks live: a thread that sends each of them a byte now and then and listens for theirs. A rank
 * that has died is the launcher's to notice; this notices one that hangs, or whose machine does. */
#ifndef AH_COMM_MPI_BEAT_H
#define AH_COMM_MPI_BEAT_H

#include "comm/transport.h"

/* Needs MPI_THREAD_MULTIPLE. Collective. False: no thread, or MPI refuses. */
bool ah__beat_start(int rank, int ranks);
/* All ranks are about to end: takes what the others have sent, so that nothing is left on its way. */
void ah__beat_stop(void);
/* A rank that has been silent for too long, -1: none. From any thread. */
int ah__beat_gone(void);

#endif
