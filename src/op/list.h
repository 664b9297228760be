/* The operators: the id of each and the symbol of its row, ah__op_NAME. Everything else about an operator is in its
 * row. */
#ifndef AH_OP_LIST_H
#define AH_OP_LIST_H

/* Operators that a model records, and copy, which the compiler adds. Each has a gradient rule, ah__gradient_NAME in
 * autodiff/. */
#define AH_OP_FORWARD_LIST(X)                                                                                          \
    X(EMBEDDING, embedding)                                                                                            \
    X(ADD_POSITION, add_position)                                                                                      \
    X(LAYERNORM, layernorm)                                                                                            \
    X(RMSNORM, rmsnorm)                                                                                                \
    X(LINEAR, linear)                                                                                                  \
    X(ROTARY, rotary)                                                                                                  \
    X(ATTENTION, attention)                                                                                            \
    X(ATTENTION_QKV, attention_qkv)                                                                                    \
    X(GELU, gelu)                                                                                                      \
    X(GELU_ERF, gelu_erf)                                                                                              \
    X(RELU, relu)                                                                                                      \
    X(SILU_MUL, silu_mul)                                                                                              \
    X(SILU_MUL_HALVES, silu_mul_halves)                                                                                \
    X(SWIGLU_CLAMPED, swiglu_clamped)                                                                                  \
    X(GELU_MUL, gelu_mul)                                                                                              \
    X(ROUTE, route)                                                                                                    \
    X(DISPATCH, dispatch)                                                                                              \
    X(GROUPED_LINEAR, grouped_linear)                                                                                  \
    X(SCALE_ROWS, scale_rows)                                                                                          \
    X(GATE_ROWS, gate_rows)                                                                                            \
    X(SHARES, shares)                                                                                                  \
    X(COMBINE, combine)                                                                                                \
    X(SCALE, scale)                                                                                                    \
    X(ADD, add)                                                                                                        \
    X(COPY, copy)                                                                                                      \
    X(CROSS_ENTROPY, cross_entropy)                                                                                    \
    X(LINEAR_CROSS_ENTROPY, linear_cross_entropy)

/* Operators that gradient rules emit. */
#define AH_OP_BACKWARD_LIST(X)                                                                                         \
    X(EMBEDDING_BWD, embedding_bwd)                                                                                    \
    X(POSITION_BWD, position_bwd)                                                                                      \
    X(LAYERNORM_BWD, layernorm_bwd)                                                                                    \
    X(RMSNORM_BWD, rmsnorm_bwd)                                                                                        \
    X(LINEAR_BWD_X, linear_bwd_x)                                                                                      \
    X(LINEAR_BWD_W, linear_bwd_w)                                                                                      \
    X(LINEAR_BWD_B, linear_bwd_b)                                                                                      \
    X(ROTARY_BWD, rotary_bwd)                                                                                          \
    X(ATTENTION_BWD, attention_bwd)                                                                                    \
    X(ATTENTION_QKV_BWD, attention_qkv_bwd)                                                                            \
    X(SINKS_BWD, sinks_bwd)                                                                                            \
    X(GELU_BWD, gelu_bwd)                                                                                              \
    X(GELU_ERF_BWD, gelu_erf_bwd)                                                                                      \
    X(RELU_BWD, relu_bwd)                                                                                              \
    X(SILU_MUL_BWD, silu_mul_bwd)                                                                                      \
    X(SILU_MUL_HALVES_BWD, silu_mul_halves_bwd)                                                                        \
    X(SWIGLU_CLAMPED_BWD, swiglu_clamped_bwd)                                                                          \
    X(GELU_MUL_BWD, gelu_mul_bwd)                                                                                      \
    X(ROUTE_BWD, route_bwd)                                                                                            \
    X(GROUPED_LINEAR_BWD_X, grouped_linear_bwd_x)                                                                      \
    X(GROUPED_LINEAR_BWD_W, grouped_linear_bwd_w)                                                                      \
    X(GROUPED_LINEAR_BWD_B, grouped_linear_bwd_b)                                                                      \
    X(SHARES_BWD, shares_bwd)                                                                                          \
    X(SCALE_ROWS_BWD, scale_rows_bwd)                                                                                  \
    X(GATE_ROWS_BWD, gate_rows_bwd)

/* Operators that only generation and logits need: nothing is trained there, so they have no gradient rule. */
#define AH_OP_INFERENCE_LIST(X)                                                                                        \
    X(CACHE_WRITE, cache_write)                                                                                        \
    X(ATTENTION_CACHED, attention_cached)                                                                              \
    X(SOFT_CAP, soft_cap)

#define AH_OP_LIST(X)                                                                                                  \
    AH_OP_FORWARD_LIST(X)                                                                                              \
    AH_OP_BACKWARD_LIST(X)                                                                                             \
    AH_OP_INFERENCE_LIST(X)

#endif
