/* The small files that a model's folder has beside its weights, made of a GGUF file's metadata. Knows no models. */
#ifndef AH_SOURCE_GGUF_FILES_H
#define AH_SOURCE_GGUF_FILES_H

#include "io/gguf.h"

/* Texts of tokenizer.json, of tokenizer_config.json (what begins and ends a text; chat_template) and of
 * generation_config.json. */
struct ah_gguf_files {
    char *tokenizer, *config, *generation;
};
/* AH_EINPUT names the file, the key, found and expected; AH_ECORRUPT; AH_ENOMEM. */
int ah__gguf_files_load(struct ah_gguf_files *files, const char *path);
/* Whether a file does not say how its byte-level tokenizer splits text, so that llama.cpp's default is taken. */
int ah__gguf_splits_by_default(bool *out, const struct ah_gguf *file);
/* What is said of such a file then, behind its name. */
extern const char ah__gguf_splits_note[];
/* Zero-initialised is fine. */
void ah__gguf_files_free(struct ah_gguf_files *files);

#endif
