#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

/* ---- target of a path -------------------------------------------------------------------------------------------- */

static int fail_write(const char *path)
{
    return ah__fail(ah__open_status(errno), "%s: cannot write: %s", path, strerror(errno));
}

/* Gives the folder of PATH, freed by ah__free. */
static int folder_of(char **out, const char *path)
{
    const char *slash = strrchr(path, '/');
    return ah__sprintf(out, "%.*s", !slash ? 1 : slash == path ? 1 : (int)(slash - path), slash ? path : ".");
}

/* Gives the path to which the link at PATH points, one step, freed by ah__free. */
static int link_follow(char **out, const char *path)
{
    char to[PATH_MAX];
    ssize_t length = readlink(path, to, sizeof to);
    const char *slash = strrchr(path, '/');
    if (length < 0 || length == (ssize_t)sizeof to)
        return ah__fail(AH_EINPUT, "%s: cannot follow the link: %s", path, strerror(length < 0 ? errno : ENAMETOOLONG));
    return ah__sprintf(out, "%.*s%.*s", slash && to[0] != '/' ? (int)(slash + 1 - path) : 0, path, (int)length, to);
}

/* Sets *out if PATH names an open file of a process (/proc/PID/fd/N). */
static int is_open_file(bool *out, const char *path)
{
    struct statfs system;
    char *folder;
    AH_TRY(folder_of(&folder, path));
    *out = statfs(folder, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
    ah__free(folder);
    return AH_OK;
}

/* Follows the links at the end of a path, also to a target that does not exist. *out is null if PATH leads to a
 * process's open file. */
static int links_follow(char **out, const char *path)
{
    enum { LINKS_MOST = 40 };
    struct stat info;
    char *at, *next = NULL;
    bool open = false;
    AH_TRY(ah__strdup(&at, path));
    int status = AH_OK;
    for (int i = 0; status == AH_OK && !open && lstat(at, &info) == 0 && S_ISLNK(info.st_mode); i++) {
        status = i == LINKS_MOST ? ah__fail(AH_EINPUT, "%s: cannot write: %s", path, strerror(ELOOP))
                                 : is_open_file(&open, at);
        if (status != AH_OK || open)
            break;
        status = link_follow(&next, at);
        if (status == AH_OK) {
            ah__free(at);
            at = next;
        }
    }
    if (status != AH_OK || open)
        ah__free(at);
    if (status == AH_OK)
        *out = open ? NULL : at;
    return status;
}

static int kind_check(const char *path, mode_t mode)
{
    const char *found = S_ISDIR(mode) ? "a folder" : S_ISSOCK(mode) ? "a socket" : S_ISBLK(mode) ? "a disk" : NULL;
    return found ? ah__fail(AH_EINPUT, "%s: found %s, expected a file name", path, found) : AH_OK;
}

int ah__output_target(char **out, const char *path)
{
    struct stat info;
    size_t length = strlen(path);
    *out = NULL;
    if (!length)
        return ah__fail(AH_EINPUT, "found an empty name, expected a file to write");
    if (stat(path, &info) == 0) {
        AH_TRY(kind_check(path, info.st_mode));
        if (!S_ISREG(info.st_mode))
            return AH_OK;
    } else if (errno != ENOENT) {
        return fail_write(path);
    }
    if (path[length - 1] == '/')
        return ah__fail(AH_EINPUT, "%s: found a folder's name, expected a file name", path);
    return links_follow(out, path);
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

/* Returns true if PATH is a mount point, which cannot be replaced. */
static bool is_mounted(const char *path)
{
#ifdef STATX_ATTR_MOUNT_ROOT
    struct statx info;
    return statx(AT_FDCWD, path, 0, 0, &info) == 0 && (info.stx_attributes & STATX_ATTR_MOUNT_ROOT);
#else
    (void)path;
    return false;
#endif
}

static int target_check(const char *path, const char *target)
{
    char *folder;
    AH_TRY(folder_of(&folder, target));
    bool there = access(target, F_OK) == 0;
    int status = AH_OK;
    if (access(folder, W_OK | X_OK) != 0)
        status = ah__fail(AH_EINPUT, "%s: cannot write into folder '%s': %s", path, folder, strerror(errno));
    else if (there && access(target, W_OK) != 0)
        status = fail_write(path);
    else if (there && is_mounted(target))
        status = ah__fail(AH_EINPUT, "%s: found a file that is mounted there, expected one that can be replaced", path);
    ah__free(folder);
    return status;
}

/* Checks a pipe, a device or an open file, which is written to directly. */
static int special_check(const char *path, bool rewinds)
{
    struct stat info;
    if (access(path, W_OK) != 0)
        return fail_write(path);
    if (rewinds && stat(path, &info) == 0 && !S_ISCHR(info.st_mode))
        return ah__fail(AH_EINPUT, "%s: found a pipe or an open file, expected a file: its beginning is written last",
                        path);
    return AH_OK;
}

int ah__output_check(const char *path, bool rewinds)
{
    char *target;
    AH_TRY(ah__output_target(&target, path));
    int status = target ? target_check(path, target) : special_check(path, rewinds);
    ah__free(target);
    return status;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Creates the temporary file with the mode and, if permitted, the owner of the file that it replaces. */
static int temporary_open(struct ah_output *out)
{
    enum { FLAGS = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW };
    struct stat info;
    AH_TRY(ah__file_temporary(&out->temporary, out->target));
    AH_TRY(ah__file_sweep(out->target));
    out->fd = open(out->temporary, FLAGS, 0666);
    if (out->fd < 0 && errno == EEXIST && unlink(out->temporary) == 0) /* left by an earlier process with this number */
        out->fd = open(out->temporary, FLAGS, 0666);
    if (out->fd < 0)
        return fail_write(out->path);
    if (stat(out->target, &info) != 0)
        return AH_OK;
    int owned = fchown(out->fd, info.st_uid, info.st_gid); /* only root may */
    (void)owned;
    (void)fchmod(out->fd, info.st_mode & 0777);
    return AH_OK;
}

static int special_open(struct ah_output *out)
{
    out->fd = open(out->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    return out->fd < 0 ? fail_write(out->path) : AH_OK;
}

int ah__output_open(struct ah_output *out, const char *path)
{
    *out = (struct ah_output){.fd = -1};
    int status = ah__output_target(&out->target, path);
    if (status == AH_OK)
        status = ah__strdup(&out->path, path);
    if (status == AH_OK)
        status = out->target ? temporary_open(out) : special_open(out);
    if (status != AH_OK)
        ah__output_drop(out);
    return status;
}

void ah__output_drop(struct ah_output *out)
{
    if (out->fd >= 0) {
        close(out->fd);
        if (out->temporary)
            unlink(out->temporary);
    }
    ah__free(out->path);
    ah__free(out->target);
    ah__free(out->temporary);
    *out = (struct ah_output){.fd = -1};
}

static int target_sync(const struct ah_output *out)
{
    char *folder;
    AH_TRY(folder_of(&folder, out->target));
    int status = ah__folder_sync(folder);
    ah__free(folder);
    return status;
}

int ah__output_close(struct ah_output *out)
{
    int fd = out->fd, status = AH_OK;
    if (out->temporary && (fsync(fd) != 0 || rename(out->temporary, out->target) != 0)) {
        status = fail_write(out->path);
        ah__output_drop(out);
        return status;
    }
    out->fd = -1;
    if (close(fd) != 0)
        status = fail_write(out->path);
    else if (out->temporary)
        status = target_sync(out);
    ah__output_drop(out);
    return status;
}

int ah__file_write(const char *path, const void *data, size_t length)
{
    struct ah_output out;
    AH_TRY(ah__output_open(&out, path));
    int status = ah__file_put(out.fd, data, length, path);
    if (status == AH_OK)
        return ah__output_close(&out);
    ah__output_drop(&out);
    return status;
}
