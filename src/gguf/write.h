/* Writes a GGUF file: declare keys and tensors first, then give the data of each tensor in that order. The file gets
 * its name when it is complete. Knows no models. */
#ifndef AH_GGUF_WRITE_H
#define AH_GGUF_WRITE_H

#include "gguf/gguf.h"

struct ah_gguf_writer;

int ah__gguf_writer_new(struct ah_gguf_writer **out);
/* Frees the writer and removes a file that was not closed with success. Null is fine. */
void ah__gguf_writer_free(struct ah_gguf_writer *writer);

/* Add a key, each only once. ah__gguf_writer_open returns a failure. */
void ah__gguf_put_int(struct ah_gguf_writer *writer, const char *key, uint32_t value);
void ah__gguf_put_float(struct ah_gguf_writer *writer, const char *key, float value);
void ah__gguf_put_bool(struct ah_gguf_writer *writer, const char *key, bool value);
void ah__gguf_put_text(struct ah_gguf_writer *writer, const char *key, const char *value);
/* Begins an array of `count` texts, 32-bit integers, floats or bools, which the caller then adds by ah__gguf_item_*. */
enum ah_gguf_items { AH_GGUF_ITEMS_INT = 5, AH_GGUF_ITEMS_FLOAT, AH_GGUF_ITEMS_BOOL, AH_GGUF_ITEMS_TEXT };
void ah__gguf_put_array(struct ah_gguf_writer *writer, const char *key, enum ah_gguf_items kind, uint64_t count);
void ah__gguf_item_text(struct ah_gguf_writer *writer, const char *text, size_t length);
void ah__gguf_item_int(struct ah_gguf_writer *writer, int32_t value);
void ah__gguf_item_float(struct ah_gguf_writer *writer, float value);
void ah__gguf_item_bool(struct ah_gguf_writer *writer, bool value);
/* Declares a tensor of a row-major shape of 1 to 4 dimensions, whose rows are whole blocks of the type. */
void ah__gguf_put_tensor(struct ah_gguf_writer *writer, const char *name, const struct ah_gguf_type *type,
                         const struct ah_shape *shape);

/* Writes keys and declarations to a temporary file beside `path`. AH_EINPUT: it cannot be made; AH_EIO; AH_ENOMEM. */
int ah__gguf_writer_open(struct ah_gguf_writer *writer, const char *path);
/* Writes all data of the next tensor. AH_EIO. */
int ah__gguf_writer_add(struct ah_gguf_writer *writer, const void *data, size_t bytes);
/* Syncs the file and renames it. AH_EIO; AH_EINTERNAL if data is missing. */
int ah__gguf_writer_close(struct ah_gguf_writer *writer);

/* Converts floats to F32, F16, BF16 or Q8_0, to the bit like ggml's reference; `count` fills whole blocks. */
void ah__gguf_narrow(void *to, const struct ah_gguf_type *type, const float *from, int64_t count);

#endif
