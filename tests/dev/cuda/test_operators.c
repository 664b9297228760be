/* The operators without products and attention, on the CUDA device. */
#include "dev/bit_cases.h"
#include "dev/cuda/operators.h"
#include "dev/value_cases.h"

/* What the shared tables leave out: the widths and lengths at which these kernels change what they do. */
static const struct op_case cuda_cases[] = {
    {"embedding of 64", AH_OP_EMBEDDING, {0}, {S2(40, 64), S2(3, 50)}, {0}, 40},
    {"embedding_bwd, even", AH_OP_EMBEDDING_BWD, {0}, {S3(2, 150, 64), S2(2, 150)}, S2(40, 64), 40},
    {"embedding_bwd of one token", AH_OP_EMBEDDING_BWD, {0}, {S3(1, 1, 8), S2(1, 1)}, S2(3, 8), 3},
    {"embedding_bwd of one id", AH_OP_EMBEDDING_BWD, {0}, {S3(1, 300, 24), S2(1, 300)}, S2(5, 24), 1},
    {"embedding_bwd of 3000", AH_OP_EMBEDDING_BWD, {0}, {S3(3, 1000, 16), S2(3, 1000)}, S2(5000, 16), 5000},
    {"embedding_bwd of 4500 in 9", AH_OP_EMBEDDING_BWD, {0}, {S3(3, 1500, 8), S2(3, 1500)}, S2(20, 8), 9},
    {"embedding_bwd of 1100 channels", AH_OP_EMBEDDING_BWD, {0}, {S3(1, 70, 1104), S2(1, 70)}, S2(20, 1104), 20},
    {"add_position, even", AH_OP_ADD_POSITION, {0}, {S3(3, 65, 64), S2(65, 64)}, {0}, 0},
    {"position_bwd, even", AH_OP_POSITION_BWD, {0}, {S3(3, 65, 64)}, S2(80, 64), 0},
    {"position_bwd of 1", AH_OP_POSITION_BWD, {0}, {S3(1, 1, 1)}, S2(2, 1), 0},
    {"layernorm of 768", AH_OP_LAYERNORM, {.eps = 1e-5F}, {S2(9, 768), S1(768), S1(768)}, {0}, 0},
    {"layernorm of 4104", AH_OP_LAYERNORM, {.eps = 1e-5F}, {S2(3, 4104), S1(4104), S1(4104)}, {0}, 0},
    {"layernorm of 4097", AH_OP_LAYERNORM, {.eps = 1e-5F}, {S2(2, 4097), S1(4097), S1(4097)}, {0}, 0},
    {"layernorm of 16384", AH_OP_LAYERNORM, {.eps = 1e-5F}, {S2(2, 16384), S1(16384), S1(16384)}, {0}, 0},
    {"rmsnorm of 512", AH_OP_RMSNORM, {.eps = 1e-5F}, {S2(20, 512), S1(512)}, {0}, 0},
    {"rmsnorm of 9000", AH_OP_RMSNORM, {.eps = 1e-5F}, {S2(2, 9000), S1(9000)}, {0}, 0},
    {"layernorm_bwd of 768", AH_OP_LAYERNORM_BWD, {.eps = 1e-5F},
     {S2(230, 768), S2(230, 768), S1(768), S1(230), S1(230)}, {0}, 0},
    {"layernorm_bwd of 1", AH_OP_LAYERNORM_BWD, {.eps = 1e-5F}, {S2(3, 1), S2(3, 1), S1(1), S1(3), S1(3)}, {0}, 0},
    {"layernorm_bwd of 2304", AH_OP_LAYERNORM_BWD, {.eps = 1e-5F},
     {S2(5, 2304), S2(5, 2304), S1(2304), S1(5), S1(5)}, {0}, 0},
    {"layernorm_bwd of 5000", AH_OP_LAYERNORM_BWD, {.eps = 1e-5F},
     {S2(3, 5000), S2(3, 5000), S1(5000), S1(3), S1(3)}, {0}, 0},
    {"layernorm_bwd of 10000", AH_OP_LAYERNORM_BWD, {.eps = 1e-5F},
     {S2(2, 10000), S2(2, 10000), S1(10000), S1(2), S1(2)}, {0}, 0},
    {"layernorm_bwd of 8193", AH_OP_LAYERNORM_BWD, {.eps = 1e-5F},
     {S2(2, 8193), S2(2, 8193), S1(8193), S1(2), S1(2)}, {0}, 0},
    {"rmsnorm_bwd of 64", AH_OP_RMSNORM_BWD, {.eps = 1e-5F}, {S2(1800, 64), S2(1800, 64), S1(64), S1(1800)}, {0}, 0},
    {"linear_bwd_b of 1", AH_OP_LINEAR_BWD_B, {0}, {S2(1, 1)}, {0}, 0},
    {"linear_bwd_b, even", AH_OP_LINEAR_BWD_B, {0}, {S3(2, 600, 264)}, {0}, 0},
    {"rotary, even", AH_OP_ROTARY, {.heads = 3, .theta = 1e4F}, {S3(2, 65, 3 * 64)}, {0}, 0},
    {"rotary of some, even", AH_OP_ROTARY, {.heads = 2, .theta = 5e5F, .dims = 32}, {S3(3, 20, 2 * 64)}, {0}, 0},
    {"rotary of 4000", AH_OP_ROTARY, {.heads = 1, .theta = 1e4F}, {S3(1, 4000, 16)}, {0}, 0},
    {"rotary of wide heads", AH_OP_ROTARY, {.heads = 1, .theta = 1e4F}, {S3(2, 5, 1040)}, {0}, 0},
    {"rotary of short waves", AH_OP_ROTARY, {.heads = 2, .theta = 0.01F}, {S3(1, 50, 2 * 6)}, {0}, 0},
    {"rotary_bwd, even", AH_OP_ROTARY_BWD, {.heads = 3, .theta = 1e4F}, {S3(2, 65, 3 * 64)}, {0}, 0},
    {"cross_entropy of 1", AH_OP_CROSS_ENTROPY, {0}, {S3(1, 3, 1), S2(1, 3)}, {0}, 1},
    {"cross_entropy of 4096", AH_OP_CROSS_ENTROPY, {0}, {S3(1, 3, 4096), S2(1, 3)}, {0}, 4096},
    {"cross_entropy of 50257", AH_OP_CROSS_ENTROPY, {0}, {S3(1, 2, 50257), S2(1, 2)}, {0}, 50257},
    {"cross_entropy, scaled", AH_OP_CROSS_ENTROPY, {0}, {S3(2, 600, 16), S2(2, 600), S1(1)}, {0}, 16},
    {"gelu of 3", AH_OP_GELU, {0}, {S1(3)}, {0}, 0},
    {"silu_mul of 8192", AH_OP_SILU_MUL, {0}, {S1(8192), S1(8192)}, {0}, 0},
    {"add of 4097", AH_OP_ADD, {0}, {S1(4097), S1(4097)}, {0}, 0},
};

/* What is added, copied or chosen has the CPU device's bits. Elsewhere sums of n terms have another order, and
 * exponentials and quotients are two places off at most: errors of a few 2^-24 of the sums of magnitudes, which with
 * random operands are near the largest result. */
static struct bound bound_of(enum ah_op op)
{
    switch ((int)op) {
    case AH_OP_EMBEDDING:
    case AH_OP_ADD_POSITION:
    case AH_OP_ADD:
    case AH_OP_COPY:
    case AH_OP_RELU:
    case AH_OP_RELU_BWD:
        return (struct bound){0};
    default:
        return (struct bound){.of_value = 1e-6, .of_largest = 1e-6, .out_of = 50};
    }
}

static void cases_check(const struct op_case *cases, size_t count)
{
    struct device_pair p = device_pair_open();
    for (size_t i = 0; i < count; i++)
        if (ah__op_table[cases[i].op]->limit == AH_OP_LIMIT_MEMORY)
            operator_check_all(&p, &cases[i], bound_of);
    device_pair_close(&p);
}

static void operators_agree_with_the_cpu(void **state)
{
    (void)state;
    cases_check(value_cases, AH_LENGTH(value_cases));
}

static void many_elements_agree_with_the_cpu(void **state)
{
    (void)state;
    cases_check(bit_cases, AH_LENGTH(bit_cases));
}

static void other_widths_agree_with_the_cpu(void **state)
{
    (void)state;
    cases_check(cuda_cases, AH_LENGTH(cuda_cases));
}

AH_TEST_SUITE("dev/cuda/operators", cmocka_unit_test(operators_agree_with_the_cpu),
              cmocka_unit_test(many_elements_agree_with_the_cpu), cmocka_unit_test(other_widths_agree_with_the_cpu))
