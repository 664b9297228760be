/* Moments in 8 bits (dev/code8.h) from floats and back, where states come from files and go there. The optimizer has
 * kernels of its own. */
#ifndef AH_DEV_HOST_CODE8_H
#define AH_DEV_HOST_CODE8_H

#include <stdbool.h>
#include <stdint.h>

/* Groups of `count` values, of which the last is filled up with zeros; `is_signed`: first moments. */
void ah__code8_narrow(uint8_t *groups, const float *values, int64_t count, bool is_signed);
/* The first `count` values of groups. */
void ah__code8_widen(float *values, const uint8_t *groups, int64_t count, bool is_signed);

#endif
