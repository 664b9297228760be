/* Fills arrays with normal random numbers on all cores: the numbers of ah__random_normal, but for the last bits of
 * logarithm and cosine. The same bits for any number of cores and every instruction set. */
#ifndef AH_DEV_HOST_NORMAL_H
#define AH_DEV_HOST_NORMAL_H

#include "base/status.h"

/* Sets to[i] = std times the normal number at position first + i of the stream. Starts and ends threads for large
 * arrays; if none can be started, it does without. */
void ah__normal_fill(float *to, int64_t count, uint64_t stream, uint64_t first, double std);

#endif
