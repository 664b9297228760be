/* A model's tensors in one safetensors file or in several with an index, as one set of tensors. Takes a path, gives
 * tensors as io/safetensors.h does. Knows no models and converts no numbers.
 *
 * An index is JSON: {"weight_map": {TENSOR: FILE}}, FILE beside it; "metadata" is not read. */
#ifndef AH_IO_SHARDS_H
#define AH_IO_SHARDS_H

#include "io/safetensors.h"

#define AH_SHARDS_FILE "model.safetensors"
#define AH_SHARDS_INDEX AH_SHARDS_FILE ".index.json"

struct ah_shards;

/* Opens a safetensors file or, for a path that ends in .json, an index and all its files. Every tensor of the index
 * must be in the file it names, and every tensor of a file in the index. AH_EINPUT: a file is missing, or it is not an
 * index; AH_ECORRUPT names file, tensor or key, found and expected; AH_ENOMEM. */
int ah__shards_open(struct ah_shards **out, const char *path);
/* Null is fine. */
void ah__shards_close(struct ah_shards *shards);
/* Returns the number of tensors in all files. */
size_t ah__shards_count(const struct ah_shards *shards);
/* Returns the index-th tensor in order of files and, within a file, of names; 0 <= index < count. */
const struct ah_safetensors_tensor *ah__shards_at(const struct ah_shards *shards, size_t index);
/* Returns the tensor of that name, or null. Valid until close. */
const struct ah_safetensors_tensor *ah__shards_find(const struct ah_shards *shards, const char *name);
/* Gets a tensor as ah__safetensors_get does. */
int ah__shards_get(const struct ah_safetensors_tensor **out, const struct ah_shards *shards, const char *name,
                   enum ah_dtype dtype, struct ah_shape shape);

/* Gives the name of the index-th file (from 0) of `count`: "model-00001-of-00003.safetensors"; AH_SHARDS_FILE for a
 * single file. */
enum { AH_SHARDS_NAME_SIZE = 64 };
char *ah__shards_name(char text[AH_SHARDS_NAME_SIZE], int64_t index, int64_t count);
/* Returns true if a file of this name is one of several shards. */
bool ah__shards_is_name(const char *name);

#endif
