/* What a training is apart from its model and data: every number that changes the result, resolved once.
 * Takes the caller's options and, on resume, what the checkpoint says; gives numbers without "unset". Also their form
 * in state.json. */
#ifndef AH_TRAIN_SETTINGS_H
#define AH_TRAIN_SETTINGS_H

#include "base/json.h"
#include "session/options.h"
#include "train/schedule.h"
#include "train/tuning.h"

struct ah_settings {
/* The rows that state.json has; a micro-batch is AH_MICRO_BATCH_AUTO in a new training until a size is chosen. */
#define AH_STORED(kind, field, ...) AH_TYPE_##kind field;
#define AH_OPTION AH_OPTION_STORED
#include "session/options.def"
#undef AH_STORED
    enum ah_dtype dtype;           /* of parameters as they are used, activations and gradients */
    enum ah_dtype save_dtype;      /* of model.safetensors */
    enum ah_dtype master, moments; /* what is kept of parameters and of Adam's moments */
    struct ah_tuning_settings tuning;
    enum ah_decay decay;
    int logs;            /* AH_LOG_ bits: what is written beside the JSON lines */
    bool skip_nonfinite; /* a step whose norm is not finite is left out, not the end */
};

/* The schedule ends at lr_steps; 0: with the training. */
struct ah_schedule ah__settings_schedule(const struct ah_settings *settings);

/* Options where they are set, else `saved` (null: nothing is), else the library's defaults. A training that is
 * `resumed` keeps its batch, micro_batch, seq, dtype, master, moments (but for convert_states) and seed: AH_ESTALE when
 * the options say otherwise. AH_EINPUT names an option out of range. */
int ah__settings_resolve(struct ah_settings *out, const struct ah_train_options *options,
                         const struct ah_settings *saved, bool resumed, int64_t max_seq);

/* What files hold of parameters: adapters are small, so that they are exact. */
static inline enum ah_dtype ah__settings_saved(const struct ah_settings *settings)
{
    return settings->tuning.lora_rank ? AH_F32 : settings->save_dtype;
}

/* As members of a JSON object. Loading checks every range. AH_ENOMEM / AH_EINPUT. */
int ah__settings_save(cJSON *object, const struct ah_settings *settings);
int ah__settings_load(struct ah_settings *out, const struct ah_json *json);

/* The caller's options as this library has them: what a caller that was compiled with an older header does not know is
 * unset. AH_EINPUT: of a newer one, or not initialised. */
int ah__options_take(struct ah_train_options *out, const struct ah_train_options *given);

#endif
