/* Files: whole reads, memory maps, and writes that are never seen half done. */
#ifndef AH_BASE_FILE_H
#define AH_BASE_FILE_H

#include "base/status.h"

/* The whole file, with a terminating zero byte after *length bytes. Freed with ah__free. AH_EINPUT when it is missing,
 * unreadable, no regular file or longer than `most`; AH_EIO; both name the file and the cause. */
int ah__file_read(char **text, size_t *length, const char *path, size_t most);
/* Writes to PATH.tmp-PID, fsyncs, renames over PATH, fsyncs the folder. On failure PATH is as before, no temporary
 * left. */
int ah__file_write(const char *path, const void *data, size_t length);
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
bool ah__path_exists(const char *path);

#endif
