/* Files: whole reads, memory maps, and writes that are never seen half done. */
#ifndef AH_BASE_FILE_H
#define AH_BASE_FILE_H

#include "base/status.h"

/* The whole file, with a terminating zero byte after *length bytes. Freed with ah__free. AH_EINPUT when it is missing,
 * unreadable, no regular file or longer than `most`; AH_EIO; both name the file and the cause. */
int ah__file_read(char **text, size_t *length, const char *path, size_t most);
/* Replaces the file at PATH, by the rule of base/output.h. On failure PATH is as before, no temporary left. For a name
 * of our own in a folder that may come from elsewhere call ah__file_own first. */
int ah__file_write(const char *path, const void *data, size_t length);
/* Removes a symbolic link at PATH, so that what is written there next is a file of that folder. AH_EINPUT: a pipe,
 * socket or device is there; AH_EIO. */
int ah__file_own(const char *path);
/* AH_EINPUT of causes (errno) that the caller of the program can mend by naming another file, else AH_EIO. */
int ah__open_status(int cause);
/* Removes temporaries of PATH whose process is gone, as far as that is possible. AH_ENOMEM. */
int ah__file_sweep(const char *path);
/* PATH.tmp-PID-PLACE, to be freed by ah__free: PLACE tells boot and process namespace in which the number means this
 * process. The end of a long name is left out before it. */
int ah__file_temporary(char **out, const char *path);
/* Whether NAME is a temporary of a process of this place that is gone; *length: of the name without what
 * ah__file_temporary added. */
bool ah__file_left_over(size_t *length, const char *name);
/* All bytes to an open file; `path` for the message. AH_EIO (also a full disk). */
int ah__file_put(int fd, const void *data, size_t length, const char *path);

/* What tells a file that was changed or replaced from one that was not, without reading it. */
struct ah_file_stamp {
    int64_t bytes, modified_ns; /* ns since 1970 */
    uint64_t inode;
};
/* Opens a regular file for ah__file_read_at; the caller closes *fd. `stamp` may be null. AH_EINPUT when it is missing,
 * unreadable or no regular file; AH_EIO. */
int ah__file_open(int *fd, struct ah_file_stamp *stamp, const char *path);
/* Exactly `length` bytes from `offset` on, wherever they come from. AH_EIO, also when the file ends before: it became
 * shorter than it was. Allocates nothing. */
int ah__file_read_at(int fd, void *to, size_t length, int64_t offset, const char *path);

struct ah_map {
    const unsigned char *data;
    size_t length;
};
/* Read-only map of a regular, nonempty file. AH_EINPUT when missing, empty or no regular file. */
int ah__map_open(struct ah_map *out, const char *path);
void ah__map_close(struct ah_map *map);

/* mkdir -p; what is made is durable. AH_EINPUT when a part exists and is no folder or cannot be written. */
int ah__folder_make(const char *path);
/* Removes a folder and everything in it (no symbolic link is followed). Missing is fine. */
int ah__folder_remove(const char *path);
int ah__folder_sync(const char *path);
/* The absolute path without links of what exists, to be freed by ah__free; null into *out where there is nothing.
 * AH_EIO, AH_ENOMEM. */
int ah__path_real(char **out, const char *path);
/* Whether both name one thing that exists. AH_EIO, AH_ENOMEM. */
int ah__path_same(bool *same, const char *a, const char *b);
bool ah__path_exists(const char *path);

#endif
