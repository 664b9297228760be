/* Safetensors files: a reader that trusts nothing it reads and a writer that streams.
 * Takes paths and bytes, gives named tensors with dtype, shape and data. Knows no models and converts no numbers.
 * Layout: 8 bytes header length (little-endian), a JSON header {name: {dtype, shape, data_offsets}, "__metadata__":
 * {..}}, data. */
#ifndef AH_IO_SAFETENSORS_H
#define AH_IO_SAFETENSORS_H

#include "base/status.h"

enum { AH_SAFETENSORS_RANK = 8 };

/* A tensor in an open file. The data is row-major, little-endian and perhaps not aligned: copy it out with memcpy. */
struct ah_safetensors_tensor {
    const char *name;
    const char *dtype_name; /* "F32" */
    enum ah_dtype dtype;    /* AH_DTYPE_COUNT: a dtype that AutoHete does not use, such as I64 */
    int rank;
    int64_t dim[AH_SAFETENSORS_RANK];
    const unsigned char *data; /* in the mapped file */
    size_t bytes;
};

struct ah_safetensors;

/* Maps the file and checks the whole header: lengths, JSON, dtypes, shapes, offsets without overlap or hole, no
 * duplicate name. AH_EINPUT if the file is missing or empty; AH_ECORRUPT naming file, tensor, found and expected. */
int ah__safetensors_open(struct ah_safetensors **out, const char *path);
void ah__safetensors_close(struct ah_safetensors *file);
size_t ah__safetensors_count(const struct ah_safetensors *file);
/* Returns the index-th tensor in order of names, 0 <= index < count. */
const struct ah_safetensors_tensor *ah__safetensors_at(const struct ah_safetensors *file, size_t index);
/* Returns the tensor of that name, or null. Valid until close. */
const struct ah_safetensors_tensor *ah__safetensors_find(const struct ah_safetensors *file, const char *name);
/* Gets the tensor of that name, which must have this dtype and shape. AH_ECORRUPT naming file, tensor, found and
 * expected. */
int ah__safetensors_get(const struct ah_safetensors_tensor **out, const struct ah_safetensors *file, const char *name,
                        enum ah_dtype dtype, struct ah_shape shape);
/* Returns the value of a key of __metadata__, or null. */
const char *ah__safetensors_meta(const struct ah_safetensors *file, const char *key);

/* ---- writing ----------------------------------------------------------------------------------------------------- */

struct ah_safetensors_decl {
    const char *name;
    enum ah_dtype dtype;
    struct ah_shape shape; /* rank 0: a scalar */
};

struct ah_safetensors_writer;

/* Makes the file (over an old one) and writes the header for all tensors, whose data must follow in this order. Keeps
 * no pointer into `tensors`. AH_EINPUT if the file cannot be made; AH_EIO (also for a full disk). */
int ah__safetensors_writer_open(struct ah_safetensors_writer **out, const char *path,
                                const struct ah_safetensors_decl *tensors, size_t count);
/* Appends the next bytes of tensor data, in pieces of any size. AH_EIO; AH_EINTERNAL if there are more than
 * declared. */
int ah__safetensors_writer_append(struct ah_safetensors_writer *writer, const void *data, size_t bytes);
/* Ends a complete file: syncs it and gives its length and XXH3 (ah__hash of the whole file with seed 0; either may be
 * null). AH_EIO; AH_EINTERNAL if data is missing. The writer must still be freed. */
int ah__safetensors_writer_close(struct ah_safetensors_writer *writer, int64_t *bytes, uint64_t *hash);
/* Frees the writer and removes a file that was not closed with success. */
void ah__safetensors_writer_free(struct ah_safetensors_writer *writer);

#endif
