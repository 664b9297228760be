/* Encodes frozen matrices in fewer bits (op/codes.h) when they are read from files, and decodes them. */
#ifndef AH_DEV_HOST_CODES_H
#define AH_DEV_HOST_CODES_H

#include "op/codes.h"

/* Encodes whole blocks, ah__codes_bytes(codes, count) bytes; the last is padded with zeros. A group with a value that
 * is not finite becomes NaN. */
void ah__codes_narrow(void *to, const float *values, int64_t count, enum ah_codes codes);
/* Decodes the first `count` values. */
void ah__codes_widen(float *values, const void *from, int64_t count, enum ah_codes codes);

#endif
