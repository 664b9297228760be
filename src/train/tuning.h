/* What of a model is trained, as settings of a training: from options, from a checkpoint, or from an adapter made
 * elsewhere; and as members of state.json. */
#ifndef AH_TRAIN_TUNING_H
#define AH_TRAIN_TUNING_H

#include "base/json.h"

enum { AH_TUNING_TEXT = 512 };

/* struct ah_tuning with texts of its own. */
struct ah_tuning_settings {
    char freeze[AH_TUNING_TEXT], lora_targets[AH_TUNING_TEXT]; /* "": none */
    int lora_rank;                                             /* 0: no adapters */
    double lora_alpha;
    bool lora_rslora;
    char frozen[8]; /* what frozen matrices are kept in; "": as they are computed with */
};

/* A view of it, valid as long as it is. */
struct ah_tuning ah__tuning_view(const struct ah_tuning_settings *settings);
/* What is asked for, else what is saved (null: nothing is). A training that is `resumed` keeps what it has: AH_ESTALE
 * names what is asked otherwise. AH_EINPUT. */
int ah__tuning_resolve(struct ah_tuning_settings *out, const struct ah_tuning *asked,
                       const struct ah_tuning_settings *saved, bool resumed);
/* The same of an adapter in a folder, beside which nothing else may be asked for. AH_EINPUT. */
int ah__tuning_of_adapter(struct ah_tuning_settings *out, const struct ah_tuning *asked, const char *folder,
                          bool no_dropout);
/* Only what is set. */
int ah__tuning_save(cJSON *object, const struct ah_tuning_settings *settings);
int ah__tuning_load(struct ah_tuning_settings *out, const struct ah_json *json);

#endif
