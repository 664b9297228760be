/* Status codes and the one-line message of a failure. A function that finds a fault writes `return ah__fail(AH_EINPUT,
 * "%s: ...", file, ...)`; callers pass the status on. */
#ifndef AH_BASE_STATUS_H
#define AH_BASE_STATUS_H

#include "autohete.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets this thread's message and returns `status`. */
int ah__fail(int status, const char *format, ...) AH_PRINTF(2, 3);
/* Puts "prefix: " before this thread's message and returns `status`. */
int ah__fail_prefix(int status, const char *format, ...) AH_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif

/* Returns from the calling function when `call` fails; for functions with nothing to release. */
#define AH_TRY(call)                                                                                                   \
    do {                                                                                                               \
        int ah_try_status = (call);                                                                                    \
        if (ah_try_status != AH_OK)                                                                                    \
            return ah_try_status;                                                                                      \
    } while (0)
#define AH_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#endif
