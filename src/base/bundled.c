#include "base/bundled.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

enum { PATH_BYTES = 4096, FOLDERS_MOST = 8 };

struct folders {
    const char *kind;
    int count;
    char path[FOLDERS_MOST][PATH_BYTES];
};

static void folder_add(struct folders *folders, const char *base, const char *rest)
{
    if (snprintf(folders->path[folders->count], PATH_BYTES, "%s%s%s", base, rest, folders->kind) < PATH_BYTES)
        folders->count++;
}

/* Cuts the last part off a path; false if the path has only one. */
static bool parent(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash)
        return false;
    *slash = 0;
    return true;
}

/* Finds the folder of the running program. library_folder finds that of the library if it is a shared one. */
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

/* Lists the folders in the order of search. An installed program is in bin/, the library in lib/ or lib/TRIPLET/, the
 * data in share/. */
static void folders_fill(struct folders *folders)
{
    char program[PATH_BYTES], library[PATH_BYTES];
    bool has_program = program_folder(program), has_library = library_folder(library);
    if (has_program)
        folder_add(folders, program, "/");
    folder_add(folders, "", "");
    if (has_program)
        folder_add(folders, program, "/../share/autohete/");
    if (has_library) {
        folder_add(folders, library, "/"); /* the build's folder, also if another program has loaded the library */
        folder_add(folders, library, "/../share/autohete/");
        folder_add(folders, library, "/../../share/autohete/");
    }
}

/* Allocates the list of folders, whose paths are too long for the stack. Freed with ah__free. */
static int folders_new(struct folders **out, const char *kind)
{
    AH_TRY(ah__new(out, 1, sizeof **out));
    (*out)->kind = kind;
    folders_fill(*out);
    return AH_OK;
}

/* ---- one file ---------------------------------------------------------------------------------------------------- */

static int find_in(char **out, const struct folders *folders, const char *name)
{
    for (int i = 0; i < folders->count; i++) {
        char *path;
        AH_TRY(ah__sprintf(&path, "%s/%s.json", folders->path[i], name));
        if (ah__path_exists(path)) {
            *out = path;
            return AH_OK;
        }
        ah__free(path);
    }
    return AH_OK;
}

int ah__bundled_find(char **out, const char *kind, const char *name)
{
    struct folders *folders;
    *out = NULL;
    AH_TRY(folders_new(&folders, kind));
    int status = find_in(out, folders, name);
    ah__free(folders);
    return status;
}

/* ---- all names --------------------------------------------------------------------------------------------------- */

static int names_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int name_add(struct ah_bundled_names *names, const char *file)
{
    size_t length = strlen(file);
    if (length < 6 || strcmp(file + length - 5, ".json") != 0 || length - 5 >= sizeof *names->name)
        return AH_OK;
    AH_TRY(ah__grow(&names->name, &names->capacity, names->count + 1, sizeof *names->name));
    char *name = names->name[names->count];
    memcpy(name, file, length - 5);
    name[length - 5] = 0;
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->name[i], name) == 0)
            return AH_OK;
    names->count++;
    return AH_OK;
}

static int names_collect(struct ah_bundled_names *names, const struct folders *folders)
{
    int status = AH_OK;
    for (int i = 0; i < folders->count && status == AH_OK; i++) {
        DIR *folder = opendir(folders->path[i]);
        const struct dirent *entry;
        while (folder && status == AH_OK && (entry = readdir(folder)))
            status = name_add(names, entry->d_name);
        if (folder)
            closedir(folder);
    }
    if (names->count)
        qsort(names->name, names->count, sizeof *names->name, names_compare);
    return status;
}

int ah__bundled_list(struct ah_bundled_names *out, const char *kind)
{
    struct folders *folders;
    *out = (struct ah_bundled_names){0};
    AH_TRY(folders_new(&folders, kind));
    int status = names_collect(out, folders);
    ah__free(folders);
    if (status != AH_OK)
        ah__bundled_names_free(out);
    return status;
}

void ah__bundled_names_free(struct ah_bundled_names *names)
{
    ah__free(names->name);
    *names = (struct ah_bundled_names){0};
}
