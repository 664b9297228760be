#include "dev/host/job.h"

#include <stdio.h>

static void *job_main(void *context)
{
    struct ah_job *job = context;
    job->status = job->work(job->context);
    if (job->status != AH_OK)
        snprintf(job->message, sizeof job->message, "%s", ah_error());
    atomic_store(&job->running, false);
    return NULL;
}

bool ah__job_start(struct ah_job *job, int (*work)(void *context), void *context)
{
    job->work = work;
    job->context = context;
    atomic_store(&job->running, true);
    job->started = pthread_create(&job->thread, NULL, job_main, job) == 0;
    if (!job->started)
        atomic_store(&job->running, false);
    return job->started;
}

bool ah__job_running(struct ah_job *job)
{
    return atomic_load(&job->running);
}

int ah__job_wait(struct ah_job *job)
{
    if (!job->started)
        return AH_OK;
    pthread_join(job->thread, NULL);
    job->started = false;
    return job->status == AH_OK ? AH_OK : ah__fail(job->status, "%s", job->message);
}
