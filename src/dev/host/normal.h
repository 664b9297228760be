/* Normal random numbers for arrays, on all cores: what ah__random_normal gives, but for the last bits of logarithm and
 * cosine, many at a time. The same bits for any number of cores and every instruction set. */
#ifndef AH_DEV_HOST_NORMAL_H
#define AH_DEV_HOST_NORMAL_H

#include "base/status.h"

/* to[i] = std times the normal number at position first + i of the stream. Starts and ends threads where there is much
 * to do; where none are to be had it goes without. */
void ah__normal_fill(float *to, int64_t count, uint64_t stream, uint64_t first, double std);

#endif
