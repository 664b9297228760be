/* Angles of rotations by position, for the kernels of all devices. */
#ifndef AH_OP_ROTARY_H
#define AH_OP_ROTARY_H

#include "op/op.h"

/* Return the channels of a head of x [B,T,C], and the number of pairs of them that rotate, 0 for dims -1. */
int64_t ah__rotary_size(const struct ah_meta *x, const struct ah_attr *attr);
int64_t ah__rotary_pairs(const struct ah_meta *x, const struct ah_attr *attr);
/* Returns the angle of pair i of `pairs` between two positions, in radians. */
double ah__rotary_angle(const struct ah_attr *attr, int64_t i, int64_t pairs);
/* Returns the factor of a rotated pair. */
double ah__rotary_magnitude(const struct ah_attr *attr);

#endif
