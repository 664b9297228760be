/* Weights to start from: what lies beside a model's config.json. Takes a model's path, gives parameters to a run. Knows
 * no optimizers and no checkpoints.
 *
 * Tensors lie under the parameters' names, or without the first part of them ("h.0.attn.c_attn.weight" for
 * "transformer.h.0.attn.c_attn.weight"), as a model saved without its head has them. Left out are buffers that older
 * programs saved with the weights, known by name, and the head of a model that ties it to the embedding, where the two
 * are equal byte for byte. */
#ifndef AH_TRAIN_WEIGHTS_H
#define AH_TRAIN_WEIGHTS_H

#include "run/run.h"

/* *path: the weights' file, or index of several, when `model_path` is a folder that has one, to be freed with ah__free;
 * null when it has none or is a file. AH_EINPUT for weights in a form that is not read, with the way to convert
 * pickled ones. */
int ah__weights_find(char **path, const char *model_path);

struct ah_adapter_tensors;
enum { AH_WEIGHTS_NOTE_SIZE = 320 };
/* Copies tensors (F32, F16 or BF16) one by one into a drained run, then those of the adapter (null: none), which takes
 * the place of those that it has itself. `note`: one line about what was left out, "" for nothing. *hash (null is fine)
 * becomes one of itself and of all that was read. AH_EINPUT names the first tensor that is missing, surplus, misshapen
 * or of another dtype, and how many more there are; AH_ECORRUPT; AH_ENOMEM. */
int ah__weights_load(char note[AH_WEIGHTS_NOTE_SIZE], uint64_t *hash, const char *path,
                     const struct ah_adapter_tensors *adapter, const struct ah_partition *partition,
                     struct ah_run *run);

/* Tells other weights apart, by names, shapes and bytes at both ends of each tensor. Fails as loading does. */
int ah__weights_signature(uint64_t *out, const char *path);

#endif
