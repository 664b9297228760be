/* Files that somebody named to be written, by one rule:
 *
 *   a file        replaced as a whole, by a temporary beside it that is complete and synced; its mode stays
 *   a link        followed: the file that it names is replaced, and made where it is not there
 *   a pipe, a device (of characters), an open file (/dev/stdout, /dev/fd/N)   written to as it is
 *   a folder, a socket, a device of blocks                                     refused
 *
 * Takes a path, gives a descriptor to write to. Knows not what is read: source/inputs.h. */
#ifndef AH_BASE_OUTPUT_H
#define AH_BASE_OUTPUT_H

#include "base/status.h"

struct ah_output {
    char *path;      /* as it was named, for messages */
    char *target;    /* what is replaced: the path, its links followed */
    char *temporary; /* beside it. Null: written to as it is */
    int fd;          /* -1: not open */
};

/* Whether PATH can be written, before the work for it; changes nothing. `rewinds`: its beginning is written last, which
 * no pipe can have. AH_EINPUT, AH_ENOMEM. */
int ah__output_check(const char *path, bool rewinds);
/* The file that writing to PATH replaces or makes, freed by ah__free; null: it is written to as it is. Fails as check.
 */
int ah__output_target(char **out, const char *path);
/* Opens; what processes that are gone left of the same name is removed. On failure there is nothing to drop. AH_EINPUT,
 * AH_EIO, AH_ENOMEM. */
int ah__output_open(struct ah_output *out, const char *path);
/* Syncs and puts in place. Whether or not that works the output is closed, and on failure PATH is as before. */
int ah__output_close(struct ah_output *out);
/* Gives up what is not closed yet: PATH is as before. What is closed or all zero but for fd -1 is fine. */
void ah__output_drop(struct ah_output *out);

#endif
