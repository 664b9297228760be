/* Version, statuses and messages, sizes. */
#ifndef AUTOHETE_BASE_H
#define AUTOHETE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AH_VERSION_MAJOR 0 /* the version is defined here alone: CMake and packages read it here */
#define AH_VERSION_MINOR 2
#define AH_VERSION_PATCH 0

#if defined(__GNUC__)
#define AH_API __attribute__((visibility("default")))
#define AH_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define AH_API
#define AH_PRINTF(fmt, args)
#endif

/* Returns the version: "0.2.0". */
AH_API const char *ah_version(void);

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* Rows: name, value, true if the fault is in the input (exit status 2) and not in the run (exit status 1),
 * description. */
#define AH_STATUS_TABLE(X)                                                                                             \
    X(AH_OK, 0, false, "success")                                                                                      \
    X(AH_EINPUT, -1, true, "the input is wrong")                                                                       \
    X(AH_EBUDGET, -2, true, "the memory budget is too small")                                                          \
    X(AH_ESTALE, -3, true, "the artefact was made from something else")                                                \
    X(AH_ECORRUPT, -4, true, "the file is damaged")                                                                    \
    X(AH_ENOMEM, -5, false, "out of host memory")                                                                      \
    X(AH_EIO, -6, false, "reading or writing failed")                                                                  \
    X(AH_EDEVICE, -7, false, "the device failed")                                                                      \
    X(AH_ENUMERIC, -8, false, "a loss or gradient is not finite")                                                      \
    X(AH_EINTERNAL, -9, false, "a defect in AutoHete")                                                                 \
    X(AH_ESTOP, -10, false, "stopped as asked")                                                                        \
    X(AH_EEND, -11, false, "there is nothing more")

enum ah_status {
#define AH_STATUS_ENUM(name, value, input, text) name = value,
    AH_STATUS_TABLE(AH_STATUS_ENUM)
#undef AH_STATUS_ENUM
        AH_STATUS_LAST = AH_EEND /* no comma before the brace, for old C++ */
};

/* Returns the message of the last failure on this thread: one line, no newline, valid until the next failure on this
 * thread. */
AH_API const char *ah_error(void);
/* Returns the name of a status: "AH_EINPUT"; "unknown status" for other numbers. */
AH_API const char *ah_status_name(int status);
/* Returns true if the fault is in the user's input (a program exits with 2) and not in the run (1). */
AH_API bool ah_status_is_input(int status);

/* ---- text of others ---------------------------------------------------------------------------------------------- */

/* Returns the number of bytes of the UTF-8 character that begins a text of length >= 1 bytes. 0: no character does.
 * More than `length`: the text ends inside a character of that many bytes. *control: terminals obey the character
 * (U+0000 to U+001F, U+007F to U+009F). */
AH_API size_t ah_text_character(bool *control, const char *text, size_t length);
/* Changes a text to one line that a terminal shows and does not obey: each byte of a control character becomes a space,
 * each byte that is not UTF-8 a question mark. Returns text. */
AH_API char *ah_text_plain(char *text);

/* ---- files that are written -------------------------------------------------------------------------------------- */

/* Checks whether a file can be written at `path` by an operation that reads `inputs`, before the operation works;
 * changes nothing. All functions here treat a path to write alike: a file is replaced as a whole once the new one is
 * complete, a link is followed, and a pipe, a character device or an open file (/dev/stdout) is written to as it is.
 * An input is a file, "-" (standard input), the folder of a model or training, which stands for its own files, or null.
 * AH_EINPUT: `path` is a folder, a socket or a disk, cannot be written, or is one of the inputs under any name.
 * AH_ENOMEM. */
AH_API int ah_output_check(const char *path, const char *const *inputs, size_t count);

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

/* Parses a size into bytes: "64MiB", "1.5GB", "4096". Suffixes are binary (KiB MiB GiB TiB, K M G T) or decimal (kB KB
 * MB GB TB), "B" or none. AH_EINPUT: it is malformed, negative or beyond int64_t. Zero is allowed. */
AH_API int ah_size_parse(int64_t *bytes, const char *text);
/* Parses a rate into bytes per second: "4GB/s", "500MiB/s". The "/s" is required. AH_EINPUT. */
AH_API int ah_rate_parse(int64_t *bytes_per_s, const char *text);
/* Writes a size into text[size]: "64.0 MiB" for 67108864. Returns text. */
AH_API char *ah_size_format(char *text, size_t size, int64_t bytes);
/* Writes a count into text[size]: "812", "10.8 M", "1.20 G". Returns text. */
AH_API char *ah_count_format(char *text, size_t size, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
