#include "io/paths.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"

enum { DEPTH_MOST = 32 };

static int path_take(struct ah_paths *paths, char *path, size_t within)
{
    int status = ah__grow(&paths->path, &paths->room, paths->count + 1, sizeof *paths->path);
    if (status == AH_OK)
        paths->path[paths->count++] = (struct ah_path){path, path + within};
    else
        ah__free(path);
    return status;
}

static int folder_add(struct ah_paths *paths, const char *folder, size_t within, int depth);

/* Adds FOLDER/NAME. Entries that are neither file nor folder are left out, and so are links to folders, which may form
 * a circle. */
static int entry_add(struct ah_paths *paths, const char *folder, const char *name, size_t within, int depth)
{
    struct stat info, link;
    char *path;
    AH_TRY(ah__sprintf(&path, "%s/%s", folder, name));
    if (lstat(path, &link) != 0 || stat(path, &info) != 0) {
        int status = ah__fail(AH_EINPUT, "%s: cannot open: %s", path, strerror(errno));
        ah__free(path);
        return status;
    }
    if (S_ISREG(info.st_mode))
        return path_take(paths, path, within);
    int status = S_ISDIR(link.st_mode) ? folder_add(paths, path, within, depth + 1) : AH_OK;
    ah__free(path);
    return status;
}

static int folder_add(struct ah_paths *paths, const char *folder, size_t within, int depth)
{
    DIR *list = depth <= DEPTH_MOST ? opendir(folder) : NULL;
    if (depth > DEPTH_MOST)
        return ah__fail(AH_EINPUT, "%s: found folders %d deep, expected at most %d", folder, depth, DEPTH_MOST);
    if (!list)
        return ah__fail(AH_EINPUT, "%s: cannot open folder: %s", folder, strerror(errno));
    int status = AH_OK;
    errno = 0;
    for (struct dirent *entry; status == AH_OK && (entry = readdir(list)); errno = 0)
        if (entry->d_name[0] != '.')
            status = entry_add(paths, folder, entry->d_name, within, depth);
    if (status == AH_OK && errno != 0)
        status = ah__fail(AH_EIO, "%s: cannot read: %s", folder, strerror(errno));
    closedir(list);
    return status;
}

static int compare(const void *left, const void *right)
{
    return strcmp(((const struct ah_path *)left)->path, ((const struct ah_path *)right)->path);
}

int ah__paths_add_name(struct ah_paths *paths, const char *path)
{
    char *copy;
    AH_TRY(ah__strdup(&copy, path));
    return path_take(paths, copy, strlen(copy));
}

int ah__paths_add(struct ah_paths *paths, const char *path)
{
    struct stat info;
    size_t first = paths->count;
    if (stat(path, &info) != 0)
        return ah__fail(AH_EINPUT, "%s: cannot open: %s", path, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return ah__paths_add_name(paths, path);
    AH_TRY(folder_add(paths, path, strlen(path) + 1, 1));
    if (paths->count == first)
        return ah__fail(AH_EINPUT, "%s: found a folder without files, expected text", path);
    qsort(paths->path + first, paths->count - first, sizeof *paths->path, compare);
    return AH_OK;
}

void ah__paths_free(struct ah_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        ah__free(paths->path[i].path);
    ah__free(paths->path);
    *paths = (struct ah_paths){0};
}
