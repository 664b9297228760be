/* Operators: each has one row, in the file of its family, with everything about it but its kernels and its gradient
 * rule.
 *
 * Takes shapes and attributes, gives shapes and costs. Knows no kernels, no devices and no graph storage. How to add an
 * operator: docs/adding-an-operator.md. */
#ifndef AH_OP_OP_H
#define AH_OP_OP_H

#include "base/status.h"
#include "op/attr.h"
#include "op/list.h"

enum ah_op {
#define AH_OP_ENUM(id, name) AH_OP_##id,
    AH_OP_LIST(AH_OP_ENUM)
#undef AH_OP_ENUM
        AH_OP_COUNT
};

enum { AH_OP_MAX_INPUTS = 8, AH_OP_MAX_OUTPUTS = 4, AH_OP_MAX_OPERANDS = AH_OP_MAX_INPUTS + AH_OP_MAX_OUTPUTS };

/* A kernel's view of one operand, without its address, which is passed beside it. */
struct ah_meta {
    enum ah_dtype dtype;
    struct ah_shape shape; /* rank 0: an optional operand that is absent */
};

enum ah_operand_kind {
    AH_OPERAND_ACTIVATION = 1, /* made by an operator, read by others */
    AH_OPERAND_PARAM,
    AH_OPERAND_TOKENS,     /* token ids */
    AH_OPERAND_TARGETS,    /* target ids */
    AH_OPERAND_POSITIONS,  /* positions of tokens in their documents */
    AH_OPERAND_CACHE,      /* keys and values, kept from one run of a program to the next */
    AH_OPERAND_STATISTICS, /* F32 statistics beside the result, for backward only */
    AH_OPERAND_INDEX,      /* I32, made by route: where the rows of tokens and experts are */
    AH_OPERAND_SHARE,      /* F32, made by route: weights of a token's experts; and their gradients */
    AH_OPERAND_LOSS,
    AH_OPERAND_GRADIENT,       /* gradient of an activation */
    AH_OPERAND_PARAM_GRADIENT, /* gradient of a parameter, always F32 (a sum over all tokens); attr.acc: added to */
    AH_OPERAND_SCALE,          /* F32 [1], a factor */
    AH_OPERAND_SCRATCH,        /* an output that nothing reads: scratch of the operator while it runs */
};

struct ah_op_operand {
    const char *name;
    enum ah_operand_kind kind;
    bool optional;       /* may be absent; an absent output is not computed, as if backward's values are dropped */
    bool backward_reads; /* forward operators: the gradient rule reads it, so it is saved or recomputed */
    bool in_place;       /* an output that has the memory of input 0 */
    bool given;          /* output 0 whose shape no input determines: the caller gives it and it is checked */
};

/* The limit of an operator's speed if it is not the traffic of its operands. */
enum ah_op_limit {
    AH_OP_LIMIT_MEMORY = 0,
    AH_OP_LIMIT_PRODUCT, /* a product of matrices, whose size the row gives */
    AH_OP_LIMIT_ATTENTION,
    AH_OP_LIMIT_ATTENTION_BWD,
};

/* A product of m rows with a matrix of n by k, in whichever order the two are stored. */
struct ah_op_product {
    int64_t m, n, k;
};

/* Returns a cost of one call from its operands; absent ones have rank 0. */
typedef double ah_op_cost(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr);

struct ah_op_row {
    const char *name;
    int inputs, outputs; /* counted by AH_OP_INPUTS and AH_OP_OUTPUTS */
    struct ah_op_operand in[AH_OP_MAX_INPUTS];
    struct ah_op_operand out[AH_OP_MAX_OUTPUTS];
    int attrs; /* AH_ATTR_ bits of the attributes that the operator has */
    /* Infers shapes and dtypes of the outputs from those of the inputs; a given output comes filled in and is checked.
     * AH_EINPUT. */
    int (*infer)(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr);
    /* Floating-point operations (a fused multiply-add is two), causal attention counted at half. */
    ah_op_cost *flops;
    /* Bytes between memory and processor; null: each operand crosses once, an output that is added to twice. */
    ah_op_cost *bytes;
    enum ah_op_limit limit;
    /* Gives the product's size; AH_OP_LIMIT_PRODUCT only. */
    struct ah_op_product (*product)(const struct ah_meta *in, const struct ah_meta *out);
    /* For operators that compute a loss, gives the number of classes from the first two inputs: targets are below
     * it. */
    int64_t (*classes)(const struct ah_meta *in);
};

/* A row's operands and their number: AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION}, ...). */
#define AH_OP_INPUTS(...) .inputs = (int)AH_LENGTH(((struct ah_op_operand[]){__VA_ARGS__})), .in = {__VA_ARGS__}
#define AH_OP_OUTPUTS(...) .outputs = (int)AH_LENGTH(((struct ah_op_operand[]){__VA_ARGS__})), .out = {__VA_ARGS__}

#define AH_OP_DECLARE(id, name) extern const struct ah_op_row ah__op_##name;
AH_OP_LIST(AH_OP_DECLARE)
#undef AH_OP_DECLARE
extern const struct ah_op_row *const ah__op_table[AH_OP_COUNT];

/* Returns the output that has the memory of input 0, or -1. */
int ah__op_inplace_output(enum ah_op op);
/* Returns the first input of a kind, or -1. */
int ah__op_input_of(enum ah_op op, enum ah_operand_kind kind);
/* Returns the bytes between memory and processor, by the row's rule or the default. */
double ah__op_bytes(enum ah_op op, const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr);

int64_t ah__shape_count(const struct ah_shape *shape); /* number of elements */
int64_t ah__shape_rows(const struct ah_shape *shape);  /* elements / last dimension */
bool ah__shape_equal(const struct ah_shape *a, const struct ah_shape *b);
int64_t ah__meta_bytes(const struct ah_meta *meta); /* 0 for an absent operand */
int64_t ah__dtype_bytes(enum ah_dtype dtype);
/* Returns "fp32", "bf16" or "int8", the words of ah_moments_parse; null for other dtypes. */
const char *ah__dtype_word(enum ah_dtype dtype);
const char *ah__dtype_name(enum ah_dtype dtype);                               /* "F32" as in safetensors */
char *ah__shape_format(char *text, size_t size, const struct ah_shape *shape); /* "[4,256,768]" */

#endif
