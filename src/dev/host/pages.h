/* Whole pages of host memory: zeroed, touched, with inaccessible pages before and after. Bounded regions and memory for
 * transfers consist of them. Knows no devices. */
#ifndef AH_DEV_HOST_PAGES_H
#define AH_DEV_HOST_PAGES_H

#include "base/status.h"

struct ah_pages {
    char *base;
    int64_t bytes; /* requested bytes */
    void *mapping;
    size_t mapped;
};

/* Makes zeroed, prefaulted memory; `what` is for the message. AH_ENOMEM, also if the machine has less than `bytes`
 * available. */
int ah__pages_new(struct ah_pages *out, int64_t bytes, const char *what);
void ah__pages_free(struct ah_pages *pages); /* a zero struct is fine */
/* Returns the bytes available without swapping: the kernel's figure for the machine, or less if the control groups of
 * this process allow less. INT64_MAX: unknown. */
int64_t ah__pages_available(void);

#endif
