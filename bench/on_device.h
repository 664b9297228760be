/* Timing of works on a device of any kind, by the device's own clock, and the rates that nothing on it can beat. Not
 * part of the library. */
#ifndef AH_BENCH_ON_DEVICE_H
#define AH_BENCH_ON_DEVICE_H

#include "dev/dev.h"

struct on_device {
    struct ah_dev *dev;
    struct ah_dev_info info;
    int rounds; /* of which medians are taken */
    int64_t operand_bytes, flush_bytes, host_bytes;
    char *region; /* operands, then the workspace, then twice flush_bytes that are copied before each measured work,
                      * so that it finds nothing in caches */
    char *workspace;
    char *flush, *host;
};

/* Exits with a message when there is none. */
void on_device_open(struct on_device *out, const char *name, const struct ah_dev_options *options, int rounds);
/* What a program wants beside its operands. */
int64_t on_device_workspace(struct on_device *d, const struct ah_program *program);
/* The region, and host memory that holds all operands at least. */
void on_device_memory(struct on_device *d, int64_t operand_bytes, int64_t workspace_bytes, int64_t flush_bytes,
                      int64_t host_bytes);
/* Operands [at, at + bytes) from the beginning of host memory. */
void on_device_put(struct on_device *d, int64_t at, int64_t bytes);
void on_device_close(struct on_device *d);

/* The median time in seconds of a work of the compute lane, alone. */
double on_device_time(struct on_device *d, const struct ah_work *work);
/* Of a program whose operands lie in AH_SPACE_WORK, from `at` on. */
double on_device_program(struct on_device *d, const struct ah_program *program, int64_t at);
/* From the first start to the last end of works on different lanes, submitted together; the median in seconds. */
double on_device_together(struct on_device *d, const struct ah_work *works, int count);

/* ---- limits */

/* FLOP/s of products of square matrices: the best of n and n / 2. Their operands lie at the region's beginning and take
 * on_device_matrix_bytes(); they are filled. */
double on_device_matrix_rate(struct on_device *d, enum ah_dtype dtype, int64_t n);
int64_t on_device_matrix_bytes(enum ah_dtype dtype, int64_t n);
/* The same with operands as they were filled last, at once. */
double on_device_matrix_again(struct on_device *d, enum ah_dtype dtype, int64_t n);
/* The product as a program of one call, for on_device_workspace(). */
struct ah_call on_device_matrix_call(enum ah_dtype dtype, int64_t n);
/* Bytes read and written per second by a copy within the device's memory. */
double on_device_copy_rate(struct on_device *d);

#endif
