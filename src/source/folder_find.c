#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "source/folder.h"
#include "source/folder_internal.h"
#include "source/model_files.h"

/* Sets *out to the real path of PATH/part if it contains checksums.json, else leaves it null. */
static int candidate_try(char **out, const char *path, const char *part)
{
    char *folder;
    AH_TRY(ah__sprintf(&folder, "%s%s", path, part));
    int status = ah__path_has(folder, AH_CHECKSUMS) ? ah__path_real(out, folder) : AH_OK;
    ah__free(folder);
    return status;
}

struct newest {
    char *path;          /* owned */
    int64_t step, below; /* below: only lower steps count */
};

static int newest_visit(const char *path, int64_t step, void *context)
{
    struct newest *newest = context;
    char *found = NULL;
    if (step >= newest->below || (newest->path && step <= newest->step))
        return AH_OK;
    AH_TRY(candidate_try(&found, path, ""));
    if (!found)
        return AH_OK;
    ah__free(newest->path);
    newest->path = found;
    newest->step = step;
    return AH_OK;
}

int ah__folder_find(char **out, const char *path)
{
    struct newest newest = {.below = INT64_MAX};
    int status = candidate_try(&newest.path, path, "");
    if (status == AH_OK && !newest.path)
        status = candidate_try(&newest.path, path, "/checkpoint");
    if (status == AH_OK && !newest.path)
        status = ah__folder_walk(path, "", newest_visit, &newest);
    if (status == AH_OK && !newest.path)
        status = ah__fail(AH_EINPUT,
                          "%s: found no complete checkpoint, expected a step folder or a folder that holds some", path);
    if (status == AH_OK)
        *out = newest.path;
    else
        ah__free(newest.path);
    return status;
}

int ah__folder_before(char **out, const char *folder)
{
    const char *slash = strrchr(folder, '/');
    struct newest newest = {.below = slash ? ah__folder_step(slash + 1, "") : -1};
    char *dir;
    *out = NULL;
    if (newest.below < 0)
        return AH_OK;
    AH_TRY(ah__sprintf(&dir, "%.*s", (int)(slash - folder), folder));
    int status = ah__folder_walk(dir, "", newest_visit, &newest);
    ah__free(dir);
    if (status != AH_OK)
        ah__free(newest.path);
    else
        *out = newest.path;
    return status;
}

/* ---- completeness ------------------------------------------------------------------------------------------------ */

/* Returns true if a file is in the folder itself, or in its one possible folder, that of templates. */
static bool is_plain(const char *name)
{
    static const char within[] = AH_MORE_TEMPLATES "/";
    if (strncmp(name, within, strlen(within)) == 0)
        name += strlen(within);
    return !strchr(name, '/') && strcmp(name, "..") != 0;
}

static int file_verify(const char *folder, const char *name, const struct ah_json *entry)
{
    char *path;
    int64_t bytes, found_bytes = 0;
    uint64_t hash, found_hash = 0;
    AH_TRY(ah__json_int(&bytes, entry, "bytes", 0, INT64_MAX));
    AH_TRY(ah__json_hash(&hash, entry, "xxh3"));
    if (!is_plain(name))
        return ah__fail(AH_ECORRUPT, "%s: key 'files': found '%s', expected a plain file name", entry->path, name);
    AH_TRY(ah__sprintf(&path, "%s/%s", folder, name));
    int status = ah__folder_file_hash(path, &found_bytes, &found_hash);
    if (status == AH_OK && found_bytes != bytes)
        status = ah__fail(AH_ECORRUPT, "%s: found %" PRId64 " bytes, expected %" PRId64 " by %s", path, found_bytes,
                          bytes, entry->path);
    else if (status == AH_OK && found_hash != hash)
        status = ah__fail(AH_ECORRUPT, "%s: found checksum %016" PRIx64 ", expected %016" PRIx64 " by %s", path,
                          found_hash, hash, entry->path);
    ah__free(path);
    return status;
}

static int files_verify(const char *folder, const struct ah_json *root, const char *const *required)
{
    struct ah_json files, entry;
    int64_t version;
    AH_TRY(ah__json_int(&version, root, "version", AH_CHECKSUMS_VERSION, AH_CHECKSUMS_VERSION));
    AH_TRY(ah__json_object(&files, root, "files"));
    for (; *required; required++)
        AH_TRY(ah__json_object(&entry, &files, *required));
    for (const cJSON *child = files.node->child; child; child = child->next) {
        AH_TRY(ah__json_object(&entry, &files, child->string));
        AH_TRY(file_verify(folder, child->string, &entry));
    }
    return AH_OK;
}

int ah__folder_verify(const char *path, const char *const *required)
{
    struct ah_json root = {0};
    int status = ah__json_load_in(&root, path, AH_CHECKSUMS);
    if (status == AH_OK)
        status = files_verify(path, &root, required);
    ah__json_free(&root);
    /* A checkpoint's own file that is missing or malformed is damage, not a wrong argument. */
    return status == AH_EINPUT ? ah__fail_prefix(AH_ECORRUPT, "checkpoint") : status;
}
