#include "train/loop.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/hash.h"

enum { STEP_NS_MOST = 1 << 16, STEPS_SKIPPED = 2, LOSSES_MOST = 1 << 10, LOSSES_SHARE = 10, LOSSES_LEAST = 10 };

/* ---- batches ----------------------------------------------------------------------------------------------------- */

static int64_t in_flight(const struct ah_loop *loop)
{
    return loop->begun - loop->step;
}

static void message_keep(struct ah_loop *loop, int *kept, int status)
{
    *kept = status;
    ah__snprintf(loop->message, sizeof loop->message, "%s", ah_error());
}

/* Returns true if this rank is told to stop. */
static bool told_to_stop(const struct ah_loop *loop)
{
    return loop->options->stop && *loop->options->stop;
}

/* Returns true if any rank is told to stop, while nothing is in flight. A failure shows in the next collective. */
static bool any_told_to_stop(const struct ah_loop *loop)
{
    double told = told_to_stop(loop);
    if (loop->comm->world_size > 1 && ah__comm_sum(loop->comm, &told, 1) != AH_OK)
        return true;
    return told > 0;
}

/* Returns true if the time for a checkpoint has come and the training can go on at once. */
static bool time_to_save(struct ah_loop *loop, int64_t now_ns)
{
    double passed = (double)(now_ns - loop->saved_ns) * 1e-9, interval = loop->settings->save_seconds;
    return loop->save && interval > 0 && passed >= interval && loop->save_ready(loop->context);
}

/* Returns this rank's flags for a step of several ranks: each rank is told to stop by itself, and rank 0's clock says
 * when to save. */
static unsigned flags_of(struct ah_loop *loop)
{
    unsigned flags = 0;
    if (loop->comm->world_size == 1)
        return 0;
    if (told_to_stop(loop))
        flags |= AH_RUN_STOP;
    if (loop->comm->rank == 0 && time_to_save(loop, loop->dev->ops->now_ns(loop->dev)))
        flags |= AH_RUN_SAVE;
    return flags;
}

/* Counts the targets that are not ignored, in a batch of all ranks. */
static int64_t targets_count(const struct ah_batch *batch, int64_t tokens)
{
    int64_t count = 0;
    for (int64_t i = 0; i < tokens; i++)
        count += batch->targets[i] != AH_TARGET_IGNORED;
    return count;
}

static int begin(struct ah_loop *loop, const struct ah_batch *batch)
{
    const struct ah_settings *settings = loop->settings;
    const struct ah_schedule schedule = ah__settings_schedule(settings);
    const struct ah_adamw adamw = {settings->beta1, settings->beta2, settings->eps, settings->weight_decay};
    struct ah_adam adam;
    int64_t number = loop->begun + 1;
    if (in_flight(loop) == 0) { /* an evaluation's time and work are no step's */
        loop->last_ns = loop->dev->ops->now_ns(loop->dev);
        ah__run_busy(loop->busy_ns, loop->run);
    }
    ah__adam_init(&adam, &adamw, ah__schedule_lr(&schedule, number), number);
    adam.draw = (uint32_t)ah__hash_int((uint64_t)number, ah__hash_text("moments", settings->seed));
    loop->targets[number % AH_RUN_IN_FLIGHT] = targets_count(batch, settings->batch * settings->seq);
    AH_TRY(ah__run_begin(loop->run, batch, &adam, flags_of(loop)));
    loop->begun = number;
    return AH_OK;
}

static int64_t next_point(int64_t step, int64_t every, int64_t steps)
{
    if (every <= 0)
        return steps;
    int64_t point = (step / every + 1) * every;
    return point < steps ? point : steps;
}

/* Returns the step after which something is due. No step begins before that is done. */
static int64_t segment_end(const struct ah_loop *loop)
{
    const struct ah_settings *settings = loop->settings;
    int64_t save = next_point(loop->segment_start, settings->save_every, settings->steps);
    int64_t val = next_point(loop->segment_start, settings->val_every, settings->steps);
    return save < val ? save : val;
}

/* Returns true if a step may begin. Several ranks have to decide alike, so they stop by the flags that come with a
 * result. */
static bool may_begin(struct ah_loop *loop)
{
    if (loop->comm->world_size == 1)
        loop->stopped |= told_to_stop(loop);
    return !loop->stopped && !loop->save_due && loop->data_status == AH_OK && loop->status == AH_OK &&
           in_flight(loop) < AH_RUN_IN_FLIGHT && loop->begun < segment_end(loop);
}

/* A data source that fails stops the training between two steps, so that it can be saved. With several ranks it cannot:
 * the others have already begun the step. */
static int begin_next(struct ah_loop *loop)
{
    const struct ah_settings *settings = loop->settings;
    if (!loop->data)
        return ah__fail(AH_EINPUT, "step: found batches of the caller's (own_batches), expected data");
    int status = ah__mixture_batch(loop->data, loop->begun, settings->batch, settings->seed, &loop->one);
    if (status == AH_OK)
        return begin(loop, &loop->one);
    bool alone = loop->comm->world_size == 1;
    message_keep(loop, alone ? &loop->data_status : &loop->status, status);
    return alone ? AH_OK : status;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Records the time since the last result and returns it. */
static int64_t time_step(struct ah_loop *loop, int64_t now_ns)
{
    int64_t ns = now_ns > loop->last_ns ? now_ns - loop->last_ns : 1;
    loop->last_ns = now_ns;
    loop->step_ns[loop->steps_timed++ % loop->step_ns_capacity] = ns;
    loop->smooth_ns = loop->steps_timed == 1 ? (double)ns : 0.9 * loop->smooth_ns + 0.1 * (double)ns;
    return ns;
}

/* Sets lane_busy: each lane's work since the last result as a fraction of the time passed. An item counts when it
 * completes, so the fraction of one step may exceed 1; it is cut there. */
static void measure_lanes(struct ah_loop *loop, const struct ah_run_result *result, int64_t passed_ns)
{
    for (int lane = 0; lane < AH_LANE_COUNT; lane++) {
        double busy = (double)(result->busy_ns[lane] - loop->busy_ns[lane]) / (double)passed_ns;
        loop->lane_busy[lane] = busy < 1 ? busy : 1;
        loop->busy_ns[lane] = result->busy_ns[lane];
    }
}

static void fill_step(struct ah_step *step, const struct ah_loop *loop, int64_t number, int64_t ns)
{
    const struct ah_settings *settings = loop->settings;
    const struct ah_schedule schedule = ah__settings_schedule(settings);
    step->step = number;
    step->steps = settings->steps;
    step->lr = ah__schedule_lr(&schedule, number);
    step->tokens_per_s = (double)(settings->batch * settings->seq) * 1e9 / (double)ns;
    step->learned_per_s = (double)loop->targets[number % AH_RUN_IN_FLIGHT] * 1e9 / (double)ns;
    step->eta_s = (double)(step->steps - number) * loop->smooth_ns * 1e-9;
    for (int lane = 0; lane < AH_LANE_COUNT; lane++)
        step->lane_busy[lane] = loop->lane_busy[lane];
}

static bool is_finite(const struct ah_run_result *result)
{
    return isfinite(result->loss) && isfinite(result->grad_norm);
}

/* Notes once that the loss was far above that of a uniform guess for many steps in a row. */
static void watch_loss(struct ah_loop *loop, int64_t number, double loss)
{
    enum { STEPS_PATIENCE = 20 };
    static const double FAR = 1.5; /* times the loss of a uniform guess */
    char line[200];
    double uniform = loop->uniform_loss;
    if (loop->above_uniform < 0 || !(uniform > 0))
        return;
    loop->above_uniform = loss > FAR * uniform ? loop->above_uniform + 1 : 0;
    if (loop->above_uniform < STEPS_PATIENCE)
        return;
    loop->above_uniform = -1;
    ah__snprintf(line, sizeof line,
                 "step %" PRId64
                 ": the loss has been above %.4g for %d steps; a uniform guess has %.4g: the learning rate may "
                 "be too high",
                 number, FAR * uniform, STEPS_PATIENCE, uniform);
    if (loop->options->on_note)
        loop->options->on_note(line, loop->options->context);
}

static void note_loss(struct ah_loop *loop, int64_t number, double loss)
{
    if (!isfinite(loss))
        return;
    if (loop->losses_seen < loop->losses_wanted)
        loop->first_sum += loss;
    loop->losses[loop->losses_seen++ % loop->losses_wanted] = (float)loss;
    watch_loss(loop, number, loss);
}

double ah__loop_mean_loss(const struct ah_loop *loop, bool last)
{
    double sum = 0;
    if (loop->losses_seen < LOSSES_LEAST || loop->losses_seen < 2 * loop->losses_wanted)
        return NAN;
    for (int64_t i = 0; i < loop->losses_wanted; i++)
        sum += (double)loop->losses[i];
    return (last ? sum : loop->first_sum) / (double)loop->losses_wanted;
}

static int take_result(struct ah_loop *loop, struct ah_step *step, const struct ah_run_result *result)
{
    int64_t number = ++loop->step;
    *step = (struct ah_step){
        .loss = result->loss, .grad_norm = result->grad_norm, .clip_factor = result->clip_factor, .val_loss = NAN};
    if (!is_finite(result) && !loop->settings->skip_nonfinite)
        return ah__fail(AH_ENUMERIC, "step %" PRId64 ": the loss is %g and the gradient norm %g", number, result->loss,
                        result->grad_norm);
    loop->learned += loop->targets[number % AH_RUN_IN_FLIGHT];
    loop->skipped_steps += isnan(result->clip_factor);
    loop->clipped_steps += result->clip_factor < 1;
    note_loss(loop, number, result->loss);
    int64_t passed_ns = time_step(loop, result->now_ns);
    measure_lanes(loop, result, passed_ns);
    fill_step(step, loop, number, passed_ns);
    if (isfinite(result->loss))
        loop->loss = result->loss;
    bool several = loop->comm->world_size > 1;
    loop->stopped |= several ? (result->flags & AH_RUN_STOP) != 0 : told_to_stop(loop);
    loop->save_due |= several ? (result->flags & AH_RUN_SAVE) != 0 : time_to_save(loop, result->now_ns);
    return loop->metrics ? ah__metrics_step(loop->metrics, step) : AH_OK;
}

/* ---- storage ----------------------------------------------------------------------------------------------------- */

static int batch_new(struct ah_batch *out, size_t tokens, bool packed)
{
    AH_TRY(ah__new(&out->ids, tokens, sizeof *out->ids));
    AH_TRY(ah__new(&out->targets, tokens, sizeof *out->targets));
    return packed ? ah__new(&out->positions, tokens, sizeof *out->positions) : AH_OK;
}

static void batch_free(struct ah_batch *batch)
{
    ah__free(batch->ids);
    ah__free(batch->targets);
    ah__free(batch->positions);
    *batch = (struct ah_batch){0};
}

int ah__loop_init(struct ah_loop *loop, struct ah_dev *dev)
{
    int64_t left = loop->settings->steps - loop->start;
    size_t tokens = (size_t)(loop->settings->batch * loop->settings->seq);
    loop->dev = dev;
    loop->comm = ah__comm();
    loop->step = loop->begun = loop->segment_start = loop->start;
    loop->val_loss = NAN;
    loop->step_ns_capacity = left < 1 ? 1 : left < STEP_NS_MOST ? left : STEP_NS_MOST;
    AH_TRY(ah__new(&loop->step_ns, (size_t)loop->step_ns_capacity, sizeof *loop->step_ns));
    int64_t share = left / LOSSES_SHARE;
    loop->losses_wanted = share < 1 ? 1 : share < LOSSES_MOST ? share : LOSSES_MOST;
    AH_TRY(ah__new(&loop->losses, (size_t)loop->losses_wanted, sizeof *loop->losses));
    AH_TRY(batch_new(&loop->one, tokens, loop->settings->pack));
    loop->saved_step = -1;
    return AH_OK;
}

void ah__loop_fini(struct ah_loop *loop)
{
    ah__free(loop->step_ns);
    ah__free(loop->losses);
    batch_free(&loop->one);
    loop->step_ns = NULL;
    loop->losses = NULL;
}

/* ---- segments ---------------------------------------------------------------------------------------------------- */

static bool due(int64_t step, int64_t every, int64_t steps)
{
    return step == steps || (every > 0 && step % every == 0);
}

static int evaluate(struct ah_loop *loop)
{
    if (!loop->data)
        return AH_OK;
    int64_t batch = loop->settings->batch, count = ah__mixture_info(loop->data)->val_windows / batch;
    count = count < 1 ? 1 : count; /* the validation part is smaller than a batch: some windows count twice */
    count = count < loop->settings->val_batches ? count : loop->settings->val_batches;
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double loss;
        AH_TRY(ah__mixture_val_batch(loop->data, i, batch, &loop->one));
        AH_TRY(ah__run_eval(loop->run, &loop->one, &loss));
        sum += loss;
    }
    if (count == 0)
        return AH_OK;
    if (!isfinite(sum))
        return ah__fail(AH_ENUMERIC, "step %" PRId64 ": the validation loss is %g", loop->step, sum);
    loop->val_loss = sum / (double)count;
    loop->val_step = loop->step;
    if (loop->metrics && loop->step > loop->start)
        return ah__metrics_val(loop->metrics, loop->step, loop->val_loss);
    return AH_OK;
}

/* Evaluates. A failure to read the data stops the training instead of ending it, so that it can be saved. */
static int evaluate_or_stop(struct ah_loop *loop)
{
    int status = evaluate(loop);
    if (status != AH_EIO)
        return status;
    message_keep(loop, &loop->data_status, status);
    return AH_OK;
}

static int save(struct ah_loop *loop, bool last)
{
    if (loop->saved_step == loop->step && (loop->saved_last || !last))
        return AH_OK;
    loop->saved_step = loop->step;
    loop->saved_last = last;
    loop->saved_ns = loop->dev->ops->now_ns(loop->dev);
    AH_TRY(ah__run_drain(loop->run));
    return loop->save(loop->step, loop->loss, last, loop->context);
}

/* Saves the last checkpoint after a stop or at the end, else one that is due. */
static int save_what_is_due(struct ah_loop *loop)
{
    const struct ah_settings *settings = loop->settings;
    bool last = loop->stopped || loop->data_status != AH_OK || loop->step == settings->steps;
    if (!loop->save || (last && loop->step == loop->start))
        return AH_OK;
    return last || loop->save_due || due(loop->step, settings->save_every, settings->steps) ? save(loop, last) : AH_OK;
}

/* Evaluates and saves what is due after the last step of a segment. */
static int segment_finish(struct ah_loop *loop, struct ah_step *step)
{
    int64_t steps = loop->step - loop->segment_start;
    AH_TRY(ah__run_drain(loop->run));
    if (!loop->stopped && loop->data_status == AH_OK &&
        due(loop->step, loop->settings->val_every, loop->settings->steps)) {
        AH_TRY(evaluate_or_stop(loop));
        step->val_loss = loop->val_loss;
    }
    loop->stopped |= any_told_to_stop(loop); /* a stop may have come while evaluating */
    AH_TRY(save_what_is_due(loop));
    loop->save_due = false;
    loop->segment_start = loop->step;
    return loop->segment ? loop->segment(steps, loop->context) : AH_OK;
}

/* Takes the oldest result. A failure after it, as of saving, is reported once the result was given. */
static int collect(struct ah_loop *loop)
{
    struct ah_run_result result;
    struct ah_step *step = &loop->ready[(loop->ready_first + loop->ready_count) % AH_RUN_IN_FLIGHT];
    AH_TRY(ah__run_wait(loop->run, &result));
    int status = take_result(loop, step, &result);
    bool given = status == AH_OK;
    loop->ready_count += given;
    bool last = loop->step == segment_end(loop) || loop->stopped || loop->save_due || loop->data_status != AH_OK;
    if (given && in_flight(loop) == 0 && last)
        status = segment_finish(loop, step);
    if (status != AH_OK)
        message_keep(loop, &loop->status, status);
    return given ? AH_OK : status;
}

/* ---- calls of the trainer ---------------------------------------------------------------------------------------- */

/* Ends the loop when nothing is in flight and nothing may begin: saves the last checkpoint unless it is written. */
static int end(struct ah_loop *loop)
{
    AH_TRY(save_what_is_due(loop));
    if (loop->data_status != AH_OK)
        return ah__fail(loop->data_status, "%s", loop->message);
    return ah__fail(AH_EEND, "step %" PRId64 ": there is none behind it", loop->step);
}

void ah__loop_start(struct ah_loop *loop, struct ah_run *run)
{
    loop->run = run;
    loop->saved_ns = loop->dev->ops->now_ns(loop->dev);
}

/* Returns true if no step is in flight and no result or failure is left to give. */
static bool is_idle(const struct ah_loop *loop)
{
    return loop->ready_count == 0 && in_flight(loop) == 0 && loop->status == AH_OK;
}

int64_t ah__loop_outstanding(const struct ah_loop *loop)
{
    return in_flight(loop) + loop->ready_count;
}

int ah__loop_wait(struct ah_loop *loop, struct ah_step *step)
{
    if (loop->ready_count == 0 && loop->status != AH_OK)
        return ah__fail(loop->status, "%s", loop->message);
    if (loop->ready_count == 0)
        AH_TRY(collect(loop));
    *step = loop->ready[loop->ready_first];
    loop->ready_first = (loop->ready_first + 1) % AH_RUN_IN_FLIGHT;
    loop->ready_count--;
    return AH_OK;
}

int ah__loop_step(struct ah_loop *loop, struct ah_step *step)
{
    if (is_idle(loop))
        loop->stopped |= any_told_to_stop(loop);
    while (loop->ready_count == 0 && may_begin(loop))
        AH_TRY(begin_next(loop));
    return is_idle(loop) ? end(loop) : ah__loop_wait(loop, step);
}

/* At the end of a segment the steps in flight end first, so that what is due is evaluated and saved there. */
int ah__loop_begin(struct ah_loop *loop, const struct ah_batch *batch)
{
    if (is_idle(loop))
        loop->stopped |= any_told_to_stop(loop);
    while (in_flight(loop) && !may_begin(loop))
        AH_TRY(collect(loop));
    if (loop->status != AH_OK)
        return ah__fail(loop->status, "%s", loop->message);
    return may_begin(loop) ? begin(loop, batch) : end(loop);
}

int ah__loop_drain(struct ah_loop *loop)
{
    while (in_flight(loop) && loop->status == AH_OK)
        AH_TRY(collect(loop));
    return loop->status == AH_OK ? ah__run_drain(loop->run) : ah__fail(loop->status, "%s", loop->message);
}

int ah__loop_save(struct ah_loop *loop)
{
    AH_TRY(ah__loop_drain(loop));
    return loop->save && loop->step > loop->start ? save(loop, true) : AH_OK;
}

static int compare_int64(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static int64_t steps_kept(const struct ah_loop *loop)
{
    return loop->steps_timed < loop->step_ns_capacity ? loop->steps_timed : loop->step_ns_capacity;
}

/* Returns how many of the first times are skipped: those steps fill the lanes. They are first in the ring until it
 * wraps; sorting leaves them there. */
static int64_t steps_skipped(const struct ah_loop *loop)
{
    int64_t kept = steps_kept(loop);
    return loop->steps_timed == kept && kept > STEPS_SKIPPED ? STEPS_SKIPPED : 0;
}

int64_t ah__loop_steps_timed(const struct ah_loop *loop)
{
    return steps_kept(loop) - steps_skipped(loop);
}

int64_t ah__loop_step_ns(struct ah_loop *loop)
{
    int64_t kept = steps_kept(loop), skipped = steps_skipped(loop);
    if (kept == 0)
        return 0;
    qsort(loop->step_ns + skipped, (size_t)(kept - skipped), sizeof *loop->step_ns, compare_int64);
    return loop->step_ns[skipped + (kept - skipped) / 2];
}
