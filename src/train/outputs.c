#include <stdlib.h>

#include "base/alloc.h"
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
    int status = how(session, path);
    ah__free(path);
    return status;
}

/* ---- before and during training ---------------------------------------------------------------------------------- */

/* The next checkpoint's state: only step and loss change from here on. */
static int prepare_state(struct ah_session *session)
{
    const struct ah_tokens_info *info = ah__tokens_info(session->tokens);
    const char *data = session->options->data_path ? session->options->data_path : session->resumed.data_path;
    char *absolute = realpath(data, NULL);
    int status = ah__strdup(&session->state.data_path, absolute ? absolute : data);
    free(absolute);
    session->state.data_tokens = info->tokens;
    session->state.data_signature = info->signature;
    session->state.settings = session->settings;
    struct ah_dev_info device;
    session->dev->ops->info(session->dev, &device);
    snprintf(session->state.arithmetic, sizeof session->state.arithmetic, "%s", device.arithmetic);
    AH_TRY(status);
    return ah__new(&session->save_buffer, 2 * (size_t)ah__checkpoint_buffer(session->partition),
                   sizeof *session->save_buffer);
}

/* The loop's save and stretch hooks; context: the session. */
static int save_checkpoint(int64_t step, double loss, void *context)
{
    struct ah_session *session = context;
    session->state.step = step;
    session->state.loss = loss;
    AH_TRY(ah__metrics_sync(&session->metrics));
    return ah__checkpoint_save(session->out.dir, &session->state, session->model, session->partition, session->run,
                               session->save_buffer);
}

static int save_pictures(int64_t steps, void *context)
{
    ah__pictures_stretch(context, steps);
    return AH_OK;
}

int ah__session_open_outputs(struct ah_session *session)
{
    if (!session->out.dir)
        return AH_OK;
    AH_TRY(prepare_state(session));
    AH_TRY(ah__out_folder_take(&session->out));
    AH_TRY(save(session, "profile.json", save_profile));
    AH_TRY(save(session, "plan.json", save_plan));
    AH_TRY(ah__metrics_open(&session->metrics, session->out.dir, session->resumed.step));
    session->loop.metrics = &session->metrics;
    session->loop.save = save_checkpoint;
    session->loop.stretch = save_pictures;
    session->loop.context = session;
    return AH_OK;
}
