/* Files of the paths a user gives: a file stands for itself, a folder for all files in it. Knows not what is in
 * them. */
#ifndef AH_IO_PATHS_H
#define AH_IO_PATHS_H

#include "base/status.h"

struct ah_path {
    char *path;
    const char *within; /* the end of it that begins in the folder given; "" for a file that was given itself */
};

struct ah_paths {
    struct ah_path *path;
    size_t count, room;
};

/* Adds a file, or a folder's regular files and those of folders in it (links to files too, names that begin with a dot
 * not), in order of their paths. AH_EINPUT: missing, unreadable, a folder without files; AH_EIO; AH_ENOMEM. */
int ah__paths_add(struct ah_paths *paths, const char *path);
/* Adds what is no path but stands for one. AH_ENOMEM. */
int ah__paths_add_name(struct ah_paths *paths, const char *path);
/* Zero-initialised is fine. */
void ah__paths_free(struct ah_paths *paths);

#endif
