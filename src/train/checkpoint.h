/* What a checkpoint folder of a training holds, and moving it to and from a run, one parameter at a time.
 *
 *     model.safetensors      parameters under their Hugging Face names, in order of names, in F32 or BF16; or, above
 *                            settings.shard_bytes, several files and model.safetensors.index.json
 *     config.json            the model definition's configuration
 *     tokenizer.json ..      what source/model_files.h lists, as it lay beside the model
 *     optimizer.safetensors  NAME.exp_avg and NAME.exp_avg_sq of every parameter, as they are kept: F32, BF16, or U8,
 *                            codes of dev/code8.h, beside NAME.exp_avg.scale and NAME.exp_avg_sq.scale, an F32 for each
 *                            256 of them; NAME.master, the F32 parameter, where model.safetensors has it rounded
 *     state.json             step, settings, where in which data the training stands
 *
 * Where adapters are trained, adapter_model.safetensors and adapter_config.json, as PEFT has them, take the place of
 * the model's file, and autohete_model.json that of config.json: the model's own weights stay where they are. Frozen
 * parameters have no moments.
 *
 * Knows no plans: a checkpoint written under one plan is read under any other. */
#ifndef AH_TRAIN_CHECKPOINT_H
#define AH_TRAIN_CHECKPOINT_H

#include "data/mixture.h"
#include "run/run.h"
#include "source/model_files.h"
#include "train/settings.h"

struct ah_checkpoint {
    char *folder;            /* absolute, of this step; null: no checkpoint */
    char *run_folder;        /* the folder that holds it */
    char *passed_over;       /* why it is not a newer one; null: it is the newest */
    char *data_path;         /* as ah__mixture_text gives it */
    char *base;              /* absolute: where the weights are that adapters adapt; null: no adapters */
    char *base_name;         /* what others call that model; null: by its place */
    uint64_t base_signature; /* of these: ah__weights_signature */
    int64_t step;            /* steps done; the next batch of the data is batch number `step` */
    double loss;             /* of that step */
    bool bytes;              /* text was its bytes, whatever the vocabulary (source/model_tokenizer.h) */
    int64_t data_tokens;
    uint64_t data_signature;
    struct ah_mixture_mark *sources; /* of data that are several */
    size_t source_count;             /* of these; else 0 */
    struct ah_settings settings;
    char arithmetic[64]; /* of the device that trained it: struct ah_dev_info */
    char *left;          /* a folder that saving would have removed, but for what somebody put into it; null: none */
    const struct ah_model_files *files; /* to be saved with it; null: none. Not set by opening one */
};

/* Finds the checkpoint meant by path (a training's folder or one checkpoint's), verifies every file's length and
 * checksum and reads state.json. With `older`, the one before takes the place of one that is damaged, where path names
 * a training. AH_EINPUT: none there, or of an unknown format. AH_ECORRUPT: damaged. Freed by ah__checkpoint_close. */
int ah__checkpoint_open(struct ah_checkpoint *out, const char *path, bool older);
/* A zero-initialised or closed struct is fine. */
void ah__checkpoint_close(struct ah_checkpoint *checkpoint);

/* The file of a step folder that has the model's configuration; freed with ah__free. AH_ENOMEM. */
int ah__checkpoint_config(char **out, const char *folder);
/* AH_ESTALE when the checkpoint was made with another model or other data: the first difference, found and expected. */
int ah__checkpoint_check_model(const struct ah_checkpoint *checkpoint, const struct ah_model *model);
int ah__checkpoint_check_data(const struct ah_checkpoint *checkpoint, const struct ah_mixture *data, const char *path);

/* Copies an open checkpoint's parameters into the run: the masters and Adam's moments, to go on training; or what the
 * model's file has. Names, dtypes, shapes and their number must be the partition's. AH_ECORRUPT, AH_EINPUT,
 * AH_ENOMEM. */
int ah__checkpoint_load(const struct ah_checkpoint *checkpoint, const struct ah_partition *partition,
                        struct ah_run *run, bool training);

/* Where the values of a checkpoint come from: a drained run, or a copy of one. */
struct ah_states {
    /* A whole parameter's state as it is kept, valid until the next call; `buffer` has room for the largest. */
    int (*get)(const void **state, int param, enum ah_run_state which, void *buffer, void *context);
    void *context;
};
struct ah_states ah__run_states_of(struct ah_run *run);

/* Writes DIR's next step folder. Until it is durable and in place the previous ones stay; then all but the newest
 * settings.keep go. `state` needs all but the folders. `buffer`: ah__partition_largest floats, twice (the second is for
 * what the file has otherwise). AH_EIO; AH_ENUMERIC when a value is not finite. */
int ah__checkpoint_save(const char *dir, struct ah_checkpoint *state, const struct ah_model *model,
                        const struct ah_partition *partition, const struct ah_states *states, float *buffer);

#endif
