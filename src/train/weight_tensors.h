/* The tensors of a model's weights, whatever file they lie in: safetensors, an index of several, or GGUF. Takes a path,
 * gives named tensors and their values as floats. Names are Hugging Face's: GGUF's are translated, and what tools put
 * before all of them ("module.", "_orig_mod.", "base_model.model.") is taken away. Knows no partition and no run. */
#ifndef AH_TRAIN_WEIGHT_TENSORS_H
#define AH_TRAIN_WEIGHT_TENSORS_H

#include "base/alloc.h"
#include "io/safetensors.h"
#include "model/gguf.h"

struct ah_weight_tensor {
    const char *name;
    const char *type_name; /* of its elements: "BF16", "Q4_K" */
    int rank;
    int64_t dim[AH_SAFETENSORS_RANK];
    const unsigned char *data;
    size_t bytes;
    /* Of `count` elements, whole blocks; null: a type that is not read. */
    void (*widen)(float *to, const unsigned char *from, int64_t count);
    float added;              /* to the values that are kept: it is taken off when they are read */
    struct ah_gguf_swap swap; /* how they lie in a GGUF file */
};

struct ah_weight_tensors {
    const char *path;
    const char *prefix; /* a name's start with the prefix_bytes that were taken away of each */
    size_t prefix_bytes;
    struct ah_weight_tensor *tensors; /* [count], in order of names */
    size_t count;
    struct ah_shards *shards; /* one of both */
    struct ah_gguf *gguf;
    struct ah_arena arena;
};

/* Close also what could not be opened. As ah__shards_open and ah__gguf_open; AH_EINPUT too. */
int ah__weight_tensors_open(struct ah_weight_tensors *out, const char *path);
void ah__weight_tensors_close(struct ah_weight_tensors *tensors);
/* Brings them in order again after names were changed. AH_ECORRUPT: one name twice. */
int ah__weight_tensors_sort(struct ah_weight_tensors *tensors);
/* Null: no tensor of that name. */
const struct ah_weight_tensor *ah__weight_tensors_find(const struct ah_weight_tensors *tensors, const char *name);
/* Values of a tensor that has this shape. AH_EINPUT: of a type that is not read; AH_ECORRUPT: of another shape. */
int ah__weight_tensor_read(float *to, const struct ah_weight_tensors *tensors, const struct ah_weight_tensor *tensor,
                           struct ah_shape shape);

#endif
