/* The queue between the caller and the run's thread: iterations that begin, results, evaluations. */
#include "run/internal.h"

void ah__run_result_put(struct ah_run *run, const struct ah_run_result *result)
{
    struct ah_run_queue *queue = &run->queue;
    pthread_mutex_lock(&queue->mutex);
    queue->result[queue->results++ % AH_RUN_IN_FLIGHT] = *result;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

int64_t ah__run_begun(struct ah_run *run)
{
    pthread_mutex_lock(&run->queue.mutex);
    int64_t begun = run->queue.begun;
    pthread_mutex_unlock(&run->queue.mutex);
    return begun;
}

void ah__run_queue_init(struct ah_run *run)
{
    struct ah_run_queue *queue = &run->queue;
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->wake, NULL);
    pthread_cond_init(&queue->changed, NULL);
    run->has_queue = true;
}

void ah__run_queue_fini(struct ah_run *run)
{
    struct ah_run_queue *queue = &run->queue;
    if (!run->has_queue)
        return;
    pthread_mutex_lock(&queue->mutex);
    queue->quit = true;
    pthread_cond_signal(&queue->wake);
    pthread_mutex_unlock(&queue->mutex);
    if (run->has_thread)
        pthread_join(run->thread, NULL);
    pthread_cond_destroy(&queue->changed);
    pthread_cond_destroy(&queue->wake);
    pthread_mutex_destroy(&queue->mutex);
}

/* ---- the caller -------------------------------------------------------------------------------------------------- */

static int failure_of(const struct ah_run_queue *queue)
{
    return queue->status == AH_OK ? AH_OK : ah__fail(queue->status, "%s", queue->message);
}

void ah__run_post(struct ah_run *run)
{
    struct ah_run_queue *queue = &run->queue;
    pthread_mutex_lock(&queue->mutex);
    queue->begun++;
    queue->busy = true;
    pthread_cond_signal(&queue->wake);
    pthread_mutex_unlock(&queue->mutex);
}

/* Returns the number of training iterations that have begun. Only the caller's thread changes the numbers it reads. */
static int64_t trained(const struct ah_run *run)
{
    return run->queue.begun - run->evaluated;
}

int ah__run_begin(struct ah_run *run, const struct ah_batch *batch, const struct ah_adam *adam, unsigned flags)
{
    struct ah_run_queue *queue = &run->queue;
    pthread_mutex_lock(&queue->mutex);
    int status = failure_of(queue);
    pthread_mutex_unlock(&queue->mutex);
    AH_TRY(status);
    if (trained(run) - queue->given >= AH_RUN_IN_FLIGHT)
        return ah__fail(AH_EINTERNAL, "run: found %d iterations begun and not waited for, expected fewer",
                        AH_RUN_IN_FLIGHT);
    run->adam[queue->begun % AH_RUN_ADAMS] = *adam;
    ah__run_input(run, batch, flags);
    ah__run_post(run);
    return AH_OK;
}

int ah__run_wait(struct ah_run *run, struct ah_run_result *result)
{
    struct ah_run_queue *queue = &run->queue;
    pthread_mutex_lock(&queue->mutex);
    while (queue->results == queue->given && queue->busy)
        pthread_cond_wait(&queue->changed, &queue->mutex);
    bool found = queue->results > queue->given;
    int status = found ? AH_OK : failure_of(queue);
    if (found)
        *result = queue->result[queue->given++ % AH_RUN_IN_FLIGHT];
    pthread_mutex_unlock(&queue->mutex);
    AH_TRY(status);
    return found ? AH_OK : ah__fail(AH_EINTERNAL, "run: waited with nothing in flight");
}

int ah__run_drain(struct ah_run *run)
{
    struct ah_run_queue *queue = &run->queue;
    pthread_mutex_lock(&queue->mutex);
    while (queue->busy)
        pthread_cond_wait(&queue->changed, &queue->mutex);
    int status = failure_of(queue);
    pthread_mutex_unlock(&queue->mutex);
    run->drained = true;
    return status;
}
