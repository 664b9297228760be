/* The checkpoint folder of a training, and moving it to and from a run, one parameter at a time.
 *
 *     model.safetensors      parameters under their Hugging Face names, in the model's order, in F32 or BF16; or, above
 *                            settings.shard_bytes, several files and model.safetensors.index.json
 *     config.json            the model definition's configuration
 *     tokenizer.json ..      files of source/model_files.h, copied from the model's folder
 *     optimizer.safetensors  NAME.exp_avg and NAME.exp_avg_sq of every parameter, as they are kept: F32, BF16, or U8,
 *                            codes of dev/code8.h, beside NAME.exp_avg.scale and NAME.exp_avg_sq.scale, an F32 for each
 *                            256 of them; NAME.master, the F32 parameter, if model.safetensors has it rounded
 *     state.json             step, settings, data and position in them
 *
 * If adapters are trained, adapter_model.safetensors and adapter_config.json, in PEFT's format, replace the model's
 * file, and autohete_model.json replaces config.json: the model's own weights stay in their folder. Frozen parameters
 * have no moments.
 *
 * Knows no plans: a checkpoint written under one plan is read under any other. */
#ifndef AH_TRAIN_CHECKPOINT_H
#define AH_TRAIN_CHECKPOINT_H

#include "data/mixture.h"
#include "run/run.h"
#include "source/model_files.h"
#include "train/settings.h"

struct ah_checkpoint {
    char *folder;            /* absolute path of this step's folder; null: no checkpoint */
    char *run_folder;        /* the training's folder, which contains it */
    char *passed_over;       /* why a newer one was not taken; null: it is the newest */
    char *data_path;         /* text of ah__mixture_text */
    char *base;              /* absolute path of the weights that adapters adapt; null: no adapters */
    char *base_name;         /* public name of that model; null: its path is its name */
    uint64_t base_signature; /* ah__weights_signature of these weights */
    int64_t step;            /* steps done; the next batch of the data is batch number `step` */
    double loss;             /* loss of that step */
    bool bytes;              /* text was tokenized as bytes, whatever the vocabulary (source/model_tokenizer.h) */
    int64_t data_tokens;
    uint64_t data_signature;
    struct ah_mixture_mark *sources; /* a mark for each source if there are several */
    size_t source_count;             /* number of marks; 0: a single source */
    struct ah_settings settings;
    char arithmetic[64]; /* arithmetic of the device that trained it: struct ah_dev_info */
    char *left;          /* a folder that saving did not remove because it holds somebody's other files; null: none */
    const struct ah_model_files *files; /* files to save with it; null: none; not set by opening a checkpoint */
};

/* Finds the checkpoint that path names (a training's folder or one checkpoint's), verifies every file's length and
 * checksum and reads state.json. With `older`, if path names a training, the checkpoint before a damaged one is taken.
 * AH_EINPUT: there is none, or its format is unknown. AH_ECORRUPT: damaged. Freed by ah__checkpoint_close. */
int ah__checkpoint_open(struct ah_checkpoint *out, const char *path, bool older);
/* A zero-initialized or closed struct is fine. */
void ah__checkpoint_close(struct ah_checkpoint *checkpoint);

/* AH_ESTALE: the checkpoint was made with another model or other data; the message has the first difference, found and
 * expected. */
int ah__checkpoint_check_model(const struct ah_checkpoint *checkpoint, const struct ah_model *model);
int ah__checkpoint_check_data(const struct ah_checkpoint *checkpoint, const struct ah_mixture *data, const char *path);

/* Copies an open checkpoint's parameters into the run: masters and Adam's moments if `training`, else the values of the
 * model's file. Names, dtypes, shapes and number of tensors must be the partition's. AH_ECORRUPT, AH_EINPUT,
 * AH_ENOMEM. */
int ah__checkpoint_load(const struct ah_checkpoint *checkpoint, const struct ah_partition *partition,
                        struct ah_run *run, bool training);

/* Source of a checkpoint's values: a drained run, or a copy of one. */
struct ah_states {
    /* Gives a whole parameter's state as it is kept, valid until the next call; `buffer` has room for the largest. */
    int (*get)(const void **state, int param, enum ah_run_state which, void *buffer, void *context);
    void *context;
};
struct ah_states ah__run_states_of(struct ah_run *run);

/* Writes DIR's next step folder. The previous ones stay until it is durable and in place; then all but the newest
 * settings.keep are removed. `state` needs all members but the folders. `buffer`: twice ah__partition_largest floats;
 * the second half is for values that the file has in another type. AH_EIO; AH_ENUMERIC: a value is not finite. */
int ah__checkpoint_save(const char *dir, struct ah_checkpoint *state, const struct ah_model *model,
                        const struct ah_partition *partition, const struct ah_states *states, float *buffer);

#endif
