/* Frozen matrices in fewer bits (op/codes.h) from floats, where they come from files. */
#ifndef AH_DEV_HOST_CODES_H
#define AH_DEV_HOST_CODES_H

#include "op/codes.h"

/* Whole blocks, ah__codes_bytes(codes, count), of which the last is filled up with zeros. A group with a value that is
 * not finite becomes NaN. */
void ah__codes_narrow(void *to, const float *values, int64_t count, enum ah_codes codes);
/* The first `count` values. */
void ah__codes_widen(float *values, const void *from, int64_t count, enum ah_codes codes);

#endif
