#include "cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads at most `most` + 1 bytes, so that a longer file is recognized. Returns them with a zero byte after them (free);
 * null: errno says why. */
static char *bytes_take(size_t *length, int fd, size_t most)
{
    size_t room = 0, done = 0;
    char *bytes = NULL;
    for (;;) {
        if (done == room) {
            room = room ? 2 * room : 1 << 16;
            room = room > most ? most + 1 : room;
            char *more = realloc(bytes, room + 1);
            if (!more)
                break;
            bytes = more;
        }
        ssize_t got = read(fd, bytes + done, room - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        done += (size_t)got;
        if (got > 0 && done <= most)
            continue;
        bytes[done] = 0;
        *length = done;
        return bytes;
    }
    int cause = errno;
    free(bytes);
    errno = cause;
    return NULL;
}

bool ah__input_read(char **text, size_t *length, const char *path, size_t most, char *error, size_t room)
{
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    *text = fd < 0 ? NULL : bytes_take(length, fd, most);
    int cause = errno;
    if (fd >= 0 && !standard)
        close(fd);
    if (*text && *length <= most)
        return true;
    if (*text)
        snprintf(error, room, "%.200s: found more than %zu bytes, expected at most that", name, most);
    else
        snprintf(error, room, "%.200s: cannot %s: %s", name, fd < 0 ? "open" : "read", strerror(cause));
    free(*text);
    *text = NULL;
    return false;
}
