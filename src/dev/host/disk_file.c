#include "dev/host/disk_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

enum { ZEROS = 4 << 20, TRIES = 16 };

/* ---- the system's calls ------------------------------------------------------------------------------------------ */

static int nameless_open(const char *folder)
{
    return open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
}

static int direct_switch(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 ? -1 : fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT);
}

static const struct ah_disk_calls system_calls = {pread, pwrite, fallocate, nameless_open, direct_switch};
static struct ah_disk_calls call = {pread, pwrite, fallocate, nameless_open, direct_switch};

void ah__disk_calls(const struct ah_disk_calls *calls)
{
    call = system_calls;
    if (!calls)
        return;
    call.read = calls->read ? calls->read : call.read;
    call.write = calls->write ? calls->write : call.write;
    call.allocate = calls->allocate ? calls->allocate : call.allocate;
    call.nameless = calls->nameless ? calls->nameless : call.nameless;
    call.direct = calls->direct ? calls->direct : call.direct;
}

/* ---- transfers --------------------------------------------------------------------------------------------------- */

/* Writes what a file of ordinary I/O has in memory to the drive and frees that memory: the page cache would take what
 * the plan counts on, and a rate without the drive means nothing. A system that cannot loses nothing. */
static void cache_drop(const struct ah_disk_file *file, off_t at, size_t bytes, bool writes)
{
    if (!file->ordinary)
        return;
    if (writes)
        (void)sync_file_range(file->fd, at, (off_t)bytes,
                              SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    (void)posix_fadvise(file->fd, at, (off_t)bytes, POSIX_FADV_DONTNEED);
}

/* Direct I/O goes on at a multiple of AH_DISK_ALIGN behind a short transfer, however short it was. */
int ah__disk_file_move(const struct ah_disk_file *file, char *memory, int64_t at, int64_t bytes, bool writes)
{
    const char *verb = writes ? "write" : "read";
    int64_t done = 0;
    for (int tries = TRIES; done < bytes && tries > 0;) {
        size_t rest = (size_t)(bytes - done);
        ssize_t got = writes ? call.write(file->fd, memory + done, rest, at + done)
                             : call.read(file->fd, memory + done, rest, at + done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ah__fail(AH_EIO, "scratch file in %s: cannot %s %lld bytes at offset %lld: %s", file->folder, verb,
                            (long long)rest, (long long)(at + done), strerror(errno));
        int64_t whole = got / AH_DISK_ALIGN * AH_DISK_ALIGN;
        tries = whole ? TRIES : tries - 1;
        done += whole;
    }
    if (done < bytes)
        return ah__fail(AH_EIO, "scratch file in %s: cannot %s at offset %lld: found %lld bytes, expected %lld",
                        file->folder, verb, (long long)at, (long long)done, (long long)bytes);
    cache_drop(file, (off_t)at, (size_t)bytes, writes);
    return AH_OK;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static int fail_folder(const char *folder, const char *what)
{
    int cause = errno;
    return ah__fail(ah__open_status(cause), "%s: cannot %s: %s", folder, what, strerror(cause));
}

int ah__disk_file_init(struct ah_disk_file *file, const char *folder, size_t length)
{
    struct stat info;
    *file = (struct ah_disk_file){.fd = -1};
    AH_TRY(ah__sprintf(&file->folder, "%.*s", (int)length, folder));
    if (stat(file->folder, &info) != 0)
        return ah__fail(ah__open_status(errno), "%s: cannot find folder: %s; --disk names folders that are there",
                        file->folder, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return ah__fail(AH_EINPUT, "%s: found a file, expected a folder", file->folder);
    file->drive = info.st_dev;
    return AH_OK;
}

void ah__disk_file_fini(struct ah_disk_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    ah__free(file->folder);
}

bool ah__disk_file_in_memory(const struct ah_disk_file *file)
{
    struct statfs info;
    return statfs(file->folder, &info) == 0 && (info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC);
}

int ah__disk_file_free(int64_t *bytes, const struct ah_disk_file *file)
{
    struct statfs info;
    if (statfs(file->folder, &info) != 0)
        return fail_folder(file->folder, "find free bytes");
    *bytes = (int64_t)info.f_bavail * (int64_t)(info.f_frsize ? info.f_frsize : info.f_bsize);
    return AH_OK;
}

static int fail_full(const struct ah_disk_file *file, int64_t found, int64_t expected, const char *cause)
{
    char have[32], need[32];
    return ah__fail(AH_EIO, "%s: found %s free (%lld bytes), expected %s (%lld bytes) for scratch space%s%s",
                    file->folder, ah_size_format(have, sizeof have, found), (long long)found,
                    ah_size_format(need, sizeof need, expected), (long long)expected, cause ? ": " : "",
                    cause ? cause : "");
}

int ah__disk_file_room(const struct ah_disk_file *file, int64_t bytes)
{
    int64_t found;
    AH_TRY(ah__disk_file_free(&found, file));
    return bytes > found ? fail_full(file, found, bytes, NULL) : AH_OK;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* For file systems without files that have no name: removes the name at once. A crash in between leaves an empty file,
 * whose name says that it is temporary. */
static int named_open(struct ah_disk_file *file)
{
    char *whole, *name;
    AH_TRY(ah__sprintf(&whole, "%s/autohete", file->folder));
    int status = ah__file_temporary(&name, whole);
    ah__free(whole);
    AH_TRY(status);
    file->fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file->fd < 0)
        status = fail_folder(file->folder, "make a file in this folder");
    else if (unlink(name) != 0)
        status = fail_folder(name, "remove");
    ah__free(name);
    return status;
}

/* Makes btrfs write in place: it would write each block elsewhere, and run out of room that is allocated. */
static void in_place_set(const struct ah_disk_file *file)
{
    struct statfs info;
    int flags;
    if (fstatfs(file->fd, &info) != 0 || info.f_type != BTRFS_SUPER_MAGIC || ioctl(file->fd, FS_IOC_GETFLAGS, &flags))
        return;
    flags |= FS_NOCOW_FL;
    (void)ioctl(file->fd, FS_IOC_SETFLAGS, &flags);
}

int ah__disk_file_open(struct ah_disk_file *file)
{
    file->fd = call.nameless(file->folder);
    if (file->fd < 0 && errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOSYS && errno != ENOENT)
        return fail_folder(file->folder, "make a file in this folder");
    if (file->fd < 0)
        AH_TRY(named_open(file));
    in_place_set(file);
    return AH_OK;
}

static char *aligned(char *memory)
{
    return (char *)(((uintptr_t)memory + AH_DISK_ALIGN - 1) / AH_DISK_ALIGN * AH_DISK_ALIGN);
}

/* Tries direct I/O with one write, since some file systems refuse it only then. */
static int direct_try(struct ah_disk_file *file)
{
    char *memory;
    file->ordinary = call.direct(file->fd, true) != 0;
    if (file->ordinary)
        return AH_OK;
    AH_TRY(ah__new(&memory, 2, AH_DISK_ALIGN));
    if (call.write(file->fd, aligned(memory), AH_DISK_ALIGN, 0) < 0 && errno == EINVAL)
        file->ordinary = true;
    ah__free(memory);
    if (file->ordinary)
        (void)call.direct(file->fd, false);
    return AH_OK;
}

static int zeros_write(const struct ah_disk_file *file)
{
    char *memory;
    AH_TRY(ah__new(&memory, ZEROS + AH_DISK_ALIGN, 1));
    int status = AH_OK;
    for (int64_t at = 0; at < file->bytes && status == AH_OK; at += ZEROS)
        status =
            ah__disk_file_move(file, aligned(memory), at, file->bytes - at < ZEROS ? file->bytes - at : ZEROS, true);
    ah__free(memory);
    return status;
}

int ah__disk_file_allocate(struct ah_disk_file *file)
{
    int failed;
    if (!file->bytes)
        return AH_OK;
    AH_TRY(direct_try(file));
    do
        failed = call.allocate(file->fd, 0, 0, (off_t)file->bytes);
    while (failed && errno == EINTR);
    if (!failed)
        return AH_OK;
    int cause = errno;
    if (cause == EOPNOTSUPP || cause == ENOSYS)
        return zeros_write(file);
    int64_t found = 0;
    if ((cause == ENOSPC || cause == EDQUOT || cause == EFBIG) && ah__disk_file_free(&found, file) == AH_OK)
        return fail_full(file, found, file->bytes, strerror(cause));
    return ah__fail(AH_EIO, "scratch file in %s: cannot allocate %lld bytes: %s", file->folder, (long long)file->bytes,
                    strerror(cause));
}
