/* Keys of GGUF files that describe a model (general.*), as llama.cpp's converter writes them. */
#ifndef AH_INFER_EXPORT_NAME_H
#define AH_INFER_EXPORT_NAME_H

#include "io/gguf_write.h"

/* The model's name by the converter's rule: of config.json's _name_or_path, where that is a name and no path of a
 * computer, else of the folder; of a GGUF file its own. `folder` has config.json, or is a GGUF file; `named` is the
 * folder that the name is of. Freed with ah__free. AH_EINPUT, AH_ENOMEM. */
int ah__export_name(char **name, const char *folder, const char *named);
/* "8.0B", "135M". */
void ah__export_size_label(char label[16], int64_t parameters);
/* general.sampling.*: how generation_config.json says that the model writes; text may be null. AH_EINPUT: no JSON;
 * `path` is for messages. */
int ah__export_put_sampling(struct ah_gguf_writer *writer, const char *text, const char *path);

#endif
