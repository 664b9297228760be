/* The files of paths that a user gives: a file, or all files in a folder. Knows nothing of their content. */
#ifndef AH_IO_PATHS_H
#define AH_IO_PATHS_H

#include "base/status.h"

struct ah_path {
    char *path;
    const char *within; /* the end of `path` that begins in the given folder; "" for a file that was given itself */
};

struct ah_paths {
    struct ah_path *path;
    size_t count, room;
};

/* Adds a file, or the regular files of a folder and of all folders in it, in order of their paths (links to files
 * included, names that begin with a dot not). AH_EINPUT: missing, unreadable, a folder without files; AH_EIO;
 * AH_ENOMEM. */
int ah__paths_add(struct ah_paths *paths, const char *path);
/* Adds a name that is not a path but used like one. AH_ENOMEM. */
int ah__paths_add_name(struct ah_paths *paths, const char *path);
/* Frees the paths. Zero-initialised is fine. */
void ah__paths_free(struct ah_paths *paths);

#endif
