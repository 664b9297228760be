/* What the fuzz targets share. Each is one function over bytes, FUZZ_TARGET: libFuzzer's entry point, or, when a test
 * includes the file to replay its corpus, a name of that test's choosing. */
#ifndef AH_FUZZ_FUZZ_H
#define AH_FUZZ_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "autohete.h"

#ifndef FUZZ_TARGET
#define FUZZ_TARGET LLVMFuzzerTestOneInput
#endif
int FUZZ_TARGET(const uint8_t *data, size_t size);

/* A broken promise is a crash that the fuzzer reports. */
#define FUZZ_CHECK(condition)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* The bytes as a file in memory; its name into path. Returns a descriptor to close. */
static inline int fuzz_file(char *path, size_t room, const uint8_t *data, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0);
    for (size_t done = 0; done < size;) {
        ssize_t put = write(fd, data + done, size - done);
        FUZZ_CHECK(put > 0);
        done += (size_t)put;
    }
    snprintf(path, room, "/proc/self/fd/%d", fd);
    return fd;
}

#endif
