/* Checkpoint folders that are complete or absent. Takes a run's folder DIR and a step; gives a folder to write files
 * into and puts it in place. Knows not what the files hold.
 *
 *     DIR/step-00000100/        files of a checkpoint, and checksums.json {"files": {NAME: {"bytes", "xxh3"}}}
 *     DIR/step-00000200.tmp/    one being written or removed; what a crash leaves is removed by the next begin
 *                               (of both only what a checkpoint has: with other files in it a folder stays)
 *     DIR/checkpoint            symbolic link to the last complete step folder
 *     DIR/model.safetensors     symbolic links through DIR/checkpoint, so that DIR loads as a Hugging Face folder
 *     DIR/config.json          and the other files of a model that it may have: io/shards.h, source/model_files.h; of
 *                              additional_chat_templates/ the folder is the link
 *
 * File systems that have no symbolic links do without them: the highest step is the last then. */
#ifndef AH_SOURCE_FOLDER_H
#define AH_SOURCE_FOLDER_H

#include "base/status.h"

struct ah_folder;

/* Whether checkpoints could be written to dir, which may not exist yet; changes nothing. AH_EINPUT when it is a file,
 * cannot be written, or holds a checkpoint or a model's file that is not ours and would be lost. */
int ah__folder_check(const char *dir);

/* Whether a training has files of this name in DIR itself, and whether they are a model's, links to a checkpoint's. */
bool ah__folder_writes(const char *name);
/* The index-th of those that are no links; null: there are no more. */
const char *ah__folder_written(size_t index);
bool ah__folder_links(const char *name);

/* Makes dir if need be, removes what interrupted writers left and makes an empty DIR/step-STEP.tmp. One writer at a
 * time. AH_EINPUT, AH_EIO. */
int ah__folder_begin(struct ah_folder **out, const char *dir, int64_t step);
/* A folder that begin or commit would have removed, but for what somebody put into it; null: none. Valid until free. */
const char *ah__folder_left(const struct ah_folder *folder);
/* Where to write the files (no folders inside). Valid until free. */
const char *ah__folder_path(const struct ah_folder *folder);
/* What the checkpoint consists of: a file that lies there, by its name. Syncs it and reads it back. */
int ah__folder_add(struct ah_folder *folder, const char *name);
/* The same for one whose length and ah__hash (seed 0) are known and that is fsynced already. */
int ah__folder_note(struct ah_folder *folder, const char *name, int64_t bytes, uint64_t hash);
/* Writes checksums.json of what was added, renames the folder into place (over an old one of the same step), moves the
 * links, and removes step folders of lower steps but the newest keep - 1. On failure the last checkpoint is as before.
 * AH_EIO. */
int ah__folder_commit(struct ah_folder *folder, int keep);
/* Frees; what was not committed is removed. */
void ah__folder_free(struct ah_folder *folder);

/* The step folder meant by path: a step folder, a link to one, or a DIR (its checkpoint link; the highest complete step
 * when that link is missing or dangling). Absolute; the caller frees *out with ah__free. AH_EINPUT when there is
 * none. */
int ah__folder_find(char **out, const char *path);
/* The complete checkpoint of the highest step below that of `folder` beside it, likewise; null: there is none. */
int ah__folder_before(char **out, const char *folder);
/* Checks lengths and checksums of a step folder that must have the files of this null-terminated list. AH_ECORRUPT
 * names the file, found and expected. */
int ah__folder_verify(const char *path, const char *const *required);

#endif
