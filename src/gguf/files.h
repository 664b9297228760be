/* The small files beside a model's weights, made from a GGUF file's metadata. Knows no models. */
#ifndef AH_GGUF_FILES_H
#define AH_GGUF_FILES_H

#include "gguf/gguf.h"

/* Texts of tokenizer.json, of tokenizer_config.json (begin and end of texts; chat_template) and of
 * generation_config.json. */
struct ah_gguf_files {
    char *tokenizer, *config, *generation;
};
/* Makes the texts. AH_EINPUT names the file, the key, found and expected; AH_ECORRUPT; AH_ENOMEM. */
int ah__gguf_files_load(struct ah_gguf_files *files, const char *path);
/* Sets *out if a file does not say how its byte-level tokenizer splits text, so that llama.cpp's default applies. */
int ah__gguf_splits_by_default(bool *out, const struct ah_gguf *file);
/* The note about such a file, after its name. */
extern const char ah__gguf_splits_note[];
/* Zero-initialised is fine. */
void ah__gguf_files_free(struct ah_gguf_files *files);

#endif
