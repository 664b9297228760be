/* The tensors of an adapter's folder beside the model that they are of. Takes a folder as PEFT or a training here
 * writes it; gives factors as a graph has them, alike in all blocks: what the file has narrower, scaled otherwise or
 * not at all is made so by zeros and by the second factor. Knows no runs. */
#ifndef AH_TRAIN_ADAPTER_TENSORS_H
#define AH_TRAIN_ADAPTER_TENSORS_H

#include "autohete.h"
#include "source/adapter_config.h"
#include "train/weight_tensors.h"

struct ah_adapter_tensors {
    struct ah_adapter_config config; /* its targets are those that the model has, once it is fitted */
    struct ah_weight_tensors tensors;
    bool uneven; /* some modules are scaled otherwise than others: once it is fitted */
    bool untied; /* it has a head of its own for one that was the embedding: once it is fitted */
};

/* As ah__adapter_config_load and ah__weight_tensors_open. What could not be opened is closed. */
int ah__adapter_tensors_open(struct ah_adapter_tensors *out, const char *folder);
/* Zero-initialised is fine. */
void ah__adapter_tensors_close(struct ah_adapter_tensors *adapter);

/* Holds it against a model. Names of targets that the model lacks are dropped, as lists that serve several models have
 * them. The model is replaced by another where the adapter's embedding has more or fewer rows, or where it has a head
 * of its own for one that was the embedding. AH_EINPUT names the file and the first tensor that the model does not
 * have, or that is missing. */
int ah__adapter_tensors_fit(struct ah_adapter_tensors *adapter, struct ah_model **model);

/* Values of a factor, by the name of its parameter and in the shape that the graph has. Once it is fitted. As
 * ah__weight_tensor_read. */
int ah__adapter_tensors_read(float *to, const struct ah_adapter_tensors *adapter, const char *name,
                             struct ah_shape shape);
/* The tensor that is there in place of the model's own (modules_to_save); null: none. */
const struct ah_weight_tensor *ah__adapter_tensors_whole(const struct ah_adapter_tensors *adapter, const char *name);

#endif
