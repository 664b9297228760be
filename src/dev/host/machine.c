#include "dev/host/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES = 8192 };

/* Uses system calls alone: the result is part of signatures and must not depend on whether there is memory for a
 * stream. */
bool ah__host_line(char *text, size_t size, const char *path, const char *key)
{
    char file[FILE_BYTES];
    size_t length = 0;
    ssize_t got = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (got > 0 || (got < 0 && errno == EINTR)) {
        got = read(fd, file + length, sizeof file - 1 - length);
        length += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    file[length] = 0;
    for (const char *line = file; line; line = strchr(line, '\n'), line += line != NULL) {
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        const char *value = line + strcspn(line, ":\n");
        value += strspn(value, ": \t");
        snprintf(text, size, "%.*s", (int)strcspn(value, "\n"), value);
        return true;
    }
    return false;
}

/* Reads the line "model name\t: Some Processor". */
char *ah__host_model(char *text, size_t size)
{
    if (!ah__host_line(text, size, "/proc/cpuinfo", "model name"))
        *text = 0;
    return text;
}

int ah__host_cores(bool *in_order)
{
    cpu_set_t set;
    bool known = sched_getaffinity(0, sizeof set, &set) == 0;
    int count = known ? CPU_COUNT(&set) : 1;
    for (int i = 0; i < count && known; i++)
        known = CPU_ISSET((size_t)i, &set);
    if (in_order)
        *in_order = known;
    return count;
}
