/* The stages of a session, each made once, in order. */
#include <inttypes.h>

#include "base/format.h"
#include "dev/host/disk.h"
#include "plan/search.h"
#include "profile/drive.h"
#include "session/session.h"

/* If steps are off their prediction by more than this share, and there are enough of them, the profile no longer
 * fits. */
static const double off_most = 0.2;
enum { STEPS_LEAST = 10 };
static const int64_t all_least_ns = 1000000000;

/* Returns the options of a step apart from its model. */
static struct ah_step_options step_options(const struct ah_session *session)
{
    return (struct ah_step_options){.clips = session->options.clip > 0,
                                    .micro_batches = session->info.micro_batches,
                                    .world_size = session->info.world_size,
                                    .master = session->master,
                                    .moments = session->moments};
}

static int make_partition(struct ah_session *session)
{
    const struct ah_session_info *info = &session->info;
    const struct ah_record_options record = {.batch = info->micro_batch,
                                             .seq = info->seq,
                                             .compute = session->dtype,
                                             .packed = session->options.pack,
                                             .tuning = session->options.tuning};
    const struct ah_step_options step = step_options(session);
    AH_TRY(ah_model_record(&session->graph, session->model, &record));
    return ah_partition_new(&session->partition, session->graph, &step);
}

/* Takes what is free on the disk as the plan's space there, unless that is given. A profile may know an older
 * number. */
static int find_space(struct ah_session *session)
{
    int64_t *bytes = &session->info.budget.disk_bytes;
    const char *folders = session->options.dev.disk;
    if (*bytes || !folders || session->hardware)
        return AH_OK;
    AH_TRY(ah__disk_free_bytes(bytes, folders));
    *bytes /= session->comm->neighbours;
    return *bytes ? AH_OK : ah__fail(AH_EINPUT, "%s: found no free space, expected some for blocks on disk", folders);
}

static int open_device(struct ah_session *session)
{
    struct ah_session_info *info = &session->info;
    AH_TRY(ah_dev_open(&session->dev, session->options.device, &session->options.dev));
    ah_dev_get(&info->device, session->dev);
    info->has_device = true;
    if (!info->budget.device_bytes)
        info->budget.device_bytes = ah__dev_region_bytes(session->dev);
    return find_space(session);
}

static int load_profile(struct ah_session *session)
{
    const char *path = session->options.profile_path;
    struct ah_dev_info device;
    AH_TRY(ah_profile_load(&session->profile, path));
    if (session->options.dev.disk && !session->profile->drive.read_bytes_per_s &&
        ah_plan_is_open(session->options.plan))
        return ah__fail(AH_EINPUT, "%s: key 'drive': found nothing, expected a profile made with --disk", path);
    if (!session->dev)
        return AH_OK;
    AH_TRY(ah__profile_fits(session->partition, session->dev));
    session->dev->ops->info(session->dev, &device);
    if (session->profile->device_signature != device.signature)
        return ah__fail(AH_ESTALE,
                        "%s: key 'device_signature': found %016" PRIx64 " (%s), expected %016" PRIx64
                        ", this device with these threads and this link",
                        path, session->profile->device_signature, session->profile->device, device.signature);
    return AH_OK;
}

static int get_profile(struct ah_session *session)
{
    const struct ah_session_options *options = &session->options;
    if (session->hardware) {
        const struct ah_estimate_options how = {session->info.world_size, options->optimizer, options->dev.disk};
        return ah_profile_estimate(&session->profile, session->partition, session->hardware, &how);
    }
    if (options->profile_path)
        return load_profile(session);
    return ah_profile_measure(&session->profile, &session->info.profile_kept_s, session->partition, session->dev,
                              &options->profile);
}

static int make_profile(struct ah_session *session)
{
    struct ah_budget *budget = &session->info.budget;
    AH_TRY(get_profile(session));
    if (session->hardware && !budget->disk_bytes) /* of the drive that is described */
        budget->disk_bytes = session->profile->drive.free_bytes / session->comm->neighbours;
    return find_space(session);
}

struct ah_micro_batch_options ah__session_step(const struct ah_session *session)
{
    const struct ah_session_options *options = &session->options;
    return (struct ah_micro_batch_options){
        .model = session->model,
        .batch = session->info.rank_batch,
        .seq = session->info.seq,
        .compute = session->dtype,
        .packed = options->pack,
        .step = step_options(session),
        .tuning = options->tuning,
        .dev = session->dev,
        .hardware = session->hardware,
        .budget = session->info.budget,
        .plan = options->plan,
        .policy = options->policy,
        .effort = options->effort,
        .profile = options->profile,
        .disk = options->dev.disk != NULL,
    };
}

/* Searches a plan that may keep blocks on a usual drive, of which `profile` is a copy. Text is "" if there is none. */
static int search_with_drive(char *text, size_t size, const struct ah_session *session, struct ah_profile *profile)
{
    static const char usual[] = "nvme-pcie4";
    const struct ah_search_options search = {.effort = session->options.effort};
    const int ranks = session->hardware ? session->info.world_size : session->comm->neighbours;
    struct ah_budget budget = session->info.budget;
    struct ah_plan plan;
    char space[32];
    if (ah__drive_load(&profile->drive, usual, ranks) != AH_OK) /* nothing is installed */
        return AH_OK;
    budget.disk_bytes = profile->drive.free_bytes;
    int status = ah__plan_make(&plan, session->options.plan, session->partition, profile, &budget,
                               session->options.policy, &search);
    if (status != AH_OK)
        return status == AH_EBUDGET || status == AH_EINPUT ? AH_OK : status;
    double step_tokens = (double)(session->info.rank_batch * session->info.world_size * session->info.seq);
    ah__snprintf(text, size,
                 "; or --disk %s with %s free (%.0f tokens/s on a drive that reads %.3g and writes %.3g GB/s)",
                 session->hardware ? usual : "DIR", ah_size_format(space, sizeof space, ranks * plan.disk_peak_bytes),
                 step_tokens / ((double)plan.step_ns / 1e9), ranks * (double)profile->drive.read_bytes_per_s / 1e9,
                 ranks * (double)profile->drive.write_bytes_per_s / 1e9);
    return AH_OK;
}

/* Writes what a disk would make of a refused budget; "": nothing, or one was given. */
static int advise_disk(char *text, size_t size, const struct ah_session *session)
{
    struct ah_profile *profile;
    *text = 0;
    if (!session->profile || session->options.dev.disk || !ah_plan_is_open(session->options.plan))
        return AH_OK;
    AH_TRY(ah__new(&profile, 1, sizeof *profile));
    *profile = *session->profile;
    int status = search_with_drive(text, size, session, profile);
    ah__free(profile);
    return status;
}

/* Fails with the message of a refused budget, and with advice on options that fit. */
static int advise(const struct ah_session *session)
{
    char refusal[512], speed[48] = "", disk[160];
    struct ah_advice advice;
    snprintf(refusal, sizeof refusal, "%s", ah_error());
    AH_TRY(ah_session_advise(&advice, session, &session->info.budget, NULL, true));
    AH_TRY(advise_disk(disk, sizeof disk, session));
    if (!*advice.change)
        return ah__fail(AH_EBUDGET, "%s%s", refusal, disk);
    if (advice.tokens_per_s > 0)
        ah__snprintf(speed, sizeof speed, " (%.0f tokens/s)", advice.tokens_per_s);
    return ah__fail(AH_EBUDGET, "%s; %s would do within this budget%s%s", refusal, advice.change, speed, disk);
}

/* A plan that is given may keep blocks on disk where no folder is. */
static int disk_check(const struct ah_session *session)
{
    int blocks = session->plan.switches.disk_blocks;
    if (blocks == 0 || session->options.dev.disk)
        return AH_OK;
    return ah__fail(AH_EINPUT, "--plan: found disk=%d, expected --disk with a folder for them", blocks);
}

static int choose_micro_batch(struct ah_session *session)
{
    const struct ah_micro_batch_options options = ah__session_step(session);
    struct ah_micro_batch chosen;
    int status = ah_micro_batch_choose(&chosen, &options);
    if (status == AH_EBUDGET)
        return advise(session);
    AH_TRY(status);
    session->info.micro_batch = chosen.size;
    session->info.micro_batches = (int)(session->info.rank_batch / chosen.size);
    session->info.profile_kept_s = chosen.profile_kept_s;
    session->graph = chosen.graph;
    session->partition = chosen.partition;
    session->profile = chosen.profile;
    session->plan = chosen.plan;
    return disk_check(session);
}

static int make_plan(struct ah_session *session)
{
    const struct ah_search_options search = {.warm_start = session->options.warm_start,
                                             .effort = session->options.effort};
    int status = ah__plan_make(&session->plan, session->options.plan, session->partition, session->profile,
                               &session->info.budget, session->options.policy, &search);
    if (status == AH_EBUDGET && (session->dev || session->hardware) && !session->options.fixed_micro_batch)
        return advise(session);
    return status == AH_OK ? disk_check(session) : status;
}

/* Makes the plan on rank 0 and sends it to all ranks: it is plain data, and all ranks have the same version. */
static int share_plan(struct ah_session *session)
{
    struct ah_comm *comm = session->comm;
    AH_TRY(ah__comm_agree(comm, comm->rank == 0 ? make_plan(session) : AH_OK));
    return comm->ops->move(comm, &session->plan, sizeof session->plan, 0, AH_ALL_RANKS);
}

/* ---- stages ------------------------------------------------------------------------------------------------------ */

static bool measures(const struct ah_session *session)
{
    return !session->hardware && !session->options.profile_path;
}

static int step(struct ah_session *session, bool missing, int (*make)(struct ah_session *session))
{
    return missing ? ah__comm_agree(session->comm, make(session)) : AH_OK;
}

int ah_session_reach(struct ah_session *session, enum ah_session_stage stage)
{
    if (!session)
        return ah__fail(AH_EINPUT, "session: found none, expected one that is open");
    bool auto_size = session->info.micro_batch_chosen;
    bool wants_device = stage == AH_SESSION_DEVICE || (stage > AH_SESSION_DEVICE && measures(session));
    if (stage >= AH_SESSION_PARTITION)
        AH_TRY(step(session, !session->partition && !auto_size, make_partition));
    AH_TRY(step(session, wants_device && !session->dev && !session->hardware, open_device));
    if (stage < AH_SESSION_PROFILE)
        return AH_OK;
    AH_TRY(step(session, !session->profile, auto_size ? choose_micro_batch : make_profile));
    return stage < AH_SESSION_PLAN || session->plan.switches.layers ? AH_OK : share_plan(session);
}

/* ---- afterwards -------------------------------------------------------------------------------------------------- */

static bool is_off(const struct ah_session *session, int64_t step_ns, int64_t steps)
{
    double measured = (double)step_ns, predicted = (double)session->plan.step_ns;
    bool enough = steps >= STEPS_LEAST && step_ns >= all_least_ns / steps;
    return enough && (predicted > (1 + off_most) * measured || predicted < (1 - off_most) * measured);
}

int ah_session_measured(bool *dropped, struct ah_session *session, int64_t step_ns, int64_t steps)
{
    if (!session)
        return ah__fail(AH_EINPUT, "session: found none, expected one that is open");
    bool off = measures(session) && is_off(session, step_ns, steps); /* rank 0's clock counts */
    *dropped = false;
    AH_TRY(session->comm->ops->move(session->comm, &off, sizeof off, 0, AH_ALL_RANKS));
    return off ? ah__profile_drop(dropped, session->partition, session->dev, &session->options.profile) : AH_OK;
}
