/* Which angles a rotation by position has: for the kernels of all devices. */
#ifndef AH_OP_ROTARY_H
#define AH_OP_ROTARY_H

#include "op/op.h"

/* Channels of a head of x [B,T,C], and how many pairs of them rotate, 0 for dims -1. */
int64_t ah__rotary_size(const struct ah_meta *x, const struct ah_attr *attr);
int64_t ah__rotary_pairs(const struct ah_meta *x, const struct ah_attr *attr);
/* By how much pair i of `pairs` turns from one position to the next, in radians. */
double ah__rotary_angle(const struct ah_attr *attr, int64_t i, int64_t pairs);
/* What a rotated pair is multiplied by. */
double ah__rotary_magnitude(const struct ah_attr *attr);

#endif
