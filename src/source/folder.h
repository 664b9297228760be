/* Checkpoint folders that are complete or absent. Takes a run's folder DIR and a step; gives a folder to write files
 * into and puts it in place. Knows nothing of the files' contents.
 *
 *     DIR/step-00000100/        files of a checkpoint, and checksums.json {"files": {NAME: {"bytes", "xxh3"}}}
 *     DIR/step-00000200.tmp/    a checkpoint that is being written or removed; the next begin removes what a crash
 *                               leaves (in both only a checkpoint's files: a folder with other files stays)
 *     DIR/checkpoint            symbolic link to the last complete step folder
 *     DIR/model.safetensors     symbolic links through DIR/checkpoint, so that DIR loads as a Hugging Face folder
 *     DIR/config.json           and the other files of a model that it may have: io/shards.h, source/model_files.h;
 *                               additional_chat_templates/ is linked as a folder
 *
 * On file systems without symbolic links, the highest step is the last. */
#ifndef AH_SOURCE_FOLDER_H
#define AH_SOURCE_FOLDER_H

#include "base/status.h"

struct ah_folder;

/* Checks that checkpoints can be written to dir, which may not exist yet; changes nothing. AH_EINPUT if it is a file,
 * cannot be written, or holds a checkpoint or a model's file that is not ours and would be lost. */
int ah__folder_check(const char *dir);

/* ah__folder_writes returns true if a training writes files of this name in DIR itself, ah__folder_links if they are a
 * model's, links to a checkpoint's. */
bool ah__folder_writes(const char *name);
/* Returns the index-th of these names that are not links; null at the end. */
const char *ah__folder_written(size_t index);
bool ah__folder_links(const char *name);

/* Makes dir if needed, removes the remains of interrupted writers and makes an empty DIR/step-STEP.tmp. One writer at a
 * time. AH_EINPUT, AH_EIO. */
int ah__folder_begin(struct ah_folder **out, const char *dir, int64_t step);
/* Returns a folder that begin or commit did not remove because it holds somebody's other files, or null. Valid until
 * free. */
const char *ah__folder_left(const struct ah_folder *folder);
/* Returns the folder to write files into (no folders inside). Valid until free. */
const char *ah__folder_path(const struct ah_folder *folder);
/* Adds a file of the folder to the checkpoint, by its name. Syncs it and reads it back. */
int ah__folder_add(struct ah_folder *folder, const char *name);
/* Adds a file whose length and ah__hash (seed 0) are known and that is synced already. */
int ah__folder_note(struct ah_folder *folder, const char *name, int64_t bytes, uint64_t hash);
/* Writes checksums.json for the added files, renames the folder into place (over an old one of the same step), moves
 * the links, and removes step folders of lower steps but the newest keep - 1. On failure the last checkpoint is
 * unchanged. AH_EIO. */
int ah__folder_commit(struct ah_folder *folder, int keep);
/* Frees the folder and removes it if it was not committed. */
void ah__folder_free(struct ah_folder *folder);

/* Finds the step folder meant by path: a step folder, a link to one, or a DIR (its checkpoint link; the highest
 * complete step if that link is missing or dangling). Absolute; the caller frees *out with ah__free. AH_EINPUT if there
 * is none. */
int ah__folder_find(char **out, const char *path);
/* Finds the complete checkpoint of the highest step below that of `folder`, beside it, in the same way; null if there
 * is none. */
int ah__folder_before(char **out, const char *folder);
/* Checks lengths and checksums of a step folder that must have the files of this null-terminated list. AH_ECORRUPT
 * names the file, found and expected. */
int ah__folder_verify(const char *path, const char *const *required);

#endif
