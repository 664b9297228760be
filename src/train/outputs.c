#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "train/pictures.h"

/* ---- the files beside the checkpoints ---------------------------------------------------------------------------- */

static int save_profile(const struct ah_session *session, const char *path)
{
    return ah_profile_save(session->profile, path);
}

static int save_plan(const struct ah_session *session, const char *path)
{
    return ah_plan_save(&session->plan, path);
}

static int save(const struct ah_session *session, const char *name,
                int (*how)(const struct ah_session *session, const char *path))
{
    char *path;
    AH_TRY(ah__sprintf(&path, "%s/%s", session->out.dir, name));
    int status = ah__file_own(path);
    if (status == AH_OK)
        status = how(session, path);
    ah__free(path);
    return status;
}

/* The real paths of the model and of a plan's file, null for what is none. */
static int recipe_paths(char **model, char **plan, const struct ah_train_options *options)
{
    if (!options->model && options->model_path)
        AH_TRY(ah__path_real(model, options->model_path));
    if (options->plan && strchr(options->plan, '.')) /* a file, which is found from anywhere */
        AH_TRY(ah__path_real(plan, options->plan));
    return AH_OK;
}

static int save_recipe(const struct ah_session *session, const char *path)
{
    const struct ah_train_options *options = session->options;
    const struct ah_tokens_info *info = ah__session_data(session);
    const char *model = options->model ? NULL : options->model_path;
    char *model_real = NULL, *plan_real = NULL;
    struct ah_dev_info device;
    session->dev->ops->info(session->dev, &device);
    int status = recipe_paths(&model_real, &plan_real, options);
    struct ah_recipe recipe = {
        .model_path = model_real            ? model_real
                      : session->has_recipe ? session->recipe.model_path
                                            : model,
        .data_path = session->saver.state.data_path,
        .data_format = options->data_format,
        .device = options->device,
        .plan = plan_real ? plan_real : options->plan,
        .policy = options->policy,
        .no_dropout = options->no_dropout,
        .dev = options->dev,
        .budget = {.device_bytes = options->budget.device_bytes == AH_NO_LIMIT ? 0 : options->budget.device_bytes,
                   .host_bytes = options->budget.host_bytes == AH_NO_LIMIT ? 0 : options->budget.host_bytes},
        .settings = session->settings,
        .data = {info->stamp, info->signature, info->tokenizer, ah_model_get(session->model)->vocab_size},
        .data_tokens = info->tokens,
    };
    struct ah_recipe_facts facts = {
        .device = &session->device,
        .arithmetic = device.arithmetic,
        .parameters = ah__partition_params(session->partition),
        .step = session->resumed.step,
    };
    if (status == AH_OK)
        status = ah__recipe_save(&recipe, &facts, path);
    ah__free(model_real);
    ah__free(plan_real);
    return status;
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

/* The next checkpoint's state: only step and loss change from here on. */
static int fill_state(struct ah_checkpoint *state, const struct ah_session *session)
{
    const struct ah_tokens_info *info = ah__session_data(session);
    const char *data = session->options->data_path ? session->options->data_path : session->resumed.data_path;
    struct ah_dev_info device;
    if (!session->options->own_batches)
        AH_TRY(ah__path_real(&state->data_path, data));
    int status = state->data_path ? AH_OK : ah__strdup(&state->data_path, session->options->own_batches ? "" : data);
    state->data_tokens = info->tokens;
    state->data_signature = info->signature;
    state->settings = session->settings;
    state->files = &session->files;
    session->dev->ops->info(session->dev, &device);
    snprintf(state->arithmetic, sizeof state->arithmetic, "%s", device.arithmetic);
    return status;
}

/* What the plan leaves of the host memory that may be used. */
static int64_t copy_most_bytes(const struct ah_session *session)
{
    int64_t budget = session->budget.host_bytes, left = budget - session->plan.host_peak_bytes;
    return budget ? left : INT64_MAX;
}

static int prepare_saver(struct ah_session *session)
{
    struct ah_saver *saver = &session->saver;
    if (saver->buffer)
        return AH_OK;
    saver->dir = session->out.dir;
    saver->model = session->model;
    saver->partition = session->partition;
    saver->copy_most_bytes = copy_most_bytes(session);
    AH_TRY(fill_state(&saver->state, session));
    return ah__saver_init(saver);
}

/* A folder that was removed or renamed under the training is made again: what was trained is worth more than order. */
static int find_folder(struct ah_session *session)
{
    bool gone;
    AH_TRY(ah__out_folder_again(&session->out, &gone));
    if (!gone)
        return AH_OK;
    ah__session_note(session, "%s was removed or renamed: made it again; it has metrics from here on only",
                     session->out.dir);
    ah__metrics_close(&session->metrics);
    AH_TRY(save(session, "run.json", save_recipe));
    return ah__metrics_open(&session->metrics, session->out.dir, session->settings.logs, session->loop.step);
}

/* One that cannot be written on the way is told and made up for by the next; but numbers that are not finite stay. */
static int on_the_way(const struct ah_session *session, int status)
{
    if (status == AH_OK || status == AH_ENUMERIC)
        return status;
    ah__session_note(session, "a checkpoint could not be written, the training goes on: %s", ah_error());
    return AH_OK;
}

static int write_checkpoint(struct ah_session *session, int64_t step, double loss, bool last)
{
    AH_TRY(find_folder(session));
    AH_TRY(ah__metrics_sync(&session->metrics));
    return ah__saver_save(&session->saver, step, loss, session->run, last);
}

/* What fails now is no fault of what was asked for. */
static int save_now(struct ah_session *session, int64_t step, double loss, bool last)
{
    AH_TRY(on_the_way(session, ah__saver_wait(&session->saver)));
    int status = write_checkpoint(session, step, loss, last);
    if (status == AH_EINPUT)
        status = ah__fail_prefix(AH_EIO, "checkpoint");
    session->saved = status == AH_OK && last;
    return last ? status : on_the_way(session, status);
}

/* The loop's save and segment hooks; context: the session. Of several ranks the first writes what all give it. */
static int save_checkpoint(int64_t step, double loss, bool last, void *context)
{
    struct ah_session *session = context;
    return ah__run_served(session->run, save_now(session, step, loss, last));
}

static int save_part(int64_t step, double loss, bool last, void *context)
{
    struct ah_session *session = context;
    (void)step, (void)loss;
    AH_TRY(ah__run_serve(session->run));
    session->saved = last;
    return AH_OK;
}

static bool save_ready(void *context)
{
    struct ah_session *session = context;
    return !ah__saver_busy(&session->saver);
}

static int save_pictures(int64_t steps, void *context)
{
    ah__pictures_segment(context, steps);
    return AH_OK;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static void tell_nothing_is_saved(const struct ah_session *session)
{
    if (session->loop.start < session->settings.steps)
        ah__session_note(session, "nothing of this training will be saved: no folder was given for it");
}

static int rank_0_saves(bool *saves, const struct ah_session *session)
{
    double has_folder = session->out.dir != NULL; /* rank 0's alone */
    if (session->comm->world_size > 1)
        AH_TRY(ah__comm_sum(session->comm, &has_folder, 1));
    *saves = has_folder > 0;
    return AH_OK;
}

int ah__session_open_outputs(struct ah_session *session)
{
    bool saves;
    AH_TRY(rank_0_saves(&saves, session));
    if (!saves && session->comm->rank == 0)
        tell_nothing_is_saved(session);
    if (!saves || session->loop.start >= session->settings.steps)
        return AH_OK;
    session->loop.context = session;
    if (session->comm->rank > 0) {
        session->loop.save = save_part;
        return AH_OK;
    }
    AH_TRY(prepare_saver(session));
    AH_TRY(ah__out_folder_take(&session->out));
    AH_TRY(save(session, "run.json", save_recipe));
    AH_TRY(save(session, "profile.json", save_profile));
    AH_TRY(save(session, "plan.json", save_plan));
    AH_TRY(ah__metrics_open(&session->metrics, session->out.dir, session->settings.logs, session->resumed.step));
    session->loop.metrics = &session->metrics;
    session->loop.save = save_checkpoint;
    session->loop.save_ready = save_ready;
    session->loop.segment = save_pictures;
    return AH_OK;
}

int ah__session_close_outputs(struct ah_session *session)
{
    return ah__saver_wait(&session->saver);
}

/* Not the training's own folder, so it changes nothing of what is due there. */
static int save_elsewhere(struct ah_session *session, const char *dir)
{
    struct ah_saver *saver = &session->saver;
    AH_TRY(prepare_saver(session));
    AH_TRY(on_the_way(session, ah__saver_wait(saver)));
    AH_TRY(ah__folder_make(dir));
    saver->dir = dir;
    int status = ah__saver_save(saver, session->loop.step, session->loop.loss, session->run, true);
    saver->dir = session->out.dir;
    return status;
}

int ah__session_save_to(struct ah_session *session, const char *dir)
{
    if (session->comm->rank > 0)
        return ah__run_serve(session->run);
    return ah__run_served(session->run, save_elsewhere(session, dir));
}
