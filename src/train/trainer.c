/* A trainer: from options to steps, and a whole training as a loop over it. */
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "train/pictures.h"

struct ah_trainer {
    struct ah_training training;
    bool stopped_early; /* told to stop before there was a plan */
    bool started;       /* outputs are open and the loop has started */
    bool ended;         /* no step is left, and everything is written */
};

/* Returns true if any rank is asked to stop before anything was trained: then there is nothing to write. */
static bool stop_wanted(struct ah_training *training)
{
    const volatile int *stop = training->options->stop;
    double told = stop && *stop;
    if (training->comm->world_size > 1 && ah__comm_sum(training->comm, &told, 1) != AH_OK)
        told = 1; /* the failure shows at the end */
    training->loop.stopped |= told > 0;
    return training->loop.stopped;
}

/* Returns the common status of all ranks: if one fails before anything is trained, all end with its message. */
static int all(struct ah_training *training, int status)
{
    return ah__comm_agree(training->comm, status);
}

static int training_open(struct ah_training *training)
{
    AH_TRY(all(training, ah__training_open_inputs(training)));
    AH_TRY(ah__training_open_device(training));
    AH_TRY(all(training, ah__training_same_inputs(training)));
    AH_TRY(ah__training_plan(training));
    AH_TRY(ah__training_predict(training));
    AH_TRY(ah__loop_init(&training->loop, training->session->dev));
    AH_TRY(all(training, ah__run_new(&training->run, training->session->partition, &training->session->plan,
                                     training->session->dev, training->settings.clip)));
    AH_TRY(all(training, ah__training_load(training)));
    return all(training, ah__training_same_weights(training));
}

static void training_fini(struct ah_training *training)
{
    ah__saver_fini(&training->saver);
    ah__metrics_close(&training->metrics);
    ah__out_folder_fini(&training->out);
    ah__run_free(training->run);
    ah__loop_fini(&training->loop);
    ah_timeline_free(training->measured);
    ah_timeline_free(training->predicted);
    ah_session_close(training->session);
    ah__mixture_close(training->data);
    ah__tokenizer_close(training->tokenizer);
    ah__model_files_free(&training->files);
    ah__free(training->weights);
    ah__adapter_tensors_close(&training->adapted);
    ah__free(training->adapter);
    ah_model_free(training->own_model);
    ah__checkpoint_close(&training->resumed);
    ah__run_config_free(&training->run_config);
}

static void fill_result(struct ah_train_result *result, struct ah_training *training)
{
    struct ah_dev_info info;
    int64_t step_ns = ah__loop_step_ns(&training->loop);
    double places = (double)(training->settings.batch * training->settings.seq);
    double steps = (double)(training->loop.step - training->loop.start);
    const bool trained = training->loop.step > training->loop.start;
    training->session->dev->ops->info(training->session->dev, &info);
    *result = (struct ah_train_result){
        .steps_done = training->loop.step,
        .stopped = training->loop.stopped,
        .saved = training->saved && training->loop.saved_step == training->loop.step,
        .final_loss = training->loop.loss,
        .val_loss = training->loop.val_loss,
        .val_step = training->loop.val_step,
        .uniform_loss = training->loop.uniform_loss,
        .first_loss = ah__loop_mean_loss(&training->loop, false),
        .last_loss = ah__loop_mean_loss(&training->loop, true),
        .profile_kept_s = training->session->info.profile_kept_s,
        .tokens_per_s = step_ns ? places * 1e9 / (double)step_ns : 0,
        .learned = steps > 0 ? (double)training->loop.learned / (places * steps) : NAN,
        .device_peak_bytes_predicted = trained ? training->session->plan.device_peak_bytes : 0,
        .device_peak_bytes_used = trained ? info.device_high_water_bytes : 0,
        .host_peak_bytes_predicted = trained ? training->session->plan.host_peak_bytes : 0,
        .host_peak_bytes_used = trained ? info.host_bytes : 0,
        .dtype = ah__dtype_word(training->settings.dtype),
        .micro_batch = training->micro_batch,
        .clip = training->settings.clip,
        .clipped_steps = training->loop.clipped_steps,
        .skipped_steps = training->loop.skipped_steps,
        .updates_redone = ah__run_updates_redone(training->run),
        .step_ns_predicted = training->session->plan.step_ns,
        .step_ns_median = step_ns,
        .steps_timed = ah__loop_steps_timed(&training->loop),
        .plan = training->session->plan,
    };
    snprintf(result->device, sizeof result->device, "%s", info.name);
}

/* Fills the result of a training that was told to stop before there was anything to save. */
static void fill_stopped(struct ah_train_result *result, const struct ah_training *training)
{
    *result = (struct ah_train_result){
        .steps_done = training->resumed.step,
        .stopped = true,
        .final_loss = training->loop.loss,
        .val_loss = NAN,
        .learned = NAN,
        .uniform_loss = training->loop.uniform_loss,
        .first_loss = NAN,
        .last_loss = NAN,
        .profile_kept_s = -1,
        .dtype = ah__dtype_word(training->settings.dtype),
        .micro_batch = training->micro_batch,
        .clip = training->settings.clip,
    };
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

void ah_trainer_close(struct ah_trainer *trainer)
{
    if (!trainer)
        return;
    training_fini(&trainer->training);
    ah__free(trainer);
}

int ah_trainer_open(struct ah_trainer **out, const struct ah_train_options *options)
{
    struct ah_trainer *trainer;
    AH_TRY(ah__new(&trainer, 1, sizeof *trainer));
    struct ah_training *training = &trainer->training;
    training->out.fd = -1;
    training->comm = ah__comm();
    training->options = &training->asked;
    int status = ah__options_take(&training->asked, options);
    if (status == AH_OK)
        status = training_open(training);
    trainer->stopped_early = status == AH_ESTOP;
    if (trainer->stopped_early)
        status = AH_OK;
    if (status == AH_OK)
        *out = trainer;
    else
        ah_trainer_close(trainer);
    return status;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static int nothing_more(const struct ah_trainer *trainer)
{
    return ah__fail(AH_EEND, "step %lld: there is none behind it", (long long)trainer->training.loop.step);
}

/* Opens outputs and starts the loop, before the first step. AH_EEND: no step can follow. */
static int start(struct ah_trainer *trainer)
{
    if (!trainer)
        return ah__fail(AH_EINPUT, "trainer: found none, expected one that is open");
    struct ah_training *training = &trainer->training;
    if (trainer->stopped_early)
        return nothing_more(trainer);
    if (trainer->started)
        return AH_OK;
    if (!stop_wanted(training))
        AH_TRY(all(training, ah__training_open_outputs(training)));
    ah__loop_start(&training->loop, training->run);
    trainer->started = true;
    return AH_OK;
}

/* Ends a training: first everything that matters is written, then the pictures. */
static int finish(struct ah_trainer *trainer)
{
    AH_TRY(ah__training_close_outputs(&trainer->training));
    AH_TRY(ah__training_compare(&trainer->training));
    ah__pictures_end(&trainer->training);
    return AH_OK;
}

/* Returns the loop's status; at its end writes everything to disk first. */
static int stepped(struct ah_trainer *trainer, int status)
{
    if (status != AH_EEND || trainer->ended)
        return status;
    AH_TRY(finish(trainer));
    trainer->ended = true;
    return nothing_more(trainer);
}

int ah_trainer_step(struct ah_trainer *trainer, struct ah_step *step)
{
    AH_TRY(start(trainer));
    return stepped(trainer, ah__loop_step(&trainer->training.loop, step));
}

static int token_fail(const char *what, int64_t at, int32_t found, int64_t vocab)
{
    return ah__fail(AH_EINPUT, "batch: found %s %d at %lld, expected one below %lld", what, found, (long long)at,
                    (long long)vocab);
}

static int batch_check(const struct ah_training *training, const struct ah_batch *batch)
{
    const struct ah_settings *settings = &training->settings;
    int64_t vocab = ah_model_get(training->model)->vocab_size;
    if (!batch->ids || !batch->targets || !batch->positions != !settings->pack)
        return ah__fail(AH_EINPUT, "batch: expected ids, targets and, %s, positions",
                        settings->pack ? "since sequences are packed" : "if sequences were packed");
    for (int64_t i = 0; i < settings->batch * settings->seq; i++) {
        if (batch->ids[i] < 0 || batch->ids[i] >= vocab)
            return token_fail("id", i, batch->ids[i], vocab);
        if (batch->targets[i] != AH_TARGET_IGNORED && (batch->targets[i] < 0 || batch->targets[i] >= vocab))
            return token_fail("target", i, batch->targets[i], vocab);
        if (batch->positions && (batch->positions[i] < 0 || batch->positions[i] >= settings->seq))
            return token_fail("position", i, batch->positions[i], settings->seq);
    }
    return AH_OK;
}

int ah_trainer_begin(struct ah_trainer *trainer, const struct ah_batch *batch)
{
    AH_TRY(start(trainer));
    struct ah_training *training = &trainer->training;
    int64_t begun = ah__loop_outstanding(&training->loop);
    if (begun >= AH_RUN_IN_FLIGHT)
        return ah__fail(AH_EINPUT, "step: found %lld begun and not waited for, expected fewer", (long long)begun);
    AH_TRY(batch_check(training, batch));
    return stepped(trainer, ah__loop_begin(&training->loop, batch));
}

int ah_trainer_wait(struct ah_trainer *trainer, struct ah_step *step)
{
    AH_TRY(start(trainer));
    struct ah_training *training = &trainer->training;
    if (ah__loop_outstanding(&training->loop) == 0)
        return ah__fail(AH_EINPUT, "step: found none begun, expected one to wait for");
    return stepped(trainer, ah__loop_wait(&training->loop, step));
}

int ah_trainer_step_on(struct ah_trainer *trainer, const struct ah_batch *batch, struct ah_step *step)
{
    AH_TRY(start(trainer));
    if (ah__loop_outstanding(&trainer->training.loop))
        return ah__fail(AH_EINPUT, "step: found one begun and not waited for, expected none");
    AH_TRY(ah_trainer_begin(trainer, batch));
    return ah_trainer_wait(trainer, step);
}

int ah_trainer_save(struct ah_trainer *trainer, const char *dir)
{
    int status = start(trainer);
    if (status == AH_EEND) /* told to stop before there was anything to save */
        return AH_OK;
    AH_TRY(status);
    struct ah_training *training = &trainer->training;
    if (dir) {
        AH_TRY(ah__loop_drain(&training->loop));
        if (training->loop.step == training->loop.start)
            return ah__fail(AH_EINPUT, "step: found none taken, expected one to save");
        return ah__training_save_to(training, dir);
    }
    if (!training->loop.save)
        return ah__fail(AH_EINPUT, "out: found no folder for this training, expected one to save in");
    AH_TRY(ah__loop_save(&training->loop));
    return finish(trainer);
}

/* ---- state of a trainer; a null trainer has none ----------------------------------------------------------------- */

void ah_trainer_device(const struct ah_trainer *trainer, struct ah_device *out)
{
    *out = trainer && trainer->training.session ? trainer->training.session->info.device : (struct ah_device){0};
}

void ah_trainer_summary(const struct ah_trainer *trainer, struct ah_train_summary *out)
{
    *out = (struct ah_train_summary){.profile_kept_s = -1};
    if (trainer && !trainer->stopped_early)
        ah__training_summary(out, &trainer->training);
}

int ah_trainer_source(const struct ah_trainer *trainer, int number, struct ah_train_source *out)
{
    const struct ah_training *training = trainer ? &trainer->training : NULL;
    int count = training && training->data ? (int)ah__mixture_count(training->data) : 0;
    if (number < 0 || number >= count)
        return ah__fail(AH_EEND, "data: found %d source%s, expected more than %d", count, count == 1 ? "" : "s",
                        number);
    const struct ah_mixture_source *source = ah__mixture_source(training->data, (size_t)number);
    const struct ah_tokens_info *info = ah__tokens_info(source->tokens);
    int64_t samples = training->loop.step * training->settings.batch;
    *out = (struct ah_train_source){
        .path = source->path,
        .format = ah__tokens_format(info),
        .weight = source->weight,
        .share = (double)source->slots / (double)ah__mixture_cycle(training->data),
        .tokens = info->tokens,
        .epoch_samples = info->train_windows,
        .samples = ah__mixture_given(training->data, (size_t)number, samples, training->settings.seed),
    };
    out->epochs = (double)out->samples / (double)out->epoch_samples;
    return AH_OK;
}

void ah_trainer_plan(const struct ah_trainer *trainer, struct ah_plan *out, struct ah_budget *budget)
{
    const struct ah_session *session = trainer ? trainer->training.session : NULL;
    *out = session ? session->plan : (struct ah_plan){0};
    if (budget)
        *budget = session ? session->info.budget : (struct ah_budget){0};
}

const struct ah_timeline *ah_trainer_timeline(struct ah_trainer *trainer, bool measured)
{
    if (!trainer)
        return NULL;
    struct ah_training *training = &trainer->training;
    if (!measured)
        return training->predicted;
    bool stepped = trainer->started && training->loop.begun > training->loop.start;
    return stepped && ah__loop_drain(&training->loop) == AH_OK ? ah__run_timeline(training->run) : NULL;
}

void ah_trainer_result(struct ah_trainer *trainer, struct ah_train_result *result)
{
    if (!trainer) {
        *result = (struct ah_train_result){0};
        return;
    }
    struct ah_training *training = &trainer->training;
    if (trainer->stopped_early) {
        fill_stopped(result, training);
        return;
    }
    if (trainer->started)
        (void)ah__loop_drain(&training->loop); /* the next step reports a failure */
    fill_result(result, training);
}

int ah_train(struct ah_train_result *result, const struct ah_train_options *options)
{
    struct ah_trainer *trainer;
    struct ah_step step;
    int status;
    AH_TRY(ah_trainer_open(&trainer, options));
    while ((status = ah_trainer_step(trainer, &step)) == AH_OK)
        ;
    if (status == AH_EEND) {
        ah_trainer_result(trainer, result);
        status = AH_OK;
    }
    ah_trainer_close(trainer);
    return status;
}
