#include "train/loop.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"

enum { STEP_NS_MOST = 1 << 16, STEPS_SKIPPED = 2, LOSSES_MOST = 1 << 10, LOSSES_SHARE = 10, LOSSES_LEAST = 10 };

/* ---- hooks ------------------------------------------------------------------------------------------------------- */

/* A step that has begun must end, so each batch is there before the step before it begins: data that fail stop the
 * training between two steps, where it can be saved. */
static int read_ahead(struct ah_loop *loop, int64_t step)
{
    if (loop->next_step == step || step >= loop->settings->steps)
        return AH_OK;
    loop->next_step = -1;
    loop->data_status = ah__tokens_batch(loop->tokens, step, loop->settings->batch, loop->settings->seed, &loop->next);
    if (loop->data_status == AH_OK)
        loop->next_step = step;
    else
        ah__snprintf(loop->data_message, sizeof loop->data_message, "%s", ah_error());
    return loop->data_status;
}

static int give_batch(const struct ah_batch *to, int64_t iteration, void *context)
{
    struct ah_loop *loop = context;
    int64_t step = loop->start + iteration;
    size_t bytes = (size_t)(loop->settings->batch * loop->settings->seq) * sizeof *to->ids;
    if (loop->next_step != step) /* begun before it was known that there is no batch for it */
        return ah__fail(loop->data_status != AH_OK ? loop->data_status : AH_EINTERNAL, "step %" PRId64 ": no batch: %s",
                        step + 1, loop->data_message);
    memcpy(to->ids, loop->next.ids, bytes);
    memcpy(to->targets, loop->next.targets, bytes);
    if (to->positions)
        memcpy(to->positions, loop->next.positions, bytes);
    if (read_ahead(loop, step + 1) == AH_OK)
        return AH_OK;
    if (loop->comm->world_size > 1) /* the others have begun what this one has no batch for */
        return ah__fail(loop->data_status, "%s", loop->data_message);
    ah__run_stop(loop->run);
    return AH_OK;
}

static void give_adam(struct ah_adam *out, int64_t iteration, void *context)
{
    struct ah_loop *loop = context;
    int64_t step = loop->start + iteration + 1;
    ah__adam_init(out, &loop->settings->adamw, ah__schedule_lr(&loop->settings->schedule, step), step);
}

/* This rank. */
static bool told_to_stop(const struct ah_loop *loop)
{
    return loop->asked_to_stop || (loop->options->stop && *loop->options->stop);
}

/* Any rank, while nothing is in flight. A failure shows in the next collective. */
static bool any_told_to_stop(const struct ah_loop *loop)
{
    double told = told_to_stop(loop);
    if (loop->comm->world_size > 1 && ah__comm_sum(loop->comm, &told, 1) != AH_OK)
        return true;
    return told > 0;
}

/* Whether the time for a checkpoint has come, and nothing keeps the training from going on at once. */
static bool time_to_save(struct ah_loop *loop, int64_t now_ns)
{
    double passed = (double)(now_ns - loop->saved_ns) * 1e-9, interval = loop->settings->save_seconds;
    return loop->save && interval > 0 && passed >= interval && loop->save_ready(loop->context);
}

/* What the ranks hear of each other: each is told to stop by itself, and rank 0's clock says when to save. */
static bool says(enum ah_run_word word, void *context)
{
    struct ah_loop *loop = context;
    if (word == AH_RUN_STOP)
        return told_to_stop(loop);
    return loop->comm->rank == 0 && time_to_save(loop, loop->dev->ops->now_ns(loop->dev));
}

/* Books the time since the last result and returns it. */
static int64_t time_step(struct ah_loop *loop, int64_t now_ns)
{
    int64_t ns = now_ns > loop->last_ns ? now_ns - loop->last_ns : 1;
    loop->last_ns = now_ns;
    loop->step_ns[loop->steps_timed++ % loop->step_ns_capacity] = ns;
    loop->smooth_ns = loop->steps_timed == 1 ? (double)ns : 0.9 * loop->smooth_ns + 0.1 * (double)ns;
    return ns;
}

/* What each lane has worked since the last result, as a fraction of the time passed. An item counts when it completes,
 * so a lane may seem more than busy for a step. */
static void measure_lanes(struct ah_loop *loop, int64_t passed_ns)
{
    int64_t busy_ns[AH_LANE_COUNT];
    ah__run_busy(busy_ns, loop->run);
    for (int lane = 0; lane < AH_LANE_COUNT; lane++) {
        double busy = (double)(busy_ns[lane] - loop->busy_ns[lane]) / (double)passed_ns;
        loop->lane_busy[lane] = busy < 1 ? busy : 1;
        loop->busy_ns[lane] = busy_ns[lane];
    }
}

static void fill_step(struct ah_step *step, const struct ah_loop *loop, int64_t number, int64_t ns)
{
    const struct ah_settings *settings = loop->settings;
    step->step = number;
    step->steps = settings->steps;
    step->lr = ah__schedule_lr(&settings->schedule, number);
    step->tokens_per_s = (double)(settings->batch * settings->seq) * 1e9 / (double)ns;
    step->eta_s = (double)(step->steps - number) * loop->smooth_ns * 1e-9;
    for (int lane = 0; lane < AH_LANE_COUNT; lane++)
        step->lane_busy[lane] = loop->lane_busy[lane];
}

static bool is_finite(const struct ah_run_result *result)
{
    return isfinite(result->loss) && isfinite(result->grad_norm);
}

/* A loss far above that of guessing, for many steps in a row: said once, since nothing else would. */
static void watch_loss(struct ah_loop *loop, int64_t number, double loss)
{
    enum { STEPS_PATIENCE = 20 };
    static const double FAR = 1.5; /* times a guess */
    char line[200];
    double guess = loop->guess;
    if (loop->above_guess < 0 || !(guess > 0))
        return;
    loop->above_guess = loss > FAR * guess ? loop->above_guess + 1 : 0;
    if (loop->above_guess < STEPS_PATIENCE)
        return;
    loop->above_guess = -1;
    ah__snprintf(line, sizeof line,
                 "step %" PRId64
                 ": the loss has been above %.4g for %d steps; guessing costs %.4g: the learning rate may "
                 "be too high",
                 number, FAR * guess, STEPS_PATIENCE, guess);
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

static int take_result(const struct ah_run_result *result, void *context)
{
    struct ah_loop *loop = context;
    struct ah_step step = {.loss = result->loss, .grad_norm = result->grad_norm, .clip_factor = result->clip_factor};
    int64_t number = loop->start + result->iteration + 1;
    if (loop->status != AH_OK)
        return 1;
    if (!is_finite(result) && !loop->settings->skip_nonfinite) {
        loop->status = ah__fail(AH_ENUMERIC, "step %" PRId64 ": the loss is %g and the gradient norm %g", number,
                                result->loss, result->grad_norm);
        return 1;
    }
    loop->skipped_steps += isnan(result->clip_factor);
    loop->clipped_steps += result->clip_factor < 1;
    note_loss(loop, number, result->loss);
    int64_t passed_ns = time_step(loop, result->now_ns);
    measure_lanes(loop, passed_ns);
    fill_step(&step, loop, number, passed_ns);
    if (isfinite(result->loss))
        loop->loss = result->loss;
    if (loop->metrics)
        loop->status = ah__metrics_step(loop->metrics, &step);
    if (loop->status == AH_OK && loop->options->on_step && loop->options->on_step(&step, loop->options->context) != 0)
        loop->asked_to_stop = true;
    bool several = loop->comm->world_size > 1;
    loop->stopped |= several ? result->words[AH_RUN_STOP] : told_to_stop(loop);
    loop->save_due |= several ? result->words[AH_RUN_SAVE] : time_to_save(loop, result->now_ns);
    return loop->status != AH_OK || loop->stopped || loop->save_due;
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

int ah__loop_init(struct ah_loop *loop, struct ah_run_hooks *hooks, struct ah_dev *dev)
{
    int64_t left = loop->settings->steps - loop->start;
    size_t tokens = (size_t)(loop->settings->batch * loop->settings->seq);
    loop->dev = dev;
    loop->comm = ah__comm();
    loop->step = loop->start;
    loop->val_loss = NAN;
    loop->step_ns_capacity = left < 1 ? 1 : left < STEP_NS_MOST ? left : STEP_NS_MOST;
    AH_TRY(ah__new(&loop->step_ns, (size_t)loop->step_ns_capacity, sizeof *loop->step_ns));
    int64_t share = left / LOSSES_SHARE;
    loop->losses_wanted = share < 1 ? 1 : share < LOSSES_MOST ? share : LOSSES_MOST;
    AH_TRY(ah__new(&loop->losses, (size_t)loop->losses_wanted, sizeof *loop->losses));
    AH_TRY(batch_new(&loop->one, tokens, loop->settings->pack));
    AH_TRY(batch_new(&loop->next, tokens, loop->settings->pack));
    loop->next_step = loop->saved_step = -1;
    *hooks = (struct ah_run_hooks){
        .batch = give_batch,
        .adam = give_adam,
        .says = says,
        .clip = loop->settings->clip,
        .result = take_result,
        .context = loop,
    };
    return AH_OK;
}

void ah__loop_fini(struct ah_loop *loop)
{
    ah__free(loop->step_ns);
    ah__free(loop->losses);
    batch_free(&loop->one);
    batch_free(&loop->next);
    loop->step_ns = NULL;
    loop->losses = NULL;
}

/* ---- stretches --------------------------------------------------------------------------------------------------- */

static bool due(int64_t step, int64_t every, int64_t steps)
{
    return step == steps || (every > 0 && step % every == 0);
}

static int64_t next_point(int64_t step, int64_t every, int64_t steps)
{
    if (every <= 0)
        return steps;
    int64_t point = (step / every + 1) * every;
    return point < steps ? point : steps;
}

/* Trains to the next point where something is due. */
static int run_stretch(struct ah_loop *loop)
{
    const struct ah_settings *settings = loop->settings;
    int64_t save = next_point(loop->step, settings->save_every, settings->steps);
    int64_t val = next_point(loop->step, settings->val_every, settings->steps), done = 0;
    loop->stretch_steps = 0;
    loop->save_due = false;
    if (read_ahead(loop, loop->step) != AH_OK)
        return AH_OK; /* ah__loop_run ends it */
    loop->last_ns = loop->dev->ops->now_ns(loop->dev);
    ah__run_busy(loop->busy_ns, loop->run); /* an evaluation's work is no step's */
    int status = ah__run_steps(loop->run, (save < val ? save : val) - loop->step, &done);
    loop->step += done;
    AH_TRY(status);
    loop->stretch_steps = done;
    return loop->status; /* a hook's failure ended the run; its message stands */
}

static int evaluate(struct ah_loop *loop)
{
    int64_t batch = loop->settings->batch, count = ah__tokens_info(loop->tokens)->val_windows / batch;
    count = count < 1 ? 1 : count; /* a part smaller than a batch: some windows twice */
    count = count < loop->settings->val_batches ? count : loop->settings->val_batches;
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double loss;
        AH_TRY(ah__tokens_val_batch(loop->tokens, i, batch, &loop->one));
        AH_TRY(ah__run_eval(loop->run, &loop->one, &loss));
        sum += loss;
    }
    if (count == 0)
        return AH_OK;
    if (!isfinite(sum))
        return ah__fail(AH_ENUMERIC, "step %" PRId64 ": the validation loss is %g", loop->step, sum);
    loop->val_loss = sum / (double)count;
    if (loop->metrics && loop->step > loop->start)
        AH_TRY(ah__metrics_val(loop->metrics, loop->step, loop->val_loss));
    return loop->options->on_val ? loop->options->on_val(loop->step, loop->val_loss, loop->options->context) : AH_OK;
}

/* A failure to read on must not cost what was trained. */
static int evaluate_or_stop(struct ah_loop *loop)
{
    int status = evaluate(loop);
    if (status != AH_EIO)
        return status;
    loop->data_status = status;
    ah__snprintf(loop->data_message, sizeof loop->data_message, "%s", ah_error());
    return AH_OK;
}

static int save(struct ah_loop *loop, bool last)
{
    if (loop->saved_step == loop->step && (loop->saved_last || !last))
        return AH_OK;
    loop->saved_step = loop->step;
    loop->saved_last = last;
    loop->saved_ns = loop->dev->ops->now_ns(loop->dev);
    return loop->save(loop->step, loop->loss, last, loop->context);
}

/* Told to stop, or at the end, the last checkpoint; on the way, what is due. */
static int save_what_is_due(struct ah_loop *loop)
{
    const struct ah_settings *settings = loop->settings;
    bool last = loop->stopped || loop->data_status != AH_OK || loop->step == settings->steps;
    if (!loop->save || (last && loop->step == loop->start))
        return AH_OK;
    return last || loop->save_due || due(loop->step, settings->save_every, settings->steps) ? save(loop, last) : AH_OK;
}

int ah__loop_run(struct ah_loop *loop, struct ah_run *run)
{
    const struct ah_settings *settings = loop->settings;
    int64_t steps = settings->steps;
    loop->run = run;
    loop->saved_ns = loop->dev->ops->now_ns(loop->dev);
    loop->stopped = any_told_to_stop(loop);
    while (loop->step < steps && !loop->stopped && loop->data_status == AH_OK) {
        AH_TRY(run_stretch(loop));
        if (!loop->stopped && loop->data_status == AH_OK && due(loop->step, settings->val_every, steps))
            AH_TRY(evaluate_or_stop(loop));
        loop->stopped |= any_told_to_stop(loop); /* while evaluating */
        AH_TRY(save_what_is_due(loop));
        if (any_told_to_stop(loop) && !loop->stopped) { /* while saving: what was given to a thread must be on disk */
            loop->stopped = true;
            AH_TRY(save_what_is_due(loop));
        }
        if (loop->stretch && loop->stretch_steps)
            AH_TRY(loop->stretch(loop->stretch_steps, loop->context));
    }
    if (loop->data_status != AH_OK)
        return ah__fail(loop->data_status, "%s", loop->data_message);
    return loop->step == loop->start && !loop->stopped ? evaluate(loop) : AH_OK;
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

/* The first steps fill the lanes; they still lie first while the ring has not come round. Sorting leaves them
 * where they are. */
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
