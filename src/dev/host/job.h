/* Runs a function on a thread of its own, in parallel to the caller. */
#ifndef AH_DEV_HOST_JOB_H
#define AH_DEV_HOST_JOB_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/status.h"

/* Zero-initialised it is idle. Must not move while it runs. */
struct ah_job {
    int (*work)(void *context);
    void *context;
    pthread_t thread;
    bool started; /* started and not yet waited for */
    atomic_bool running;
    int status;
    char message[1024]; /* message of a failure, since messages belong to threads */
};

/* Starts work(context), which returns a status. Only while idle. False: no thread could be started. */
bool ah__job_start(struct ah_job *job, int (*work)(void *context), void *context);
/* Returns true if the function still runs. */
bool ah__job_running(struct ah_job *job);
/* Waits for the end of the function and returns its status and message; idle afterwards. AH_OK if nothing was
 * started. */
int ah__job_wait(struct ah_job *job);

#endif
