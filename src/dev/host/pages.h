/* Whole pages of host memory: zeroed, touched, with inaccessible pages before and after. What bounded regions and
 * memory for transfers are made of. Knows no devices. */
#ifndef AH_DEV_HOST_PAGES_H
#define AH_DEV_HOST_PAGES_H

#include "base/status.h"

struct ah_pages {
    char *base;
    int64_t bytes; /* as asked for */
    void *mapping;
    size_t mapped;
};

/* Zeroed, prefaulted memory; `what` is for the message. AH_ENOMEM, also when the machine has less than `bytes`
 * available. */
int ah__pages_new(struct ah_pages *out, int64_t bytes, const char *what);
void ah__pages_free(struct ah_pages *pages); /* of zeros is fine */
/* What can be had without swapping: of the machine, as the kernel says, and of what the control groups of this process
 * leave it. INT64_MAX when nobody says. */
int64_t ah__pages_available(void);

#endif
