/* The settings of a training: every number besides model and data that changes the result, resolved once. Takes the
 * caller's options and, on resume, the checkpoint's settings; returns numbers without "unset". Also reads and writes
 * them in state.json. */
#ifndef AH_TRAIN_SETTINGS_H
#define AH_TRAIN_SETTINGS_H

#include "base/json.h"
#include "session/options.h"
#include "train/schedule.h"
#include "train/tuning.h"

struct ah_settings {
/* Rows of options.def that state.json stores. In a new training micro_batch is AH_MICRO_BATCH_AUTO until a size is
 * chosen. */
#define AH_STORED(kind, field, ...) AH_TYPE_##kind field;
#define AH_OPTION AH_OPTION_STORED
#include "session/options.def"
#undef AH_STORED
    enum ah_dtype dtype;           /* type of parameters as they are used, activations and gradients */
    enum ah_dtype save_dtype;      /* type of model.safetensors */
    enum ah_dtype master, moments; /* types in which parameters and Adam's moments are kept */
    struct ah_tuning_settings tuning;
    enum ah_decay decay;
    int logs;            /* AH_LOG_ bits: formats written beside the JSON lines */
    bool skip_nonfinite; /* true: a step whose norm is not finite is skipped; false: it ends the training */
};

/* Returns the schedule of the learning rate, which ends at lr_steps; 0: with the training. */
struct ah_schedule ah__settings_schedule(const struct ah_settings *settings);

/* Takes options that are set, else `saved` (null: nothing is saved), else the library's defaults. A `resumed` training
 * keeps its batch, micro_batch, seq, dtype, master, moments (except with convert_states) and seed: AH_ESTALE if the
 * options say otherwise. AH_EINPUT names an option out of range. */
int ah__settings_resolve(struct ah_settings *out, const struct ah_train_options *options,
                         const struct ah_settings *saved, bool resumed, int64_t max_seq);

/* Returns the type of parameters in files. Adapters are small, so they are saved exactly. */
static inline enum ah_dtype ah__settings_saved(const struct ah_settings *settings)
{
    return settings->tuning.lora_rank ? AH_F32 : settings->save_dtype;
}

/* Save and load settings as members of a JSON object. Loading checks every range. AH_ENOMEM / AH_EINPUT. */
int ah__settings_save(cJSON *object, const struct ah_settings *settings);
int ah__settings_load(struct ah_settings *out, const struct ah_json *json);

/* Copies the caller's options into this library's struct; members that a caller compiled with an older header does not
 * have are unset. AH_EINPUT: the header was newer, or the options are not initialized. */
int ah__options_take(struct ah_train_options *out, const struct ah_train_options *given);

#endif
