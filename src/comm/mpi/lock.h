/* Lets one thread into MPI at a time. Several of our threads call it at once (a lane, the thread that sends beats, the
 * main thread). MPI says that they may, but MPICH 4.0 over UCX then crashes or hangs now and then. No call made under
 * the lock waits for another rank, so that no thread is held up for long. */
#ifndef AH_COMM_MPI_LOCK_H
#define AH_COMM_MPI_LOCK_H

#include <pthread.h>

extern pthread_mutex_t ah__mpi_mutex;

static inline void ah__mpi_lock(void)
{
    pthread_mutex_lock(&ah__mpi_mutex);
}

static inline void ah__mpi_unlock(void)
{
    pthread_mutex_unlock(&ah__mpi_mutex);
}

#endif
