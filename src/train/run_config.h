/* run.json: everything a training was started with, in the words of its options, beside what it met: machine, data,
 * versions. Written when a training starts; read when one goes on, starts again after a crash before its first
 * checkpoint, or is started like another. Knows no checkpoints. */
#ifndef AH_TRAIN_RUN_CONFIG_H
#define AH_TRAIN_RUN_CONFIG_H

#include "data/mixture.h"
#include "train/settings.h"

/* One source of the data; what is only written has been met, not asked for. */
struct ah_data_facts {
    const char *path;              /* null where it is the only one */
    double weight, share;          /* only written; weight 0: none. Of all samples */
    const char *format;            /* only written */
    int64_t tokens, train_samples; /* only written: of an epoch of its training part */
    struct ah_tokens_known known;  /* what need not be read again */
};

struct ah_run_config {
    struct ah_train_options asked; /* the options that session/options.def stores in run.json; data_path as
                                    * ah__mixture_text gives it. No model_path: the model is the caller's own */
    int passes;                    /* as asked for; 0: not */
    struct ah_settings settings;
    struct ah_data_facts *data; /* [data_count] of each source */
    size_t data_count;
    struct ah_json json; /* private: what the texts of a loaded one belong to */
};

/* What happened to be there; only written. */
struct ah_run_facts {
    const struct ah_device *device;
    const char *arithmetic; /* of struct ah_dev_info */
    int64_t parameters;
    int64_t step; /* with which it starts: 0, or that of a checkpoint */
};

/* Whether DIR/run.json is there. */
bool ah__run_config_exists(const char *dir);
/* Reads DIR/run.json. AH_EINPUT, AH_EIO. Freed by ah__run_config_free. */
int ah__run_config_load(struct ah_run_config *out, const char *dir);
/* A zero-initialised or freed one is fine. */
void ah__run_config_free(struct ah_run_config *run_config);
/* Atomically to a file. The data's stamp is kept only where it tells a later change for certain. */
int ah__run_config_save(const struct ah_run_config *run_config, const struct ah_run_facts *facts, const char *path);

/* Options that are not set become the run's; its settings have a way of their own (ah__settings_resolve). The
 * options then point into it. `again`: model and data, too. */
void ah__run_config_apply(struct ah_train_options *options, const struct ah_run_config *run_config, bool again);

#endif
