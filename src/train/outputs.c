#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "source/model_tokenizer.h"
#include "source/source.h"
#include "train/pictures.h"
#include "train/weights.h"

/* ---- the files beside the checkpoints ---------------------------------------------------------------------------- */

static int save_profile(const struct ah_training *training, const char *path)
{
    return ah_profile_save(training->session->profile, path);
}

static int save_plan(const struct ah_training *training, const char *path)
{
    return ah_plan_save(&training->session->plan, path);
}

static int save(const struct ah_training *training, const char *name,
                int (*how)(const struct ah_training *training, const char *path))
{
    char *path;
    AH_TRY(ah__sprintf(&path, "%s/%s", training->out.dir, name));
    int status = ah__file_own(path);
    if (status == AH_OK)
        status = how(training, path);
    ah__free(path);
    return status;
}

static struct ah_data_facts facts_of(const struct ah_training *training, const struct ah_tokens_info *info)
{
    return (struct ah_data_facts){
        .format = ah__tokens_format(info),
        .tokens = info->tokens,
        .train_samples = info->train_windows,
        .share = 1,
        .known = {info->stamp, info->signature, info->tokenizer, ah_model_get(training->model)->vocab_size},
    };
}

/* Makes the facts of each data source; for batches of the caller's a single empty one. Paths belong to the saver. */
static int data_facts(struct ah_data_facts **out, const struct ah_training *training)
{
    size_t count = training->data ? ah__mixture_count(training->data) : 1;
    AH_TRY(ah__new(out, count, sizeof **out));
    (*out)[0] = facts_of(training, ah__training_data(training));
    for (size_t i = 0; count > 1 && i < count; i++) {
        const struct ah_mixture_source *source = ah__mixture_source(training->data, i);
        struct ah_data_facts *facts = &(*out)[i];
        *facts = facts_of(training, ah__tokens_info(source->tokens));
        facts->path = training->saver.state.sources[i].path;
        facts->weight = source->weight;
        facts->share = (double)source->slots / (double)ah__mixture_cycle(training->data);
    }
    return AH_OK;
}

/* Returns the options in the form in which run.json stores them for a later training. */
static struct ah_train_options asked_of(const struct ah_training *training)
{
    struct ah_train_options asked = *training->options;
    asked.data_path = training->saver.state.data_path;
    if (asked.model || !asked.model_path)
        asked.model_path = training->has_run_config ? training->run_config.asked.model_path : NULL;
    if (asked.budget.device_bytes == AH_NO_LIMIT)
        asked.budget.device_bytes = 0;
    if (asked.budget.host_bytes == AH_NO_LIMIT)
        asked.budget.host_bytes = 0;
    return asked;
}

static int save_run_config(const struct ah_training *training, const char *path)
{
    struct ah_dev_info device;
    char *plan = NULL;
    training->session->dev->ops->info(training->session->dev, &device);
    struct ah_run_config run_config = {
        .asked = asked_of(training),
        .settings = training->settings,
        .data_count = training->data ? ah__mixture_count(training->data) : 1,
    };
    struct ah_run_facts facts = {
        .device = &training->session->info.device,
        .arithmetic = device.arithmetic,
        .parameters = ah__partition_params(training->session->partition),
        .step = training->resumed.step,
    };
    int status = data_facts(&run_config.data, training);
    if (status == AH_OK && run_config.asked.plan && strchr(run_config.asked.plan, '.')) /* the plan is a file */
        status = ah__path_real(&plan, run_config.asked.plan);
    if (plan)
        run_config.asked.plan = plan;
    if (status == AH_OK)
        status = ah__run_config_save(&run_config, &facts, path);
    ah__free(plan);
    ah__free(run_config.data);
    return status;
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

/* Fills path, name and signature of the base weights that adapters adapt. */
static int fill_base(struct ah_checkpoint *state, const struct ah_training *training)
{
    const char *path = training->options->model_path;
    if (!training->settings.tuning.lora_rank)
        return AH_OK;
    const char *name = training->options->base_name ? training->options->base_name : training->resumed.base_name;
    AH_TRY(ah__weights_signature(&state->base_signature, training->weights));
    if (name && name[0])
        AH_TRY(ah__strdup(&state->base_name, name));
    if (!path)
        return ah__strdup(&state->base, training->resumed.base);
    char *place;
    AH_TRY(ah__source_place(&place, path));
    int status = ah__path_real(&state->base, place);
    ah__free(place);
    return status;
}

/* Fills the state of all checkpoints: only step and loss change from here on. */
static int fill_state(struct ah_checkpoint *state, const struct ah_training *training)
{
    const struct ah_tokens_info *info = ah__training_data(training);
    struct ah_dev_info device;
    int status =
        training->data ? ah__mixture_text(&state->data_path, training->data) : ah__strdup(&state->data_path, "");
    if (status == AH_OK && training->data && ah__mixture_count(training->data) > 1) {
        status = ah__mixture_marks(&state->sources, training->data);
        state->source_count = status == AH_OK ? ah__mixture_count(training->data) : 0;
    }
    if (status == AH_OK)
        status = fill_base(state, training);
    state->bytes = training->bytes || training->resumed.bytes;
    state->data_tokens = info->tokens;
    state->data_signature = info->signature;
    state->settings = training->settings;
    state->files = &training->files;
    training->session->dev->ops->info(training->session->dev, &device);
    snprintf(state->arithmetic, sizeof state->arithmetic, "%s", device.arithmetic);
    return status;
}

/* Returns the bytes of allowed host memory that the plan does not use. */
static int64_t copy_most_bytes(const struct ah_training *training)
{
    int64_t budget = training->session->info.budget.host_bytes, left = budget - training->session->plan.host_peak_bytes;
    return budget ? left : INT64_MAX;
}

/* Prepares the saver once. After a failure, as when memory runs out, the next save prepares it from the start. */
static int prepare_saver(struct ah_training *training)
{
    struct ah_saver *saver = &training->saver;
    if (saver->buffer)
        return AH_OK;
    saver->dir = training->out.dir;
    saver->model = training->model;
    saver->partition = training->session->partition;
    saver->copy_most_bytes = copy_most_bytes(training);
    int status = fill_state(&saver->state, training);
    if (status == AH_OK)
        status = ah__saver_init(saver);
    if (status != AH_OK)
        ah__saver_fini(saver);
    return status;
}

/* Makes the folder again if it was removed or renamed during the training, with a note: what was trained is worth
 * keeping. */
static int find_folder(struct ah_training *training)
{
    bool gone;
    AH_TRY(ah__out_folder_again(&training->out, &gone));
    if (!gone)
        return AH_OK;
    ah__training_note(training, "%s was removed or renamed: made it again; it has metrics from here on only",
                      training->out.dir);
    ah__metrics_close(&training->metrics);
    AH_TRY(save(training, "run.json", save_run_config));
    return ah__metrics_open(&training->metrics, training->out.dir, training->settings.logs, training->loop.step);
}

/* Turns the failure to write a checkpoint during the training into a fault that is reported: the next one makes up for
 * it. Numbers that are not finite, and a failed device or rank, stay failures. */
static int on_the_way(const struct ah_training *training, int status)
{
    if (status == AH_OK || status == AH_ENUMERIC || status == AH_EDEVICE)
        return status;
    ah__training_fault(training, "a checkpoint could not be written, the training goes on: %s", ah_error());
    return AH_OK;
}

/* Notes once per folder that files of others keep it from being removed. Called while no checkpoint is written. */
static void tell_left(struct ah_training *training)
{
    char **left = &training->saver.state.left;
    if (*left)
        ah__training_note(training, "%s: found files in it that no checkpoint has: they stay", *left);
    ah__free(*left);
    *left = NULL;
}

static int write_checkpoint(struct ah_training *training, int64_t step, double loss, bool last)
{
    AH_TRY(find_folder(training));
    AH_TRY(ah__metrics_sync(&training->metrics));
    return ah__saver_save(&training->saver, step, loss, training->run, last);
}

/* Saves a checkpoint. A failure now is not a fault of the options, so AH_EINPUT becomes AH_EIO. */
static int save_now(struct ah_training *training, int64_t step, double loss, bool last)
{
    AH_TRY(on_the_way(training, ah__saver_wait(&training->saver)));
    tell_left(training);
    int status = write_checkpoint(training, step, loss, last);
    if (status == AH_EINPUT)
        status = ah__fail_prefix(AH_EIO, "checkpoint");
    training->saved = status == AH_OK && last;
    return last ? status : on_the_way(training, status);
}

/* save_checkpoint, save_part, save_ready and save_pictures are the loop's hooks; their context is the training. With
 * several ranks, rank 0 writes what all of them send. */
static int save_checkpoint(int64_t step, double loss, bool last, void *context)
{
    struct ah_training *training = context;
    return ah__run_served(training->run, save_now(training, step, loss, last));
}

static int save_part(int64_t step, double loss, bool last, void *context)
{
    struct ah_training *training = context;
    (void)step, (void)loss;
    AH_TRY(ah__run_serve(training->run));
    training->saved = last;
    return AH_OK;
}

static bool save_ready(void *context)
{
    struct ah_training *training = context;
    return !ah__saver_busy(&training->saver);
}

static int save_pictures(int64_t steps, void *context)
{
    ah__pictures_segment(context, steps);
    return AH_OK;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static void tell_nothing_is_saved(const struct ah_training *training)
{
    if (training->loop.start < training->settings.steps)
        ah__training_note(training, "nothing of this training will be saved: no folder was given for it");
}

static int rank_0_saves(bool *saves, const struct ah_training *training)
{
    double has_folder = training->out.dir != NULL; /* only rank 0 has a folder */
    if (training->comm->world_size > 1)
        AH_TRY(ah__comm_sum(training->comm, &has_folder, 1));
    *saves = has_folder > 0;
    return AH_OK;
}

int ah__training_open_outputs(struct ah_training *training)
{
    bool saves;
    AH_TRY(rank_0_saves(&saves, training));
    if (!saves && training->comm->rank == 0)
        tell_nothing_is_saved(training);
    if (!saves || training->loop.start >= training->settings.steps)
        return AH_OK;
    training->loop.context = training;
    if (training->comm->rank > 0) {
        training->loop.save = save_part;
        return AH_OK;
    }
    AH_TRY(prepare_saver(training));
    AH_TRY(ah__out_folder_take(&training->out));
    AH_TRY(save(training, "run.json", save_run_config));
    AH_TRY(save(training, "profile.json", save_profile));
    AH_TRY(save(training, "plan.json", save_plan));
    AH_TRY(ah__metrics_open(&training->metrics, training->out.dir, training->settings.logs, training->resumed.step));
    training->loop.metrics = &training->metrics;
    training->loop.save = save_checkpoint;
    training->loop.save_ready = save_ready;
    training->loop.segment = save_pictures;
    return AH_OK;
}

int ah__training_close_outputs(struct ah_training *training)
{
    int status = ah__saver_wait(&training->saver);
    tell_left(training);
    return status;
}

/* Saves to a folder other than the training's own, which does not change what is due there. */
static int save_elsewhere(struct ah_training *training, const char *dir)
{
    struct ah_saver *saver = &training->saver;
    AH_TRY(prepare_saver(training));
    AH_TRY(on_the_way(training, ah__saver_wait(saver)));
    AH_TRY(ah__folder_make(dir));
    saver->dir = dir;
    int status = ah__saver_save(saver, training->loop.step, training->loop.loss, training->run, true);
    saver->dir = training->out.dir;
    return status;
}

int ah__training_save_to(struct ah_training *training, const char *dir)
{
    if (training->comm->rank > 0)
        return ah__run_serve(training->run);
    return ah__run_served(training->run, save_elsewhere(training, dir));
}

int ah__training_compare(struct ah_training *training)
{
    bool dropped;
    int64_t step_ns = ah__loop_step_ns(&training->loop);
    AH_TRY(ah_session_measured(&dropped, training->session, step_ns, ah__loop_steps_timed(&training->loop)));
    if (dropped)
        ah__training_note(training,
                          "steps took %.1f ms, predicted %.1f ms: the cached profile is dropped, the next run measures "
                          "again",
                          (double)step_ns * 1e-6, (double)training->session->plan.step_ns * 1e-6);
    return AH_OK;
}
