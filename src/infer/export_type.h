/* How numbers stand in GGUF files that are written: by the names of --type, and for tensors that cannot have that type.
 * Private to infer/. */
#ifndef AH_INFER_EXPORT_TYPE_H
#define AH_INFER_EXPORT_TYPE_H

#include "io/gguf_write.h"

/* Of a word in any case. AH_EINPUT: another; of one that llama-quantize makes it says how. */
int ah__export_type(const struct ah_gguf_type **out, const char *word);
/* What a tensor of this shape gets: vectors stay F32, rows that are not whole blocks are F16. */
const struct ah_gguf_type *ah__export_stored(const struct ah_gguf_type *asked, const struct ah_shape *shape);
/* general.file_type and quantization_version. */
void ah__export_put_type(struct ah_gguf_writer *writer, const struct ah_gguf_type *type);

#endif
