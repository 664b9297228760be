/* Number types of exported GGUF files: by the names of --type, and for tensors that cannot have that type. Private to
 * infer/. */
#ifndef AH_INFER_EXPORT_TYPE_H
#define AH_INFER_EXPORT_TYPE_H

#include "gguf/write.h"

/* Finds the type of a word in upper or lower case. AH_EINPUT: another word; if llama-quantize makes that type, the
 * message says how. */
int ah__export_type(const struct ah_gguf_type **out, const char *word);
/* Returns the type of a tensor of this shape: F32 for vectors, F16 for rows that are not whole blocks of the type, else
 * the type. */
const struct ah_gguf_type *ah__export_stored(const struct ah_gguf_type *asked, const struct ah_shape *shape);
/* Writes general.file_type and general.quantization_version. */
void ah__export_put_type(struct ah_gguf_writer *writer, const struct ah_gguf_type *type);

#endif
