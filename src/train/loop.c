#include "train/loop.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { STEP_NS_MOST = 1 << 16, STEPS_SKIPPED = 2, LOSSES_MOST = 1 << 10, LOSSES_SHARE = 10, LOSSES_LEAST = 10 };

/* ---- hooks ------------------------------------------------------------------------------------------------------- */

static int give_batch(int32_t *ids, int32_t *targets, int64_t iteration, void *context)
{
    const struct ah_loop *loop = context;
    ah__tokens_batch(loop->tokens, loop->start + iteration, loop->settings->batch, loop->settings->seed, ids, targets);
    return AH_OK;
}

static void give_adam(struct ah_adam *out, int64_t iteration, void *context)
{
    struct ah_loop *loop = context;
    int64_t step = loop->start + iteration + 1;
    ah__adam_init(out, &loop->settings->adamw, ah__schedule_lr(&loop->settings->schedule, step), step);
}

static bool told_to_stop(const struct ah_loop *loop)
{
    return loop->options->stop && *loop->options->stop;
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
    step->steps = settings->schedule.steps;
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
    snprintf(line, sizeof line,
             "step %" PRId64 ": the loss has been above %.4g for %d steps; guessing costs %.4g: the learning rate may be "
             "too high", number, FAR * guess, STEPS_PATIENCE, guess);
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
    struct ah_step step = {
        .loss = result->loss, .grad_norm = result->grad_norm, .clip_factor = result->clip_factor};
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
        loop->stopped = true;
    if (told_to_stop(loop))
        loop->stopped = true;
    return loop->status != AH_OK || loop->stopped;
}

/* ---- storage ----------------------------------------------------------------------------------------------------- */

int ah__loop_init(struct ah_loop *loop, struct ah_run_hooks *hooks, struct ah_dev *dev)
{
    int64_t left = loop->settings->schedule.steps - loop->start;
    size_t tokens = (size_t)(loop->settings->batch * loop->settings->seq);
    loop->dev = dev;
    loop->step = loop->start;
    loop->val_loss = NAN;
    loop->step_ns_capacity = left < 1 ? 1 : left < STEP_NS_MOST ? left : STEP_NS_MOST;
    AH_TRY(ah__new(&loop->step_ns, (size_t)loop->step_ns_capacity, sizeof *loop->step_ns));
    int64_t share = left / LOSSES_SHARE;
    loop->losses_wanted = share < 1 ? 1 : share < LOSSES_MOST ? share : LOSSES_MOST;
    AH_TRY(ah__new(&loop->losses, (size_t)loop->losses_wanted, sizeof *loop->losses));
    AH_TRY(ah__new(&loop->ids, tokens, sizeof *loop->ids));
    AH_TRY(ah__new(&loop->targets, tokens, sizeof *loop->targets));
    *hooks = (struct ah_run_hooks){
        .batch = give_batch,
        .adam = give_adam,
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
    ah__free(loop->ids);
    ah__free(loop->targets);
    loop->step_ns = NULL;
    loop->losses = NULL;
    loop->ids = loop->targets = NULL;
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
    int64_t save = next_point(loop->step, settings->save_every, settings->schedule.steps);
    int64_t val = next_point(loop->step, settings->val_every, settings->schedule.steps), done = 0;
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
        ah__tokens_val_batch(loop->tokens, i, batch, loop->ids, loop->targets);
        AH_TRY(ah__run_eval(loop->run, loop->ids, loop->targets, &loss));
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

/* Told to stop while evaluating or saving: what was trained since the last checkpoint must not be lost. */
static int stop_between(struct ah_loop *loop)
{
    const struct ah_settings *settings = loop->settings;
    loop->stopped = true;
    if (!loop->save || due(loop->step, settings->save_every, settings->schedule.steps))
        return AH_OK;
    return loop->save(loop->step, loop->loss, loop->context);
}

int ah__loop_run(struct ah_loop *loop, struct ah_run *run)
{
    const struct ah_settings *settings = loop->settings;
    int64_t steps = settings->schedule.steps;
    loop->run = run;
    loop->stopped = told_to_stop(loop);
    while (loop->step < steps && !loop->stopped) {
        AH_TRY(run_stretch(loop));
        if (!loop->stopped && due(loop->step, settings->val_every, steps))
            AH_TRY(evaluate(loop));
        if (loop->save && (loop->stopped || due(loop->step, settings->save_every, steps)))
            AH_TRY(loop->save(loop->step, loop->loss, loop->context));
        if (told_to_stop(loop) && !loop->stopped)
            AH_TRY(stop_between(loop));
        if (loop->stretch)
            AH_TRY(loop->stretch(loop->stretch_steps, loop->context));
    }
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
