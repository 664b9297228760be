/* The formats of optimizer states, one row each: their bytes, and their conversion from and to floats when states are
 * read from files and written. The optimizer has kernels of its own. */
#ifndef AH_DEV_HOST_STATES_H
#define AH_DEV_HOST_STATES_H

#include <stdbool.h>

#include "dev/dev.h"

/* A format. Elements of a group are stored together; if there are several, one scale follows their codes. Files have
 * codes, in the format's dtype, and scales as separate tensors. */
struct ah_state_format {
    int64_t group, group_bytes; /* elements of a group, and their bytes */
    uint8_t zero[2];            /* code of zero in a second moment, in a first moment */
    /* Convert `count` values from the beginning of a group on. narrow pads the last group with zeros. `is_signed`:
     * first moments. Values and states must not overlap. */
    void (*narrow)(void *to, const float *values, int64_t count, bool is_signed);
    void (*widen)(float *values, const void *from, int64_t count, bool is_signed);
};

/* Returns the format of a dtype; null: states cannot have this dtype. */
const struct ah_state_format *ah__state_format(enum ah_dtype dtype);

static inline bool ah__has_scales(enum ah_dtype dtype)
{
    return ah__state_format(dtype)->group > 1;
}
/* ah__state_split copies the codes, or the scales, of `count` elements from a format that has scales; ah__state_join
 * puts both into it and sets unused codes of the last group to zero. Scales may be at any address. */
void ah__state_split(void *to, const void *state, enum ah_dtype dtype, int64_t count, bool scales);
void ah__state_join(void *state, enum ah_dtype dtype, const void *codes, const void *scales, int64_t count,
                    bool is_signed);

#endif
