/* Writes the keys of GGUF files that describe a model (general.*) as llama.cpp's converter does. */
#ifndef AH_INFER_EXPORT_NAME_H
#define AH_INFER_EXPORT_NAME_H

#include "gguf/write.h"

/* Returns the model's name by the converter's rule: general.name of a GGUF file (null: the model is none), else from
 * _name_or_path of the folder's config.json if that is a name and no path on some computer, else from the name of the
 * folder `named`. Freed with ah__free. AH_EINPUT, AH_ENOMEM. */
int ah__export_name(char **name, const struct ah_gguf *file, const char *folder, const char *named);
/* Writes the number of parameters as a label: "8.0B", "135M". */
void ah__export_size_label(char label[16], int64_t parameters);
/* Writes general.sampling.* from the text of generation_config.json, which may be null. AH_EINPUT: the text is no JSON.
 * `path` is for messages. */
int ah__export_put_sampling(struct ah_gguf_writer *writer, const char *text, const char *path);

#endif
