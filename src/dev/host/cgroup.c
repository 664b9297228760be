#include "dev/host/cgroup.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024, FILE_BYTES = 8192 };

/* The two versions of control groups: where memory groups are mounted, the field of /proc/self/cgroup with their name,
 * and their files. */
struct version {
    const char *mount, *controller, *limit, *use, *reclaimable;
};
static const struct version versions[] = {
    {"/sys/fs/cgroup", "", "memory.max", "memory.current", "inactive_file"},
    {"/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
};

static bool slurp(char text[FILE_BYTES], const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, FILE_BYTES - 1);
    close(fd);
    text[length > 0 ? length : 0] = 0;
    return length > 0;
}

/* Reads a file that has one number; false also for "max". */
static bool read_number(int64_t *out, const char *folder, const char *name)
{
    char path[PATH_BYTES], text[FILE_BYTES], *end;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!slurp(text, path))
        return false;
    *out = strtoll(text, &end, 10);
    return end != text && *out >= 0;
}

/* Returns the value of the line "KEY VALUE"; 0: no such line. */
static int64_t read_stat(const char *folder, const char *key)
{
    char path[PATH_BYTES], text[FILE_BYTES];
    size_t length = strlen(key);
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    if (!slurp(text, path))
        return 0;
    for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL)
        if (strncmp(line, key, length) == 0 && line[length] == ' ')
            return strtoll(line + length, NULL, 10);
    return 0;
}

static int64_t left_of(const struct version *version, const char *folder)
{
    int64_t limit, use;
    if (!read_number(&limit, folder, version->limit) || !read_number(&use, folder, version->use))
        return INT64_MAX;
    int64_t kept = use - read_stat(folder, version->reclaimable);
    kept = kept > 0 ? kept : 0;
    return limit > kept ? limit - kept : 0;
}

/* Finds the path of this process's group: after the second colon of the line "NUMBER:CONTROLLERS:PATH". */
static bool group_path(char *out, size_t size, const char *text, const char *controller)
{
    for (const char *line = text, *end; line; end = strchr(line, '\n'), line = end ? end + 1 : NULL) {
        size_t number = strcspn(line, ":\n");
        if (line[number] != ':')
            continue;
        const char *names = line + number + 1;
        size_t length = strcspn(names, ":\n");
        if (names[length] != ':' || length != strlen(controller) || memcmp(names, controller, length) != 0)
            continue;
        snprintf(out, size, "%.*s", (int)strcspn(names + length + 1, "\n"), names + length + 1);
        return true;
    }
    return false;
}

/* Returns the least memory left from the group's folder up to the mount. In a container the path may be the host's;
 * then only the mount, which is the container's own, counts. */
static int64_t left_upwards(const struct version *version, const char *root, const char *group)
{
    char folder[PATH_BYTES];
    int mount = snprintf(folder, sizeof folder, "%s%s", root, version->mount);
    int64_t least = INT64_MAX;
    snprintf(folder + mount, sizeof folder - (size_t)mount, "%s", group);
    for (char *end = folder + strlen(folder); end && end >= folder + mount; end = strrchr(folder, '/')) {
        *end = 0;
        int64_t left = left_of(version, folder);
        least = left < least ? left : least;
    }
    return least;
}

int64_t ah__cgroup_memory_left(const char *root)
{
    char text[FILE_BYTES], path[PATH_BYTES], group[PATH_BYTES / 2];
    int64_t least = INT64_MAX;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (strlen(root) > PATH_BYTES / 4 || !slurp(text, path))
        return INT64_MAX;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++)
        if (group_path(group, sizeof group, text, versions[i].controller)) {
            int64_t left = left_upwards(&versions[i], root, group);
            least = left < least ? left : least;
        }
    return least;
}
