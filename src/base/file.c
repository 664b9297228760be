#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

int ah__open_status(int cause)
{
    switch (cause) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
    case ENAMETOOLONG:
    case ENXIO: /* a socket */
        return AH_EINPUT;
    default:
        return AH_EIO;
    }
}

static int fail_open(const char *path, const char *what)
{
    int cause = errno;
    char to[256];
    ssize_t length = cause == ENOENT ? readlink(path, to, sizeof to) : -1;
    if (length > 0)
        return ah__fail(AH_EINPUT, "%s: found a link to '%.*s', which is not there, expected what it leads to", path,
                        (int)length, to);
    return ah__fail(ah__open_status(cause), "%s: cannot %s: %s", path, what, strerror(cause));
}

static int fail_io(const char *path, const char *what)
{
    return ah__fail(AH_EIO, "%s: cannot %s: %s", path, what, strerror(errno));
}

bool ah__path_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

bool ah__path_has(const char *folder, const char *name)
{
    struct stat info;
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool has = fd >= 0 && fstatat(fd, name, &info, 0) == 0;
    if (fd >= 0)
        close(fd);
    return has;
}

int ah__path_real(char **out, const char *path)
{
    char *real = realpath(path, NULL);
    *out = real;
    if (real || errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ELOOP || errno == ENAMETOOLONG)
        return AH_OK;
    return errno == ENOMEM ? ah__fail(AH_ENOMEM, "%s: out of host memory", path) : fail_io(path, "find");
}

/* Gives `before`, a comma unless it is null, and the path of `length` bytes: absolute if it exists. */
static int path_append(char **out, const char *before, const char *path, size_t length)
{
    char *given, *real = NULL;
    AH_TRY(ah__sprintf(&given, "%.*s", (int)length, path));
    int status = ah__path_real(&real, given);
    if (status == AH_OK)
        status = ah__sprintf(out, "%s%s%s", before ? before : "", before ? "," : "", real ? real : given);
    ah__free(real);
    ah__free(given);
    return status;
}

int ah__paths_real(char **out, const char *paths)
{
    char *all = NULL;
    for (const char *at = paths;; at++) {
        char *before = all;
        size_t length = strcspn(at, ",");
        int status = path_append(&all, before, at, length);
        ah__free(before);
        AH_TRY(status);
        at += length;
        if (!*at)
            break;
    }
    *out = all;
    return AH_OK;
}

int ah__path_same(bool *same, const char *a, const char *b)
{
    char *left, *right;
    AH_TRY(ah__path_real(&left, a));
    int status = ah__path_real(&right, b);
    if (status == AH_OK) {
        *same = left && right && strcmp(left, right) == 0;
        ah__free(right);
    }
    ah__free(left);
    return status;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

int ah__file_open(int *out, struct ah_file_stamp *stamp, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info = {0};
    if (fd < 0)
        return fail_open(path, "open");
    int status = AH_OK;
    if (fstat(fd, &info) != 0)
        status = fail_io(path, "read");
    else if (!S_ISREG(info.st_mode))
        status = ah__fail(AH_EINPUT, "%s: found %s, expected a regular file", path,
                          S_ISDIR(info.st_mode) ? "a folder" : "a device or pipe");
    if (status != AH_OK) {
        close(fd);
        return status;
    }
    *out = fd;
    if (stamp)
        *stamp = (struct ah_file_stamp){info.st_size, (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec,
                                        (uint64_t)info.st_ino};
    return AH_OK;
}

/* Opens a regular file for reading; *length receives its bytes. */
static int regular_open(int *out, size_t *length, const char *path)
{
    struct ah_file_stamp stamp;
    AH_TRY(ah__file_open(out, &stamp, path));
    *length = (size_t)stamp.bytes;
    return AH_OK;
}

int ah__file_read_at(int fd, void *to, size_t length, int64_t offset, const char *path)
{
    for (size_t done = 0; done < length;) {
        ssize_t got = pread(fd, (char *)to + done, length - done, offset + (int64_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_io(path, "read");
        if (got == 0)
            return ah__fail(AH_EIO,
                            "%s: found %lld bytes, expected more than that: it was cut short since it was opened", path,
                            (long long)(offset + (int64_t)done));
        done += (size_t)got;
    }
    return AH_OK;
}

static int read_all(int fd, char *to, size_t length, const char *path)
{
    for (size_t done = 0; done < length;) {
        ssize_t got = read(fd, to + done, length - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_io(path, "read");
        if (got == 0)
            return ah__fail(AH_EIO, "%s: found %zu bytes, expected %zu: it shrank while being read", path, done,
                            length);
        done += (size_t)got;
    }
    return AH_OK;
}

int ah__file_read(char **text, size_t *length, const char *path, size_t most)
{
    int fd;
    size_t bytes;
    char *memory = NULL;
    AH_TRY(regular_open(&fd, &bytes, path));
    int status = bytes > most ? ah__fail(AH_EINPUT, "%s: found %zu bytes, expected at most %zu", path, bytes, most)
                              : ah__new(&memory, bytes + 1, 1);
    if (status == AH_OK)
        status = read_all(fd, memory, bytes, path);
    close(fd);
    if (status != AH_OK) {
        ah__free(memory);
        return status;
    }
    *text = memory;
    *length = bytes;
    return AH_OK;
}

int ah__map_open(struct ah_map *out, const char *path)
{
    int fd;
    size_t length;
    AH_TRY(regular_open(&fd, &length, path));
    if (!length) {
        close(fd);
        return ah__fail(AH_EINPUT, "%s: found an empty file, expected data", path);
    }
    void *data = mmap(NULL, length, PROT_READ, MAP_PRIVATE, fd, 0);
    int status = data == MAP_FAILED ? fail_io(path, "map") : AH_OK;
    close(fd);
    if (status == AH_OK)
        *out = (struct ah_map){data, length};
    return status;
}

void ah__map_close(struct ah_map *map)
{
    if (map->data)
        munmap((void *)(uintptr_t)map->data, map->length);
    *map = (struct ah_map){0};
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

int ah__file_put(int fd, const void *data, size_t length, const char *path)
{
    const char *from = data;
    for (size_t done = 0; done < length;) {
        ssize_t put = write(fd, from + done, length - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return fail_io(path, "write");
        done += (size_t)put;
    }
    return AH_OK;
}

static int parent_sync(const char *path)
{
    char *parent;
    AH_TRY(ah__strdup(&parent, path));
    char *slash = strrchr(parent, '/');
    if (slash)
        slash[slash == parent] = 0;
    int status = ah__folder_sync(slash ? parent : ".");
    ah__free(parent);
    return status;
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

static int folder_make_one(const char *path)
{
    struct stat info;
    if (mkdir(path, 0777) == 0)
        return parent_sync(path);
    int cause = errno;
    if (stat(path, &info) == 0)
        return S_ISDIR(info.st_mode) ? AH_OK : ah__fail(AH_EINPUT, "%s: found a file, expected a folder", path);
    return ah__fail(ah__open_status(cause), "%s: cannot make folder: %s", path, strerror(cause));
}

int ah__folder_make(const char *path)
{
    char *part;
    if (!path[0])
        return ah__fail(AH_EINPUT, "found an empty name, expected a folder");
    AH_TRY(ah__strdup(&part, path));
    int status = AH_OK;
    for (char *at = part + 1; status == AH_OK && *at; at++) {
        if (*at != '/')
            continue;
        *at = 0;
        status = folder_make_one(part);
        *at = '/';
    }
    if (status == AH_OK)
        status = folder_make_one(part);
    ah__free(part);
    if (status == AH_OK && access(path, W_OK | X_OK) != 0)
        status = fail_open(path, "write into folder");
    return status;
}

static int remove_visit(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

int ah__folder_remove(const char *path)
{
    enum { OPEN_FOLDERS = 16 };
    struct stat info;
    if (lstat(path, &info) != 0 && errno == ENOENT)
        return AH_OK;
    if (nftw(path, remove_visit, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS) != 0)
        return fail_io(path, "remove");
    return AH_OK;
}

int ah__folder_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail_open(path, "open");
    /* Some file systems cannot sync a folder and fail with EINVAL; that is no error. */
    int status = fsync(fd) != 0 && errno != EINVAL ? fail_io(path, "write") : AH_OK;
    close(fd);
    return status;
}
