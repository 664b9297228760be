/* Attention of shapes at which kernels change, in either direction: for the device's own and for cuDNN's. */
#ifndef AH_TESTS_DEV_CUDA_ATTENTION_CASES_H
#define AH_TESTS_DEV_CUDA_ATTENTION_CASES_H

#include "dev/cpu/cases.h"

/* Heads of 64, 80, 96, 128, 256 channels and odd ones; lengths of a chunk, one more, one less, and one. */
static const struct op_case attention_cases[] = {
    OP("attention of 7", ATTENTION, IN(S3(2, 7, 60 * 3)), .heads = 3),
    OP("attention of 130, head 5", ATTENTION, IN(S3(1, 130, 10 * 3)), .heads = 2),
    OP("attention of 65, head 64", ATTENTION, IN(S3(2, 65, 128 * 3)), .heads = 2),
    OP("attention of 1", ATTENTION, IN(S3(2, 1, 8 * 3)), .heads = 2),
    OP("attention of 70, head 129", ATTENTION, IN(S3(1, 70, 129 * 3)), .heads = 1),
    OP("attention_qkv of 66, head 80", ATTENTION_QKV, IN(S3(1, 66, 320), S3(1, 66, 160), S3(1, 66, 160)), .heads = 4,
       .kv_heads = 2),
    OP("attention_qkv of 64, head 96", ATTENTION_QKV, IN(S3(1, 64, 288), S3(1, 64, 96), S3(1, 64, 96)), .heads = 3,
       .kv_heads = 1),
    OP("attention_qkv of 63, head 128", ATTENTION_QKV, IN(S3(1, 63, 256), S3(1, 63, 256), S3(1, 63, 256)), .heads = 2,
       .kv_heads = 2),
    OP("attention_qkv of 66, head 256", ATTENTION_QKV, IN(S3(1, 66, 512), S3(1, 66, 256), S3(1, 66, 256)), .heads = 2,
       .kv_heads = 1),
    OP("attention_qkv of 66, head 256, capped", ATTENTION_QKV, IN(S3(1, 66, 512), S3(1, 66, 256), S3(1, 66, 256)),
       .heads = 2, .kv_heads = 1, .cap = 0.5F),
    OP("attention_qkv_bwd of 66, head 256, capped", ATTENTION_QKV_BWD,
       IN(S3(1, 66, 512), S3(1, 66, 512), S3(1, 66, 256), S3(1, 66, 256), S3(1, 66, 512), S3(1, 2, 66)), .heads = 2,
       .kv_heads = 1, .cap = 0.5F),
    OP("attention_bwd of 130, head 40", ATTENTION_BWD,
       IN(S3(2, 130, 120), S3(2, 130, 360), S3(2, 130, 120), S3(2, 3, 130)), .heads = 3),
    OP("attention_bwd of 17, head 7", ATTENTION_BWD, IN(S3(3, 17, 35), S3(3, 17, 105), S3(3, 17, 35), S3(3, 5, 17)),
       .heads = 5),
    OP("attention_bwd of 1", ATTENTION_BWD, IN(S3(1, 1, 16), S3(1, 1, 48), S3(1, 1, 16), S3(1, 2, 1)), .heads = 2),
    OP("attention_bwd of 64, head 129", ATTENTION_BWD, IN(S3(1, 64, 129), S3(1, 64, 387), S3(1, 64, 129), S3(1, 1, 64)),
       .heads = 1),
    OP("attention_qkv_bwd of 70, head 80", ATTENTION_QKV_BWD,
       IN(S3(1, 70, 320), S3(1, 70, 320), S3(1, 70, 160), S3(1, 70, 160), S3(1, 70, 320), S3(1, 4, 70)), .heads = 4,
       .kv_heads = 2),
    OP("attention_qkv_bwd of 63, head 64", ATTENTION_QKV_BWD,
       IN(S3(2, 63, 192), S3(2, 63, 192), S3(2, 63, 64), S3(2, 63, 64), S3(2, 63, 192), S3(2, 3, 63)), .heads = 3,
       .kv_heads = 1),
    OP("attention_qkv_bwd of 65, head 256", ATTENTION_QKV_BWD,
       IN(S3(1, 65, 512), S3(1, 65, 512), S3(1, 65, 256), S3(1, 65, 256), S3(1, 65, 512), S3(1, 2, 65)), .heads = 2,
       .kv_heads = 1),
};

#endif
