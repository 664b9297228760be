/* Operators of mixtures of experts: consistent places of rows as inputs, and cases that every suite of operators runs.
 */
#ifndef AH_TESTS_DEV_EXPERT_CASES_H
#define AH_TESTS_DEV_EXPERT_CASES_H

#include "dev/cpu/cases.h"

/* 8 experts: the last one gets no rows where a token has few experts. */
#define EXPERT_CASES                                                                                                   \
    OP("route 2 of 8", ROUTE, IN(S3(2, 37, 8)), .picks = 2, .normalised = true),                                       \
        OP("route 3 of 70", ROUTE, IN(S3(3, 50, 70)), .picks = 3),                                                     \
        OP("route 4 of 4", ROUTE, IN(S2(9, 4)), .picks = 4),                                                           \
        OP("route 1 of 1", ROUTE, IN(S2(5, 1)), .picks = 1, .normalised = true),                                       \
        OP("route 32 of 300", ROUTE, IN(S2(40, 300)), .picks = 32),                                                    \
        OP("dispatch", DISPATCH, IN(S3(2, 37, 21), S3(2, 37, 3), S1(222)), 0),                                         \
        OP("combine", COMBINE, IN(S2(222, 21), S3(2, 37, 3), S1(222)), 0),                                             \
        OP("combine of one", COMBINE, IN(S2(7, 40), S2(7, 1), S1(7)), 0),                                              \
        OP("scale_rows", SCALE_ROWS, IN(S2(222, 21), S3(2, 37, 3), S1(222)), 0),                                       \
        OP("gate_rows", GATE_ROWS, IN(S3(2, 37, 53), S3(2, 37, 1)), 0),                                                \
        OP("silu_mul_halves", SILU_MUL_HALVES, IN(S3(2, 37, 106)), 0),                                                 \
        OP("grouped_linear", GROUPED_LINEAR, IN(S2(222, 70), S3(8, 33, 70), S1(8)), 0),                                \
        OP("grouped_linear of few rows", GROUPED_LINEAR, IN(S2(3, 20), S3(11, 13, 20), S1(11)), 0),                    \
        OP("grouped_linear of one expert", GROUPED_LINEAR, IN(S2(300, 20), S3(1, 130, 20), S1(1)), 0),                 \
        OP("grouped_linear with biases", GROUPED_LINEAR, IN(S2(222, 70), S3(8, 33, 70), S1(8), S2(8, 33)), 0),         \
        OP("shares", SHARES, IN(S3(2, 37, 8), S3(2, 37, 3), S3(2, 37, 3), S1(8)), 0),                                  \
        OP("swiglu_clamped", SWIGLU_CLAMPED, IN(S3(2, 37, 106)), .scale = 1.702F, .limit = 0.75F)

#define EXPERT_BACKWARD_CASES                                                                                          \
    OP("route_bwd", ROUTE_BWD, IN(S3(2, 37, 8), S3(2, 37, 2), S3(2, 37, 2), S3(2, 37, 2), S1(8)), .picks = 2),         \
        OP("route_bwd, normalised", ROUTE_BWD, IN(S2(60, 70), S2(60, 5), S2(60, 5), S2(60, 5), S1(70)), .picks = 5,    \
           .normalised = true),                                                                                        \
        OP("scale_rows_bwd", SCALE_ROWS_BWD, IN(S2(222, 53), S2(222, 53), S3(2, 37, 3), S1(222)), 0),                  \
        OP("gate_rows_bwd", GATE_ROWS_BWD, IN(S3(2, 37, 53), S3(2, 37, 53), S3(2, 37, 1)), 0),                         \
        OP("silu_mul_halves_bwd", SILU_MUL_HALVES_BWD, IN(S2(222, 53), S2(222, 106)), 0),                              \
        OP("grouped_linear_bwd_x", GROUPED_LINEAR_BWD_X, IN(S2(222, 33), S3(8, 33, 70), S1(8)), 0),                    \
        OP("grouped_linear_bwd_w", GROUPED_LINEAR_BWD_W, IN(S2(222, 33), S2(222, 70), S1(8)), 0),                      \
        OP("grouped_linear_bwd_w acc", GROUPED_LINEAR_BWD_W, IN(S2(30, 33), S2(30, 20), S1(11)), .acc = 1),            \
        OP("grouped_linear_bwd_b", GROUPED_LINEAR_BWD_B, IN(S2(222, 133), S1(8)), 0),                                  \
        OP("grouped_linear_bwd_b acc", GROUPED_LINEAR_BWD_B, IN(S2(222, 33), S1(8)), .acc = 1),                        \
        OP("shares_bwd", SHARES_BWD, IN(S3(2, 37, 8), S3(2, 37, 3), S1(8)), 0),                                        \
        OP("swiglu_clamped_bwd", SWIGLU_CLAMPED_BWD, IN(S2(222, 53), S2(222, 106)), .scale = 1.702F, .limit = 0.75F)

#endif
