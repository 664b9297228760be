/* One piece of work on a thread of its own, beside whatever else runs. */
#ifndef AH_DEV_HOST_JOB_H
#define AH_DEV_HOST_JOB_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/status.h"

/* Zero-initialised is idle. Must not move while it runs. */
struct ah_job {
    int (*work)(void *context);
    void *context;
    pthread_t thread;
    bool started; /* and not waited for */
    atomic_bool running;
    int status;
    char message[1024]; /* of a failure: messages belong to threads */
};

/* Starts work(context), which gives a status. Only while idle. False: no thread was to be had. */
bool ah__job_start(struct ah_job *job, int (*work)(void *context), void *context);
/* Whether it still works. */
bool ah__job_running(struct ah_job *job);
/* Waits for its end, idle afterwards; its status and message. AH_OK when nothing was started. */
int ah__job_wait(struct ah_job *job);

#endif
