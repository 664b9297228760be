/* What writing (folder.c) and finding (folder_find.c) checkpoint folders share. */
#ifndef AH_SOURCE_FOLDER_INTERNAL_H
#define AH_SOURCE_FOLDER_INTERNAL_H

#include "base/status.h"

#define AH_CHECKSUMS "checksums.json"
enum { AH_CHECKSUMS_VERSION = 1 };

/* Calls visit for each DIR/step-DIGITS + suffix, in no order; stops at the first failure. AH_EINPUT when dir cannot be
 * opened. */
int ah__folder_walk(const char *dir, const char *suffix, int (*visit)(const char *path, int64_t step, void *context),
                    void *context);
/* "step-00000100" with `suffix` behind -> 100; -1: another name. */
int64_t ah__folder_step(const char *name, const char *suffix);
/* Removes what a checkpoint has of a step's folder, and the folder. *stays: not, for what else lies in it; not told
 * of one that has nothing else. Missing is
 * fine. AH_EIO. */
int ah__folder_remove_step(bool *stays, const char *folder);
/* Remembers the first folder that stays. */
int ah__folder_stays(char **left, const char *folder);
/* Of the complete steps below `step` the newest keep - 1 stay, at least none. AH_EIO. */
int ah__folder_prune(char **left, const char *dir, int64_t step, int keep);
/* Length and ah__hash (seed 0) of a regular file, which may be empty. */
int ah__folder_file_hash(const char *path, int64_t *bytes, uint64_t *hash);

#endif
