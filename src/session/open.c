/* Opening a session: all options are checked before anything costs time. Also access to its members. */
#include <string.h>

#include "base/alloc.h"
#include "model/model.h"
#include "op/op.h"
#include "plan/search.h"
#include "profile/drive.h"
#include "sched/sched.h"
#include "session/session.h"

enum { DEFAULT_BATCH = 8, DEFAULT_SEQ = 256 };

/* ---- options ----------------------------------------------------------------------------------------------------- */

static int options_take(struct ah_session_options *out, const struct ah_session_options *options)
{
    if (options->size < sizeof options->size || options->size > sizeof *out)
        return ah__fail(AH_EINPUT, "ah_session_options: found a size of %zu bytes, expected at most %zu", options->size,
                        sizeof *out);
    memcpy(out, options, options->size);
    out->batch = out->batch ? out->batch : DEFAULT_BATCH;
    out->device = out->device ? out->device : "auto";
    out->plan = out->plan ? out->plan : "auto";
    out->policy = out->policy ? out->policy : "autohete";
    out->master = out->master ? out->master : "fp32";
    out->moments = out->moments ? out->moments : "fp32";
    out->dtype = out->dtype ? out->dtype : out->hardware ? "bf16" : "fp32";
    if (out->dev.jitter_seed) /* times with random delays must not be cached for other programs */
        out->profile.cache = NULL;
    return AH_OK;
}

static int64_t limit_of(int64_t bytes)
{
    return bytes == AH_NO_LIMIT ? 0 : bytes;
}

/* Refuses options that belong to one size of micro-batches beside an open size. */
static int check_together(const struct ah_session_options *options)
{
    const char *fixed = options->hardware ? "hardware" : options->profile_path ? "a saved profile" : NULL;
    if (options->hardware && options->profile_path)
        return ah__fail(AH_EINPUT, "profile: found it beside hardware, expected one of them");
    if (fixed && options->micro_batch == AH_MICRO_BATCH_AUTO)
        return ah__fail(AH_EINPUT, "micro_batch: found auto beside %s, expected a size", fixed);
    return AH_OK;
}

/* Checks the passes of a plan's text, which costs nothing, before anything is measured. */
static int check_passes(const struct ah_session *session)
{
    const struct ah_session_info *info = &session->info;
    int64_t most = info->micro_batch_chosen ? info->rank_batch : info->micro_batches;
    int passes = ah__plan_passes_given(session->options.plan);
    int status = ah__plan_passes_check(passes, ah__policy_find(session->options.policy), info->world_size, most);
    return status == AH_OK ? AH_OK : ah__fail_prefix(status, "--plan");
}

/* Sets one rank's batch and micro-batches. The batch is of all ranks, and each has an equal part of it. */
static int share_batch(struct ah_session *session)
{
    const struct ah_session_options *options = &session->options;
    struct ah_session_info *info = &session->info;
    if (session->hardware == NULL && options->hardware && ah__comm()->world_size > 1)
        return ah__fail(AH_EINPUT,
                        "hardware: found it with %d ranks started, expected one: simulate --ranks asks about machines "
                        "that are not there",
                        ah__comm()->world_size);
    if (options->batch % info->world_size != 0)
        return ah__fail(AH_EINPUT, "batch: found %lld, expected a multiple of %d, the ranks: it is that of all of them",
                        (long long)options->batch, info->world_size);
    info->rank_batch = options->batch / info->world_size;
    info->micro_batch_chosen = options->micro_batch == AH_MICRO_BATCH_AUTO;
    if (info->micro_batch_chosen)
        return AH_OK;
    int64_t size = options->micro_batch == AH_MICRO_BATCH_WHOLE ? info->rank_batch : options->micro_batch;
    if (size < 1 || info->rank_batch % size != 0)
        return ah__fail(AH_EINPUT, "micro_batch: found %lld, expected a divisor of the batch of %lld%s",
                        (long long)size, (long long)info->rank_batch, info->world_size > 1 ? " of each rank" : "");
    info->micro_batch = size;
    info->micro_batches = (int)(info->rank_batch / size);
    return AH_OK;
}

/* Loads the machine. If "a100-40g" is asked for 4 ranks and has fewer devices, "a100-40g-x4" is loaded, if there is
 * one. */
static int find_hardware(struct ah_session *session)
{
    const char *name = session->options.hardware;
    int ranks = session->info.world_size;
    struct ah_hardware_info *info = &session->info.hardware;
    char wider[96];
    AH_TRY(ah_hardware_load(&session->hardware, name));
    ah_hardware_get(info, session->hardware);
    if (ranks <= info->devices)
        return AH_OK;
    struct ah_hardware *hardware;
    snprintf(wider, sizeof wider, "%.64s-x%d", name, ranks);
    if (strchr(name, '/') || strchr(name, '.') || ah_hardware_load(&hardware, wider) != AH_OK)
        return ah__fail(AH_EINPUT, "ranks: found %d, expected at most %d, the devices of %.64s", ranks, info->devices,
                        name);
    ah_hardware_free(session->hardware);
    session->hardware = hardware;
    ah_hardware_get(info, hardware);
    return AH_OK;
}

static int open_hardware(struct ah_session *session)
{
    struct ah_budget *budget = &session->info.budget;
    struct ah_profile_drive drive; /* the estimate loads it again: here a wrong name costs no time */
    AH_TRY(find_hardware(session));
    if (session->options.dev.disk)
        AH_TRY(ah__drive_load(&drive, session->options.dev.disk, session->info.world_size));
    budget->device_bytes = budget->device_bytes ? budget->device_bytes : session->info.hardware.device_bytes;
    budget->host_bytes = budget->host_bytes ? budget->host_bytes : session->info.hardware.host_bytes;
    return AH_OK;
}

static int open_model(struct ah_session *session)
{
    const struct ah_session_options *options = &session->options;
    session->model = options->model;
    if (!options->model) {
        AH_TRY(ah_model_load(&session->own_model, options->model_path));
        session->model = session->own_model;
    }
    AH_TRY(ah__model_check(session->model, options->strict));
    const struct ah_model_def *model = ah_model_get(session->model);
    session->info.seq = options->seq ? options->seq : model->max_seq < DEFAULT_SEQ ? model->max_seq : DEFAULT_SEQ;
    return ah_plan_check(options->plan, model->layers);
}

int ah__states_parse(enum ah_dtype *master, enum ah_dtype *moments, enum ah_dtype compute, const char *master_word,
                     const char *moments_word)
{
    if (moments_word)
        AH_TRY(ah_moments_parse(moments, moments_word));
    if (master_word && ah_dtype_parse(master, master_word) != AH_OK)
        return ah__fail_prefix(AH_EINPUT, "master");
    if (*master != AH_F32 && *master != compute)
        return ah__fail(AH_EINPUT, "master: found %s with dtype %s, expected fp32", ah__dtype_word(*master),
                        ah__dtype_word(compute));
    return AH_OK;
}

static int open_all(struct ah_session *session)
{
    const struct ah_session_options *options = &session->options;
    struct ah_session_info *info = &session->info;
    info->budget = (struct ah_budget){.device_bytes = limit_of(options->budget.device_bytes),
                                      .host_bytes = limit_of(options->budget.host_bytes),
                                      .disk_bytes = options->budget.disk_bytes};
    if (!ah__policy_find(options->policy)) /* the planner would check this, but only after everything was timed */
        return ah__fail(AH_EINPUT, "policy: found '%.40s', expected %s", options->policy, ah__policy_names());
    AH_TRY(ah_dtype_parse(&session->dtype, options->dtype));
    info->dtype = ah__dtype_word(session->dtype);
    AH_TRY(ah__states_parse(&session->master, &session->moments, session->dtype, options->master, options->moments));
    AH_TRY(check_together(options));
    AH_TRY(share_batch(session));
    AH_TRY(check_passes(session));
    if (options->hardware)
        AH_TRY(open_hardware(session));
    info->budget.host_bytes /= options->hardware ? info->world_size : session->comm->neighbours;
    info->budget.disk_bytes /= options->hardware ? info->world_size : session->comm->neighbours;
    return open_model(session);
}

int ah_session_open(struct ah_session **out, const struct ah_session_options *options)
{
    struct ah_session *session;
    AH_TRY(ah__new(&session, 1, sizeof *session));
    int status = options_take(&session->options, options);
    bool described = session->options.hardware != NULL;
    session->comm = described ? ah__comm_self() : ah__comm();
    session->info.profile_kept_s = -1;
    session->info.rank = session->comm->rank;
    session->info.world_size = !described                        ? session->comm->world_size
                               : session->options.hardware_ranks ? session->options.hardware_ranks
                                                                 : 1;
    status = ah__comm_agree(session->comm, status == AH_OK ? open_all(session) : status);
    if (status == AH_OK)
        *out = session;
    else
        ah_session_close(session);
    return status;
}

void ah_session_close(struct ah_session *session)
{
    if (!session)
        return;
    ah_profile_free(session->profile);
    ah_dev_close(session->dev);
    ah_partition_free(session->partition);
    ah_graph_free(session->graph);
    ah_hardware_free(session->hardware);
    ah_model_free(session->own_model);
    ah__free(session);
}

/* ---- members of a session; a null session has none --------------------------------------------------------------- */

const struct ah_session_info *ah_session_get(const struct ah_session *session)
{
    return session ? &session->info : NULL;
}

const struct ah_model *ah_session_model(const struct ah_session *session)
{
    return session ? session->model : NULL;
}

const struct ah_graph *ah_session_graph(const struct ah_session *session)
{
    return session ? session->graph : NULL;
}

const struct ah_partition *ah_session_partition(const struct ah_session *session)
{
    return session ? session->partition : NULL;
}

const struct ah_profile *ah_session_profile(const struct ah_session *session)
{
    return session ? session->profile : NULL;
}

const struct ah_plan *ah_session_plan(const struct ah_session *session)
{
    return session && session->plan.switches.layers ? &session->plan : NULL;
}
