/* Removes step folders: a checkpoint's files are removed, somebody's other files stay. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "source/folder.h"
#include "source/folder_internal.h"
#include "source/model_files.h"

/* Returns true for a checkpoint's file, or a temporary of one: by the folder's checksums, or, if a save was interrupted
 * before they were written, by the names that checkpoints have. */
static bool is_ours(const char *name, const struct ah_json *listed)
{
    static const char *const patterns[] = {"*.safetensors", "state.json"};
    const char *mark = strstr(name, ".tmp-");
    char stem[256];
    snprintf(stem, sizeof stem, "%.*s", (int)(mark ? mark - name : (long)strlen(name)), name);
    if (listed->node)
        return cJSON_GetObjectItemCaseSensitive(listed->node, stem);
    for (size_t i = 0; i < AH_LENGTH(patterns); i++)
        if (fnmatch(patterns[i], stem, 0) == 0)
            return true;
    return ah__folder_links(stem);
}

/* The checksums are removed last: they identify the files of an interrupted removal the next time. */
static bool is_checksums(const char *name, const struct ah_json *listed)
{
    (void)listed;
    return strcmp(name, AH_CHECKSUMS) == 0;
}

static bool is_template(const char *name, const struct ah_json *listed)
{
    (void)listed;
    return fnmatch("*.jinja*", name, 0) == 0;
}

/* Removes files of one folder and returns their number; errors show when the folder is removed. */
static int files_remove(const char *folder, bool (*is)(const char *name, const struct ah_json *listed),
                        const struct ah_json *listed)
{
    DIR *list = opendir(folder);
    int count = 0;
    for (struct dirent *entry; list && (entry = readdir(list));)
        count += is(entry->d_name, listed) && unlinkat(dirfd(list), entry->d_name, 0) == 0;
    if (list)
        closedir(list);
    return count;
}

static int listed_load(struct ah_json *root, struct ah_json *files, const char *folder)
{
    int status = ah__json_load_any(root, folder, AH_CHECKSUMS);
    if (status == AH_OK && root->node)
        status = ah__json_object(files, root, "files");
    return status == AH_ENOMEM ? status : AH_OK; /* a damaged file lists nothing */
}

int ah__folder_remove_step(bool *stays, const char *folder)
{
    struct ah_json root = {0}, files = {0};
    struct stat info;
    char *templates;
    int count = 0;
    *stays = false;
    if (lstat(folder, &info) != 0 && errno == ENOENT)
        return AH_OK;
    int status = listed_load(&root, &files, folder);
    if (status == AH_OK)
        status = ah__sprintf(&templates, "%s/" AH_MORE_TEMPLATES, folder);
    if (status == AH_OK) {
        count = files_remove(templates, is_template, NULL);
        (void)rmdir(templates);
        ah__free(templates);
        count += files_remove(folder, is_ours, &files);
        count += files_remove(folder, is_checksums, NULL);
    }
    ah__json_free(&root);
    if (status != AH_OK || rmdir(folder) == 0)
        return status;
    int cause = errno;
    bool whole = ah__path_has(folder, AH_CHECKSUMS); /* still there: the files cannot be removed */
    bool left = !whole && (cause == ENOTEMPTY || cause == EEXIST || cause == ENOTDIR);
    *stays = left && count > 0;
    return left ? AH_OK : ah__fail(AH_EIO, "%s: cannot remove: %s", folder, strerror(cause));
}

int ah__folder_stays(char **left, const char *folder)
{
    return *left ? AH_OK : ah__strdup(left, folder);
}

/* ---- lower steps ------------------------------------------------------------------------------------------------- */

struct prune {
    char **left;
    int64_t below;  /* only lower steps */
    int64_t lowest; /* lowest step found, -1: none so far */
    int count;
};

/* Counts complete checkpoints. A folder without checksums is not one: it stays for the other files in it. */
static int prune_count(const char *path, int64_t step, void *context)
{
    struct prune *prune = context;
    if (step >= prune->below)
        return AH_OK;
    bool whole = ah__path_has(path, AH_CHECKSUMS);
    prune->count += whole;
    if (whole && (prune->lowest < 0 || step < prune->lowest))
        prune->lowest = step;
    return AH_OK;
}

/* Renames the folder first, so that readers see it whole or not at all; a folder that stays gets its name back. */
static int prune_one(bool *stays, const char *path, const char *temporary)
{
    if (rename(path, temporary) == 0) {
        AH_TRY(ah__folder_remove_step(stays, temporary));
        return !*stays || rename(temporary, path) == 0 ? AH_OK
                                                       : ah__fail(AH_EIO, "%s: cannot keep: %s", path, strerror(errno));
    }
    if (errno == ENOTEMPTY || errno == EEXIST) /* somebody else's folder has that name */
        return ah__folder_remove_step(stays, path);
    return ah__fail(AH_EIO, "%s: cannot remove: %s", path, strerror(errno));
}

static int prune_lowest(const char *path, int64_t step, void *context)
{
    const struct prune *prune = context;
    char *temporary;
    bool stays = false;
    if (step != prune->lowest)
        return AH_OK;
    AH_TRY(ah__sprintf(&temporary, "%s.tmp", path));
    int status = prune_one(&stays, path, temporary);
    ah__free(temporary);
    return status == AH_OK && stays ? ah__folder_stays(prune->left, path) : status;
}

/* Steps above this one belong to another run that got further: they are not removed. */
int ah__folder_prune(char **left, const char *dir, int64_t step, int keep)
{
    for (;;) {
        struct prune prune = {left, step, -1, 0};
        AH_TRY(ah__folder_walk(dir, "", prune_count, &prune));
        if (prune.count < (keep < 1 ? 1 : keep))
            return AH_OK;
        AH_TRY(ah__folder_walk(dir, "", prune_lowest, &prune));
    }
}
