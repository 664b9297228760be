/* Two operators that the CUDA device does at once: the product that makes an activation's gradient, and gelu's backward
 * over it. */
#include "dev/cuda/emulated.h"
#include "dev/cuda/operators.h"

enum { ROWS = 21, OUT = 40, MOST_IN = 64, PLACE = 16384, GUARD = 4 * PLACE };

/* dx [ROWS,in] = gelu_bwd(dy [ROWS,OUT] weight^T [in,OUT], x [ROWS,in]), in memory of one place for each operand. */
struct pair {
    struct ah_call call[2];
    struct ah_program program;
    char memory[GUARD];
};

static struct ah_operand place(enum ah_dtype dtype, int number, int64_t rows, int64_t cols)
{
    return (struct ah_operand){AH_SPACE_WORK, (int64_t)number * PLACE, {dtype, ah_shape2(rows, cols)}};
}

static void pair_init(struct pair *p, enum ah_dtype dtype, int in)
{
    struct ah_operand dx = place(dtype, 2, ROWS, in), x = place(dtype, 3, ROWS, in);
    *p = (struct pair){.call = {{.op = AH_OP_LINEAR_BWD_X}, {.op = AH_OP_GELU_BWD}}};
    p->call[0].in[0] = place(dtype, 0, ROWS, OUT);
    p->call[0].in[1] = place(dtype, 1, in, OUT);
    p->call[0].out[0] = p->call[1].in[0] = p->call[1].out[0] = dx;
    p->call[1].in[1] = x;
    p->program = (struct ah_program){.count = 2, .calls = p->call};
    for (int64_t i = 0; i < GUARD / ah__dtype_bytes(dtype); i++) {
        float value = (float)ah__random_normal(9, (uint64_t)i);
        if (dtype == AH_BF16)
            ((uint16_t *)(void *)p->memory)[i] = bf16_round(value);
        else
            ((float *)(void *)p->memory)[i] = value;
    }
}

static double value_of(const struct pair *p, int64_t i)
{
    const char *at = p->memory + p->call[1].out[0].offset;
    bool half = p->call[1].out[0].meta.dtype == AH_BF16;
    return (double)(half ? bf16_widen(((const uint16_t *)(const void *)at)[i]) : ((const float *)(const void *)at)[i]);
}

static long launches(void)
{
    struct emulation_counts counts;
    emulation_counts(&counts);
    return counts.launches;
}

/* On the CPU the product is rounded before gelu's slope multiplies it; and the slope of a fused product comes from a
 * tanh of 11 bits. Kernels that the device launched besides the product. */
static long pair_check(struct device_pair *devices, enum ah_dtype dtype, int in)
{
    static struct pair want, got;
    double bound = dtype == AH_BF16 ? 0x1p-7 : 1e-5, of_largest = dtype == AH_BF16 && in % 8 == 0 ? 0x1p-9 : 1e-5;
    double largest = 0;
    pair_init(&want, dtype, in);
    pair_init(&got, dtype, in);
    test_device_run(&devices->cpu, &want.program, want.memory, GUARD, 0);
    long before = launches();
    test_device_run(&devices->cuda, &got.program, got.memory, GUARD, 0);
    for (int64_t i = 0; i < (int64_t)ROWS * in; i++)
        largest = fmax(largest, fabs(value_of(&want, i)));
    for (int64_t i = 0; i < (int64_t)ROWS * in; i++)
        if (!(fabs(value_of(&got, i) - value_of(&want, i)) <= bound * fabs(value_of(&want, i)) + of_largest * largest))
            fail_msg("in %d, element %lld: %.9g, on the CPU %.9g", in, (long long)i, value_of(&got, i),
                     value_of(&want, i));
    assert_memory_equal(got.memory + 3 * PLACE, want.memory + 3 * PLACE, PLACE);
    return launches() - before;
}

static void gelus_backward_goes_with_its_product(void **state)
{
    static const struct {
        enum ah_dtype dtype;
        int in;
        long kernels;
    } cases[] = {{AH_BF16, 64, 0}, {AH_BF16, 24, 0}, {AH_BF16, 28, 1}, {AH_F32, 64, 1}}; /* 28: no multiple of 8 */
    struct device_pair devices = device_pair_open();
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        long kernels = pair_check(&devices, cases[i].dtype, cases[i].in);
        if (!getenv("AH_TEST_GPU")) /* which tells nobody how many kernels it launched */
            assert_int_equal(kernels, cases[i].kernels);
    }
    device_pair_close(&devices);
}

/* What the library has no algorithm for, or does not want to fuse, is done apart; any other failure is one. */
static void without_an_algorithm_they_are_apart(void **state)
{
    enum { INVALID_VALUE = 7, INTERNAL_ERROR = 14, NOT_SUPPORTED = 15 }; /* of cublasStatus_t */
    static struct pair p;
    struct ah_prepared *prepared = NULL;
    if (getenv("AH_TEST_GPU"))
        skip();
    struct device_pair devices = device_pair_open();
    for (int i = 0; i < 2; i++) {
        emulation_fail("cublasLtMatmulAlgoGetHeuristic", 1, i ? INVALID_VALUE : NOT_SUPPORTED);
        assert_int_equal(pair_check(&devices, AH_BF16, 64), 1);
        emulation_reset();
    }
    pair_init(&p, AH_BF16, MOST_IN);
    emulation_fail("cublasLtMatmulAlgoGetHeuristic", 1, INTERNAL_ERROR);
    assert_fails(devices.cuda.dev->ops->prepare(devices.cuda.dev, &p.program, &prepared), AH_EDEVICE,
                 "cublasLtMatmulAlgoGetHeuristic: ");
    assert_null(prepared);
    emulation_reset();
    device_pair_close(&devices);
}

AH_TEST_CASES("dev/cuda/fused", gelus_backward_goes_with_its_product, without_an_algorithm_they_are_apart)
