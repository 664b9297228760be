/* Cases that several tables of op_case have in common: what takes positions, tables whose first row is not 0, soft caps
 * and sinks. */
#ifndef AH_TESTS_DEV_POSITION_CASES_H
#define AH_TESTS_DEV_POSITION_CASES_H

#include "dev/cpu/cases.h"

/* Tokens at given positions: their rotation, and what is kept of them and seen. */
#define CACHE_CASES                                                                                                    \
    OP("rotary of positions", ROTARY, IN(S3(2, 77, 3 * 20), S2(2, 77)), .heads = 3, .theta = 500),                     \
        OP("cache_write, apart", CACHE_WRITE, IN(S3(2, 300, 2 * 48), S3(2, 5, 48), S3(2, 5, 48), S2(2, 5)), 0),        \
        OP("cache_write, side by side", CACHE_WRITE, IN(S3(2, 30, 120), S3(2, 20, 180)), .heads = 3),                  \
        OP("cache_write, by head", CACHE_WRITE, IN(S3(1, 30, 120), S3(1, 20, 180)), .heads = 3, .by_head = true),      \
        OP("attention_cached", ATTENTION_CACHED, IN(S3(2, 700, 2 * 2 * 40), S3(2, 5, 6 * 40), S2(2, 5)), .heads = 6,   \
           .kv_heads = 2),                                                                                             \
        OP("attention_cached, by head, window 70", ATTENTION_CACHED,                                                   \
           IN(S3(2, 200, 2 * 3 * 20), S3(2, 7, 3 * 3 * 20), S2(2, 7)), .heads = 3, .kv_heads = 3, .by_head = true,     \
           .window = 70)

/* Sequences of several documents, forward and backward, and tables with rows in front of the first. */
#define DOCUMENT_CASES                                                                                                 \
    OP("attention of documents", ATTENTION, IN(S3(1, 150, 2 * 3 * 20), S2(1, 150)), .heads = 2),                       \
        OP("attention_qkv of documents, window 90", ATTENTION_QKV,                                                     \
           IN(S3(2, 170, 4 * 24), S3(2, 170, 2 * 24), S3(2, 170, 2 * 24), S2(2, 170)), .heads = 4, .kv_heads = 2,      \
           .window = 90),                                                                                              \
        OP("attention_bwd of documents", ATTENTION_BWD,                                                                \
           IN(S3(1, 150, 40), S3(1, 150, 120), S3(1, 150, 40), S3(1, 2, 150), S2(1, 150)), .heads = 2),                \
        OP("attention_qkv_bwd of documents, window 90", ATTENTION_QKV_BWD,                                             \
           IN(S3(2, 170, 96), S3(2, 170, 96), S3(2, 170, 48), S3(2, 170, 48), S3(2, 170, 96), S3(2, 4, 170),           \
              S2(2, 170)),                                                                                             \
           .heads = 4, .kv_heads = 2, .window = 90),                                                                   \
        OP_IDS("embedding from 3", EMBEDDING, 67, IN(S2(70, 24), S2(3, 50)), .first = 3),                              \
    {                                                                                                                  \
        "embedding_bwd from 3", AH_OP_EMBEDDING_BWD, {.first = 3}, {S3(3, 50, 24), S2(3, 50)}, S2(70, 24), 67          \
    }

/* Soft caps on scores and logits, small enough to matter, and rotations stretched pair by pair. */
#define CAP_CASES                                                                                                      \
    OP("soft_cap", SOFT_CAP, IN(S1(40007)), .cap = 0.75F),                                                             \
        OP("rotary, pair by pair", ROTARY, IN(S3(2, 77, 3 * 20)), .heads = 3, .theta = 500, .dims = 6,                 \
           .magnitude = 1.25F, .stretch = {{1, 1.5F, 8}}),                                                             \
        OP("attention, capped", ATTENTION, IN(S3(2, 150, 2 * 3 * 20)), .heads = 2, .cap = 0.5F),                       \
        OP("attention_qkv with a window, capped", ATTENTION_QKV,                                                       \
           IN(S3(2, 170, 4 * 24), S3(2, 170, 2 * 24), S3(2, 170, 2 * 24)), .heads = 4, .kv_heads = 2, .window = 67,    \
           .scale = 0.4F, .cap = 0.5F),                                                                                \
        OP("attention_cached, capped", ATTENTION_CACHED, IN(S3(2, 200, 2 * 2 * 40), S3(2, 5, 6 * 40), S2(2, 5)),       \
           .heads = 6, .kv_heads = 2, .cap = 0.5F)

/* Sinks of heads, with and without documents. */
#define SINK_CASES                                                                                                     \
    OP("attention_qkv with sinks", ATTENTION_QKV,                                                                      \
       IN(S3(2, 170, 4 * 24), S3(2, 170, 2 * 24), S3(2, 170, 2 * 24), {0}, S1(4)), .heads = 4, .kv_heads = 2),         \
        OP("attention_qkv of documents with sinks, window 67", ATTENTION_QKV,                                          \
           IN(S3(2, 150, 4 * 20), S3(2, 150, 4 * 20), S3(2, 150, 4 * 20), S2(2, 150), S1(4)), .heads = 4,              \
           .kv_heads = 4, .window = 67),                                                                               \
        OP("attention_cached with sinks", ATTENTION_CACHED,                                                            \
           IN(S3(2, 300, 2 * 2 * 40), S3(2, 5, 6 * 40), S2(2, 5), S1(6)), .heads = 6, .kv_heads = 2)

#define SINK_BACKWARD_CASES                                                                                            \
    OP("sinks_bwd", SINKS_BWD, IN(S3(3, 170, 5 * 24), S3(3, 170, 5 * 24), S3(3, 5, 170), S1(5)), 0),                   \
        OP("sinks_bwd of 7 channels, acc", SINKS_BWD, IN(S3(1, 17, 3 * 7), S3(1, 17, 3 * 7), S3(1, 3, 17), S1(3)),     \
           .acc = 1)

#define CAP_BACKWARD_CASES                                                                                             \
    OP("attention_bwd, capped", ATTENTION_BWD, IN(S3(2, 150, 40), S3(2, 150, 120), S3(2, 150, 40), S3(2, 2, 150)),     \
       .heads = 2, .cap = 0.5F),                                                                                       \
        OP("attention_qkv_bwd with a window, capped", ATTENTION_QKV_BWD,                                               \
           IN(S3(2, 170, 96), S3(2, 170, 96), S3(2, 170, 48), S3(2, 170, 48), S3(2, 170, 96), S3(2, 4, 170)),          \
           .heads = 4, .kv_heads = 2, .window = 67, .scale = 0.4F, .cap = 0.5F),                                       \
        OP_IDS("linear_cross_entropy, capped", LINEAR_CROSS_ENTROPY, 501, IN(S3(3, 30, 70), S2(501, 70), S2(3, 30)),   \
               .cap = 0.75F)

#endif
