/* Where machines lie: beside the program, in the current folder, in the installed data. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "profile/hardware.h"

enum { PATH_BYTES = 4096, FOLDERS_MOST = 8, NAMES_MOST = 64, NAME_BYTES = 64 };

struct folders {
    int count;
    char path[FOLDERS_MOST][PATH_BYTES];
};

static void folder_add(struct folders *folders, const char *base, const char *rest)
{
    if (snprintf(folders->path[folders->count], PATH_BYTES, "%s%s", base, rest) < PATH_BYTES)
        folders->count++;
}

/* Cuts the last part of a path off; false when it has only one. */
static bool parent(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash)
        return false;
    *slash = 0;
    return true;
}

/* The folder of the running program, and of the library when it is a shared one. */
static bool program_folder(char *path)
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_BYTES - 1);
    if (length <= 0)
        return false;
    path[length] = 0;
    return parent(path);
}

static bool library_folder(char *path)
{
    static const char here;
    Dl_info info;
    if (!dladdr(&here, &info) || !info.dli_fname || strlen(info.dli_fname) >= PATH_BYTES)
        return false;
    snprintf(path, PATH_BYTES, "%s", info.dli_fname);
    return parent(path);
}

/* An installed program lies in bin/, the library in lib/ or lib/TRIPLET/, the data in share/. */
static void folders_fill(struct folders *folders)
{
    char program[PATH_BYTES], library[PATH_BYTES];
    bool has_program = program_folder(program), has_library = library_folder(library);
    if (has_program)
        folder_add(folders, program, "/hardware");
    folder_add(folders, "hardware", "");
    if (has_program)
        folder_add(folders, program, "/../share/autohete/hardware");
    if (has_library) {
        folder_add(folders, library, "/../share/autohete/hardware");
        folder_add(folders, library, "/../../share/autohete/hardware");
    }
}

/* ---- the names there are */

struct names {
    int count;
    char name[NAMES_MOST][NAME_BYTES];
};

static int names_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void name_add(struct names *names, const char *file)
{
    size_t length = strlen(file);
    if (length < 6 || strcmp(file + length - 5, ".json") != 0 || length - 5 >= NAME_BYTES || names->count == NAMES_MOST)
        return;
    char *name = names->name[names->count];
    memcpy(name, file, length - 5);
    name[length - 5] = 0;
    for (int i = 0; i < names->count; i++)
        if (strcmp(names->name[i], name) == 0)
            return;
    names->count++;
}

static void names_collect(struct names *names, const struct folders *folders)
{
    for (int i = 0; i < folders->count; i++) {
        DIR *folder = opendir(folders->path[i]);
        if (!folder)
            continue;
        for (const struct dirent *entry; (entry = readdir(folder));)
            name_add(names, entry->d_name);
        closedir(folder);
    }
    qsort(names->name, (size_t)names->count, sizeof names->name[0], names_compare);
}

static int fail_unknown(const char *name, const struct folders *folders, struct names *names)
{
    struct ah_buf list = {0};
    names_collect(names, folders);
    for (int i = 0; i < names->count; i++)
        ah__buf_printf(&list, "%s%s", i ? ", " : "", names->name[i]);
    int status = list.status;
    if (status == AH_OK)
        status = ah__fail(AH_EINPUT, "hardware: found '%.80s', expected a file or one of: %s", name,
                          list.text ? list.text : "(none found in hardware/ here, beside the program or installed)");
    ah__buf_free(&list);
    return status;
}

/* ---- */

static int find_named(char **out, const char *name, struct folders *folders)
{
    folders_fill(folders);
    for (int i = 0; i < folders->count; i++) {
        char *path;
        AH_TRY(ah__sprintf(&path, "%s/%s.json", folders->path[i], name));
        if (ah__path_exists(path)) {
            *out = path;
            return AH_OK;
        }
        ah__free(path);
    }
    struct names *names;
    AH_TRY(ah__new(&names, 1, sizeof *names));
    int status = fail_unknown(name, folders, names);
    ah__free(names);
    return status;
}

int ah__hardware_find(char **out, const char *name_or_path)
{
    size_t length = strlen(name_or_path);
    if (strchr(name_or_path, '/') || (length > 5 && strcmp(name_or_path + length - 5, ".json") == 0))
        return ah__strdup(out, name_or_path);
    struct folders *folders;
    AH_TRY(ah__new(&folders, 1, sizeof *folders));
    int status = find_named(out, name_or_path, folders);
    ah__free(folders);
    return status;
}
