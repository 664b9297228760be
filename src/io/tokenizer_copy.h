/* The files of a model's tokenizer, kept in memory while it trains, so that each checkpoint has them and can be used
 * where the model is. Takes a model's path, gives files to a checkpoint's folder. */
#ifndef AH_IO_TOKENIZER_COPY_H
#define AH_IO_TOKENIZER_COPY_H

#include "io/folder.h"

struct ah_tokenizer_copy;

/* Reads what the model's folder has of ah__tokenizer_files (at most 64 MiB each). A model without a tokenizer of its
 * own, or null, has none. AH_EINPUT, AH_EIO, AH_ENOMEM. */
int ah__tokenizer_copy_new(struct ah_tokenizer_copy **out, const char *model);
void ah__tokenizer_copy_free(struct ah_tokenizer_copy *copy);
/* Writes them into the folder and adds them to what the checkpoint consists of. Null: nothing. AH_EIO. */
int ah__tokenizer_copy_write(const struct ah_tokenizer_copy *copy, struct ah_folder *folder);

#endif
