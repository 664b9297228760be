/* Preloaded into a program: something happens at its n-th system call that touches a folder.
 *
 *   AH_FAULT_FOLDER=PATH   the folder, absolute; counted are calls on paths and descriptors in it, and on itself
 *   AH_FAULT_AT=n          which call; 0: none
 *   AH_FAULT_HOW=kill      the process is killed right before the call
 *               =error     the call fails with EIO
 *               =full      the call fails with ENOSPC
 *               =short     a write or read is done by half; other calls are not counted
 *   AH_FAULT_LOG=FILE      a line "NAME PATH" for each call that is counted
 *
 * A failing close does close, as on Linux. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum outcome { GOES, FAILS, HALF };

static const char *folder;
static size_t folder_length;
static long fault_at;
static char how; /* the first letter */
static int log_fd = -1;
static atomic_long counted;

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("AH_FAULT_AT"), *log = getenv("AH_FAULT_LOG"), *what = getenv("AH_FAULT_HOW");
    folder = getenv("AH_FAULT_FOLDER");
    folder_length = folder ? strlen(folder) : 0;
    fault_at = at ? atol(at) : 0;
    how = what ? what[0] : 'e';
    if (log)
        log_fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

static bool is_inside(const char *path)
{
    return folder && path && strncmp(path, folder, folder_length) == 0 &&
           (path[folder_length] == '/' || path[folder_length] == 0);
}

static const char *fd_path(char room[PATH_MAX], int fd)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long length = syscall(SYS_readlinkat, AT_FDCWD, link, room, PATH_MAX - 1);
    room[length < 0 ? 0 : length] = 0;
    return room;
}

/* Counts the call when it is inside, and says what is to happen to it; errno is set when it is to fail. */
static enum outcome count(const char *name, const char *path, bool data)
{
    int before = errno;
    if (!is_inside(path) || (how == 's' && !data))
        return GOES;
    long number = atomic_fetch_add(&counted, 1) + 1;
    if (log_fd >= 0) {
        char line[PATH_MAX + 64];
        int length = snprintf(line, sizeof line, "%s %s\n", name, path + folder_length);
        if (syscall(SYS_write, log_fd, line, length) < 0)
            abort();
    }
    errno = before;
    if (number != fault_at)
        return GOES;
    if (how == 'k')
        kill(getpid(), SIGKILL);
    errno = how == 'f' ? ENOSPC : EIO;
    return how == 's' ? HALF : FAILS;
}

static enum outcome count_fd(const char *name, int fd, bool data)
{
    char room[PATH_MAX];
    int before = errno;
    const char *path = folder ? fd_path(room, fd) : NULL;
    errno = before;
    return count(name, path, data);
}

/* A path beside a folder's descriptor. */
static enum outcome count_at(const char *name, int fd, const char *path)
{
    char room[PATH_MAX], whole[2 * PATH_MAX];
    if (!folder || !path || path[0] == '/' || fd == AT_FDCWD)
        return count(name, path, false);
    snprintf(whole, sizeof whole, "%s/%s", fd_path(room, fd), path);
    return count(name, whole, false);
}

/* The function of that name in the C library. */
#define NEXT(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))

/* ---- calls with one path ----------------------------------------------------------------------------------------- */

#define ON_PATH(type, failed, name, parameters, arguments)                                                             \
    type name parameters                                                                                               \
    {                                                                                                                  \
        return count(#name, path, false) == FAILS ? failed : NEXT(name) arguments;                                     \
    }
ON_PATH(int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
ON_PATH(int, -1, rmdir, (const char *path), (path))
ON_PATH(int, -1, unlink, (const char *path), (path))
ON_PATH(int, -1, remove, (const char *path), (path))
ON_PATH(int, -1, access, (const char *path, int mode), (path, mode))
ON_PATH(int, -1, truncate, (const char *path, off_t length), (path, length))
ON_PATH(int, -1, stat, (const char *restrict path, struct stat *restrict info), (path, info))
ON_PATH(int, -1, lstat, (const char *restrict path, struct stat *restrict info), (path, info))
ON_PATH(ssize_t, -1, readlink, (const char *restrict path, char *restrict to, size_t size), (path, to, size))
ON_PATH(char *, NULL, realpath, (const char *restrict path, char *restrict to), (path, to))
ON_PATH(DIR *, NULL, opendir, (const char *path), (path))
ON_PATH(FILE *, NULL, fopen, (const char *restrict path, const char *restrict mode), (path, mode))

#define ON_PATH_AT(type, name, parameters, arguments)                                                                  \
    type name parameters                                                                                               \
    {                                                                                                                  \
        return count_at(#name, fd, path) == FAILS ? -1 : NEXT(name) arguments;                                         \
    }
ON_PATH_AT(int, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode))
ON_PATH_AT(int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags))
ON_PATH_AT(int, faccessat, (int fd, const char *path, int mode, int flags), (fd, path, mode, flags))
ON_PATH_AT(int, fstatat, (int fd, const char *restrict path, struct stat *restrict info, int flags),
           (fd, path, info, flags))

static bool makes(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

static mode_t mode_of(int flags, va_list arguments)
{
    return makes(flags) ? va_arg(arguments, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return count("open", path, false) == FAILS ? -1 : NEXT(open)(path, flags, mode);
}

int openat(int fd, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return count_at("openat", fd, path) == FAILS ? -1 : NEXT(openat)(fd, path, flags, mode);
}

/* ---- calls with two: the second is what comes to be -------------------------------------------------------------- */

int rename(const char *from, const char *to)
{
    return count("rename", to, false) == FAILS ? -1 : NEXT(rename)(from, to);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    return count_at("renameat", to_fd, to) == FAILS ? -1 : NEXT(renameat)(from_fd, from, to_fd, to);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    return count_at("renameat2", to_fd, to) == FAILS ? -1 : NEXT(renameat2)(from_fd, from, to_fd, to, flags);
}

int link(const char *from, const char *to)
{
    return count("link", to, false) == FAILS ? -1 : NEXT(link)(from, to);
}

int symlink(const char *target, const char *path)
{
    return count("symlink", path, false) == FAILS ? -1 : NEXT(symlink)(target, path);
}

int symlinkat(const char *target, int fd, const char *path)
{
    return count_at("symlinkat", fd, path) == FAILS ? -1 : NEXT(symlinkat)(target, fd, path);
}

/* ---- calls with a descriptor ------------------------------------------------------------------------------------- */

#define ON_FD(name, parameters, arguments)                                                                             \
    int name parameters                                                                                                \
    {                                                                                                                  \
        return count_fd(#name, fd, false) == FAILS ? -1 : NEXT(name) arguments;                                        \
    }
ON_FD(fsync, (int fd), (fd))
ON_FD(fdatasync, (int fd), (fd))
ON_FD(syncfs, (int fd), (fd))
ON_FD(fstat, (int fd, struct stat *info), (fd, info))
ON_FD(ftruncate, (int fd, off_t length), (fd, length))
ON_FD(fallocate, (int fd, int mode, off_t at, off_t bytes), (fd, mode, at, bytes))

int close(int fd)
{
    enum outcome outcome = count_fd("close", fd, false);
    int cause = errno, status = NEXT(close)(fd);
    if (outcome != FAILS)
        return status;
    errno = cause;
    return -1;
}

/* As many bytes as the outcome lets through: of several pages whole ones, which direct I/O asks for. */
static size_t part(enum outcome outcome, size_t bytes)
{
    const size_t page = 4096;
    size_t half = bytes / 2 < page ? bytes / 2 : bytes / 2 / page * page;
    return outcome == HALF && bytes > 1 ? half : bytes;
}

#define ON_DATA(name, parameters, arguments)                                                                           \
    ssize_t name parameters                                                                                            \
    {                                                                                                                  \
        enum outcome outcome = count_fd(#name, fd, true);                                                              \
        bytes = part(outcome, bytes);                                                                                  \
        return outcome == FAILS ? -1 : NEXT(name) arguments;                                                           \
    }
ON_DATA(write, (int fd, const void *from, size_t bytes), (fd, from, bytes))
ON_DATA(pwrite, (int fd, const void *from, size_t bytes, off_t at), (fd, from, bytes, at))
ON_DATA(read, (int fd, void *to, size_t bytes), (fd, to, bytes))
ON_DATA(pread, (int fd, void *to, size_t bytes, off_t at), (fd, to, bytes, at))

ssize_t writev(int fd, const struct iovec *parts, int count_of_parts)
{
    enum outcome outcome = count_fd("writev", fd, true);
    if (outcome == FAILS)
        return -1;
    if (outcome == HALF)
        return NEXT(write)(fd, parts[0].iov_base, part(outcome, parts[0].iov_len));
    return NEXT(writev)(fd, parts, count_of_parts);
}

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
    if (fd >= 0 && count_fd("mmap", fd, false) == FAILS)
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}

struct dirent *readdir(DIR *list)
{
    return count_fd("readdir", dirfd(list), false) == FAILS ? NULL : NEXT(readdir)(list);
}

int closedir(DIR *list)
{
    enum outcome outcome = count_fd("closedir", dirfd(list), false);
    int cause = errno, status = NEXT(closedir)(list);
    if (outcome != FAILS)
        return status;
    errno = cause;
    return -1;
}
