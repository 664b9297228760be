/* The tensors of an adapter's folder, fitted to the adapter's model. Takes a folder that PEFT or a training here wrote;
 * returns factors in the graph's shapes, which are the same in all blocks. A factor with a lower rank in the file, or
 * none, is filled up with zeros; another scale goes into the second factor. Knows no runs. */
#ifndef AH_TRAIN_ADAPTER_TENSORS_H
#define AH_TRAIN_ADAPTER_TENSORS_H

#include "autohete.h"
#include "source/adapter_config.h"
#include "source/weight_tensors.h"

struct ah_adapter_tensors {
    struct ah_adapter_config config; /* once fitted, its targets are those that the model has */
    struct ah_weight_tensors tensors;
    bool uneven; /* once fitted: some modules are scaled otherwise than others */
    bool untied; /* once fitted: the adapter has a head of its own, while the model's head was the embedding */
};

/* Opens configuration and tensors. Fails as ah__adapter_config_load and ah__weight_tensors_open; nothing is open
 * then. */
int ah__adapter_tensors_open(struct ah_adapter_tensors *out, const char *folder);
/* A zero-initialized struct is fine. */
void ah__adapter_tensors_close(struct ah_adapter_tensors *adapter);

/* Fits the adapter to a model. Drops targets that the model lacks, since one list may serve several models. Replaces
 * the model if the adapter's embedding has more or fewer rows, or if the adapter has a head of its own while the
 * model's was the embedding. AH_EINPUT names the file and the first tensor that the model does not have, or that is
 * missing. */
int ah__adapter_tensors_fit(struct ah_adapter_tensors *adapter, struct ah_model **model);

/* Reads the values of a factor of a fitted adapter, by the name of its parameter and in the graph's shape. Fails as
 * ah__weight_tensor_read. */
int ah__adapter_tensors_read(float *to, const struct ah_adapter_tensors *adapter, const char *name,
                             struct ah_shape shape);
/* Returns the tensor that replaces the model's own (modules_to_save); null: there is none. */
const struct ah_weight_tensor *ah__adapter_tensors_whole(const struct ah_adapter_tensors *adapter, const char *name);

#endif
