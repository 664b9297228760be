#include "source/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "io/shards.h"
#include "source/folder_internal.h"

struct folder_file {
    char *name;
    int64_t bytes;
    uint64_t hash;
};

struct ah_folder {
    char *dir, *name, *path, *temporary; /* DIR, step-00000100, DIR/step-00000100, DIR/step-00000100.tmp */
    int64_t step;
    bool committed;
    char *left;                /* a folder that stays because of other files in it; null: there is none */
    struct folder_file *files; /* files noted or read so far */
    size_t count, room;
};

static int fail_io(const char *path, const char *what)
{
    return ah__fail(AH_EIO, "%s: cannot %s: %s", path, what, strerror(errno));
}

/* ---- check ------------------------------------------------------------------------------------------------------- */

/* Checks a place for a link: anything there but a link made by commit belongs to someone else. */
static int place_check(const char *dir, const char *name, const char *start)
{
    char *path, target[64] = "";
    AH_TRY(ah__sprintf(&path, "%s/%s", dir, name));
    ssize_t length = readlink(path, target, sizeof target - 1);
    bool ours = length > 0 ? strncmp(target, start, strlen(start)) == 0 : errno == ENOENT;
    bool unknown = length < 0 && errno != ENOENT && errno != EINVAL; /* EINVAL: not a link */
    int status = unknown ? fail_io(path, "read") : AH_OK;
    if (!ours && !unknown)
        status =
            ah__fail(AH_EINPUT, "%s: found one that is no checkpoint's and would be overwritten, expected none", path);
    ah__free(path);
    return status;
}

static int linked_check(const char *dir, const char *name, const void *context)
{
    (void)context;
    return ah__folder_links(name) ? place_check(dir, name, "checkpoint/") : AH_OK;
}

/* Returns the status of a failed access(): AH_EINPUT if it was denied, AH_EIO if it could not tell. */
static int denied(void)
{
    return errno == EACCES || errno == EPERM || errno == EROFS ? AH_EINPUT : AH_EIO;
}

static int existing_check(const char *dir)
{
    if (access(dir, W_OK | X_OK) != 0)
        return ah__fail(denied(), "%s: cannot write into folder: %s", dir, strerror(errno));
    AH_TRY(place_check(dir, "checkpoint", "step-"));
    return ah__folder_names(dir, linked_check, NULL);
}

/* Checks that the nearest existing part of a path is a folder with write permission; shortens `part` on the way. */
static int ancestor_check(char *part, const char *dir)
{
    struct stat info;
    const char *nearest = part;
    while (stat(nearest, &info) != 0 && nearest == part) {
        if (errno != ENOENT)
            return ah__fail(AH_EINPUT, "%s: cannot make folder: %s", dir, strerror(errno));
        char *slash = strrchr(part, '/');
        if (!slash)
            nearest = ".";
        else
            slash[slash == part] = 0;
    }
    if (stat(nearest, &info) != 0 || !S_ISDIR(info.st_mode))
        return ah__fail(AH_EINPUT, "%s: found that '%s' is no folder, expected one", dir, nearest);
    if (access(nearest, W_OK | X_OK) != 0)
        return ah__fail(denied(), "%s: cannot write into folder '%s': %s", dir, nearest, strerror(errno));
    return AH_OK;
}

int ah__folder_check(const char *dir)
{
    struct stat info;
    char *part;
    if (!dir[0])
        return ah__fail(AH_EINPUT, "found an empty name, expected a folder for checkpoints");
    if (stat(dir, &info) == 0 && S_ISDIR(info.st_mode))
        return existing_check(dir);
    if (lstat(dir, &info) == 0)
        return ah__fail(AH_EINPUT, "%s: found a file, expected a folder for checkpoints", dir);
    AH_TRY(ah__strdup(&part, dir));
    size_t length = strlen(part);
    while (length > 1 && part[length - 1] == '/')
        part[--length] = 0;
    int status = ancestor_check(part, dir);
    ah__free(part);
    return status;
}

/* ---- step folders ------------------------------------------------------------------------------------------------ */

/* Removes a step folder, or remembers it if it stays. */
static int step_remove(struct ah_folder *folder, const char *path)
{
    bool stays;
    AH_TRY(ah__folder_remove_step(&stays, path));
    return stays ? ah__folder_stays(&folder->left, path) : AH_OK;
}

static int remove_any(const char *path, int64_t step, void *context)
{
    (void)step;
    return step_remove(context, path);
}

/* Returns true for a temporary of one of our names whose process has ended. Only the holder of the folder writes
 * checkpoints, but a reader may write such files, too. */
static bool is_left_over(const char *name)
{
    char stem[NAME_MAX + 1];
    size_t length;
    if (!ah__file_left_over(&length, name) || length >= sizeof stem)
        return false;
    memcpy(stem, name, length);
    stem[length] = 0;
    return ah__folder_writes(stem);
}

static int left_over_remove(const char *dir)
{
    DIR *list = opendir(dir);
    if (!list)
        return fail_io(dir, "open");
    for (struct dirent *entry; (entry = readdir(list));)
        if (is_left_over(entry->d_name) && unlinkat(dirfd(list), entry->d_name, 0) != 0)
            break; /* a folder, or a file that may not be removed: harmless */
    closedir(list);
    return AH_OK;
}

static int names_make(struct ah_folder *folder, const char *dir, int64_t step)
{
    folder->step = step;
    AH_TRY(ah__strdup(&folder->dir, dir));
    AH_TRY(ah__sprintf(&folder->name, "step-%08" PRId64, step));
    AH_TRY(ah__sprintf(&folder->path, "%s/%s", dir, folder->name));
    return ah__sprintf(&folder->temporary, "%s.tmp", folder->path);
}

int ah__folder_begin(struct ah_folder **out, const char *dir, int64_t step)
{
    struct ah_folder *folder;
    AH_TRY(ah__folder_check(dir));
    AH_TRY(ah__folder_make(dir));
    AH_TRY(ah__new(&folder, 1, sizeof *folder));
    int status = names_make(folder, dir, step);
    if (status == AH_OK)
        status = ah__folder_walk(dir, ".tmp", remove_any, folder);
    if (status == AH_OK)
        status = left_over_remove(dir);
    if (status == AH_OK)
        status = ah__folder_make(folder->temporary);
    if (status != AH_OK) {
        ah__folder_free(folder);
        return status;
    }
    *out = folder;
    return AH_OK;
}

const char *ah__folder_left(const struct ah_folder *folder)
{
    return folder->left;
}

const char *ah__folder_path(const struct ah_folder *folder)
{
    return folder->temporary;
}

void ah__folder_free(struct ah_folder *folder)
{
    if (!folder)
        return;
    /* Keeps an earlier failure's message, which matters more than one about its remains; the next begin removes
     * them. */
    if (!folder->committed && folder->temporary) {
        char message[1024];
        snprintf(message, sizeof message, "%s", ah_error());
        (void)step_remove(folder, folder->temporary);
        ah__fail(AH_EIO, "%s", message);
    }
    for (size_t i = 0; i < folder->count; i++)
        ah__free(folder->files[i].name);
    ah__free(folder->files);
    ah__free(folder->left);
    ah__free(folder->dir);
    ah__free(folder->name);
    ah__free(folder->path);
    ah__free(folder->temporary);
    ah__free(folder);
}

/* ---- commit ------------------------------------------------------------------------------------------------------ */

int ah__folder_note(struct ah_folder *folder, const char *name, int64_t bytes, uint64_t hash)
{
    AH_TRY(ah__grow(&folder->files, &folder->room, folder->count + 1, sizeof *folder->files));
    struct folder_file *file = &folder->files[folder->count];
    AH_TRY(ah__strdup(&file->name, name));
    file->bytes = bytes;
    file->hash = hash;
    folder->count++;
    return AH_OK;
}

int ah__folder_file_hash(const char *path, int64_t *bytes, uint64_t *hash)
{
    struct ah_map map = {0};
    struct stat info;
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0)
        map.data = NULL; /* an empty file is not mapped */
    else
        AH_TRY(ah__map_open(&map, path));
    *bytes = (int64_t)map.length;
    *hash = ah__hash(map.data ? map.data : (const unsigned char *)"", map.length, 0);
    ah__map_close(&map);
    return AH_OK;
}

int ah__folder_add(struct ah_folder *folder, const char *name)
{
    char *path;
    int64_t bytes = 0;
    uint64_t hash = 0;
    AH_TRY(ah__sprintf(&path, "%s/%s", folder->temporary, name));
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int status = fd < 0 || fsync(fd) != 0 ? fail_io(path, "sync") : ah__folder_file_hash(path, &bytes, &hash);
    if (fd >= 0)
        close(fd);
    ah__free(path);
    return status == AH_OK ? ah__folder_note(folder, name, bytes, hash) : status;
}

static int checksums_fill(cJSON *tree, const struct ah_folder *folder)
{
    AH_TRY(ah__json_add_int(tree, "version", AH_CHECKSUMS_VERSION));
    cJSON *files = cJSON_AddObjectToObject(tree, "files");
    for (size_t i = 0; i < folder->count; i++) {
        cJSON *file = cJSON_AddObjectToObject(files, folder->files[i].name); /* null: adding to it fails */
        AH_TRY(ah__json_add_int(file, "bytes", folder->files[i].bytes));
        AH_TRY(ah__json_add_hash(file, "xxh3", folder->files[i].hash));
    }
    return AH_OK;
}

static int checksums_save(const struct ah_folder *folder)
{
    char *path;
    AH_TRY(ah__sprintf(&path, "%s/" AH_CHECKSUMS, folder->temporary));
    cJSON *tree = cJSON_CreateObject();
    int status = tree ? checksums_fill(tree, folder) : ah__fail(AH_ENOMEM, "out of host memory: %s", path);
    if (status == AH_OK)
        status = ah__json_save(tree, path);
    cJSON_Delete(tree);
    ah__free(path);
    return status;
}

/* Puts the folder in place. An old folder of the same step is exchanged with it, so that at every moment a complete one
 * is there. */
static int folder_place(struct ah_folder *folder)
{
    if (rename(folder->temporary, folder->path) == 0)
        return ah__folder_sync(folder->dir);
    if (errno != EEXIST && errno != ENOTEMPTY)
        return fail_io(folder->path, "put in place");
    if (renameat2(AT_FDCWD, folder->temporary, AT_FDCWD, folder->path, RENAME_EXCHANGE) != 0)
        return fail_io(folder->path, "replace");
    AH_TRY(ah__folder_sync(folder->dir));
    return step_remove(folder, folder->temporary);
}

static bool has_no_links(int cause)
{
    return cause == EPERM || cause == EOPNOTSUPP || cause == ENOSYS; /* errors of FAT and some network file systems */
}

/* Makes DIR/name point to target in one step; does nothing if the file system has no links. */
static int link_set(const char *dir, const char *name, const char *target)
{
    char *path, *temporary = NULL;
    AH_TRY(ah__sprintf(&path, "%s/%s", dir, name));
    int status = ah__file_temporary(&temporary, path);
    if (status == AH_OK && unlink(temporary) != 0 && errno != ENOENT)
        status = fail_io(temporary, "remove");
    if (status == AH_OK && symlink(target, temporary) != 0)
        status = has_no_links(errno) ? AH_OK : fail_io(path, "link");
    else if (status == AH_OK && rename(temporary, path) != 0) {
        status = fail_io(path, "link");
        unlink(temporary);
    }
    ah__free(temporary);
    ah__free(path);
    return status;
}

/* Returns true if the checkpoint has a file of this name, or one in a folder of this name. */
static bool has_linked(const struct ah_folder *folder, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < folder->count; i++)
        if (strncmp(folder->files[i].name, name, length) == 0 &&
            (!folder->files[i].name[length] || folder->files[i].name[length] == '/'))
            return true;
    return false;
}

/* Removes a link to a file that the checkpoint no longer has, for example because the model has other files than
 * before. */
static int stale_remove(const char *dir, const char *name, const void *context)
{
    const struct ah_folder *folder = context;
    char *path, target[8] = "";
    if (!ah__folder_links(name) || has_linked(folder, name))
        return AH_OK;
    AH_TRY(ah__sprintf(&path, "%s/%s", dir, name));
    int status = readlink(path, target, sizeof target) > 0 && unlink(path) != 0 ? fail_io(path, "remove") : AH_OK;
    ah__free(path);
    return status;
}

static int links_set(const struct ah_folder *folder)
{
    AH_TRY(link_set(folder->dir, "checkpoint", folder->name));
    for (size_t i = 0; i < folder->count; i++) {
        char name[AH_SHARDS_NAME_SIZE], target[64 + AH_SHARDS_NAME_SIZE];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(folder->files[i].name, "/"), folder->files[i].name);
        snprintf(target, sizeof target, "checkpoint/%s", name);
        if (ah__folder_links(name))
            AH_TRY(link_set(folder->dir, name, target));
    }
    AH_TRY(ah__folder_names(folder->dir, stale_remove, folder));
    return ah__folder_sync(folder->dir);
}

int ah__folder_commit(struct ah_folder *folder, int keep)
{
    AH_TRY(checksums_save(folder));
    AH_TRY(ah__folder_sync(folder->temporary));
    AH_TRY(folder_place(folder));
    folder->committed = true;
    AH_TRY(links_set(folder));
    return ah__folder_prune(&folder->left, folder->dir, folder->step, keep);
}
