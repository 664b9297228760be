/* Helpers for the rules of several rows. Private to op/. */
#ifndef AH_OP_RULES_H
#define AH_OP_RULES_H

#include "op/op.h"

int64_t ah__op_last(const struct ah_meta *meta); /* the last dimension */
struct ah_meta ah__op_floats(int64_t count);     /* F32 [count] */

/* AH_EINPUT: "OPERAND is F32 [5,6], expected FORMAT". */
AH_PRINTF(3, 4) int ah__op_wrong(const char *operand, const struct ah_meta *found, const char *format, ...);
/* Check an operand: AH_EINPUT unless it is the expected one. */
int ah__op_expect(const char *operand, const struct ah_meta *found, enum ah_dtype dtype, struct ah_shape shape);
int ah__op_expect_float(const char *operand, const struct ah_meta *found, int rank_min, int rank_max);
int ah__op_expect_ids(const char *operand, const struct ah_meta *found); /* I32 [B,T] */
/* Checks that the attribute `cap` is a number of at least 0. */
int ah__cap_expect(const struct ah_attr *attr);
/* Checks the positions for x [B,T,...]: absent, or I32 [B,T]. */
int ah__op_expect_positions(const struct ah_meta *found, const struct ah_meta *x);

/* Shape rules: infer_same gives one output like the only input, infer_pair one like two inputs of one shape. */
int ah__op_infer_same(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr);
int ah__op_infer_pair(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr);

ah_op_cost ah__op_no_flops;
ah_op_cost ah__op_one_flop; /* one operation for each element of input 0 */

/* Defines the cost `name`: a nominal number of operations for each element of input 0. */
#define AH_OP_FLOPS_PER_ELEMENT(name, factor)                                                                          \
    static double name(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)                \
    {                                                                                                                  \
        (void)out, (void)attr;                                                                                         \
        return (factor) * (double)ah__shape_count(&in[0].shape);                                                       \
    }

#endif
