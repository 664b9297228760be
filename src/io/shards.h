/* A model's tensors in one safetensors file or in several with an index, as one set of tensors. Takes a path, gives
 * what io/safetensors.h gives of one file. Knows no models and converts no numbers.
 *
 * An index is JSON: {"weight_map": {TENSOR: FILE}}, FILE beside it; "metadata" is not read. */
#ifndef AH_IO_SHARDS_H
#define AH_IO_SHARDS_H

#include "io/safetensors.h"

#define AH_SHARDS_FILE "model.safetensors"
#define AH_SHARDS_INDEX AH_SHARDS_FILE ".index.json"

struct ah_shards;

/* Opens a safetensors file, or, of a path that ends in .json, an index and all its files. Every tensor of the index is
 * in the file it names and every tensor of a file is in the index. AH_EINPUT: a file is missing or no index;
 * AH_ECORRUPT names file, tensor or key, found and expected; AH_ENOMEM. */
int ah__shards_open(struct ah_shards **out, const char *path);
/* Null is fine. */
void ah__shards_close(struct ah_shards *shards);
/* Tensors in all files. */
size_t ah__shards_count(const struct ah_shards *shards);
/* In order of files and, within one, of names, 0 <= index < count. */
const struct ah_safetensors_tensor *ah__shards_at(const struct ah_shards *shards, size_t index);
/* The tensor of that name, or null. Valid until close. */
const struct ah_safetensors_tensor *ah__shards_find(const struct ah_shards *shards, const char *name);
/* As ah__safetensors_get. */
int ah__shards_get(const struct ah_safetensors_tensor **out, const struct ah_shards *shards, const char *name,
                   enum ah_dtype dtype, struct ah_shape shape);

/* The file of shard index (from 0) of count, "model-00001-of-00003.safetensors"; the only one is AH_SHARDS_FILE. */
enum { AH_SHARDS_NAME_SIZE = 64 };
char *ah__shards_name(char text[AH_SHARDS_NAME_SIZE], int64_t index, int64_t count);
/* Whether a file of this name is one shard of several. */
bool ah__shards_is_name(const char *name);

#endif
