/* The operator table: one row per operator with its shape rule and flops; gradient rules are in partition/autodiff.c.
 * Takes shapes and attributes, gives shapes and costs. Knows no kernels, no devices and no graph storage. */
#ifndef AH_OP_OP_H
#define AH_OP_OP_H

#include "base/status.h"

/* id, name, inputs, outputs. Operand order is the order below; optional operands are absent from the end.
 *
 * forward
 *   embedding      (table [V,C], ids i32 [B,T])                  -> (x [B,T,C])
 *   add_position   (x [B,T,C], table [P,C])                      -> (x)            in place on input 0
 *   layernorm      (x [..,C], weight [C], bias [C])              -> (y, mean f32 [rows], rstd f32 [rows])
 *   linear         (x [..,I], weight, bias [O]?)                 -> (y [..,O])     weight [I,O], or [O,I] when attr.out_in
 *   attention      (qkv [B,T,3C])                                -> (y [B,T,C], lse f32 [B,H,T])
 *   gelu, relu     (x)                                           -> (y)
 *   add            (a, b)                                        -> (a)            in place on input 0: a += b
 *   cross_entropy  (logits [B,T,V], targets i32 [B,T])           -> (loss f32 [1], dlogits)  output 1 in place on input 0
 * backward (`acc`: add to the output instead of overwriting it)
 *   embedding_bwd  (dx, ids)                                     -> (dtable)
 *   position_bwd   (dx)                                          -> (dtable [P,C]; rows >= T are zero)
 *   layernorm_bwd  (dy, x, weight, mean, rstd)                   -> (dx, dweight, dbias)
 *   linear_bwd_x   (dy, weight)                                  -> (dx)
 *   linear_bwd_w   (dy, x)                                       -> (dweight)
 *   linear_bwd_b   (dy)                                          -> (dbias)
 *   attention_bwd  (dy, qkv, y, lse)                             -> (dqkv)
 *   gelu_bwd, relu_bwd (dy, x)                                   -> (dx)           in place on input 0
 * both
 *   copy           (x)                                           -> (y)            y is never x */
#define AH_OP_TABLE(X)                                                                                                 \
    X(EMBEDDING, "embedding", 2, 1)                                                                                    \
    X(ADD_POSITION, "add_position", 2, 1)                                                                              \
    X(LAYERNORM, "layernorm", 3, 3)                                                                                    \
    X(LINEAR, "linear", 3, 1)                                                                                          \
    X(ATTENTION, "attention", 1, 2)                                                                                    \
    X(GELU, "gelu", 1, 1)                                                                                              \
    X(RELU, "relu", 1, 1)                                                                                              \
    X(ADD, "add", 2, 1)                                                                                                \
    X(CROSS_ENTROPY, "cross_entropy", 2, 2)                                                                            \
    X(EMBEDDING_BWD, "embedding_bwd", 2, 1)                                                                            \
    X(POSITION_BWD, "position_bwd", 1, 1)                                                                              \
    X(LAYERNORM_BWD, "layernorm_bwd", 5, 3)                                                                            \
    X(LINEAR_BWD_X, "linear_bwd_x", 2, 1)                                                                              \
    X(LINEAR_BWD_W, "linear_bwd_w", 2, 1)                                                                              \
    X(LINEAR_BWD_B, "linear_bwd_b", 1, 1)                                                                              \
    X(ATTENTION_BWD, "attention_bwd", 4, 1)                                                                            \
    X(GELU_BWD, "gelu_bwd", 2, 1)                                                                                      \
    X(RELU_BWD, "relu_bwd", 2, 1)                                                                                      \
    X(COPY, "copy", 1, 1)

enum ah_op {
#define AH_OP_ENUM(id, name, inputs, outputs) AH_OP_##id,
    AH_OP_TABLE(AH_OP_ENUM)
#undef AH_OP_ENUM
        AH_OP_COUNT
};

enum { AH_OP_MAX_INPUTS = 5, AH_OP_MAX_OUTPUTS = 3, AH_OP_MAX_OPERANDS = AH_OP_MAX_INPUTS + AH_OP_MAX_OUTPUTS };

struct ah_attr {
    int heads;       /* attention */
    float eps;       /* layernorm */
    bool out_in;     /* linear*: weight is [O,I] */
    unsigned acc;    /* bit j: output j is added to, not overwritten */
};

/* A kernel's view of one operand: what it is; where it is comes beside it. */
struct ah_meta {
    enum ah_dtype dtype;
    struct ah_shape shape;
};

struct ah_op_row {
    const char *name;
    int inputs, outputs;
    int inplace_output; /* output that shares input 0's storage, -1: none */
    /* Shapes and dtypes of the outputs from those of the inputs; an absent optional input has rank 0. The table gradients of
     * embedding_bwd and position_bwd follow from no input: out[0] comes filled in and is checked. AH_EINPUT. */
    int (*infer)(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr);
    /* Floating-point operations (a fused multiply-add is two), causal attention counted at half. */
    double (*flops)(const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr);
};
extern const struct ah_op_row ah__op_table[AH_OP_COUNT];

int64_t ah__shape_count(const struct ah_shape *shape);             /* elements */
int64_t ah__shape_rows(const struct ah_shape *shape);              /* elements / last dimension */
bool ah__shape_equal(const struct ah_shape *a, const struct ah_shape *b);
int64_t ah__dtype_bytes(enum ah_dtype dtype);
const char *ah__dtype_name(enum ah_dtype dtype);                   /* "F32" as in safetensors */
char *ah__shape_format(char *text, size_t size, const struct ah_shape *shape); /* "[4,256,768]" */

#endif
