/* What writing (folder.c) and finding (folder_find.c) checkpoint folders share. */
#ifndef AH_IO_FOLDER_INTERNAL_H
#define AH_IO_FOLDER_INTERNAL_H

#include "base/status.h"

#define AH_CHECKSUMS "checksums.json"
enum { AH_CHECKSUMS_VERSION = 1 };

/* Calls visit for each DIR/step-DIGITS + suffix, in no order; stops at the first failure. AH_EINPUT when dir cannot be
 * opened. */
int ah__folder_walk(const char *dir, const char *suffix, int (*visit)(const char *path, int64_t step, void *context),
                    void *context);
/* "step-00000100" with `suffix` behind -> 100; -1: another name. */
int64_t ah__folder_step(const char *name, const char *suffix);
/* Length and ah__hash (seed 0) of a regular file, which may be empty. */
int ah__folder_file_hash(const char *path, int64_t *bytes, uint64_t *hash);

#endif
