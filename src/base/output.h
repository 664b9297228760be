/* Files that a user named as output, written by one rule:
 *
 *   a file        replaced as a whole, by a temporary beside it that is complete and synced; its mode stays
 *   a link        followed: the file that it names is replaced, or made if it does not exist
 *   a pipe, a character device, an open file (/dev/stdout, /dev/fd/N)   written to directly
 *   a folder, a socket, a block device                                  refused
 *
 * Takes a path, gives a descriptor to write to. Knows nothing of the program's inputs: see source/inputs.h. */
#ifndef AH_BASE_OUTPUT_H
#define AH_BASE_OUTPUT_H

#include "base/status.h"

struct ah_output {
    char *path;      /* as the user wrote it, for messages */
    char *target;    /* the file that is replaced: the path, its links followed */
    char *temporary; /* beside the target; null: the path is written to directly */
    int fd;          /* -1: not open */
};

/* Checks before a long computation that PATH can be written; changes nothing. `rewinds`: the beginning is written last,
 * which a pipe does not allow. AH_EINPUT, AH_ENOMEM. */
int ah__output_check(const char *path, bool rewinds);
/* Gives the file that writing to PATH replaces or makes, freed by ah__free; null if PATH is written to directly. Fails
 * as ah__output_check. */
int ah__output_target(char **out, const char *path);
/* Opens the output and removes temporary files of the same target whose processes have ended. After a failure there is
 * nothing to drop. AH_EINPUT, AH_EIO, AH_ENOMEM. */
int ah__output_open(struct ah_output *out, const char *path);
/* Syncs the temporary file and moves it to its place. Closes the output also on failure; PATH is then unchanged. */
int ah__output_close(struct ah_output *out);
/* Discards an output that is not closed: PATH is unchanged. A closed output, or one that is all zero but for fd -1, is
 * fine. */
void ah__output_drop(struct ah_output *out);

#endif
