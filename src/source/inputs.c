#include "source/inputs.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/output.h"
#include "io/paths.h"
#include "source/adapter_config.h"
#include "source/folder.h"
#include "source/folder_internal.h"
#include "source/model_files.h"

/* The file that would be replaced. */
struct output {
    const char *path;
    struct stat info;
};

static int overlap(const struct output *out, const char *read)
{
    return strcmp(out->path, read) == 0
               ? ah__fail(AH_EINPUT, "%s: found a file that is read or written as well, expected another", out->path)
               : ah__fail(AH_EINPUT, "%s: found '%.400s', which is read as well, expected another file to write",
                          out->path, read);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int file_apart(const struct output *out, const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && is_same(&info, &out->info) ? overlap(out, path) : AH_OK;
}

/* Returns true for a file that belongs to a model or a training; a report made from it does not. */
static bool is_part(const char *name, bool trained)
{
    if (fnmatch("*.safetensors", name, 0) == 0)
        return true;
    return trained ? ah__folder_writes(name) && strcmp(name, "report.html") != 0 : ah__folder_links(name);
}

static bool is_step(const char *name)
{
    return ah__folder_step(name, "") >= 0 || strcmp(name, "checkpoint") == 0 || strcmp(name, AH_MORE_TEMPLATES) == 0;
}

/* Checks the files in the folder; `all`: of any name. */
static int files_apart(const struct output *out, const char *folder, bool all)
{
    DIR *list = opendir(folder);
    bool trained = list && faccessat(dirfd(list), "run.json", F_OK, 0) == 0;
    int status = AH_OK;
    for (struct dirent *entry; list && status == AH_OK && (entry = readdir(list));) {
        const char *name = entry->d_name;
        bool step = !all && is_step(name);
        char *path;
        if (!step && !(all && name[0] != '.') && !is_part(name, trained))
            continue;
        status = ah__sprintf(&path, "%s/%s", folder, name);
        if (status == AH_OK)
            status = step ? files_apart(out, path, true) : file_apart(out, path);
        ah__free(path);
    }
    if (list)
        closedir(list);
    return status;
}

/* Checks the model that an adapter's folder names, if it is here. */
static int base_apart(const struct output *out, const char *folder)
{
    struct ah_adapter_config config;
    if (!ah__adapter_config_exists(folder) || ah__adapter_config_load(&config, folder) != AH_OK)
        return AH_OK; /* its reader reports the fault */
    int status = config.base ? file_apart(out, config.base) : AH_OK;
    if (status == AH_OK && config.base)
        status = files_apart(out, config.base, false);
    ah__adapter_config_free(&config);
    return status;
}

/* Checks the whole folder if the path is a model's config.json. */
static int beside_apart(const struct output *out, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder;
    if (strcmp(slash ? slash + 1 : path, "config.json") != 0)
        return AH_OK;
    AH_TRY(ah__sprintf(&folder, "%.*s", slash ? (int)(slash + 1 - path) : 1, slash ? path : "."));
    int status = files_apart(out, folder, false);
    ah__free(folder);
    return status;
}

/* Returns true if writing to the path would replace a file. */
static bool replaces(struct output *out, const char *path)
{
    out->path = path;
    return stat(path, &out->info) == 0 && S_ISREG(out->info.st_mode);
}

int ah__output_apart(const char *path, const char *input)
{
    struct output out;
    struct stat info;
    if (!input || !replaces(&out, path))
        return AH_OK;
    if (strcmp(input, "-") == 0)
        return fstat(STDIN_FILENO, &info) == 0 && is_same(&info, &out.info) ? overlap(&out, "standard input") : AH_OK;
    AH_TRY(file_apart(&out, input));
    AH_TRY(beside_apart(&out, input));
    AH_TRY(files_apart(&out, input, false));
    return base_apart(&out, input);
}

int ah__output_apart_of_all(const char *path, const char *input)
{
    struct ah_paths paths = {0};
    struct output out;
    if (!replaces(&out, path))
        return AH_OK;
    AH_TRY(ah__output_apart(path, input));
    int status = ah__path_exists(input) ? ah__paths_add(&paths, input) : AH_OK;
    for (size_t i = 0; status == AH_OK && i < paths.count; i++)
        status = file_apart(&out, paths.path[i].path);
    ah__paths_free(&paths);
    return status;
}

/* Gives the file that writing to `path` makes, by the real path of its folder; null if it makes no file, or there is no
 * folder. */
static int real_target(char **out, const char *path)
{
    char *target, *folder = NULL;
    *out = NULL;
    if (ah__output_target(&target, path) != AH_OK || !target)
        return AH_OK;
    char *slash = strrchr(target, '/'), *name = slash ? slash + 1 : target;
    int status = ah__sprintf(out, "%.*s", slash ? (int)(name - target) : 1, slash ? target : ".");
    if (status == AH_OK) {
        status = ah__path_real(&folder, *out);
        ah__free(*out);
        *out = NULL;
    }
    if (status == AH_OK && folder)
        status = ah__sprintf(out, "%s/%s", folder, name);
    ah__free(folder);
    ah__free(target);
    return status;
}

/* Sets *same if two names of files that do not exist yet mean the same file. */
static int same_target(bool *same, const char *a, const char *b)
{
    char *left, *right;
    *same = false;
    AH_TRY(real_target(&left, a));
    int status = real_target(&right, b);
    if (status == AH_OK) {
        *same = left && right && strcmp(left, right) == 0;
        ah__free(right);
    }
    ah__free(left);
    return status;
}

int ah_output_check(const char *path, const char *const *inputs, size_t count)
{
    bool same;
    AH_TRY(ah__output_check(path, false));
    for (size_t i = 0; i < count; i++) {
        AH_TRY(ah__output_apart(path, inputs[i]));
        if (!inputs[i] || ah__path_exists(path) || ah__path_exists(inputs[i]))
            continue;
        AH_TRY(same_target(&same, path, inputs[i]));
        if (same)
            return overlap(&(struct output){.path = path}, inputs[i]);
    }
    return AH_OK;
}
