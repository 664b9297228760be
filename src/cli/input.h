/* Small files that a command reads itself: a file of options, a conversation. The library reads all others. */
#ifndef AH_CLI_INPUT_H
#define AH_CLI_INPUT_H

#include <stdbool.h>
#include <stddef.h>

/* Reads all of a file, a pipe or, as "-", standard input into *text, with a zero byte after it; freed with free(). A
 * file of more than `most` bytes, such as /dev/zero, is refused and not read to its end. False: one line in `error`, of
 * `room` bytes. */
bool ah__input_read(char **text, size_t *length, const char *path, size_t most, char *error, size_t room);

#endif
