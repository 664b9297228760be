#include "source/new_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

struct ah_new_folder {
    char *path, *temporary; /* without slashes at the end */
    int fd;                 /* descriptor of the temporary, locked while in use; -1: not made */
    bool committed;
};

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static int path_check(const char *path)
{
    struct stat link, found;
    if (lstat(path, &link) != 0)
        return AH_OK; /* making it reports other faults */
    if (S_ISLNK(link.st_mode) && stat(path, &found) != 0)
        return ah__fail(AH_EINPUT, "%s: found a link that leads nowhere, expected a new folder's name", path);
    return ah__fail(AH_EINPUT, "%s: found something there, expected a new folder's name", path);
}

/* Returns true for one of our files, or our own temporary of one. */
static bool is_known(const char *name, bool (*is_ours)(const char *name))
{
    char bare[NAME_MAX + 1];
    size_t length = strlen(name);
    (void)ah__file_left_over(&length, name);
    snprintf(bare, sizeof bare, "%.*s", (int)length, name);
    return is_ours(bare);
}

/* Writes the first name that is not ours to `other`, "" if there is none. */
static int others_find(char other[NAME_MAX + 1], const char *path, bool (*is_ours)(const char *name))
{
    DIR *list = opendir(path);
    other[0] = 0;
    if (!list)
        return ah__fail(AH_EIO, "%s: cannot open folder: %s", path, strerror(errno));
    for (struct dirent *entry; !other[0] && (entry = readdir(list));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && !is_known(entry->d_name, is_ours))
            snprintf(other, NAME_MAX + 1, "%s", entry->d_name);
    closedir(list);
    return AH_OK;
}

/* Locks the temporary while it is in use; file systems that cannot lock do without. */
static int lock(struct ah_new_folder *folder)
{
    int fd = open(folder->temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return ah__fail(AH_EINPUT, "%s: found something there that is no folder, expected nothing", folder->temporary);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(fd);
        return ah__fail(AH_EINPUT, "%s: found another program at work there, expected another name than %s",
                        folder->temporary, folder->path);
    }
    folder->fd = fd;
    return AH_OK;
}

/* Removes the unfinished folder of a program that has ended. */
static int left_over_remove(struct ah_new_folder *folder, bool (*is_ours)(const char *name))
{
    char other[NAME_MAX + 1];
    AH_TRY(lock(folder));
    int status = others_find(other, folder->temporary, is_ours);
    if (status == AH_OK && other[0])
        status = ah__fail(AH_EINPUT, "%s/%s: found a file of others where the folder is to be made, expected nothing",
                          folder->temporary, other);
    if (status == AH_OK)
        status = ah__folder_remove(folder->temporary);
    close(folder->fd);
    folder->fd = -1;
    return status;
}

/* ---- making it --------------------------------------------------------------------------------------------------- */

static int parent_make(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *parent;
    if (!slash || slash == path)
        return AH_OK;
    AH_TRY(ah__sprintf(&parent, "%.*s", (int)(slash - path), path));
    int status = ah__folder_make(parent);
    ah__free(parent);
    return status;
}

static int make(struct ah_new_folder *folder, bool (*is_ours)(const char *name))
{
    struct stat info;
    if (lstat(folder->temporary, &info) == 0)
        AH_TRY(left_over_remove(folder, is_ours));
    AH_TRY(parent_make(folder->path));
    if (mkdir(folder->temporary, 0777) != 0)
        return ah__fail(errno == ENOSPC || errno == EIO ? AH_EIO : AH_EINPUT, "%s: cannot make folder: %s",
                        folder->temporary, strerror(errno));
    return lock(folder);
}

static int begin(struct ah_new_folder *folder, const char *path, bool (*is_ours)(const char *name))
{
    size_t length = strlen(path);
    while (length > 1 && (path[length - 1] == '/' || (length > 2 && memcmp(path + length - 2, "/.", 2) == 0)))
        length--;
    AH_TRY(ah__sprintf(&folder->path, "%.*s", (int)length, path));
    AH_TRY(ah__sprintf(&folder->temporary, "%s.tmp", folder->path));
    AH_TRY(path_check(folder->path));
    return make(folder, is_ours);
}

int ah__new_folder_begin(struct ah_new_folder **out, const char *path, bool (*is_ours)(const char *name))
{
    struct ah_new_folder *folder;
    AH_TRY(ah__new(&folder, 1, sizeof *folder));
    folder->fd = -1;
    int status = begin(folder, path, is_ours);
    if (status == AH_OK)
        *out = folder;
    else
        ah__new_folder_free(folder);
    return status;
}

const char *ah__new_folder_path(const struct ah_new_folder *folder)
{
    return folder->temporary;
}

int ah__new_folder_commit(struct ah_new_folder *folder)
{
    AH_TRY(ah__folder_sync(folder->temporary));
    if (rename(folder->temporary, folder->path) != 0)
        return ah__fail(AH_EIO, "%s: cannot rename to %s: %s", folder->temporary, folder->path, strerror(errno));
    folder->committed = true;
    return AH_OK;
}

void ah__new_folder_free(struct ah_new_folder *folder)
{
    if (!folder)
        return;
    if (folder->fd >= 0 && !folder->committed)
        (void)ah__folder_remove(folder->temporary);
    if (folder->fd >= 0)
        close(folder->fd);
    ah__free(folder->path);
    ah__free(folder->temporary);
    ah__free(folder);
}
