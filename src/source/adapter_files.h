/* What lies in an adapter's folder beside its weights: the tokenizer and the chat template that it was trained with,
 * which count in place of its model's, as loaders of PEFT's folders take them. Takes folders, gives paths, tokenizers
 * and files; knows no weights. */
#ifndef AH_SOURCE_ADAPTER_FILES_H
#define AH_SOURCE_ADAPTER_FILES_H

#include "source/model_files.h"
#include "tokenizer/tokenizer.h"

/* The folder with the adapter that `path` means: of a training's folder the newest checkpoint, the folder itself, or
 * the one folder in it that has adapter_config.json, unless it is a model's. What is none of them is copied as it is:
 * reading it tells. Freed with ah__free. AH_EINPUT: several folders in it have one. */
int ah__adapter_find(char **folder, const char *path);
/* Whether it has a tokenizer of its own: tokenizer.json, vocab.json with merges.txt, tokenizer.model, spiece.model. */
bool ah__adapter_has_tokenizer(const char *folder);
/* The model that an adapter's folder names, where it is here: what adapter_config.json says, else what a training here
 * noted in state.json. Null into *base where it is not; freed with ah__free. AH_EINPUT, AH_ENOMEM. */
int ah__adapter_base(char **base, const char *folder);
/* The tokenizer for a model of `rows` rows with an adapter (null: none): the adapter's, else the model's; bytes, where
 * `bytes` or the adapter's training asked for them, or the model's and the adapter has none (source/model_tokenizer.h).
 * What ends a text is also what the model's generation_config.json says. AH_EINPUT also: the adapter's has ids that
 * neither the model nor its own tokenizer has. */
int ah__adapter_tokenizer_open(const struct ah_tokenizer **out, const char *model, const char *adapter, int64_t rows,
                               bool bytes);
/* *note: one line where the adapter has a tokenizer that is not the model's, to be freed with ah__free, else null. */
int ah__adapter_tokenizer_note(char **note, const char *model, const char *adapter);
/* Puts the adapter's files in place of the model's, which `files` has: its tokenizer with all that belongs to it, and
 * its chat template. As ah__model_files_load. */
int ah__adapter_files_over(struct ah_model_files *files, const char *folder);

#endif
