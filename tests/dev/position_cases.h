/* Cases that several tables of op_case have in common: what takes positions, tables whose first row is not 0, and soft
 * caps. */
#ifndef AH_TESTS_DEV_POSITION_CASES_H
#define AH_TESTS_DEV_POSITION_CASES_H

#include "dev/cpu/cases.h"

/* Tokens at given positions: their rotation, and what is kept of them and seen. */
#define CACHE_CASES                                                                                                    \
    {"rotary of positions", AH_OP_ROTARY, {.heads = 3, .theta = 500}, {S3(2, 77, 3 * 20), S2(2, 77)}, {0}, 0},         \
        {"cache_write, apart",                                                                                         \
         AH_OP_CACHE_WRITE,                                                                                            \
         {0},                                                                                                          \
         {S3(2, 300, 2 * 48), S3(2, 5, 48), S3(2, 5, 48), S2(2, 5)},                                                   \
         {0},                                                                                                          \
         0},                                                                                                           \
        {"cache_write, side by side", AH_OP_CACHE_WRITE, {.heads = 3}, {S3(2, 30, 120), S3(2, 20, 180)}, {0}, 0},      \
        {"cache_write, by head",                                                                                       \
         AH_OP_CACHE_WRITE,                                                                                            \
         {.heads = 3, .by_head = true},                                                                                \
         {S3(1, 30, 120), S3(1, 20, 180)},                                                                             \
         {0},                                                                                                          \
         0},                                                                                                           \
        {"attention_cached",                                                                                           \
         AH_OP_ATTENTION_CACHED,                                                                                       \
         {.heads = 6, .kv_heads = 2},                                                                                  \
         {S3(2, 700, 2 * 2 * 40), S3(2, 5, 6 * 40), S2(2, 5)},                                                         \
         {0},                                                                                                          \
         0},                                                                                                           \
    {                                                                                                                  \
        "attention_cached, by head, window 70", AH_OP_ATTENTION_CACHED,                                                \
            {.heads = 3, .kv_heads = 3, .by_head = true, .window = 70},                                                \
            {S3(2, 200, 2 * 3 * 20), S3(2, 7, 3 * 3 * 20), S2(2, 7)}, {0}, 0                                           \
    }

/* Sequences of several documents, forward and backward, and tables with rows in front of the first. */
#define DOCUMENT_CASES                                                                                                 \
    {"attention of documents", AH_OP_ATTENTION, {.heads = 2}, {S3(1, 150, 2 * 3 * 20), S2(1, 150)}, {0}, 0},           \
        {"attention_qkv of documents, window 90",                                                                      \
         AH_OP_ATTENTION_QKV,                                                                                          \
         {.heads = 4, .kv_heads = 2, .window = 90},                                                                    \
         {S3(2, 170, 4 * 24), S3(2, 170, 2 * 24), S3(2, 170, 2 * 24), S2(2, 170)},                                     \
         {0},                                                                                                          \
         0},                                                                                                           \
        {"attention_bwd of documents",                                                                                 \
         AH_OP_ATTENTION_BWD,                                                                                          \
         {.heads = 2},                                                                                                 \
         {S3(1, 150, 40), S3(1, 150, 120), S3(1, 150, 40), S3(1, 2, 150), S2(1, 150)},                                 \
         {0},                                                                                                          \
         0},                                                                                                           \
        {"attention_qkv_bwd of documents, window 90",                                                                  \
         AH_OP_ATTENTION_QKV_BWD,                                                                                      \
         {.heads = 4, .kv_heads = 2, .window = 90},                                                                    \
         {S3(2, 170, 96), S3(2, 170, 96), S3(2, 170, 48), S3(2, 170, 48), S3(2, 170, 96), S3(2, 4, 170), S2(2, 170)},  \
         {0},                                                                                                          \
         0},                                                                                                           \
        {"embedding from 3", AH_OP_EMBEDDING, {.first = 3}, {S2(70, 24), S2(3, 50)}, {0}, 67},                         \
    {                                                                                                                  \
        "embedding_bwd from 3", AH_OP_EMBEDDING_BWD, {.first = 3}, {S3(3, 50, 24), S2(3, 50)}, S2(70, 24), 67          \
    }

/* Soft caps on scores and logits, small enough to matter, and rotations stretched pair by pair. */
#define CAP_CASES                                                                                                      \
    {"soft_cap", AH_OP_SOFT_CAP, {.cap = 0.75F}, {S1(40007)}, {0}, 0},                                                 \
        {"rotary, pair by pair",                                                                                       \
         AH_OP_ROTARY,                                                                                                 \
         {.heads = 3, .theta = 500, .dims = 6, .magnitude = 1.25F, .stretch = {{1, 1.5F, 8}}},                         \
         {S3(2, 77, 3 * 20)},                                                                                          \
         {0},                                                                                                          \
         0},                                                                                                           \
        {"attention, capped", AH_OP_ATTENTION, {.heads = 2, .cap = 0.5F}, {S3(2, 150, 2 * 3 * 20)}, {0}, 0},           \
        {"attention_qkv with a window, capped",                                                                        \
         AH_OP_ATTENTION_QKV,                                                                                          \
         {.heads = 4, .kv_heads = 2, .window = 67, .scale = 0.4F, .cap = 0.5F},                                        \
         {S3(2, 170, 4 * 24), S3(2, 170, 2 * 24), S3(2, 170, 2 * 24)},                                                 \
         {0},                                                                                                          \
         0},                                                                                                           \
    {                                                                                                                  \
        "attention_cached, capped", AH_OP_ATTENTION_CACHED, {.heads = 6, .kv_heads = 2, .cap = 0.5F},                  \
            {S3(2, 200, 2 * 2 * 40), S3(2, 5, 6 * 40), S2(2, 5)}, {0}, 0                                               \
    }

#define CAP_BACKWARD_CASES                                                                                             \
    {"attention_bwd, capped",                                                                                          \
     AH_OP_ATTENTION_BWD,                                                                                              \
     {.heads = 2, .cap = 0.5F},                                                                                        \
     {S3(2, 150, 40), S3(2, 150, 120), S3(2, 150, 40), S3(2, 2, 150)},                                                 \
     {0},                                                                                                              \
     0},                                                                                                               \
        {"attention_qkv_bwd with a window, capped",                                                                    \
         AH_OP_ATTENTION_QKV_BWD,                                                                                      \
         {.heads = 4, .kv_heads = 2, .window = 67, .scale = 0.4F, .cap = 0.5F},                                        \
         {S3(2, 170, 96), S3(2, 170, 96), S3(2, 170, 48), S3(2, 170, 48), S3(2, 170, 96), S3(2, 4, 170)},              \
         {0},                                                                                                          \
         0},                                                                                                           \
    {                                                                                                                  \
        "linear_cross_entropy, capped", AH_OP_LINEAR_CROSS_ENTROPY, {.cap = 0.75F},                                    \
            {S3(3, 30, 70), S2(501, 70), S2(3, 30)}, {0}, 501                                                          \
    }

#endif
