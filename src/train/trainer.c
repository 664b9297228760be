/* A trainer: from options to steps, and a whole training as a loop over it. */
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "train/pictures.h"

struct ah_trainer {
    struct ah_session session;
    bool stopped_early; /* told to stop before the plan stood */
    bool started;       /* the folder is made */
    bool ended;         /* no step is left, and all is written */
};

/* Asked to stop before anything was trained: there is nothing to write. */
static bool stop_wanted(struct ah_session *session)
{
    const volatile int *stop = session->options->stop;
    double told = stop && *stop;
    if (session->comm->world_size > 1 && ah__comm_sum(session->comm, &told, 1) != AH_OK)
        told = 1; /* what failed shows at the end */
    session->loop.stopped |= told > 0;
    return session->loop.stopped;
}

/* Where one rank fails before anything is trained, all end with its message. */
static int all(struct ah_session *session, int status)
{
    return ah__comm_agree(session->comm, status);
}

/* Graph and partition, of micro-batches whose size is known. */
static int partition_make(struct ah_session *session)
{
    const struct ah_settings *settings = &session->settings;
    struct ah_step_options step = ah__session_step(session);
    const struct ah_record_options record = {
        .batch = session->micro_batch, .seq = settings->seq, .compute = settings->dtype, .packed = settings->pack};
    AH_TRY(ah_model_record_with(&session->graph, session->model, &record));
    return ah_partition_new(&session->partition, session->graph, &step);
}

/* Device, graph, partition, profile and plan, in the order in which one needs the other. */
static int device_to_plan(struct ah_session *session)
{
    AH_TRY(all(session, ah__session_open_device(session)));
    if (session->settings.micro_batch == AH_MICRO_BATCH_AUTO)
        return all(session, ah__session_choose(session));
    AH_TRY(partition_make(session));
    AH_TRY(all(session, ah__session_profile(session)));
    return ah__session_plan(session);
}

static int session_open(struct ah_session *session)
{
    AH_TRY(all(session, ah__session_open_inputs(session)));
    AH_TRY(all(session, ah__session_same_inputs(session)));
    if (session->options->plan)
        AH_TRY(ah_plan_check(session->options->plan, ah_model_get(session->model)->layers));
    AH_TRY(device_to_plan(session));
    AH_TRY(ah__session_predict(session));
    AH_TRY(ah__loop_init(&session->loop, session->dev));
    AH_TRY(all(session,
               ah__run_new(&session->run, session->partition, &session->plan, session->dev, session->settings.clip)));
    return all(session, ah__session_load(session));
}

static void session_fini(struct ah_session *session)
{
    ah__saver_fini(&session->saver);
    ah__metrics_close(&session->metrics);
    ah__out_folder_fini(&session->out);
    ah__run_free(session->run);
    ah__loop_fini(&session->loop);
    ah_timeline_free(session->measured);
    ah_timeline_free(session->predicted);
    ah_profile_free(session->profile);
    ah_dev_close(session->dev);
    ah_partition_free(session->partition);
    ah_graph_free(session->graph);
    ah__tokens_close(session->tokens);
    ah__tokenizer_close(session->tokenizer);
    ah__model_files_free(&session->files);
    ah__free(session->weights);
    ah_model_free(session->own_model);
    ah__checkpoint_close(&session->resumed);
    ah__recipe_free(&session->recipe);
}

static void fill_result(struct ah_train_result *result, struct ah_session *session)
{
    struct ah_dev_info info;
    int64_t step_ns = ah__loop_step_ns(&session->loop);
    session->dev->ops->info(session->dev, &info);
    *result = (struct ah_train_result){
        .steps_done = session->loop.step,
        .stopped = session->loop.stopped,
        .saved = session->saved && session->loop.saved_step == session->loop.step,
        .final_loss = session->loop.loss,
        .val_loss = session->loop.val_loss,
        .uniform_loss = session->loop.uniform_loss,
        .first_loss = ah__loop_mean_loss(&session->loop, false),
        .last_loss = ah__loop_mean_loss(&session->loop, true),
        .profile_kept_s = session->profile_kept_s,
        .tokens_per_s = step_ns ? (double)(session->settings.batch * session->settings.seq) * 1e9 / (double)step_ns : 0,
        .device_peak_bytes_predicted = session->plan.device_peak_bytes,
        .device_peak_bytes_used = info.device_high_water_bytes,
        .host_peak_bytes_predicted = session->plan.host_peak_bytes,
        .host_peak_bytes_used = info.host_bytes,
        .dtype = ah__dtype_word(session->settings.dtype),
        .micro_batch = session->micro_batch,
        .clip = session->settings.clip,
        .clipped_steps = session->loop.clipped_steps,
        .skipped_steps = session->loop.skipped_steps,
        .updates_redone = ah__run_updates_redone(session->run),
        .step_ns_predicted = session->plan.step_ns,
        .step_ns_median = step_ns,
        .steps_timed = ah__loop_steps_timed(&session->loop),
        .plan = session->plan,
    };
    snprintf(result->device, sizeof result->device, "%s", info.name);
}

/* Told to stop before there was anything to save. */
static void fill_stopped(struct ah_train_result *result, const struct ah_session *session)
{
    *result = (struct ah_train_result){
        .steps_done = session->resumed.step,
        .stopped = true,
        .final_loss = session->loop.loss,
        .val_loss = NAN,
        .uniform_loss = session->loop.uniform_loss,
        .first_loss = NAN,
        .last_loss = NAN,
        .profile_kept_s = -1,
        .dtype = ah__dtype_word(session->settings.dtype),
        .micro_batch = session->micro_batch,
        .clip = session->settings.clip,
    };
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

void ah_trainer_close(struct ah_trainer *trainer)
{
    if (!trainer)
        return;
    session_fini(&trainer->session);
    ah__free(trainer);
}

int ah_trainer_open(struct ah_trainer **out, const struct ah_train_options *options)
{
    struct ah_trainer *trainer;
    AH_TRY(ah__new(&trainer, 1, sizeof *trainer));
    struct ah_session *session = &trainer->session;
    session->out.fd = -1;
    session->comm = ah__comm();
    session->profile_kept_s = -1;
    session->options = &session->asked;
    int status = ah__options_take(&session->asked, options);
    if (status == AH_OK)
        status = session_open(session);
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
    return ah__fail(AH_EEND, "step %lld: there is none behind it", (long long)trainer->session.loop.step);
}

/* Before the first step. */
static int start(struct ah_trainer *trainer)
{
    struct ah_session *session = &trainer->session;
    if (trainer->stopped_early)
        return nothing_more(trainer);
    if (trainer->started)
        return AH_OK;
    if (!stop_wanted(session))
        AH_TRY(all(session, ah__session_open_outputs(session)));
    ah__loop_start(&session->loop, session->run);
    trainer->started = true;
    return AH_OK;
}

/* All that matters is safe, then the pictures. */
static int finish(struct ah_trainer *trainer)
{
    AH_TRY(ah__session_close_outputs(&trainer->session));
    ah__pictures_end(&trainer->session);
    return AH_OK;
}

/* What a loop said, and at its end everything on disk. */
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
    return stepped(trainer, ah__loop_step(&trainer->session.loop, step));
}

static int token_fail(const char *what, int64_t at, int32_t found, int64_t vocab)
{
    return ah__fail(AH_EINPUT, "batch: found %s %d at %lld, expected one below %lld", what, found, (long long)at,
                    (long long)vocab);
}

static int batch_check(const struct ah_session *session, const struct ah_batch *batch)
{
    const struct ah_settings *settings = &session->settings;
    int64_t vocab = ah_model_get(session->model)->vocab_size;
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
    struct ah_session *session = &trainer->session;
    AH_TRY(start(trainer));
    int64_t begun = ah__loop_outstanding(&session->loop);
    if (begun >= AH_RUN_IN_FLIGHT)
        return ah__fail(AH_EINPUT, "step: found %lld begun and not waited for, expected fewer", (long long)begun);
    AH_TRY(batch_check(session, batch));
    return stepped(trainer, ah__loop_begin(&session->loop, batch));
}

int ah_trainer_wait(struct ah_trainer *trainer, struct ah_step *step)
{
    struct ah_session *session = &trainer->session;
    AH_TRY(start(trainer));
    if (ah__loop_outstanding(&session->loop) == 0)
        return ah__fail(AH_EINPUT, "step: found none begun, expected one to wait for");
    return stepped(trainer, ah__loop_wait(&session->loop, step));
}

int ah_trainer_step_on(struct ah_trainer *trainer, const struct ah_batch *batch, struct ah_step *step)
{
    AH_TRY(start(trainer));
    if (ah__loop_outstanding(&trainer->session.loop))
        return ah__fail(AH_EINPUT, "step: found one begun and not waited for, expected none");
    AH_TRY(ah_trainer_begin(trainer, batch));
    return ah_trainer_wait(trainer, step);
}

int ah_trainer_save(struct ah_trainer *trainer, const char *dir)
{
    struct ah_session *session = &trainer->session;
    int status = start(trainer);
    if (status == AH_EEND) /* told to stop before there was anything to save */
        return AH_OK;
    AH_TRY(status);
    if (dir) {
        AH_TRY(ah__loop_drain(&session->loop));
        if (session->loop.step == session->loop.start)
            return ah__fail(AH_EINPUT, "step: found none taken, expected one to save");
        return ah__session_save_to(session, dir);
    }
    if (!session->loop.save)
        return ah__fail(AH_EINPUT, "out: found no folder for this training, expected one to save in");
    AH_TRY(ah__loop_save(&session->loop));
    return finish(trainer);
}

/* ---- what is known ----------------------------------------------------------------------------------------------- */

void ah_trainer_device(const struct ah_trainer *trainer, struct ah_device *out)
{
    *out = trainer->session.device;
}

void ah_trainer_summary(const struct ah_trainer *trainer, struct ah_train_summary *out)
{
    *out = (struct ah_train_summary){.profile_kept_s = -1};
    if (!trainer->stopped_early)
        ah__session_summary(out, &trainer->session);
}

void ah_trainer_plan(const struct ah_trainer *trainer, struct ah_plan *out, struct ah_budget *budget)
{
    *out = trainer->session.plan;
    if (budget)
        *budget = trainer->session.budget;
}

const struct ah_timeline *ah_trainer_timeline(struct ah_trainer *trainer, bool measured)
{
    struct ah_session *session = &trainer->session;
    if (!measured)
        return session->predicted;
    bool stepped = trainer->started && session->loop.begun > session->loop.start;
    return stepped && ah__loop_drain(&session->loop) == AH_OK ? ah__run_timeline(session->run) : NULL;
}

void ah_trainer_result(struct ah_trainer *trainer, struct ah_train_result *result)
{
    struct ah_session *session = &trainer->session;
    if (trainer->stopped_early) {
        fill_stopped(result, session);
        return;
    }
    if (trainer->started)
        (void)ah__loop_drain(&session->loop); /* a failure is the next step's to say */
    fill_result(result, session);
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
