#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"

#define MARK ".tmp-"
enum { PLACE_DIGITS = 16 };

/* Identifies the boot and the namespace of process numbers, in which alone a process number means something. "" if the
 * system does not tell. */
static const char *place_of(char text[PLACE_DIGITS + 1])
{
    char boot[64] = "", space[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    bool known = file && fgets(boot, sizeof boot, file) != NULL;
    if (file)
        fclose(file);
    known = readlink("/proc/self/ns/pid", space, sizeof space - 1) > 0 && known;
    text[0] = 0;
    if (known)
        snprintf(text, PLACE_DIGITS + 1, "%016" PRIx64, ah__hash_text(space, ah__hash_text(boot, 0)));
    return text;
}

int ah__file_temporary(char **out, const char *path)
{
    enum { ADDED_MOST = sizeof MARK + 32 + PLACE_DIGITS };
    static atomic_uint made; /* gives two threads that write one file different names */
    char place[PLACE_DIGITS + 1];
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash + 1 - path) : 0, name = strnlen(path + folder, NAME_MAX - ADDED_MOST);
    return ah__sprintf(out, "%.*s" MARK "%ld.%u-%s", (int)(folder + name), path, (long)getpid(),
                       atomic_fetch_add(&made, 1), place_of(place));
}

bool ah__file_left_over(size_t *length, const char *name)
{
    const char *mark = strstr(name, MARK);
    char *end, place[PLACE_DIGITS + 1];
    if (!mark || mark == name || !place_of(place)[0])
        return false;
    long pid = strtol(mark + strlen(MARK), &end, 10);
    if (*end == '.')
        end += 1 + strspn(end + 1, "0123456789");
    if (*end != '-' || strcmp(end + 1, place) != 0 || pid <= 0 || pid == (long)getpid())
        return false;
    *length = (size_t)(mark - name);
    return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

int ah__file_sweep(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *folder;
    AH_TRY(ah__sprintf(&folder, "%.*s", slash ? (int)(slash + 1 - path) : 1, slash ? path : "."));
    DIR *list = opendir(folder);
    size_t length;
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (strncmp(entry->d_name, name, strlen(name)) == 0 && ah__file_left_over(&length, entry->d_name) &&
            length == strlen(name))
            (void)unlinkat(dirfd(list), entry->d_name, 0);
    if (list)
        closedir(list);
    ah__free(folder);
    return AH_OK;
}

int ah__file_own(const char *path)
{
    struct stat info;
    if (lstat(path, &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode))
        return AH_OK;
    if (!S_ISLNK(info.st_mode))
        return ah__fail(AH_EINPUT, "%s: found a device, pipe or socket, expected a file of the folder's own", path);
    return unlink(path) == 0 ? AH_OK : ah__fail(AH_EIO, "%s: cannot replace: %s", path, strerror(errno));
}
