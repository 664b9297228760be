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

#define AH_VERSION_MAJOR 0 /* the one place of the version: CMake and packages read it here */
#define AH_VERSION_MINOR 1
#define AH_VERSION_PATCH 0

#if defined(__GNUC__)
#define AH_API __attribute__((visibility("default")))
#define AH_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define AH_API
#define AH_PRINTF(fmt, args)
#endif

/* "0.1.0" */
AH_API const char *ah_version(void);

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* name, value, the fault is in the input (exit status 2) rather than in the run (exit status 1), description */
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

/* The message of the last failure on this thread: one line, no newline, valid until the next failure on this thread. */
AH_API const char *ah_error(void);
/* "AH_EINPUT", or "unknown status". */
AH_API const char *ah_status_name(int status);
/* Whether the fault lies in what the user gave (a program exits with 2), not in the run (1). */
AH_API bool ah_status_is_input(int status);

/* ---- text of others ---------------------------------------------------------------------------------------------- */

/* Bytes of the character of UTF-8 that begins a text of length >= 1 bytes. 0: none does. More than `length`: the text
 * ends inside one of that many bytes. *control: terminals obey it (U+0000 to U+001F, U+007F to U+009F). */
AH_API size_t ah_text_character(bool *control, const char *text, size_t length);
/* Makes it one line that a terminal shows and does not obey: each byte of a control character becomes a space, a byte
 * that is no UTF-8 a question mark. Returns text. */
AH_API char *ah_text_plain(char *text);

/* ---- files that are written -------------------------------------------------------------------------------------- */

/* Whether a file can be written at `path` by an operation that reads `inputs`, before its work; changes nothing. What
 * all functions here do with a path to write: a file is replaced as a whole once the new one is complete, a link is
 * followed, a pipe, a device of characters or an open file (/dev/stdout) is written to as it is.
 * An input is a file, "-" (standard input), the folder of a model or training, whose own files it stands for, or null.
 * AH_EINPUT: a folder, a socket or a disk, a path that cannot be written, or a file that is one of the inputs, under
 * whatever name. AH_ENOMEM. */
AH_API int ah_output_check(const char *path, const char *const *inputs, size_t count);

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

/* "64MiB", "1.5GB", "4096" (bytes) -> bytes. Binary (KiB MiB GiB TiB, K M G T) and decimal (kB KB MB GB TB) suffixes,
 * "B" or none. AH_EINPUT when malformed, negative or beyond int64_t; zero is the caller's to refuse. */
AH_API int ah_size_parse(int64_t *bytes, const char *text);
/* "4GB/s", "500MiB/s" -> bytes per second; the "/s" is required. */
AH_API int ah_rate_parse(int64_t *bytes_per_s, const char *text);
/* 67108864 -> "64.0 MiB" into text[size]; returns text. */
AH_API char *ah_size_format(char *text, size_t size, int64_t bytes);
/* A count in `text`, which is returned: "812", "10.8 M", "1.20 G". */
AH_API char *ah_count_format(char *text, size_t size, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
