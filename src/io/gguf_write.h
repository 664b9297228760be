/* Writes a GGUF file: keys and tensors are declared first, then the data of each tensor is handed over in that order.
 * The file takes its name when it is complete. Knows no models. */
#ifndef AH_IO_GGUF_WRITE_H
#define AH_IO_GGUF_WRITE_H

#include "io/gguf.h"

struct ah_gguf_writer;

int ah__gguf_writer_new(struct ah_gguf_writer **out);
/* Frees; a file that was not closed with success is removed. Null is fine. */
void ah__gguf_writer_free(struct ah_gguf_writer *writer);

/* Keys, each once. A failure shows in ah__gguf_writer_open. */
void ah__gguf_put_int(struct ah_gguf_writer *writer, const char *key, uint32_t value);
void ah__gguf_put_float(struct ah_gguf_writer *writer, const char *key, float value);
void ah__gguf_put_bool(struct ah_gguf_writer *writer, const char *key, bool value);
void ah__gguf_put_text(struct ah_gguf_writer *writer, const char *key, const char *value);
/* Begins an array of `count` texts, 32-bit integers, floats or bools, which ah__gguf_item_* add then. */
enum ah_gguf_items { AH_GGUF_ITEMS_INT = 5, AH_GGUF_ITEMS_FLOAT, AH_GGUF_ITEMS_BOOL, AH_GGUF_ITEMS_TEXT };
void ah__gguf_put_array(struct ah_gguf_writer *writer, const char *key, enum ah_gguf_items kind, uint64_t count);
void ah__gguf_item_text(struct ah_gguf_writer *writer, const char *text, size_t length);
void ah__gguf_item_int(struct ah_gguf_writer *writer, int32_t value);
void ah__gguf_item_float(struct ah_gguf_writer *writer, float value);
void ah__gguf_item_bool(struct ah_gguf_writer *writer, bool value);
/* A tensor of a row-major shape of 1 to 4 dimensions, whose rows are whole blocks of the type. */
void ah__gguf_put_tensor(struct ah_gguf_writer *writer, const char *name, const struct ah_gguf_type *type,
                         const struct ah_shape *shape);

/* Writes all of this to a temporary beside `path`. AH_EINPUT: it cannot be made; AH_EIO; AH_ENOMEM. */
int ah__gguf_writer_open(struct ah_gguf_writer *writer, const char *path);
/* All of the next tensor's data. AH_EIO. */
int ah__gguf_writer_add(struct ah_gguf_writer *writer, const void *data, size_t bytes);
/* Fsyncs and renames. AH_EIO; AH_EINTERNAL when data is missing. */
int ah__gguf_writer_close(struct ah_gguf_writer *writer);

/* Floats as F32, F16, BF16 or Q8_0, to the bit as ggml's reference quantizes; count is of whole blocks. */
void ah__gguf_narrow(void *to, const struct ah_gguf_type *type, const float *from, int64_t count);

#endif
