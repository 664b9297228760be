/* Weights to start from: what lies beside a model's config.json. Takes a model's path, gives parameters to a run. Knows
 * no optimizers and no checkpoints. */
#ifndef AH_TRAIN_WEIGHTS_H
#define AH_TRAIN_WEIGHTS_H

#include "run/run.h"

/* *path: the weights' file when `model_path` is a folder that has one, to be freed with ah__free; null when it has none
 * or is a file. AH_EINPUT for weights in a form that is not read: in several files, pickled. */
int ah__weights_find(char **path, const char *model_path);
/* Copies the file's tensors (F32 or BF16, under the parameters' names) into a drained run. AH_EINPUT names the first
 * tensor that is missing, surplus, misshapen or of another dtype; AH_ECORRUPT; AH_ENOMEM. */
int ah__weights_load(const char *path, const struct ah_partition *partition, struct ah_run *run);

#endif
