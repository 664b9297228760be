/* ah_train: from options to a trained model on one screen. */
#include <math.h>
#include <stdio.h>

#include "train/pictures.h"

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
    AH_TRY(ah_partition_new(&session->partition, session->graph, &step));
    ah__session_facts(session);
    return AH_OK;
}

/* Device, graph, partition, profile and plan, in the order in which one needs the other. */
static int device_to_plan(struct ah_session *session)
{
    AH_TRY(all(session, ah__session_open_device(session)));
    if (session->settings.micro_batch == AH_MICRO_BATCH_AUTO) {
        AH_TRY(all(session, ah__session_choose(session)));
        ah__session_facts(session);
        return AH_OK;
    }
    AH_TRY(partition_make(session));
    AH_TRY(all(session, ah__session_profile(session)));
    return ah__session_plan(session);
}

static int tell_step(struct ah_session *session, const struct ah_step *step)
{
    const struct ah_train_options *options = session->options;
    if (options->on_step && options->on_step(step, options->context) != 0)
        session->loop.asked_to_stop = true;
    return isnan(step->val_loss) || !options->on_val ? AH_OK
                                                     : options->on_val(step->step, step->val_loss, options->context);
}

static int steps_run(struct ah_session *session)
{
    struct ah_step step;
    int status;
    ah__loop_start(&session->loop, session->run);
    while ((status = ah__loop_step(&session->loop, &step)) == AH_OK)
        AH_TRY(tell_step(session, &step));
    return status == AH_EEND ? AH_OK : status;
}

static int session_run(struct ah_session *session)
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
    AH_TRY(all(session, ah__session_load(session)));
    if (stop_wanted(session))
        return AH_OK;
    AH_TRY(all(session, ah__session_open_outputs(session)));
    int status = steps_run(session);
    AH_TRY(status == AH_OK ? ah__session_close_outputs(session) : status);
    ah__pictures_end(session); /* when all that matters is safe */
    return AH_OK;
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
        .saved = session->saved,
        .final_loss = session->loop.loss,
        .val_loss = session->loop.val_loss,
        .guess_loss = session->loop.guess,
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
        .guess_loss = session->loop.guess,
        .first_loss = NAN,
        .last_loss = NAN,
        .profile_kept_s = -1,
        .dtype = ah__dtype_word(session->settings.dtype),
        .micro_batch = session->micro_batch,
        .clip = session->settings.clip,
    };
}

int ah_train(struct ah_train_result *result, const struct ah_train_options *options)
{
    struct ah_session session = {.asked = *options, .out.fd = -1, .comm = ah__comm()};
    session.options = &session.asked;
    int status = session_run(&session);
    if (status == AH_OK)
        fill_result(result, &session);
    if (status == AH_ESTOP) {
        fill_stopped(result, &session);
        status = AH_OK;
    }
    session_fini(&session);
    return status;
}
