/* The work of the run's thread: binds items to addresses, drives the scheduler, makes results of completed items. */
#include <string.h>

#include "dev/clip.h"
#include "dev/host/pool.h"
#include "run/internal.h"

static int bind(struct ah_work *work, const struct ah_item *item, void *context)
{
    struct ah_run *run = context;
    struct ah_addresses at;
    struct ah_binding binding = {
        .partition = ah__run_partition(run),
        .programs = run->decodes ? &run->decoder_programs : &run->programs,
        .class = ah__run_partition(run)->class_of[item->partition],
        .group = item->partition,
        .rank = run->comm->rank,
        .micro_batches = ah__micro_batches(run->partition),
        .infer = run->infers,
        .clip = run->clip,
        .adam = run->adam[item->iteration % AH_RUN_ADAMS],
    };
    ah__addresses(&at, &run->memory, item);
    if (run->prefills && item->kind == AH_ITEM_FORWARD && binding.class == AH_CLASS_HEAD)
        return AH_OK; /* no tasks */
    return ah__bind(work, item, &binding, &at);
}

/* Makes the result of an iteration whose norms have arrived, and writes the factor of its updates where host updates
 * read it. */
static void result_fill(struct ah_run_result *result, struct ah_run *run, const struct ah_span *span)
{
    const double *squares = ah__run_norms(run, span->item.iteration);
    double norm = ah__clip_norm(squares, run->partition->group_count);
    float scale = run->clip > 0 ? ah__clip_scale(norm, run->clip) : 1.0F;
    *ah__run_scale(run, span->item.iteration) = scale;
    *result = (struct ah_run_result){
        .iteration = span->item.iteration - run->evaluated,
        .loss = ah__run_loss(run, span->item.iteration),
        .grad_norm = norm,
        .clip_factor = (double)scale,
        .now_ns = span->end_ns,
    };
    ah__run_busy(result->busy_ns, run);
    for (int flag = 0; run->comm->world_size > 1 && flag < AH_FLAGS; flag++)
        if (ah__run_flag_counts(run, span->item.iteration)[flag] > 0)
            result->flags |= 1U << flag;
}

static int completed(const struct ah_span *span, void *context)
{
    struct ah_run *run = context;
    run->busy_ns[span->lane] += span->end_ns - span->start_ns;
    if (span->item.kind != AH_ITEM_RESULT)
        return AH_OK;
    if (run->evaluates) {
        run->loss = ah__run_loss(run, span->item.iteration);
        return AH_OK;
    }
    if (span->item.partition != 0)
        return AH_OK;
    struct ah_run_result result;
    result_fill(&result, run, span);
    if (run->clip > 0 && !(result.clip_factor == 1))
        ah__sched_clipped(run->sched, span->item.iteration);
    ah__run_result_put(run, &result);
    return AH_OK;
}

/* Updates the copy of a group's parameters that several ranks have between steps beside this rank's states. */
static int refresh(struct ah_run *run, int group)
{
    struct ah_work work = {
        .label.what = "refresh", .lane = AH_LANE_COMPUTE, .tasks = 1, .task = {{.type = AH_TASK_COPY}}};
    struct ah_item item = {.partition = group, .param_buffer = -1, .grad_buffer = -1, .shadow_set = -1};
    struct ah_addresses at;
    struct ah_done done;
    item.set = ah__sched_set(run->sched, group);
    ah__addresses(&at, &run->memory, &item);
    int64_t first, count = ah__run_part(&first, run, group), element = ah__dtype_bytes(run->partition->compute);
    if (!at.update_copy || count == 0)
        return AH_OK;
    work.task[0].as.copy.to = at.update_copy + first * element;
    work.task[0].as.copy.from = at.states[0];
    work.task[0].as.copy.bytes = count * element;
    return ah__dev_run(run->dev, &work, &done);
}

/* Copies to the device a frozen embedding that stays there. */
static int refresh_embedding(struct ah_run *run)
{
    const struct ah_item item = {.kind = AH_ITEM_PREFETCH, .param_buffer = -1, .grad_buffer = -1, .shadow_set = -1};
    struct ah_work work = {.label.what = "refresh", .lane = AH_LANE_H2D};
    struct ah_done done;
    if (!ah__embedding_stays(&run->plan.switches, run->partition->groups[0].trained == 0))
        return AH_OK;
    AH_TRY(bind(&work, &item, run));
    return ah__dev_run(run->dev, &work, &done);
}

static int refresh_all(struct ah_run *run)
{
    if (!run->masters_loaded)
        return AH_OK;
    AH_TRY(refresh_embedding(run));
    for (int group = 0; group < run->partition->group_count; group++)
        AH_TRY(refresh(run, group));
    run->masters_loaded = false;
    return AH_OK;
}

static void extend(void *context)
{
    struct ah_run *run = context;
    if (!run->evaluates)
        ah__sched_extend(run->sched, ah__run_begun(run));
}

/* Begins a segment. No earlier iteration is in flight, so the caller may have changed states. */
static int segment_begin(struct ah_run *run)
{
    if (!run->drained)
        return AH_OK;
    AH_TRY(refresh_all(run));
    AH_TRY(ah__run_disk_settle(run));
    if (!run->evaluates)
        ah__timeline_clear(run->timeline);
    ah__sched_limit(run->sched, ah__run_begun(run), run->evaluates);
    run->drained = false;
    return AH_OK;
}

/* Runs all iterations that have begun, also those that begin meanwhile. */
static int drive(struct ah_run *run)
{
    struct ah_drive drive = {
        .sched = run->sched,
        .dev = run->dev,
        .bind = bind,
        .bind_context = run,
        .extend = extend,
        .extend_context = run,
        .completed = completed,
        .completed_context = run,
        .observe = run->evaluates ? NULL : ah__timeline_observe,
        .observe_context = run->timeline,
    };
    AH_TRY(segment_begin(run));
    return ah__drive(&drive);
}

/* ---- the run's thread -------------------------------------------------------------------------------------------- */

/* Waits, with the mutex held, until an iteration has begun. False: the run ends. */
static bool work_wait(struct ah_run_queue *queue)
{
    while (!queue->busy && !queue->quit)
        pthread_cond_wait(&queue->wake, &queue->mutex);
    return queue->busy;
}

static void failure_keep(struct ah_run_queue *queue, int status)
{
    queue->status = status;
    snprintf(queue->message, sizeof queue->message, "%s", ah_error());
}

static void *run_main(void *argument)
{
    struct ah_run *run = argument;
    struct ah_run_queue *queue = &run->queue;
    ah__host_denormals_off();
    pthread_mutex_lock(&queue->mutex);
    while (work_wait(queue)) {
        pthread_mutex_unlock(&queue->mutex);
        int status = drive(run);
        pthread_mutex_lock(&queue->mutex);
        if (status != AH_OK)
            failure_keep(queue, status);
        if (status == AH_OK && queue->begun > ah__sched_iterations(run->sched))
            continue; /* begun since the last look */
        queue->busy = false;
        pthread_cond_signal(&queue->changed);
    }
    pthread_mutex_unlock(&queue->mutex);
    return NULL;
}

int ah__run_start(struct ah_run *run)
{
    AH_TRY(ah__host_thread_room());
    int error = pthread_create(&run->thread, NULL, run_main, run);
    if (error)
        return ah__fail(AH_ENOMEM, "run: no thread: %s", strerror(error));
    run->has_thread = true;
    return AH_OK;
}
