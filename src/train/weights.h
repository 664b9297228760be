/* Weights to start from: the files beside a model's config.json. Takes a model's path, loads parameters into a run.
 * Knows no optimizers and no checkpoints.
 *
 * Tensors have the parameters' names, or those without their first part ("h.0.attn.c_attn.weight" for
 * "transformer.h.0.attn.c_attn.weight"), as in a model saved without its head. Two kinds of tensors are left out:
 * buffers that older programs saved with the weights, known by name, and the head of a model that ties it to the
 * embedding, if the two are equal byte for byte. */
#ifndef AH_TRAIN_WEIGHTS_H
#define AH_TRAIN_WEIGHTS_H

#include "run/run.h"

struct ah_adapter_tensors;
enum { AH_WEIGHTS_NOTE_SIZE = 320 };
/* Copies tensors (F32, F16, BF16, or a GGUF type) one by one into a drained run, then those of the adapter (null:
 * none), which replaces tensors that it has itself. `note`: one line about tensors left out, or "". *hash (may be null)
 * becomes a hash of itself and of all that was read. AH_EINPUT names the first tensor that is missing, surplus,
 * misshapen or of another dtype, and how many more there are; AH_ECORRUPT; AH_ENOMEM. */
int ah__weights_load(char note[AH_WEIGHTS_NOTE_SIZE], uint64_t *hash, const char *path,
                     const struct ah_adapter_tensors *adapter, const struct ah_partition *partition,
                     struct ah_run *run);

/* Computes a signature that tells weights apart, from names, shapes and bytes at both ends of each tensor. Fails as
 * loading does. */
int ah__weights_signature(uint64_t *out, const char *path);

#endif
