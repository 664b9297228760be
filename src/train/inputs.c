#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/stack.h"
#include "model/model.h"
#include "plan/search.h"
#include "sched/sched.h"
#include "source/folder.h"
#include "source/source.h"
#include "train/training.h"
#include "train/weights.h"

/* Refuses a model that asks for dropout, which is not done here, unless no_dropout is set. A resumed training was
 * checked when it started; its own config.json asks for none. */
static int check_dropout(const struct ah_training *training)
{
    const struct ah_model_def *def = ah_model_get(training->model);
    const char *path = training->options->model_path;
    if (!def->dropout_key || training->options->no_dropout || training->resumed.folder)
        return AH_OK;
    return ah__fail(AH_EINPUT,
                    "%s: key '%s': found %g, expected 0: training drops nothing; --no-dropout (no_dropout) takes it "
                    "as 0",
                    path && !training->options->model ? path : def->name, def->dropout_key, def->dropout);
}

static int load_model(struct ah_training *training)
{
    const char *path = training->options->model_path;
    training->model = training->options->model;
    if (training->model)
        return AH_OK;
    if (!path && !training->resumed.folder)
        return ah__fail(AH_EINPUT, "model: found none, expected a JSON file or a folder with config.json");
    int status = path ? ah_model_load(&training->own_model, path)
                      : ah_checkpoint_model(&training->own_model, training->resumed.folder);
    training->model = training->own_model;
    return status;
}

static int open_model(struct ah_training *training)
{
    const struct ah_train_options *options = training->options;
    const char *path = options->model_path;
    AH_TRY(load_model(training));
    /* A resumed training has its own files, whatever became of the folder it started from. */
    AH_TRY(ah__model_files_load(&training->files, training->resumed.folder ? training->resumed.folder
                                                  : options->model         ? NULL
                                                                           : path));
    AH_TRY(ah__training_open_adapter(training));
    if (options->chat_template && !options->model)
        AH_TRY(ah__model_files_set(&training->files, "chat_template.jinja", options->chat_template));
    if (training->files.outside)
        ah__training_note(training, "%s is a link that leads out of its folder: checkpoints get no copy",
                          training->files.outside);
    AH_TRY(ah__model_check(training->model, options->strict));
    if (ah_model_note(training->model))
        ah__training_note(training, "%s", ah_model_note(training->model));
    AH_TRY(check_dropout(training));
    return training->resumed.folder ? ah__checkpoint_check_model(&training->resumed, training->model) : AH_OK;
}

/* Notes that weights beside the model are not used, also if they could not be read. */
static int tell_random(const struct ah_training *training, bool asked)
{
    const char *model_path = training->options->model ? NULL : training->options->model_path;
    char *path = NULL, *place = NULL;
    int status = model_path ? ah__source_place(&place, model_path) : AH_OK;
    if (status == AH_OK && place)
        status = ah__source_weights(&path, place);
    bool there = path || status == AH_EINPUT;
    if (there && asked)
        ah__training_note(training, "starting from random parameters, as asked, and not from the weights in %s", place);
    else if (there)
        ah__training_note(
            training,
            "starting from random parameters, since %s is a configuration alone, and not from the weights "
            "beside it: --init weights (init), or the folder as the model, does",
            model_path);
    ah__free(path);
    ah__free(place);
    return status == AH_EINPUT ? AH_OK : status;
}

/* Finds the weights that a checkpoint's adapters adapt; the checkpoint itself does not have them. */
static int find_base(struct ah_training *training)
{
    const char *base = training->options->model_path ? training->options->model_path : training->resumed.base;
    if (!training->resumed.settings.tuning.lora_rank)
        return AH_OK;
    uint64_t signature;
    AH_TRY(base ? ah__source_weights(&training->weights, base) : AH_OK);
    if (!training->weights)
        return ah__fail(AH_EINPUT,
                        "%s: found no weights, expected those that the adapters of %s were trained on; --model FOLDER "
                        "(model_path) says where they are",
                        base ? base : "model", training->resumed.folder);
    AH_TRY(ah__weights_signature(&signature, training->weights));
    if (signature != training->resumed.base_signature)
        return ah__fail(AH_ESTALE, "%s: found other weights than those that the adapters of %s were trained on",
                        training->weights, training->resumed.folder);
    return AH_OK;
}

/* Refuses adapters with random parameters: adapters change what a model can already do. */
static int check_adapted(const struct ah_training *training)
{
    if (!training->settings.tuning.lora_rank || training->weights)
        return AH_OK;
    return ah__fail(AH_EINPUT, "lora_rank: found %d beside random parameters, expected a model with weights to adapt",
                    training->settings.tuning.lora_rank);
}

/* Finds the weights that a new training starts from. Weights beside the model are used, or a note says that they are
 * not. */
static int find_weights(struct ah_training *training)
{
    const struct ah_train_options *options = training->options;
    const char *word = options->init;
    bool random = word && strcmp(word, "random") == 0, wanted = word && strcmp(word, "weights") == 0;
    if (word && !random && !wanted)
        return ah__fail(AH_EINPUT, "init: found '%.40s', expected weights or random", word);
    if (word && training->resumed.folder)
        return ah__fail(AH_EINPUT, "init: found %s beside a training to resume, expected nothing: it has its own",
                        word);
    if (training->resumed.folder)
        return find_base(training);
    bool named = options->model_path && !options->model;
    if (random || (named && !wanted && ah__source_kind(options->model_path) == AH_SOURCE_CONFIG))
        return tell_random(training, random);
    if (named)
        AH_TRY(ah__source_weights(&training->weights, options->model_path));
    if (training->weights)
        ah__training_note(training, "starting from the weights in %s", training->weights);
    if (wanted && !training->weights)
        return ah__fail(AH_EINPUT, "init: found no weights beside the model, expected model.safetensors in its folder");
    return AH_OK;
}

static int resolve_settings(struct ah_training *training)
{
    bool resumed = training->resumed.folder != NULL;
    const struct ah_settings *saved = resumed                    ? &training->resumed.settings
                                      : training->has_run_config ? &training->run_config.settings
                                                                 : NULL;
    AH_TRY(ah__settings_resolve(&training->settings, training->options, saved, resumed,
                                ah_model_get(training->model)->max_seq));
    if (training->adapter) /* only the targets that the model has */
        snprintf(training->settings.tuning.lora_targets, AH_TUNING_TEXT, "%s", training->adapted.config.targets);
    if (training->settings.steps < training->resumed.step)
        return ah__fail(AH_EINPUT, "steps: found %" PRId64 ", expected at least the %" PRId64 " steps of %s",
                        training->settings.steps, training->resumed.step, training->resumed.folder);
    return AH_OK;
}

/* Sets steps from the epochs that were asked for, once the data are known. */
static int resolve_epochs(struct ah_training *training)
{
    double epochs = training->asked.epochs;
    if (isnan(epochs))
        return AH_OK;
    if (!(epochs > 0 && epochs <= 1e6))
        return ah__fail(AH_EINPUT, "epochs: found %.10g, expected more than 0, at most 1e6", epochs);
    if (training->asked.steps != AH_UNSET)
        return ah__fail(AH_EINPUT, "epochs: found %.10g beside %" PRId64 " steps, expected one of them", epochs,
                        training->asked.steps);
    if (!training->data)
        return ah__fail(AH_EINPUT, "epochs: found %.10g with batches of the caller's, expected steps", epochs);
    double windows = (double)ah__training_data(training)->train_windows;
    training->asked.steps = (int64_t)ceil(epochs * windows / (double)training->settings.batch);
    return resolve_settings(training);
}

/* Sets one rank's micro-batch. The batch is of all ranks, and each has an equal part of it. A checkpoint's micro-batch
 * may be larger than that part, if there were fewer ranks. */
static int resolve_ranks(struct ah_training *training)
{
    int64_t batch = training->settings.batch, ranks = training->comm->world_size, size = training->settings.micro_batch;
    training->micro_batch = size;
    if (ranks == 1)
        return AH_OK;
    if (batch % ranks != 0)
        return ah__fail(AH_EINPUT,
                        "batch: found %" PRId64 ", expected a multiple of %" PRId64 ", the ranks: it is "
                        "that of all of them",
                        batch, ranks);
    if (size == AH_MICRO_BATCH_AUTO)
        return AH_OK;
    training->micro_batch = size < batch / ranks ? size : batch / ranks;
    if (batch / ranks % training->micro_batch != 0)
        return ah__fail(AH_EINPUT,
                        "micro_batch: found %" PRId64 ", expected a divisor of %" PRId64 ", the sequences "
                        "of each of %" PRId64 " ranks",
                        size, batch / ranks, ranks);
    return AH_OK;
}

/* Checks the policy's name here, since the planner would check it only after everything was timed. */
static int check_policy(const char *policy)
{
    if (policy && !ah__policy_find(policy))
        return ah__fail(AH_EINPUT, "policy: found '%.40s', expected %s", policy, ah__policy_names());
    return AH_OK;
}

/* ---- the training that is resumed or copied ---------------------------------------------------------------------- */

static int take_run_config(struct ah_training *training, const char *dir, bool again)
{
    AH_TRY(ah__run_config_load(&training->run_config, dir));
    training->has_run_config = true;
    ah__run_config_apply(&training->asked, &training->run_config, again);
    return AH_OK;
}

static int same_place(bool *same, const char *a, const char *b)
{
    *same = strcmp(a, b) == 0;
    return *same ? AH_OK : ah__path_same(same, a, b);
}

/* Starts a training that was to be resumed but never completed a checkpoint: as run.json says, or, if the same command
 * starts and resumes it, as the options say. */
static int start_over(struct ah_training *training)
{
    struct ah_train_options *asked = &training->asked;
    const char *dir = asked->resume_dir;
    bool complete = (asked->model_path || asked->model) && asked->data_path, same = false;
    if (asked->out_dir)
        AH_TRY(same_place(&same, asked->out_dir, dir));
    if (ah__run_config_exists(dir))
        AH_TRY(take_run_config(training, dir, true));
    else if (!complete || !same)
        return ah__fail(AH_EINPUT, "%s; with model and data given, and the same folder as out, one is started there",
                        ah_error());
    if (!asked->out_dir)
        asked->out_dir = dir;
    asked->resume_dir = NULL;
    ah__training_note(training, "%s holds no complete checkpoint yet: starting from the beginning", dir);
    return AH_OK;
}

static int open_resumed(struct ah_training *training)
{
    const char *dir = training->options->resume_dir;
    char *found = NULL;
    int status = ah__folder_find(&found, dir);
    ah__free(found);
    if (status == AH_EINPUT)
        return start_over(training);
    AH_TRY(status);
    AH_TRY(ah__checkpoint_open(&training->resumed, dir, true));
    if (training->resumed.passed_over)
        ah__training_note(training, "%s; going on from step %" PRId64 " instead", training->resumed.passed_over,
                          training->resumed.step);
    return ah__run_config_exists(training->resumed.run_folder)
               ? take_run_config(training, training->resumed.run_folder, false)
               : AH_OK;
}

static int open_earlier(struct ah_training *training)
{
    const struct ah_train_options *options = training->options;
    if (options->like_dir && options->resume_dir)
        return ah__fail(AH_EINPUT, "like: found %s beside a training to resume, expected one of them",
                        options->like_dir);
    if (options->like_dir)
        return take_run_config(training, options->like_dir, true);
    return options->resume_dir ? open_resumed(training) : AH_OK;
}

static void note_converted(struct ah_training *training, const char *what, enum ah_dtype from, enum ah_dtype to)
{
    if (training->resumed.folder && from != to)
        ah__training_note(training, "%s of the checkpoint are %s and become %s", what, ah__dtype_word(from),
                          ah__dtype_word(to));
}

int ah__training_open_inputs(struct ah_training *training)
{
    AH_TRY(check_policy(training->options->policy));
    AH_TRY(open_earlier(training));
    AH_TRY(check_policy(training->options->policy));
    AH_TRY(open_model(training));
    AH_TRY(find_weights(training));
    AH_TRY(resolve_settings(training));
    note_converted(training, "masters", training->resumed.settings.master, training->settings.master);
    note_converted(training, "moments", training->resumed.settings.moments, training->settings.moments);
    AH_TRY(check_adapted(training));
    AH_TRY(ah__training_tell_base(training));
    AH_TRY(resolve_ranks(training));
    AH_TRY(ah__training_open_data(training));
    AH_TRY(resolve_epochs(training));
    if (training->comm->rank == 0) { /* rank 0 writes for all ranks */
        AH_TRY(ah__out_folder_choose(&training->out, training->options->out_dir, training->resumed.run_folder));
        AH_TRY(ah__out_folder_apart(&training->out, training->options->data_path, training->options->chat_template));
    }
    training->loop = (struct ah_loop){
        .settings = &training->settings,
        .options = training->options,
        .data = training->data,
        .start = training->resumed.step,
        .uniform_loss = log((double)ah_model_get(training->model)->vocab_size),
        .loss = training->resumed.folder ? training->resumed.loss : NAN,
    };
    return AH_OK;
}

/* Returns the options of a session with these settings. The micro-batch of a checkpoint is fixed. */
static struct ah_session_options session_options(const struct ah_training *training)
{
    const struct ah_train_options *options = training->options;
    const struct ah_settings *settings = &training->settings;
    return (struct ah_session_options){
        .size = sizeof(struct ah_session_options),
        .model = training->model,
        .batch = settings->batch,
        .seq = settings->seq,
        .micro_batch = training->micro_batch,
        .fixed_micro_batch = training->resumed.folder != NULL,
        .clip = settings->clip,
        .pack = settings->pack,
        .dtype = ah__dtype_word(settings->dtype),
        .master = ah__dtype_word(settings->master),
        .moments = ah__dtype_word(settings->moments),
        .tuning = ah__tuning_view(&settings->tuning),
        .device = options->device,
        .dev = options->dev,
        .budget = options->budget,
        .plan = options->plan,
        .policy = options->policy,
        .effort = options->effort,
        .profile_path = options->profile_path,
        .profile = {.cache = options->profile.cache, .renew = options->profile.renew, .stop = options->stop},
    };
}

int ah__training_open_device(struct ah_training *training)
{
    const struct ah_session_options options = session_options(training);
    AH_TRY(ah_session_open(&training->session, &options));
    return ah_session_reach(training->session, AH_SESSION_DEVICE);
}

/* Reads the plan of the training that is resumed, if it is of the same step; layers 0: there is none. */
static int plan_before(struct ah_plan *before, const struct ah_training *training)
{
    char *path;
    before->switches.layers = 0;
    if (!training->resumed.folder)
        return AH_OK;
    AH_TRY(ah__sprintf(&path, "%s/plan.json", training->resumed.run_folder));
    if (ah__plan_read(before, path) != AH_OK || ah__plan_check(before, training->session->partition) != AH_OK)
        before->switches.layers = 0;
    ah__free(path);
    return AH_OK;
}

/* Notes that experts stay as they are beside adapters of other layers. */
static void note_experts(const struct ah_training *training)
{
    const struct ah_partition *partition = training->session->partition;
    bool experts = false, adapted = false, fused = false;
    for (int p = 0; p < partition->param_count && training->settings.tuning.lora_rank; p++) {
        bool stack = partition->params[p].shape.rank == 3;
        experts |= stack;
        adapted |= stack && partition->params[p].adapter;
        fused |= stack && partition->params[p].adapter && !ah__stack_is(partition->params[p].name);
    }
    if (fused)
        ah__training_note(training,
                          "the experts are fused in files, and so are their adapters, which PEFT cannot load");
    if (experts && !adapted)
        ah__training_note(training, "experts and their routers get no adapters and stay as they are");
}

int ah__training_plan(struct ah_training *training)
{
    struct ah_session *session = training->session;
    struct ah_plan before;
    AH_TRY(ah_session_reach(session, AH_SESSION_PROFILE));
    if (ah_partition_note(session->partition))
        ah__training_note(training, "%s", ah_partition_note(session->partition));
    note_experts(training);
    AH_TRY(plan_before(&before, training));
    session->options.warm_start = before.switches.layers ? &before : NULL;
    int status = ah_session_reach(session, AH_SESSION_PLAN);
    session->options.warm_start = NULL;
    AH_TRY(status);
    training->micro_batch = session->info.micro_batch;
    if (training->settings.micro_batch == AH_MICRO_BATCH_AUTO)
        training->settings.micro_batch = training->micro_batch;
    return AH_OK;
}

/* Returns the share of padding in the samples of all sources. */
static double padding(const struct ah_training *training)
{
    double share = 0;
    for (size_t i = 0; training->data && i < ah__mixture_count(training->data); i++) {
        const struct ah_mixture_source *source = ah__mixture_source(training->data, i);
        const struct ah_tokens_info *info = ah__tokens_info(source->tokens);
        double filled = (double)info->train_filled / ((double)info->train_windows * (double)info->seq);
        share += (1 - filled) * (double)source->slots / (double)ah__mixture_cycle(training->data);
    }
    return share;
}

void ah__training_summary(struct ah_train_summary *out, const struct ah_training *training)
{
    const struct ah_settings *settings = &training->settings;
    const struct ah_tokens_info *data = ah__training_data(training);
    const struct ah_model_def *model = ah_model_get(training->model);
    double windows = (double)(data->train_windows ? data->train_windows : 1);
    *out = (struct ah_train_summary){
        .model = model->name,
        .layers = training->session->partition->layers,
        .params = ah__partition_params(training->session->partition),
        .trained = ah__partition_trained(training->session->partition),
        .vocab_size = model->vocab_size,
        .tokens = data->tokens,
        .train_tokens = data->train_tokens,
        .val_tokens = data->val_tokens,
        .text = data->text,
        .held_out = data->held_out,
        .batch = settings->batch,
        .seq = settings->seq,
        .first_step = training->resumed.step + 1,
        .steps = settings->steps,
        .epochs = data->train_windows ? (double)settings->steps * (double)settings->batch / windows : NAN,
        .micro_batch = training->micro_batch,
        .micro_batches = ah__micro_batches(training->session->partition),
        .profile_kept_s = training->session->info.profile_kept_s,
        .profile_given = training->options->profile_path != NULL,
        .padding = padding(training),
    };
}

int ah__training_predict(struct ah_training *training)
{
    enum { PREDICTED_ITERATIONS = 6 };
    return ah_plan_simulate(&training->predicted, &training->session->plan, training->session->partition,
                            training->session->profile, PREDICTED_ITERATIONS);
}

/* Notes that the device's arithmetic is not the checkpoint's. Only the same arithmetic gives the same bits; another is
 * as good, but the caller should know. */
static void tell_arithmetic(const struct ah_training *training)
{
    struct ah_dev_info info;
    training->session->dev->ops->info(training->session->dev, &info);
    if (strcmp(info.arithmetic, training->resumed.arithmetic) != 0)
        ah__training_note(training,
                          "this device multiplies by %s, the checkpoint's by %s: from here on the bits may "
                          "differ from a training that was not moved",
                          info.arithmetic, training->resumed.arithmetic);
}

/* Notes which way of computing attention programs take on a device that has several; it is settled by now. */
static void tell_attention(const struct ah_training *training)
{
    struct ah_dev_info info;
    training->session->dev->ops->info(training->session->dev, &info);
    if (info.attention[0])
        ah__training_note(training, "attention: %s", info.attention);
}

int ah__training_load(struct ah_training *training)
{
    tell_attention(training);
    if (training->resumed.folder)
        tell_arithmetic(training);
    const struct ah_partition *partition = training->session->partition;
    if (training->resumed.folder && !training->weights)
        return ah__checkpoint_load(&training->resumed, partition, training->run, true);
    if (!training->weights)
        return ah__run_init(training->run, training->settings.seed);
    char note[AH_WEIGHTS_NOTE_SIZE];
    AH_TRY(ah__weights_load(note, &training->loaded, training->weights, training->adapter ? &training->adapted : NULL,
                            partition, training->run));
    if (note[0])
        ah__training_note(training, "%s", note);
    if (training->resumed.folder)
        return ah__checkpoint_load(&training->resumed, partition, training->run, true);
    if (training->adapter) {
        ah__training_note(training, "starting from the adapter in %s", training->adapter);
        return AH_OK;
    }
    return training->settings.tuning.lora_rank ? ah__run_init_adapters(training->run, training->settings.seed) : AH_OK;
}
