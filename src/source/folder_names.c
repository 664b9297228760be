/* The names in a training's folder. */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "io/shards.h"
#include "source/adapter_config.h"
#include "source/folder.h"
#include "source/folder_internal.h"
#include "source/model_files.h"

/* Returns true for files that Hugging Face looks for in DIR itself, and for the one folder of such files. */
bool ah__folder_links(const char *name)
{
    return strcmp(name, AH_SHARDS_FILE) == 0 || strcmp(name, AH_SHARDS_INDEX) == 0 ||
           strcmp(name, "config.json") == 0 || strcmp(name, AH_ADAPTER_FILE) == 0 ||
           strcmp(name, AH_ADAPTER_CONFIG) == 0 || strcmp(name, AH_MORE_TEMPLATES) == 0 || ah__shards_is_name(name) ||
           ah__model_files_are(name);
}

/* Names that a training writes in its folder through a temporary file, beside those that link to the checkpoint. */
static const char *const written[] = {"checkpoint",    "run.json",     "plan.json",   "profile.json",
                                      "timeline.json", "timeline.svg", "loss.svg",    "report.html",
                                      "metrics.jsonl", "val.jsonl",    "metrics.csv", "val.csv"};

const char *ah__folder_written(size_t index)
{
    return index < AH_LENGTH(written) ? written[index] : NULL;
}

bool ah__folder_writes(const char *name)
{
    for (size_t i = 0; i < AH_LENGTH(written); i++)
        if (strcmp(name, written[i]) == 0)
            return true;
    return ah__folder_links(name);
}

int64_t ah__folder_step(const char *name, const char *suffix)
{
    int64_t step = 0;
    size_t digits = 0;
    if (strncmp(name, "step-", 5) != 0)
        return -1;
    for (name += 5; *name >= '0' && *name <= '9' && digits < 18; name++, digits++)
        step = step * 10 + (*name - '0');
    return digits >= 8 && strcmp(name, suffix) == 0 ? step : -1;
}

/* ---- walking ----------------------------------------------------------------------------------------------------- */

static DIR *list_open(int *status, const char *dir)
{
    DIR *list = opendir(dir);
    bool wrong = errno == ENOENT || errno == ENOTDIR || errno == EACCES;
    *status = list ? AH_OK : ah__fail(wrong ? AH_EINPUT : AH_EIO, "%s: cannot open folder: %s", dir, strerror(errno));
    errno = 0; /* readdir sets it for a failure, not at the end */
    return list;
}

int ah__folder_names(const char *dir, int (*visit)(const char *dir, const char *name, const void *context),
                     const void *context)
{
    int status;
    DIR *list = list_open(&status, dir);
    if (!list)
        return status;
    for (struct dirent *entry; status == AH_OK && (entry = readdir(list)); errno = 0)
        status = visit(dir, entry->d_name, context);
    if (status == AH_OK && errno != 0)
        status = ah__fail(AH_EIO, "%s: cannot read: %s", dir, strerror(errno));
    closedir(list);
    return status;
}

struct walk {
    const char *suffix;
    int (*visit)(const char *path, int64_t step, void *context);
    void *context;
};

static int step_visit(const char *dir, const char *name, const void *context)
{
    const struct walk *walk = context;
    int64_t step = ah__folder_step(name, walk->suffix);
    char *path;
    if (step < 0)
        return AH_OK;
    AH_TRY(ah__sprintf(&path, "%s/%s", dir, name));
    int status = walk->visit(path, step, walk->context);
    ah__free(path);
    return status;
}

int ah__folder_walk(const char *dir, const char *suffix, int (*visit)(const char *path, int64_t step, void *context),
                    void *context)
{
    const struct walk walk = {suffix, visit, context};
    return ah__folder_names(dir, step_visit, &walk);
}
