/* Shared by writing (folder.c), finding (folder_find.c) and removing (folder_remove.c) checkpoint folders. */
#ifndef AH_SOURCE_FOLDER_INTERNAL_H
#define AH_SOURCE_FOLDER_INTERNAL_H

#include "base/status.h"

#define AH_CHECKSUMS "checksums.json"
enum { AH_CHECKSUMS_VERSION = 1 };

/* Calls visit for each name in the folder; stops at the first failure. AH_EINPUT if dir cannot be opened; AH_EIO. */
int ah__folder_names(const char *dir, int (*visit)(const char *dir, const char *name, const void *context),
                     const void *context);
/* Calls visit for each DIR/step-DIGITS + suffix, in no order; stops at the first failure. AH_EINPUT if dir cannot be
 * opened. */
int ah__folder_walk(const char *dir, const char *suffix, int (*visit)(const char *path, int64_t step, void *context),
                    void *context);
/* Returns the step of "step-00000100" followed by `suffix`: 100; -1 for another name. */
int64_t ah__folder_step(const char *name, const char *suffix);
/* Removes a checkpoint's files from a step's folder, and the folder. *stays: the folder still has other files; not set
 * if it had nothing of a checkpoint. A missing folder is fine. AH_EIO. */
int ah__folder_remove_step(bool *stays, const char *folder);
/* Remembers the first folder that stays. */
int ah__folder_stays(char **left, const char *folder);
/* Removes complete steps below `step` but the newest keep - 1. AH_EIO. */
int ah__folder_prune(char **left, const char *dir, int64_t step, int keep);
/* Computes length and ah__hash (seed 0) of a regular file, which may be empty. */
int ah__folder_file_hash(const char *path, int64_t *bytes, uint64_t *hash);

#endif
