/* Estimates how long a compiled program takes on a device of which only figures are known.
 *
 * Takes shapes and a machine, gives nanoseconds. Each call takes the longer of its arithmetic and its memory traffic,
 * plus the gap before its kernel. Must not know plans, links or hosts. */
#ifndef AH_PROFILE_ROOFLINE_H
#define AH_PROFILE_ROOFLINE_H

#include "op/program.h"
#include "profile/hardware.h"

struct ah_roofline {
    const struct ah_curve *curve;    /* of the compute dtype */
    double bytes_per_s;              /* device memory bandwidth reached by streaming kernels */
    double attention_flops_per_s[2]; /* forward, backward */
    double kernel_ns;
    int64_t multiprocessors, memory_bytes; /* of a GPU; 0: the device is none, or unknown */
};

struct ah_roofline_time {
    double ns;
    double memory_ns; /* the part of ns in calls limited by memory */
};

/* Fills *out. AH_EINPUT if the machine has no GEMM rates of the compute dtype. */
int ah__roofline_init(struct ah_roofline *out, const struct ah_hardware *hardware, enum ah_dtype compute);
/* Adds the program's time to *time. */
void ah__roofline_add(struct ah_roofline_time *time, const struct ah_roofline *roofline,
                      const struct ah_program *program);
/* Returns the workspace that a GPU takes for a program's logits, beside the program's own scratch. */
int64_t ah__roofline_workspace(const struct ah_roofline *roofline, const struct ah_program *program);
/* Adds the time of a kernel that only moves bytes. */
void ah__roofline_add_bytes(struct ah_roofline_time *time, const struct ah_roofline *roofline, double bytes);

/* Returns the flops per second of a GEMM of m x n x k: the curve's rate of the cube with the same arithmetic intensity,
 * whose side is the harmonic mean of the three. Linear in log size between points, the last rate beyond the last point,
 * in proportion to size before the first. */
double ah__curve_rate(const struct ah_curve *curve, double m, double n, double k);

/* Returns the highest rate of all points. */
double ah__curve_best(const struct ah_curve *curve);

#endif
