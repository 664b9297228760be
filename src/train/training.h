/* A training: everything between options and a trained model. Its session (session/session.h) has model to plan; here
 * are the checkpoint it goes on from, data, settings and the folder it writes: what comes in (inputs.c, inputs_data.c)
 * and what goes out (outputs.c). Neither calls the other; trainer.c calls both. */
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
    struct ah_train_options asked;          /* the caller's, filled up from what a training was started with */
    const struct ah_train_options *options; /* those */
    struct ah_checkpoint resumed;           /* folder null: a new training */
    struct ah_run_config run_config;        /* of the training that is resumed, started again or to be like */
    bool has_run_config;
    const struct ah_model *model;
    struct ah_model *own_model;        /* null when the caller gave one */
    struct ah_adapter_tensors adapted; /* that a new training begins with; zero: none */
    char *adapter;                     /* its folder */
    char *weights;                     /* the file that a new training starts from; null: random numbers */
    struct ah_model_files files;       /* of the model, that checkpoints hold too */
    const struct ah_tokenizer *tokenizer;
    bool bytes;              /* text is read as bytes, since that was asked for, now or before */
    struct ah_mixture *data; /* null: batches are the caller's */
    struct ah_settings settings;
    struct ah_comm *comm; /* the ranks that train together */
    int64_t micro_batch;  /* sequences in a micro-batch of one rank; settings.micro_batch where there is one rank */
    uint64_t loaded;      /* hash of the weights that were loaded, but for a checkpoint's own */
    struct ah_out_folder out;
    struct ah_session *session; /* null until the inputs stand */
    struct ah_timeline *predicted;
    struct ah_loop loop;
    struct ah_run *run;
    struct ah_metrics metrics;
    struct ah_saver saver;
    bool saved;                   /* everything trained is in the folder */
    int64_t longest_segment;      /* whose measured timeline lies in the folder */
    struct ah_timeline *measured; /* a copy of it; null: none */
};

/* Tells the caller one line: what is no fault; what failed although the training goes on. */
void ah__training_note(const struct ah_training *training, const char *format, ...) AH_PRINTF(2, 3);
void ah__training_fault(const struct ah_training *training, const char *format, ...) AH_PRINTF(2, 3);

/* Checkpoint, model, data and settings, each checked against the others, and whether the folder may be used; writes
 * nothing. */
int ah__training_open_inputs(struct ah_training *training);
/* The data part of it: known after the settings are. A training on the caller's batches has none. */
int ah__training_open_data(struct ah_training *training);
/* The adapter that a new training begins with, held against the model: its tokenizer's and template's files take the
 * place of the model's. */
int ah__training_open_adapter(struct ah_training *training);
/* A note where adapters call their model by a path that nobody else has. */
int ah__training_tell_base(const struct ah_training *training);
/* Several ranks: that all were given the same. Collective. AH_EINPUT names the rank and what differs. */
int ah__training_same_inputs(const struct ah_training *training);
/* The same of the weights that each rank has loaded. Collective. */
int ah__training_same_weights(const struct ah_training *training);
/* Opens the session, up to its device. Collective. */
int ah__training_open_device(struct ah_training *training);
/* Takes the session to its plan; of a training that is resumed, the plan there was is where the search begins.
 * Collective. */
int ah__training_plan(struct ah_training *training);
/* Once the partition stands. */
void ah__training_summary(struct ah_train_summary *out, const struct ah_training *training);
/* What the data are; of a training on the caller's batches nothing but zeros. */
const struct ah_tokens_info *ah__training_data(const struct ah_training *training);
/* The timeline that the plan predicts. */
int ah__training_predict(struct ah_training *training);
/* Initial parameters, or the checkpoint's. */
int ah__training_load(struct ah_training *training);

/* Makes the folder, writes what is known before training and readies metrics and checkpoints. Nothing to do without
 * one, or without a step to train. */
int ah__training_open_outputs(struct ah_training *training);
/* Waits until everything is written. */
int ah__training_close_outputs(struct ah_training *training);
/* Tells the session how long the steps took; a cached profile that they contradict is dropped, with a note.
 * Collective. */
int ah__training_compare(struct ah_training *training);
/* Writes a checkpoint folder of what was trained into another folder, which is made when needed. Collective. */
int ah__training_save_to(struct ah_training *training, const char *dir);

#endif
