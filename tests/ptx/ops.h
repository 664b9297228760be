/* What the two tables of opcodes share: one expression makes a function over the lanes of a warp. */
#ifndef PTX_OPS_H
#define PTX_OPS_H

#include "inside.h"

#include <string.h>

/* The operands of lane l. */
#define A s0[l]
#define B s1[l]
#define C s2[l]
#define LAST s3[l]
/* No store of a result changes the instruction (restrict), or an operand before all are computed: so loops are those of
 * vectors. */
#define EACH(name, expression)                                                                                         \
    static void name(const struct ptx_instr *restrict in, uint64_t *d, const uint64_t *const *s, uint32_t mask)        \
    {                                                                                                                  \
        const uint64_t *const s0 = s[0], *const s1 = s[1], *const s2 = s[2], *const s3 = s[3];                         \
        uint64_t out[WARP];                                                                                            \
        (void)in, (void)s0, (void)s1, (void)s2, (void)s3;                                                              \
        if (mask == 0xFFFFFFFFU) {                                                                                     \
            for (int l = 0; l < WARP; l++)                                                                             \
                out[l] = (uint64_t)(expression);                                                                       \
            memcpy(d, out, sizeof out);                                                                                \
        } else                                                                                                         \
            for (int l = 0; l < WARP; l++)                                                                             \
                if (mask >> l & 1)                                                                                     \
                    d[l] = (uint64_t)(expression);                                                                     \
    }

/* What a comparison says of two values, by whether one is less, they are equal, one is not a number. */
static inline bool compared(enum ptx_compare compare, bool less, bool equal, bool unordered)
{
    switch (compare) {
    case EQ:
        return equal && !unordered;
    case NE:
        return !equal && !unordered;
    case LT:
        return less && !unordered;
    case LE:
        return (less || equal) && !unordered;
    case GT:
        return !less && !equal && !unordered;
    case GE:
        return !less && !unordered;
    case EQU:
        return equal || unordered;
    case NEU:
        return !equal || unordered;
    case LTU:
        return less || unordered;
    case LEU:
        return less || equal || unordered;
    case GTU:
        return (!less && !equal) || unordered;
    case GEU:
        return !less || unordered;
    case NUM:
        return !unordered;
    case NAN_:
        return unordered;
    }
    return false;
}

static inline bool combined(const struct ptx_instr *in, bool result, uint64_t with)
{
    bool other = (with & 1) != (uint64_t)in->combine_not;
    return in->combine == COMBINE_AND   ? result && other
           : in->combine == COMBINE_OR  ? result || other
           : in->combine == COMBINE_XOR ? result != other
                                        : result;
}

/* floats.c: rows of the table for floating-point numbers and conversions. */
const struct ptx_op *ptx_op_floats(size_t *count);

#endif
