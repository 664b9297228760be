/* run.json: everything a training was started with, in the words of its options, and the machine, data and versions
 * that it found. Written when a training starts; read when it is resumed, when it starts again after a crash before its
 * first checkpoint, or when another one is started like it. Knows no checkpoints. */
#ifndef AH_TRAIN_RUN_CONFIG_H
#define AH_TRAIN_RUN_CONFIG_H

#include "data/mixture.h"
#include "train/settings.h"

/* One source of the data. Members that are "only written" are facts, not options. */
struct ah_data_facts {
    const char *path;              /* null: it is the only source */
    double weight, share;          /* only written: weight as given (0: none) and share of all samples */
    const char *format;            /* only written */
    int64_t tokens, train_samples; /* tokens in all; samples in an epoch of its training part (only written) */
    struct ah_tokens_known known;  /* results of reading it, reused while it is unchanged */
};

struct ah_run_config {
    struct ah_train_options asked; /* the options that session/options.def stores in run.json; data_path is the text of
                                    * ah__mixture_text; model_path null: the caller gave the model */
    char passes[24];               /* text of a plan, for passes of an older run.json; "": none */
    struct ah_settings settings;
    struct ah_data_facts *data; /* [data_count] facts of each source */
    size_t data_count;
    struct ah_json json; /* private: owns the texts of a loaded run.json */
};

/* Facts about machine and model; only written. */
struct ah_run_facts {
    const struct ah_device *device;
    const char *arithmetic; /* as in struct ah_dev_info */
    int64_t parameters;
    int64_t step; /* steps done at the start: 0, or the checkpoint's */
};

/* Returns true if DIR/run.json exists. */
bool ah__run_config_exists(const char *dir);
/* Reads DIR/run.json. AH_EINPUT, AH_EIO. Freed by ah__run_config_free. */
int ah__run_config_load(struct ah_run_config *out, const char *dir);
/* A zero-initialized or freed struct is fine. */
void ah__run_config_free(struct ah_run_config *run_config);
/* Writes run.json to `path` atomically. A stamp of the data is stored only if it is certain to show a later change. */
int ah__run_config_save(const struct ah_run_config *run_config, const struct ah_run_facts *facts, const char *path);

/* Sets options that are not set to the run's; they then point into it. Settings are resolved elsewhere
 * (ah__settings_resolve). `again`: model and data are taken, too. */
void ah__run_config_apply(struct ah_train_options *options, const struct ah_run_config *run_config, bool again);

#endif
