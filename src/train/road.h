/* Everything on the way from options to a trained model, in the order in which it comes to be, and the steps of that way
 * that are more than one call: what comes in (inputs.c) and what goes out (outputs.c). train.c walks it. */
#ifndef AH_TRAIN_ROAD_H
#define AH_TRAIN_ROAD_H

#include "profile/profile.h"
#include "train/checkpoint.h"
#include "train/loop.h"

struct ah_road {
    const struct ah_train_options *options;
    struct ah_checkpoint resumed; /* folder null: a new training */
    const struct ah_model *model;
    struct ah_model *own_model; /* null when the caller gave one */
    const struct ah_tokenizer *tokenizer;
    struct ah_tokens *tokens;
    struct ah_settings settings;
    char *out_dir; /* null: nothing is written */
    int out_fd;    /* of out_dir, locked; -1: not open */
    struct ah_graph *graph;
    struct ah_partition *partition;
    struct ah_dev *dev;
    struct ah_profile *profile;
    struct ah_plan plan;
    struct ah_timeline *predicted;
    struct ah_loop loop;
    struct ah_run *run;
    struct ah_metrics metrics;
    struct ah_checkpoint state;    /* what the next checkpoint says */
    float *save_buffer;
    int64_t longest_stretch;       /* whose measured timeline lies in out_dir */
};

/* Checkpoint, model, data and settings, each checked against the others, and whether out_dir may be used; writes nothing. */
int ah__road_inputs(struct ah_road *road);
/* Whether dir has what a training leaves. */
int ah__road_holds_training(bool *out, const char *dir);
/* Measured, or loaded and known to be of this device. */
int ah__road_profile(struct ah_road *road);
/* Searched for, or given; with the timeline it predicts. Tells on_plan. */
int ah__road_plan(struct ah_road *road);

/* Makes out_dir, writes what is known before training and readies metrics and checkpoints. Nothing to do without out_dir. */
int ah__road_open_out(struct ah_road *road);
/* Keeps out_dir for this training until unlock; nothing to do while it does not exist. AH_EINPUT when another has it. */
int ah__road_lock(struct ah_road *road);
void ah__road_unlock(struct ah_road *road);
/* The loop's save and stretch hooks; context: the road. */
int ah__road_save(int64_t step, double loss, void *context);
int ah__road_pictures(int64_t steps, void *context);

/* Initial parameters, or the checkpoint's. */
int ah__road_load(struct ah_road *road);

#endif
