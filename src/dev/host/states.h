/* The formats of optimizer states, one row each: how many bytes they take, and how they become floats and back where
 * states come from files and go there. The optimizer has kernels of its own. */
#ifndef AH_DEV_HOST_STATES_H
#define AH_DEV_HOST_STATES_H

#include <stdbool.h>

#include "dev/dev.h"

/* Elements of a group are kept together, with one scale behind their codes where there is more than one element. Files
 * have codes, in the format's dtype, and scales apart. */
struct ah_state_format {
    int64_t group, group_bytes; /* elements, and their bytes */
    uint8_t zero[2];            /* the code of zero: of a second moment, of a first one */
    /* `count` values from the beginning of a group on; narrow fills the last group with zeros. `is_signed`: first
     * moments. Values and states lie apart. */
    void (*narrow)(void *to, const float *values, int64_t count, bool is_signed);
    void (*widen)(float *values, const void *from, int64_t count, bool is_signed);
};

/* Null: no state is kept in this dtype. */
const struct ah_state_format *ah__state_format(enum ah_dtype dtype);

static inline bool ah__has_scales(enum ah_dtype dtype)
{
    return ah__state_format(dtype)->group > 1;
}
/* Codes, or the scales, of `count` elements from a format that has scales; and both into it, where unused codes of the
 * last group become zero. Scales may lie at any address. */
void ah__state_split(void *to, const void *state, enum ah_dtype dtype, int64_t count, bool scales);
void ah__state_join(void *state, enum ah_dtype dtype, const void *codes, const void *scales, int64_t count,
                    bool is_signed);

#endif
