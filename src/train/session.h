/* A training session: everything between options and a trained model, in the order in which it comes to be, and the
 * steps that are more than one call: what comes in (inputs.c) and what goes out (outputs.c). Neither calls the other;
 * train.c calls both. */
#ifndef AH_TRAIN_SESSION_H
#define AH_TRAIN_SESSION_H

#include "comm/comm.h"
#include "profile/profile.h"
#include "train/checkpoint.h"
#include "train/loop.h"
#include "train/out_folder.h"
#include "train/recipe.h"
#include "train/saver.h"

struct ah_session {
    struct ah_train_options asked;          /* the caller's, filled up from what a training was started with */
    const struct ah_train_options *options; /* those */
    struct ah_checkpoint resumed;           /* folder null: a new training */
    struct ah_recipe recipe;                /* of the training that is resumed, started again or to be like */
    bool has_recipe;
    const struct ah_model *model;
    struct ah_model *own_model;  /* null when the caller gave one */
    char *weights;               /* the file that a new training starts from; null: random numbers */
    struct ah_model_files files; /* of the model, that checkpoints hold too */
    const struct ah_tokenizer *tokenizer;
    struct ah_tokens *tokens;
    struct ah_settings settings;
    struct ah_comm *comm; /* the ranks that train together */
    int64_t micro_batch;  /* sequences in a micro-batch of one rank; settings.micro_batch where there is one rank */
    struct ah_out_folder out;
    struct ah_graph *graph;
    struct ah_partition *partition;
    struct ah_dev *dev;
    struct ah_device device; /* what it is */
    struct ah_budget budget; /* the options', or what the device has where they leave it open */
    struct ah_profile *profile;
    int64_t profile_kept_s; /* -1: measured or given now; else its age */
    struct ah_plan plan;
    struct ah_timeline *predicted;
    struct ah_loop loop;
    struct ah_run *run;
    struct ah_metrics metrics;
    struct ah_saver saver;
    bool saved;                   /* everything trained is in the folder */
    int64_t longest_segment;      /* whose measured timeline lies in the folder */
    struct ah_timeline *measured; /* a copy of it; null: none */
};

/* Tells the caller one line. */
void ah__session_note(const struct ah_session *session, const char *format, ...) AH_PRINTF(2, 3);

/* Checkpoint, model, data and settings, each checked against the others, and whether the folder may be used; writes
 * nothing. */
int ah__session_open_inputs(struct ah_session *session);
/* Several ranks: that all were given the same. Collective. AH_EINPUT names the rank and what differs. */
int ah__session_same_inputs(const struct ah_session *session);
/* The device, and with it the budget. */
int ah__session_open_device(struct ah_session *session);
/* Measured, or loaded and known to be of this device. */
int ah__session_profile(struct ah_session *session);
/* Searched for, or given; of several ranks all take rank 0's. A refused budget names the micro-batch that would do. */
int ah__session_plan(struct ah_session *session);
/* Instead of the two: the fastest size of micro-batches, its graph, partition, profile and plan. Of several ranks all
 * take rank 0's. */
int ah__session_choose(struct ah_session *session);
/* Once the partition stands. */
void ah__session_summary(struct ah_train_summary *out, const struct ah_session *session);
/* What the data are; of a training on the caller's batches nothing but zeros. */
const struct ah_tokens_info *ah__session_data(const struct ah_session *session);
/* What a step is apart from its model, under the settings. */
struct ah_step_options ah__session_step(const struct ah_session *session);
/* The timeline that the plan predicts. */
int ah__session_predict(struct ah_session *session);
/* Initial parameters, or the checkpoint's. */
int ah__session_load(struct ah_session *session);

/* Makes the folder, writes what is known before training and readies metrics and checkpoints. Nothing to do without
 * one, or without a step to train. */
int ah__session_open_outputs(struct ah_session *session);
/* Waits until everything is written. */
int ah__session_close_outputs(struct ah_session *session);
/* Writes a checkpoint folder of what was trained into another folder, which is made when needed. Collective. */
int ah__session_save_to(struct ah_session *session, const char *dir);

#endif
