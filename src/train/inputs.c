#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/folder.h"
#include "plan/search.h"
#include "sched/sched.h"
#include "train/session.h"
#include "train/weights.h"

/* Of the data, held out for evaluation. Part of the training's meaning: changing it would break resuming bit for
 * bit. */
static const double val_fraction = 0.1;

/* Nothing is dropped here. A training that goes on has been told so; its own config.json asks for none. */
static int check_dropout(const struct ah_session *session)
{
    const struct ah_model_def *def = ah_model_get(session->model);
    const char *path = session->options->model_path;
    if (!def->dropout_key || session->options->no_dropout || session->resumed.folder)
        return AH_OK;
    return ah__fail(AH_EINPUT,
                    "%s: key '%s': found %g, expected 0: training drops nothing; --no-dropout (no_dropout) takes it "
                    "as 0",
                    path && !session->options->model ? path : def->name, def->dropout_key, def->dropout);
}

static int open_model(struct ah_session *session)
{
    const struct ah_train_options *options = session->options;
    const char *path = options->model_path ? options->model_path : session->resumed.folder;
    session->model = options->model;
    if (!options->model) {
        if (!path)
            return ah__fail(AH_EINPUT, "model: found none, expected a JSON file or a folder with config.json");
        AH_TRY(ah_model_load(&session->own_model, path));
        session->model = session->own_model;
    }
    /* A training that goes on has its own, whatever became of the folder it started from. */
    AH_TRY(ah__model_files_load(&session->files, session->resumed.folder ? session->resumed.folder
                                                 : options->model        ? NULL
                                                                         : path));
    if (session->files.outside)
        ah__session_note(session, "%s is a link that leads out of its folder: checkpoints get no copy",
                         session->files.outside);
    AH_TRY(check_dropout(session));
    return session->resumed.folder ? ah__checkpoint_check_model(&session->resumed, session->model) : AH_OK;
}

/* Also where what lies there could not be read. */
static int tell_random(const struct ah_session *session)
{
    const char *folder = session->options->model ? NULL : session->options->model_path;
    char *path = NULL;
    int status = folder ? ah__weights_find(&path, folder) : AH_OK;
    if (path || status == AH_EINPUT)
        ah__session_note(session, "starting from random parameters, as asked, and not from the weights in %s", folder);
    ah__free(path);
    return status == AH_EINPUT ? AH_OK : status;
}

/* What a new training starts from. Weights that lie there are used, or it is said that they are not. */
static int find_weights(struct ah_session *session)
{
    const struct ah_train_options *options = session->options;
    const char *word = options->init;
    bool random = word && strcmp(word, "random") == 0, wanted = word && strcmp(word, "weights") == 0;
    if (word && !random && !wanted)
        return ah__fail(AH_EINPUT, "init: found '%.40s', expected weights or random", word);
    if (word && session->resumed.folder)
        return ah__fail(AH_EINPUT, "init: found %s beside a training to resume, expected nothing: it has its own",
                        word);
    if (session->resumed.folder)
        return AH_OK;
    if (random)
        return tell_random(session);
    if (options->model_path && !options->model)
        AH_TRY(ah__weights_find(&session->weights, options->model_path));
    if (session->weights)
        ah__session_note(session, "starting from the weights in %s", session->weights);
    if (wanted && !session->weights)
        return ah__fail(AH_EINPUT, "init: found no weights beside the model, expected model.safetensors in its folder");
    return AH_OK;
}

/* What a user may not have meant. */
static void tell_data(const struct ah_session *session, const char *path)
{
    const struct ah_tokens_info *info = ah__tokens_info(session->tokens);
    int64_t given = session->settings.seq;
    char bytes[32];
    if (strcmp(info->format, "nanogpt") == 0)
        ah__session_note(session, "%s is read as nanoGPT's 16-bit tokens", path);
    if (info->examples && session->settings.pack)
        ah__session_note(session,
                         "%" PRId64 " examples of prompt and completion, packed into %" PRId64 " sequences; "
                         "the loss is the completions'",
                         info->examples, info->train_windows + (info->held_out ? info->val_windows : 0));
    else if (info->examples)
        ah__session_note(session,
                         "%" PRId64 " examples of prompt and completion, one in each sequence; the loss is "
                         "the completions'",
                         info->examples);
    if (info->cut)
        ah__session_note(session, "%" PRId64 " examples are longer than %" PRId64 " tokens and were cut there",
                         info->cut, given);
    if (info->left_out)
        ah__session_note(session,
                         "%" PRId64 " examples are left out: in %" PRId64 " tokens there is no room for "
                         "anything of their completions",
                         info->left_out, given);
    if (info->memory_bytes)
        ah__session_note(session, "tokens of %" PRId64 " documents take %s of memory", info->documents,
                         ah_size_format(bytes, sizeof bytes, info->memory_bytes));
}

const struct ah_tokens_info *ah__session_data(const struct ah_session *session)
{
    static const struct ah_tokens_info none = {.format = "none"};
    return session->tokens ? ah__tokens_info(session->tokens) : &none;
}

/* A training on the caller's batches has none. */
static int open_data(struct ah_session *session)
{
    const char *path = session->options->data_path ? session->options->data_path : session->resumed.data_path;
    const char *model_path = session->options->model_path ? session->options->model_path : session->resumed.folder;
    if (session->options->own_batches)
        return AH_OK;
    if (!path || !path[0])
        return ah__fail(AH_EINPUT, "data: found none, expected text, JSON lines, a folder of them or a token file");
    enum ah_data_format format;
    AH_TRY(ah__tokenizer_open(&session->tokenizer, model_path));
    AH_TRY(ah__data_format_parse(&format, session->options->data_format));
    const struct ah_tokens_options options = {format, session->settings.pack, session->settings.seq, val_fraction,
                                              session->has_recipe ? &session->recipe.data : NULL};
    AH_TRY(ah__tokens_open_with(&session->tokens, path, session->tokenizer, ah_model_get(session->model)->vocab_size,
                                &options));
    tell_data(session, path);
    return session->resumed.folder ? ah__checkpoint_check_data(&session->resumed, session->tokens, path) : AH_OK;
}

static int resolve_settings(struct ah_session *session)
{
    bool resumed = session->resumed.folder != NULL;
    const struct ah_settings *saved = resumed               ? &session->resumed.settings
                                      : session->has_recipe ? &session->recipe.settings
                                                            : NULL;
    AH_TRY(ah__settings_resolve(&session->settings, session->options, saved, resumed,
                                ah_model_get(session->model)->max_seq));
    if (session->settings.steps < session->resumed.step)
        return ah__fail(AH_EINPUT, "steps: found %" PRId64 ", expected at least the %" PRId64 " steps of %s",
                        session->settings.steps, session->resumed.step, session->resumed.folder);
    return AH_OK;
}

/* The batch is that of all ranks, each of which has an equal part of it; a checkpoint's micro-batches may be too large
 * for that, having been those of fewer ranks. */
static int resolve_ranks(struct ah_session *session)
{
    int64_t batch = session->settings.batch, ranks = session->comm->world_size, size = session->settings.micro_batch;
    session->micro_batch = size;
    if (ranks == 1)
        return AH_OK;
    if (batch % ranks != 0)
        return ah__fail(AH_EINPUT,
                        "batch: found %" PRId64 ", expected a multiple of %" PRId64 ", the ranks: it is "
                        "that of all of them",
                        batch, ranks);
    if (size == AH_MICRO_BATCH_AUTO)
        return AH_OK;
    session->micro_batch = size < batch / ranks ? size : batch / ranks;
    if (batch / ranks % session->micro_batch != 0)
        return ah__fail(AH_EINPUT,
                        "micro_batch: found %" PRId64 ", expected a divisor of %" PRId64 ", the sequences "
                        "of each of %" PRId64 " ranks",
                        size, batch / ranks, ranks);
    return AH_OK;
}

/* The planner knows this too, but it is asked only after everything was timed. */
static int check_policy(const char *policy)
{
    if (policy && !ah__policy_find(policy))
        return ah__fail(AH_EINPUT, "policy: found '%.40s', expected %s", policy, ah__policy_names());
    return AH_OK;
}

/* ---- what it goes on from, or is like ---------------------------------------------------------------------------- */

static int take_recipe(struct ah_session *session, const char *dir, bool again)
{
    AH_TRY(ah__recipe_load(&session->recipe, dir));
    session->has_recipe = true;
    ah__recipe_apply(&session->asked, &session->recipe, again);
    return AH_OK;
}

static int same_place(bool *same, const char *a, const char *b)
{
    *same = strcmp(a, b) == 0;
    return *same ? AH_OK : ah__path_same(same, a, b);
}

/* A training that was to be resumed never completed a checkpoint, so it is started instead: as run.json says, or, where
 * the same command starts and resumes it, as the options say. */
static int start_over(struct ah_session *session)
{
    struct ah_train_options *asked = &session->asked;
    const char *dir = asked->resume_dir;
    bool complete = (asked->model_path || asked->model) && asked->data_path, same = false;
    if (asked->out_dir)
        AH_TRY(same_place(&same, asked->out_dir, dir));
    if (ah__recipe_exists(dir))
        AH_TRY(take_recipe(session, dir, true));
    else if (!complete || !same)
        return ah__fail(AH_EINPUT, "%s; with model and data given, and the same folder as out, one is started there",
                        ah_error());
    if (!asked->out_dir)
        asked->out_dir = dir;
    asked->resume_dir = NULL;
    ah__session_note(session, "%s holds no complete checkpoint yet: starting from the beginning", dir);
    return AH_OK;
}

static int open_resumed(struct ah_session *session)
{
    const char *dir = session->options->resume_dir;
    char *found = NULL;
    int status = ah__folder_find(&found, dir);
    ah__free(found);
    if (status == AH_EINPUT)
        return start_over(session);
    AH_TRY(status);
    AH_TRY(ah__checkpoint_open(&session->resumed, dir, true));
    if (session->resumed.passed_over)
        ah__session_note(session, "%s; going on from step %" PRId64 " instead", session->resumed.passed_over,
                         session->resumed.step);
    return ah__recipe_exists(session->resumed.run_folder) ? take_recipe(session, session->resumed.run_folder, false)
                                                          : AH_OK;
}

static int open_earlier(struct ah_session *session)
{
    const struct ah_train_options *options = session->options;
    if (options->like_dir && options->resume_dir)
        return ah__fail(AH_EINPUT, "like: found %s beside a training to resume, expected one of them",
                        options->like_dir);
    if (options->like_dir)
        return take_recipe(session, options->like_dir, true);
    return options->resume_dir ? open_resumed(session) : AH_OK;
}

int ah__session_open_inputs(struct ah_session *session)
{
    AH_TRY(check_policy(session->options->policy));
    AH_TRY(open_earlier(session));
    AH_TRY(check_policy(session->options->policy));
    AH_TRY(open_model(session));
    AH_TRY(find_weights(session));
    AH_TRY(resolve_settings(session));
    AH_TRY(resolve_ranks(session));
    AH_TRY(open_data(session));
    if (session->comm->rank == 0) /* which writes for all */
        AH_TRY(ah__out_folder_choose(&session->out, session->options->out_dir, session->resumed.run_folder));
    session->loop = (struct ah_loop){
        .settings = &session->settings,
        .options = session->options,
        .tokens = session->tokens,
        .start = session->resumed.step,
        .uniform_loss = log((double)ah_model_get(session->model)->vocab_size),
        .loss = session->resumed.folder ? session->resumed.loss : NAN,
    };
    return AH_OK;
}

static const char *device_of(const struct ah_session *session)
{
    return session->options->device ? session->options->device : "auto";
}

/* What is left open is 0. */
static struct ah_budget budget_of(const struct ah_session *session)
{
    struct ah_budget budget = session->options->budget;
    if (budget.device_bytes == AH_NO_LIMIT)
        budget.device_bytes = 0;
    if (budget.host_bytes == AH_NO_LIMIT)
        budget.host_bytes = 0;
    budget.host_bytes /= session->comm->neighbours; /* it is the machine's */
    return budget;
}

/* The device is open. */
static void take_device(struct ah_session *session)
{
    session->budget = budget_of(session);
    if (!session->budget.device_bytes)
        session->budget.device_bytes = ah__dev_region_bytes(session->dev);
    ah_dev_get(&session->device, session->dev);
}

int ah__session_open_device(struct ah_session *session)
{
    AH_TRY(ah_dev_open(&session->dev, device_of(session), &session->options->dev));
    take_device(session);
    return AH_OK;
}

/* With random delays times mean nothing to anybody else. */
static struct ah_profile_options profile_options(const struct ah_session *session)
{
    const struct ah_train_options *options = session->options;
    return (struct ah_profile_options){.cache = options->dev.jitter_seed ? NULL : options->profile.cache,
                                       .renew = options->profile.renew,
                                       .stop = options->stop};
}

int ah__session_profile(struct ah_session *session)
{
    const char *path = session->options->profile_path;
    struct ah_dev_info info;
    const struct ah_profile_options how = profile_options(session);
    session->profile_kept_s = -1;
    if (!path)
        return ah_profile_measure_with(&session->profile, &session->profile_kept_s, session->partition, session->dev,
                                       &how);
    AH_TRY(ah__profile_fits(session->partition, session->dev));
    AH_TRY(ah_profile_load(&session->profile, path));
    session->dev->ops->info(session->dev, &info);
    if (session->profile->device_signature != info.signature)
        return ah__fail(AH_ESTALE,
                        "%s: key 'device_signature': found %016" PRIx64 " (%s), expected %016" PRIx64
                        ", this device with these threads and this link",
                        path, session->profile->device_signature, session->profile->device, info.signature);
    return AH_OK;
}

static const char *policy_of(const struct ah_session *session)
{
    return session->options->policy ? session->options->policy : "autohete";
}

struct ah_step_options ah__session_step(const struct ah_session *session)
{
    const struct ah_settings *settings = &session->settings;
    struct ah_step_options step = {.clips = settings->clip > 0, .world_size = session->comm->world_size};
    if (settings->micro_batch != AH_MICRO_BATCH_AUTO)
        step.micro_batches = (int)(settings->batch / session->comm->world_size / session->micro_batch);
    return step;
}

static struct ah_micro_batch_options micro_batch_options(const struct ah_session *session)
{
    return (struct ah_micro_batch_options){
        .model = session->model,
        .batch = session->settings.batch / session->comm->world_size,
        .seq = session->settings.seq,
        .compute = session->settings.dtype,
        .packed = session->settings.pack,
        .step = ah__session_step(session),
        .dev = session->dev,
        .budget = session->budget,
        .plan = session->options->plan,
        .policy = policy_of(session),
        .profile = profile_options(session),
    };
}

/* After a refused budget, with its message. */
static int advise(const struct ah_session *session)
{
    struct ah_micro_batch_options smaller = micro_batch_options(session);
    bool fixed = session->resumed.folder != NULL; /* what a checkpoint says stays */
    return fixed ? AH_EBUDGET : ah_micro_batch_advise(&smaller, session->micro_batch);
}

/* The plan of the training that is resumed, if it is of the same step. layers 0: none. */
static int plan_before(struct ah_plan *before, const struct ah_session *session)
{
    char *path;
    before->switches.layers = 0;
    if (!session->resumed.folder)
        return AH_OK;
    AH_TRY(ah__sprintf(&path, "%s/plan.json", session->resumed.run_folder));
    if (ah__plan_read(before, path) != AH_OK || ah__plan_check(before, session->partition) != AH_OK)
        before->switches.layers = 0;
    ah__free(path);
    return AH_OK;
}

static int plan_make(struct ah_session *session)
{
    struct ah_plan before;
    AH_TRY(plan_before(&before, session));
    const struct ah_search_options search = {.warm_start = before.switches.layers ? &before : NULL};
    int status = ah__plan_make(&session->plan, session->options->plan, session->partition, session->profile,
                               &session->budget, policy_of(session), &search);
    return status == AH_EBUDGET ? advise(session) : status;
}

/* A plan is plain data, and all ranks are of one version. */
int ah__session_plan(struct ah_session *session)
{
    struct ah_comm *comm = session->comm;
    AH_TRY(ah__comm_agree(comm, comm->rank == 0 ? plan_make(session) : AH_OK));
    return comm->ops->move(comm, &session->plan, sizeof session->plan, 0, AH_ALL_RANKS);
}

int ah__session_choose(struct ah_session *session)
{
    struct ah_micro_batch_options options = micro_batch_options(session);
    struct ah_micro_batch chosen;
    if (session->options->profile_path)
        return ah__fail(AH_EINPUT, "micro_batch: found auto beside a saved profile, expected a size: a profile is of "
                                   "one");
    AH_TRY(ah_micro_batch_choose(&chosen, &options));
    session->settings.micro_batch = session->micro_batch = chosen.size;
    session->graph = chosen.graph;
    session->partition = chosen.partition;
    session->profile = chosen.profile;
    session->profile_kept_s = chosen.profile_kept_s;
    session->plan = chosen.plan;
    return AH_OK;
}

void ah__session_summary(struct ah_train_summary *out, const struct ah_session *session)
{
    const struct ah_settings *settings = &session->settings;
    const struct ah_tokens_info *data = ah__session_data(session);
    const struct ah_model_def *model = ah_model_get(session->model);
    double windows = (double)(data->train_windows ? data->train_windows : 1);
    *out = (struct ah_train_summary){
        .model = model->name,
        .layers = session->partition->layers,
        .params = ah__partition_params(session->partition),
        .vocab_size = model->vocab_size,
        .tokens = data->tokens,
        .train_tokens = data->train_tokens,
        .val_tokens = data->val_tokens,
        .text = data->text,
        .held_out = data->held_out,
        .batch = settings->batch,
        .seq = settings->seq,
        .first_step = session->resumed.step + 1,
        .steps = settings->steps,
        .epochs = data->train_windows ? (double)settings->steps * (double)settings->batch / windows : NAN,
        .micro_batch = session->micro_batch,
        .micro_batches = ah__micro_batches(session->partition),
        .profile_kept_s = session->profile_kept_s,
        .profile_given = session->options->profile_path != NULL,
    };
}

int ah__session_predict(struct ah_session *session)
{
    enum { PREDICTED_ITERATIONS = 6 };
    return ah_plan_simulate(&session->predicted, &session->plan, session->partition, session->profile,
                            PREDICTED_ITERATIONS);
}

/* The same bits come from the same arithmetic; another is as good, but the caller should know. */
static void tell_arithmetic(const struct ah_session *session)
{
    struct ah_dev_info info;
    session->dev->ops->info(session->dev, &info);
    if (strcmp(info.arithmetic, session->resumed.arithmetic) != 0)
        ah__session_note(session,
                         "this device multiplies by %s, the checkpoint's by %s: from here on the bits may "
                         "differ from a training that was not moved",
                         info.arithmetic, session->resumed.arithmetic);
}

/* Of a device that has more than one way: which one programs take is settled by now. */
static void tell_attention(const struct ah_session *session)
{
    struct ah_dev_info info;
    session->dev->ops->info(session->dev, &info);
    if (info.attention[0])
        ah__session_note(session, "attention: %s", info.attention);
}

int ah__session_load(struct ah_session *session)
{
    tell_attention(session);
    if (session->resumed.folder)
        tell_arithmetic(session);
    if (session->resumed.folder)
        return ah__checkpoint_load(&session->resumed, session->partition, session->run, true);
    if (!session->weights)
        return ah__run_init(session->run, session->settings.seed);
    char note[AH_WEIGHTS_NOTE_SIZE];
    AH_TRY(ah__weights_load(note, session->weights, session->partition, session->run));
    if (note[0])
        ah__session_note(session, "%s", note);
    return AH_OK;
}
