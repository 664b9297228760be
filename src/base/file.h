/* Files: whole reads, memory maps, and writes of which no reader sees a half. */
#ifndef AH_BASE_FILE_H
#define AH_BASE_FILE_H

#include "base/status.h"

/* Reads the whole file and adds a zero byte after *length bytes. Freed with ah__free. AH_EINPUT if it is missing,
 * unreadable, not a regular file or longer than `most` bytes; AH_EIO. Messages name the file and the cause. */
int ah__file_read(char **text, size_t *length, const char *path, size_t most);
/* Replaces the file at PATH, by the rule of base/output.h. On failure PATH is unchanged and no temporary file remains.
 * For a file with a fixed name in a folder that may come from elsewhere, call ah__file_own first. */
int ah__file_write(const char *path, const void *data, size_t length);
/* Removes a symbolic link at PATH, so that the next write makes a file in that folder. AH_EINPUT if a pipe, socket or
 * device is there; AH_EIO. */
int ah__file_own(const char *path);
/* Returns AH_EINPUT for a cause (errno) that the user can mend by naming another file, else AH_EIO. */
int ah__open_status(int cause);
/* Removes temporary files of PATH whose process has ended, as far as possible. AH_ENOMEM. */
int ah__file_sweep(const char *path);
/* Makes the name PATH.tmp-PID-PLACE, freed by ah__free. PLACE identifies the boot and the process namespace in which
 * PID means this process. A long PATH loses the end of its last part. */
int ah__file_temporary(char **out, const char *path);
/* Returns true if NAME is the temporary file of a process of this boot and namespace that has ended. *length receives
 * the bytes of the name without the part that ah__file_temporary added. */
bool ah__file_left_over(size_t *length, const char *name);
/* Writes all bytes to an open file; `path` is for the message. AH_EIO (also for a full disk). */
int ah__file_put(int fd, const void *data, size_t length, const char *path);

/* A file's identity: shows without reading it whether the file was changed or replaced. */
struct ah_file_stamp {
    int64_t bytes, modified_ns; /* ns since 1970 */
    uint64_t inode;
};
/* Opens a regular file for ah__file_read_at; the caller closes *fd. `stamp` may be null. AH_EINPUT if it is missing,
 * unreadable or not a regular file; AH_EIO. */
int ah__file_open(int *fd, struct ah_file_stamp *stamp, const char *path);
/* Reads exactly `length` bytes at `offset`. AH_EIO, also if the file ends before: it was longer when it was opened.
 * Allocates nothing. */
int ah__file_read_at(int fd, void *to, size_t length, int64_t offset, const char *path);

struct ah_map {
    const unsigned char *data;
    size_t length;
};
/* Maps a regular, nonempty file read-only. AH_EINPUT if it is missing, empty or not a regular file. */
int ah__map_open(struct ah_map *out, const char *path);
void ah__map_close(struct ah_map *map);

/* Makes a folder and its missing parents; they are durable. AH_EINPUT if a part exists and is not a folder, or cannot
 * be written. */
int ah__folder_make(const char *path);
/* Removes a folder and everything in it (no symbolic link is followed). A missing folder is no error. */
int ah__folder_remove(const char *path);
int ah__folder_sync(const char *path);
/* Gives the absolute path without links, freed by ah__free; *out is null if PATH does not exist. AH_EIO, AH_ENOMEM. */
int ah__path_real(char **out, const char *path);
/* Gives the same for each of several paths with commas between; what does not exist stays as it is. Freed by
 * ah__free. */
int ah__paths_real(char **out, const char *paths);
/* Sets *same if both paths lead to the same existing file or folder. AH_EIO, AH_ENOMEM. */
int ah__path_same(bool *same, const char *a, const char *b);
bool ah__path_exists(const char *path);
/* Returns true if the folder has an entry of that name. */
bool ah__path_has(const char *folder, const char *name);

#endif
