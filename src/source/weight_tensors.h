/* The tensors of a model's weights in any file: safetensors, an index of several, or GGUF. Takes a path, returns named
 * tensors and their values as floats. Names are Hugging Face's: GGUF's are translated, and prefixes that tools put
 * before all names ("module.", "_orig_mod.", "base_model.model.") are removed. Tensors of experts are given as stacks
 * (io/stack.h), whether a file has them one by one or fused in one tensor. Blocks and scales in MXFP4 are one tensor:
 * "experts.N_blocks" [E, O, G, 16] with "experts.N_scales" is "experts.N" [E, O, 32 G], another "N_blocks" "N.weight".
 * Knows no partition and no run. */
#ifndef AH_SOURCE_WEIGHT_TENSORS_H
#define AH_SOURCE_WEIGHT_TENSORS_H

#include "base/alloc.h"
#include "gguf/config.h"
#include "io/safetensors.h"
#include "io/stack.h"

struct ah_weight_tensor {
    const char *name;
    const char *type_name; /* name of the element type: "BF16", "Q4_K" */
    int rank;
    int64_t dim[AH_SAFETENSORS_RANK];
    const unsigned char *data;         /* of a stack in parts: the first part */
    const unsigned char *const *parts; /* [part_count], each bytes / part_count long; null: `data` is whole */
    size_t part_count;
    size_t bytes;                      /* of all parts */
    const unsigned char *scales;       /* of MXFP4 in safetensors, one for 16 bytes; null: another type */
    const struct ah_weight_tensor *of; /* the file's tensor that a view shows; null: it is one itself */
    /* Converts `count` elements, whole blocks, to floats; null: the type cannot be read. */
    void (*widen)(float *to, const unsigned char *from, int64_t count);
    float added;              /* number that the file's values contain in addition; reading subtracts it */
    struct ah_gguf_swap swap; /* order of the elements in a GGUF file */
    /* Order of the elements in a file as transformers saves it; `dim` is the order here. */
    struct ah_stack_layout layout;
};

struct ah_weight_tensors {
    const char *path;
    const char *prefix; /* a full name; its first prefix_bytes were removed from every name */
    size_t prefix_bytes;
    struct ah_weight_tensor *tensors; /* [count], in order of names */
    size_t count;
    /* The same values under names of the hub, in order of names: where transformers saved what it has in memory,
     * experts are fused, and some modules have other names. */
    struct ah_weight_tensor *views; /* [view_count] */
    size_t view_count;
    struct ah_shards *shards; /* either `shards` or `gguf` is set */
    struct ah_gguf *gguf;
    struct ah_arena arena;
};

/* Opens the tensors of a file. Call close also after a failure. Fails as ah__shards_open and ah__gguf_open; also
 * AH_EINPUT. */
int ah__weight_tensors_open(struct ah_weight_tensors *out, const char *path);
void ah__weight_tensors_close(struct ah_weight_tensors *tensors);
/* Sorts the tensors again after names were changed. AH_ECORRUPT: a name occurs twice. */
int ah__weight_tensors_sort(struct ah_weight_tensors *tensors);
/* Gathers tensors with experts' numbers in their names into stacks, and lists the views. AH_EINPUT: the number of an
 * expert is missing; AH_ECORRUPT: experts' tensors differ in type or shape; AH_ENOMEM. */
int ah__weight_stacks(struct ah_weight_tensors *tensors);
/* Joins blocks and scales in MXFP4. AH_EINPUT: there are no scales beside blocks; AH_ECORRUPT: their shapes or types do
 * not fit; AH_ENOMEM. */
int ah__weight_mxfp4(struct ah_weight_tensors *tensors);
/* Converts `count` elements, whole blocks, of a tensor that has scales, to floats. */
void ah__weight_mxfp4_read(float *to, const struct ah_weight_tensor *tensor, int64_t count);
/* Returns the number of its scales, which are bytes. */
static inline size_t ah__weight_scales(const struct ah_weight_tensor *tensor)
{
    return tensor->bytes / 16;
}
/* Returns the tensor of that name, or the view; null: there is none. */
const struct ah_weight_tensor *ah__weight_tensors_find(const struct ah_weight_tensors *tensors, const char *name);
/* Returns the hash of all bytes of a tensor. */
uint64_t ah__weight_tensor_hash(const struct ah_weight_tensor *tensor, uint64_t hash);
/* Reads the values of a tensor, which must have this shape. AH_EINPUT: its type cannot be read; AH_ECORRUPT: it has
 * another shape. */
int ah__weight_tensor_read(float *to, const struct ah_weight_tensors *tensors, const struct ah_weight_tensor *tensor,
                           struct ah_shape shape);

#endif
