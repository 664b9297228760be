/* Tuning, that is which parts of a model are trained, as settings of a training: read from options, a checkpoint or an
 * adapter made elsewhere, and stored as members of state.json. */
#ifndef AH_TRAIN_TUNING_H
#define AH_TRAIN_TUNING_H

#include "base/json.h"

enum { AH_TUNING_TEXT = 512 };

/* A copy of struct ah_tuning that owns its texts. */
struct ah_tuning_settings {
    char freeze[AH_TUNING_TEXT], lora_targets[AH_TUNING_TEXT]; /* "": not set */
    int lora_rank;                                             /* 0: no adapters */
    double lora_alpha;
    bool lora_rslora;
    char frozen[8]; /* format of frozen matrices; "": the compute type */
};

/* Returns a view of the settings, valid as long as they are. */
struct ah_tuning ah__tuning_view(const struct ah_tuning_settings *settings);
/* Takes what is asked for, else what is saved (null: nothing is). A `resumed` training keeps its settings: AH_ESTALE
 * names one that is asked for otherwise. AH_EINPUT. */
int ah__tuning_resolve(struct ah_tuning_settings *out, const struct ah_tuning *asked,
                       const struct ah_tuning_settings *saved, bool resumed);
/* Takes the settings from an adapter in a folder; AH_EINPUT if others are asked for beside it. */
int ah__tuning_of_adapter(struct ah_tuning_settings *out, const struct ah_tuning *asked, const char *folder,
                          bool no_dropout);
/* Saves the members that are set. AH_ENOMEM. ah__tuning_load reads them; AH_EINPUT. */
int ah__tuning_save(cJSON *object, const struct ah_tuning_settings *settings);
int ah__tuning_load(struct ah_tuning_settings *out, const struct ah_json *json);

#endif
