/* An adapter's files beside its weights: the tokenizer and the chat template that it was trained with, which replace
 * its model's, as loaders of PEFT's folders do. Takes folders, gives paths, tokenizers and files; knows no weights. */
#ifndef AH_SOURCE_ADAPTER_FILES_H
#define AH_SOURCE_ADAPTER_FILES_H

#include "source/model_files.h"
#include "tokenizer/tokenizer.h"

/* Finds the folder of the adapter that `path` means: the newest checkpoint of a training's folder, the folder itself,
 * or the only folder in it that has adapter_config.json, unless it is a model's. Any other path is copied: reading it
 * fails with a message. Freed with ah__free. AH_EINPUT: several folders in it have one. */
int ah__adapter_find(char **folder, const char *path);
/* Returns true if the folder has a tokenizer: tokenizer.json, vocab.json with merges.txt, tokenizer.model,
 * spiece.model. */
bool ah__adapter_has_tokenizer(const char *folder);
/* Gives the local path of an adapter's model: the one in adapter_config.json, else the one that a training here noted
 * in state.json. Null into *base if it is not here; freed with ah__free. AH_EINPUT, AH_ENOMEM. */
int ah__adapter_base(char **base, const char *folder);
/* Opens the tokenizer for a model of `rows` rows with an adapter (null: without): the adapter's, else the model's.
 * Bytes, if `bytes` or the adapter's training asked for them, or if the model uses bytes and the adapter has no
 * tokenizer (source/model_tokenizer.h). The ends of text of the model's generation_config.json also apply. AH_EINPUT
 * also: the adapter's tokenizer has ids that neither the model nor the model's tokenizer has. */
int ah__adapter_tokenizer_open(const struct ah_tokenizer **out, const char *model, const char *adapter, int64_t rows,
                               bool bytes);
/* Sets *note to one line if the adapter's tokenizer is not the model's, freed with ah__free, else to null. */
int ah__adapter_tokenizer_note(char **note, const char *model, const char *adapter);
/* Replaces the model's files in `files` by the adapter's: its tokenizer with all files that belong to it, and its chat
 * template. Fails as ah__model_files_load. */
int ah__adapter_files_over(struct ah_model_files *files, const char *folder);

#endif
