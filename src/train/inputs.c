#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "io/folder.h"
#include "sched/sched.h"
#include "train/road.h"

/* Of the data, held out for evaluation. Part of the training's meaning: changing it would break resuming bit for bit. */
static const double val_fraction = 0.1;

static int open_model(struct ah_road *road)
{
    const struct ah_train_options *options = road->options;
    const char *path = options->model_path ? options->model_path : road->resumed.folder;
    road->model = options->model;
    if (!options->model) {
        if (!path)
            return ah__fail(AH_EINPUT, "model: found none, expected a JSON file or a folder with config.json");
        AH_TRY(ah_model_load(&road->own_model, path));
        road->model = road->own_model;
    }
    return road->resumed.folder ? ah__checkpoint_check_model(&road->resumed, road->model) : AH_OK;
}

static int open_data(struct ah_road *road)
{
    const char *path = road->options->data_path ? road->options->data_path : road->resumed.data_path;
    const char *model_path = road->options->model_path ? road->options->model_path : road->resumed.folder;
    if (!path)
        return ah__fail(AH_EINPUT, "data: found none, expected a text or token file");
    AH_TRY(ah__tokenizer_open(&road->tokenizer, model_path));
    AH_TRY(ah__tokens_open(&road->tokens, path, road->tokenizer, ah_model_get(road->model)->vocab_size,
                           road->settings.seq, val_fraction));
    return road->resumed.folder ? ah__checkpoint_check_data(&road->resumed, road->tokens, path) : AH_OK;
}

static int settle(struct ah_road *road)
{
    const struct ah_settings *saved = road->resumed.folder ? &road->resumed.settings : NULL;
    AH_TRY(ah__settings_resolve(&road->settings, road->options, saved, ah_model_get(road->model)->max_seq));
    if (road->settings.schedule.steps < road->resumed.step)
        return ah__fail(AH_EINPUT, "steps: found %" PRId64 ", expected at least the %" PRId64 " steps of %s",
                        road->settings.schedule.steps, road->resumed.step, road->resumed.folder);
    return AH_OK;
}

/* Whether both name one existing folder. */
static bool same_folder(const char *a, const char *b)
{
    char *left = realpath(a, NULL), *right = realpath(b, NULL);
    bool same = left && right && strcmp(left, right) == 0;
    free(left);
    free(right);
    return same;
}

int ah__road_holds_training(bool *out, const char *dir)
{
    static const char *const traces[] = {"metrics.jsonl", "checkpoint"};
    *out = false;
    for (size_t i = 0; i < AH_LENGTH(traces) && !*out; i++) {
        char *path;
        AH_TRY(ah__sprintf(&path, "%s/%s", dir, traces[i]));
        *out = ah__path_exists(path);
        ah__free(path);
    }
    return AH_OK;
}

/* Where to write: as told, else beside the resumed checkpoint when a training lives there. */
static int choose_out(struct ah_road *road)
{
    const char *resumed = road->resumed.run_folder;
    bool occupied = false;
    if (road->options->out_dir)
        AH_TRY(ah__strdup(&road->out_dir, road->options->out_dir));
    else if (resumed) {
        AH_TRY(ah__road_holds_training(&occupied, resumed));
        if (occupied)
            AH_TRY(ah__strdup(&road->out_dir, resumed));
    }
    if (!road->out_dir)
        return AH_OK;
    AH_TRY(ah__folder_check(road->out_dir));
    AH_TRY(ah__road_lock(road));
    AH_TRY(ah__road_holds_training(&occupied, road->out_dir));
    if (occupied && !(resumed && same_folder(road->out_dir, resumed)))
        return ah__fail(AH_EINPUT, "%s: found a training there, expected another folder, or --resume to continue it",
                        road->out_dir);
    return AH_OK;
}

/* The planner knows this too, but it is asked only after everything was timed. */
static int check_policy(const char *policy)
{
    if (policy && !ah__policy_find(policy))
        return ah__fail(AH_EINPUT, "policy: found '%.40s', expected %s", policy, ah__policy_names());
    return AH_OK;
}

int ah__road_inputs(struct ah_road *road)
{
    AH_TRY(check_policy(road->options->policy));
    if (road->options->resume_dir)
        AH_TRY(ah__checkpoint_open(&road->resumed, road->options->resume_dir));
    AH_TRY(open_model(road));
    AH_TRY(settle(road));
    AH_TRY(open_data(road));
    AH_TRY(choose_out(road));
    road->loop = (struct ah_loop){
        .settings = &road->settings,
        .options = road->options,
        .tokens = road->tokens,
        .start = road->resumed.step,
        .loss = road->resumed.folder ? road->resumed.loss : NAN,
    };
    return AH_OK;
}

int ah__road_profile(struct ah_road *road)
{
    const char *path = road->options->profile_path;
    struct ah_dev_info info;
    if (!path)
        return ah_profile_measure(&road->profile, road->partition, road->dev);
    AH_TRY(ah__profile_fits(road->partition, road->dev));
    AH_TRY(ah_profile_load(&road->profile, path));
    road->dev->ops->info(road->dev, &info);
    if (road->profile->device_signature != info.signature)
        return ah__fail(AH_ESTALE, "%s: key 'device_signature': found %016" PRIx64 " (%s), expected %016" PRIx64
                        ", this device with these threads and this link", path, road->profile->device_signature,
                        road->profile->device, info.signature);
    return AH_OK;
}

int ah__road_plan(struct ah_road *road)
{
    enum { PREDICTED_ITERATIONS = 6 };
    const struct ah_train_options *options = road->options;
    const char *policy = options->policy ? options->policy : "autohete";
    if (!options->plan || strcmp(options->plan, "auto") == 0)
        AH_TRY(ah_plan_search(&road->plan, road->partition, road->profile, &options->budget, policy));
    else
        AH_TRY(ah_plan_parse(&road->plan, options->plan, road->partition, road->profile, &options->budget, policy));
    AH_TRY(ah_plan_simulate(&road->predicted, &road->plan, road->partition, road->profile, PREDICTED_ITERATIONS));
    return options->on_plan ? options->on_plan(&road->plan, &options->budget, options->context) : AH_OK;
}

int ah__road_load(struct ah_road *road)
{
    if (road->resumed.folder)
        return ah__checkpoint_load(road->resumed.folder, road->partition, road->run, true);
    return ah__run_init(road->run, road->settings.seed);
}
