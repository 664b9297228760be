/* The adapter that a training begins with, and the name by which adapters call their model. */
#include "base/alloc.h"
#include "base/file.h"
#include "source/adapter_files.h"
#include "source/model_path.h"
#include "train/training.h"

/* Refuses an adapter of which a checkpoint would lose something: only factors with one common scale are trained and
 * saved. */
static int check_adapter(const struct ah_training *training)
{
    static const char what[] = "autohete merge makes a model of it that can be trained further";
    const struct ah_adapter_config *config = &training->adapted.config;
    const struct ah_weight_tensors *tensors = &training->adapted.tensors;
    size_t module;
    char which;
    if (config->whole)
        return ah__fail(AH_EINPUT, "%s: key 'modules_to_save': found modules, expected none; %s", config->path, what);
    if (training->adapted.uneven)
        return ah__fail(AH_EINPUT, "%s: key '%s': found scales that differ, expected one for all; %s", config->path,
                        config->alphas.object ? "alpha_pattern" : "rank_pattern", what);
    for (size_t i = 0; i < tensors->count; i++)
        if (!ah__adapter_factor(&module, &which, tensors->tensors[i].name))
            return ah__fail(AH_EINPUT, "%s: found tensor '%.120s' beside adapters, expected those alone; %s",
                            tensors->path, tensors->tensors[i].name, what);
    return AH_OK;
}

int ah__training_open_adapter(struct ah_training *training)
{
    const char *dir = training->options->adapter_dir;
    char *note;
    if (!dir || training->resumed.folder)
        return AH_OK;
    AH_TRY(ah__adapter_find(&training->adapter, dir));
    AH_TRY(ah__adapter_tensors_open(&training->adapted, training->adapter));
    if (!training->own_model)
        return ah__fail(AH_EINPUT, "adapter: found %s beside a model of the caller's, expected a model's folder", dir);
    AH_TRY(ah__adapter_tensors_fit(&training->adapted, &training->own_model));
    training->model = training->own_model;
    AH_TRY(check_adapter(training));
    AH_TRY(ah__adapter_files_over(&training->files, training->adapter));
    AH_TRY(ah__adapter_tokenizer_note(&note, training->options->model_path, training->adapter));
    if (note)
        ah__training_note(training, "%s", note);
    ah__free(note);
    return AH_OK;
}

int ah__training_tell_base(const struct ah_training *training)
{
    const struct ah_train_options *options = training->options;
    char *path = NULL, name[AH_MODEL_NAME_SIZE];
    if (!training->settings.tuning.lora_rank || training->resumed.folder || options->base_name || !options->out_dir)
        return AH_OK;
    AH_TRY(ah__path_real(&path, options->model_path));
    if (path && !ah__model_cached_name(name, path))
        ah__training_note(training,
                          AH_ADAPTER_CONFIG
                          " calls the model %s, which is here alone: --base-name OWNER/NAME (base_name) is "
                          "what others find it by",
                          path);
    ah__free(path);
    return AH_OK;
}
