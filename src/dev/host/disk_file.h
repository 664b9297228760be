/* One file without a name, for scratch space in a folder: its room on the drive, direct I/O, whole transfers.
 *
 * Takes a folder's name; the system removes the file when the process ends, in whatever way. Knows no threads. */
#ifndef AH_DEV_HOST_DISK_FILE_H
#define AH_DEV_HOST_DISK_FILE_H

#include <sys/types.h>

#include "base/status.h"

/* Offsets, sizes and addresses are multiples of it. */
enum { AH_DISK_ALIGN = 4096 };

struct ah_disk_file {
    char *folder;
    int fd;        /* -1: not open */
    dev_t drive;   /* the file system that the folder is on */
    int64_t bytes; /* to allocate; set by the caller */
    bool ordinary; /* direct I/O was refused */
};

/* Finds the folder of the first `length` bytes of `folder`. The file must be finished, also when this fails. AH_EINPUT:
 * it is not there, or no folder; AH_ENOMEM. */
int ah__disk_file_init(struct ah_disk_file *file, const char *folder, size_t length);
void ah__disk_file_fini(struct ah_disk_file *file);
/* Makes the file, still empty. AH_EINPUT: the folder cannot be written; AH_EIO, AH_ENOMEM. */
int ah__disk_file_open(struct ah_disk_file *file);
/* Gives the free bytes of the drive. AH_EINPUT, AH_EIO. */
int ah__disk_file_free(int64_t *bytes, const struct ah_disk_file *file);
/* Fails with AH_EIO unless `bytes` are free on the drive. */
int ah__disk_file_room(const struct ah_disk_file *file, int64_t bytes);
/* Allocates the file's bytes, by zeros where the file system knows nothing else, and turns direct I/O on where it is
 * allowed. AH_EIO, AH_ENOMEM. */
int ah__disk_file_allocate(struct ah_disk_file *file);
/* Reads or writes all `bytes` at offset `at`; any number of threads at a time. AH_EIO with folder, offset and the
 * system's error. Allocates nothing. */
int ah__disk_file_move(const struct ah_disk_file *file, char *memory, int64_t at, int64_t bytes, bool writes);
/* Returns true if the folder is in memory. */
bool ah__disk_file_in_memory(const struct ah_disk_file *file);

/* For tests: system calls, or what stands for them. They return -1 and set errno when they fail. */
struct ah_disk_calls {
    ssize_t (*read)(int fd, void *to, size_t bytes, off_t at);
    ssize_t (*write)(int fd, const void *from, size_t bytes, off_t at);
    int (*allocate)(int fd, int mode, off_t at, off_t bytes);
    int (*nameless)(const char *folder); /* opens a file without a name */
    int (*direct)(int fd, bool on);      /* switches direct I/O */
};
/* Replaces the calls that are not null, in all disks of this process; null: the system's. */
void ah__disk_calls(const struct ah_disk_calls *calls);

#endif
