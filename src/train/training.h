/* A training: everything between options and a trained model. Its session (session/session.h) has everything from model
 * to plan; here are the resumed checkpoint, data, settings and the output folder: inputs (inputs.c, inputs_data.c) and
 * outputs (outputs.c). Neither calls the other; trainer.c calls both. */
#ifndef AH_TRAIN_TRAINING_H
#define AH_TRAIN_TRAINING_H

#include "session/session.h"
#include "train/adapter_tensors.h"
#include "train/checkpoint.h"
#include "train/loop.h"
#include "train/out_folder.h"
#include "train/run_config.h"
#include "train/saver.h"

struct ah_training {
    struct ah_train_options asked;          /* the caller's options, filled up from a resumed or copied training's */
    const struct ah_train_options *options; /* points to `asked` */
    struct ah_checkpoint resumed;           /* folder null: a new training */
    struct ah_run_config run_config;        /* run.json of the training that is resumed, started again or copied
                                             * (--like) */
    bool has_run_config;
    const struct ah_model *model;
    struct ah_model *own_model;        /* null: the caller gave the model */
    struct ah_adapter_tensors adapted; /* adapter that a new training begins with; zero: none */
    char *adapter;                     /* folder of that adapter */
    char *weights;                     /* the file that a new training starts from; null: random numbers */
    struct ah_model_files files;       /* the model's files that checkpoints contain too */
    const struct ah_tokenizer *tokenizer;
    bool bytes;              /* text is read as bytes, as was asked for, now or before */
    struct ah_mixture *data; /* null: the caller brings batches */
    struct ah_settings settings;
    struct ah_comm *comm; /* the ranks that train together */
    int64_t micro_batch;  /* sequences in a micro-batch of one rank; with one rank settings.micro_batch */
    uint64_t loaded;      /* hash of the weights that were loaded, except a checkpoint's own */
    struct ah_out_folder out;
    struct ah_session *session; /* null until the inputs are open */
    struct ah_timeline *predicted;
    struct ah_loop loop;
    struct ah_run *run;
    struct ah_metrics metrics;
    struct ah_saver saver;
    bool saved;                   /* everything trained is in the folder */
    int64_t longest_segment;      /* steps of the segment whose measured timeline is in the folder */
    struct ah_timeline *measured; /* a copy of that timeline; null: none */
};

/* Tell the caller one line: ah__training_note what is not a fault, ah__training_fault what failed although the training
 * goes on. */
void ah__training_note(const struct ah_training *training, const char *format, ...) AH_PRINTF(2, 3);
void ah__training_fault(const struct ah_training *training, const char *format, ...) AH_PRINTF(2, 3);

/* Opens checkpoint, model, data and settings, checks each against the others, and checks that the folder may be used.
 * Writes nothing. */
int ah__training_open_inputs(struct ah_training *training);
/* Opens the data, part of open_inputs after the settings are known. A training on the caller's batches has none. */
int ah__training_open_data(struct ah_training *training);
/* Opens the adapter that a new training begins with and fits it to the model. Its tokenizer and chat template replace
 * the model's. */
int ah__training_open_adapter(struct ah_training *training);
/* Notes that adapters name their model by a path that only this machine has. */
int ah__training_tell_base(const struct ah_training *training);
/* Checks that all ranks were given the same inputs. Collective. AH_EINPUT names the rank and what differs. */
int ah__training_same_inputs(const struct ah_training *training);
/* Checks that all ranks have loaded the same weights. Collective. */
int ah__training_same_weights(const struct ah_training *training);
/* Opens the session, up to its device. Collective. */
int ah__training_open_device(struct ah_training *training);
/* Advances the session to its plan. In a resumed training the search begins at the plan it had. Collective. */
int ah__training_plan(struct ah_training *training);
/* Fills the summary, once there is a partition. */
void ah__training_summary(struct ah_train_summary *out, const struct ah_training *training);
/* Returns the facts of the data; all zero for a training on the caller's batches. */
const struct ah_tokens_info *ah__training_data(const struct ah_training *training);
/* Simulates the timeline that the plan predicts. */
int ah__training_predict(struct ah_training *training);
/* Loads the initial parameters, or the checkpoint's. */
int ah__training_load(struct ah_training *training);

/* Makes the folder, writes the files that are known before training and opens metrics and checkpoints. Does nothing
 * without a folder or without a step to train. */
int ah__training_open_outputs(struct ah_training *training);
/* Waits until everything is written. */
int ah__training_close_outputs(struct ah_training *training);
/* Tells the session how long the steps took; a cached profile that they contradict is dropped, with a note.
 * Collective. */
int ah__training_compare(struct ah_training *training);
/* Writes a checkpoint of the trained state into another folder, which is made if needed. Collective. */
int ah__training_save_to(struct ah_training *training, const char *dir);

#endif
