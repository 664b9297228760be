/* Scratch space in files of one or several folders, read and written at the rate of the drive.
 *
 * Takes the names of folders and a size, moves whole pages between memory and files. The files have no name from the
 * start, so the system removes them when the process ends, in whatever way. Knows no lanes, tensors or plans.
 *
 * A call is cut into requests of 4 MiB, which a few threads take with pread and pwrite and direct I/O. Memory in huge
 * pages, as ah__pages_new makes it, moves about twice as fast as in small ones, of which a drive takes a few hundred at
 * a time. There is no io_uring: measured on 2026-11-29 on a virtual machine (AMD EPYC, 2 cores, ext4) with requests of
 * 4 MiB from huge pages, 8 threads read 2.04 GiB/s and write 4.83, io_uring with 8 registered buffers 2.04 and 4.87;
 * from small pages 0.90 and 2.10, 0.91 and 2.33. bench/disk_probe measures threads beside fio. */
#ifndef AH_DEV_HOST_DISK_H
#define AH_DEV_HOST_DISK_H

#include "dev/host/disk_file.h" /* AH_DISK_ALIGN, of which offsets, sizes and addresses are multiples */

struct ah_disk;
/* Makes scratch space of `bytes` in the folders, whose names are separated by commas; over several it is striped in
 * pieces of 4 MiB. The space is allocated before this returns. `threads`: the caller and so many minus one of the
 * disk's own; 0: 8. AH_EINPUT: a folder is not there or cannot be written. AH_EIO: a drive has too little room, or
 * fails; nothing remains in the folders. AH_ENOMEM. */
int ah__disk_open(struct ah_disk **out, const char *folders, int64_t bytes, int threads);
void ah__disk_close(struct ah_disk *disk); /* null is fine */
/* Read and write; return when all bytes are there, or handed to the drive. Scratch is not synced. One call at a time.
 * They allocate nothing. AH_EIO; the message names file, offset and the system's error, and the rest of the call may be
 * left undone. AH_EINTERNAL: not aligned, or outside. */
int ah__disk_read(struct ah_disk *disk, void *to, int64_t offset, int64_t bytes);
int ah__disk_write(struct ah_disk *disk, int64_t offset, const void *from, int64_t bytes);
/* Returns a sentence for the user that names the first folder in which direct I/O was refused, so that ordinary I/O is
 * used, or which is memory and no drive; "" otherwise. Lives as long as the disk. */
const char *ah__disk_note(const struct ah_disk *disk);

struct ah_disk_rates {
    /* `both`: bytes read and written together, by reads and writes in turn */
    int64_t read_bytes_per_s, write_bytes_per_s, both_bytes_per_s;
    int64_t latency_ns; /* of a read of AH_DISK_ALIGN bytes */
    int64_t free_bytes; /* as ah__disk_free_bytes has it, before measuring */
};
/* Measures the folders' drives with calls of `piece` bytes: medians of rounds that take about 2 seconds together, on
 * scratch of at most 1 GiB and an eighth of what is free. Drives that cache writes keep these rates as long as their
 * cache has room. Statuses as ah__disk_open. */
int ah__disk_measure(struct ah_disk_rates *out, const char *folders, int64_t piece);
/* Gives the bytes that scratch space may take in all folders together: their number times the least share. Folders of
 * one file system share its free bytes, of which a hundredth is left for the file system's own use. AH_EINPUT, AH_EIO,
 * AH_ENOMEM. */
int ah__disk_free_bytes(int64_t *bytes, const char *folders);

#endif
