/* An operator on the CUDA device against the CPU device, on the same random operands: values within a bound, inputs and
 * guards as they were, and the same bits once more at other addresses. */
#ifndef AH_TESTS_DEV_CUDA_OPERATORS_H
#define AH_TESTS_DEV_CUDA_OPERATORS_H

#include "dev/cpu/cases.h"
#include "dev/cuda/emulated.h"
#include "dev/device_case.h"

#include <math.h>

struct device_pair {
    struct test_device cpu, cuda;
};

static inline struct device_pair device_pair_open(void)
{
    return (struct device_pair){test_device_open("cpu"), test_device_open("cuda")};
}

/* Cases that were not as they should be: each says so when it is met, and the test fails when all were tried. */
static int operators_wrong;
#define operator_wrong(...) (print_error(__VA_ARGS__), print_error("\n"), operators_wrong++)

static inline void device_pair_close(struct device_pair *p)
{
    int wrong = operators_wrong;
    test_device_close(&p->cpu);
    test_device_close(&p->cuda);
    emulated_assert_clean();
    operators_wrong = 0;
    if (wrong > 0)
        fail_msg("%d wrong results", wrong);
}

/* How far results may be from those of the CPU device: |x - y| <= of_value |y| + of_largest max|y| + least, with the
 * largest of the output. All zero: the same numbers. A result in bf16 may besides be rounded to the other side, one
 * place away, but rarely is: of `out_of` elements one may differ by more than `least`. 1: all may. */
struct bound {
    double of_value, of_largest, least;
    int out_of;
};

static inline void outputs_compare(const struct op_case *c, const struct bound *bound, int output,
                                   const struct op_data *got, const struct op_data *want)
{
    const struct ah_operand *at = &want->call.out[output];
    bool rounded = at->meta.dtype == AH_BF16;
    int64_t count = ah__shape_count(&at->meta.shape), differ = 0;
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)operand_get(want, at, i)));
    for (int64_t i = 0; i < count; i++) {
        double x = (double)operand_get(got, at, i), y = (double)operand_get(want, at, i);
        double place = rounded && bound->out_of > 0 ? 0x1p-7 * fmax(fabs(x), fabs(y)) : 0;
        if (!(fabs(x - y) <= bound->of_value * fabs(y) + bound->of_largest * largest + bound->least + place)) {
            operator_wrong("%s in %s, acc %u, output %d, element %lld: %.9g, on the CPU %.9g", c->name,
                           ah__dtype_name(want->call.in[0].meta.dtype), (unsigned)c->attr.acc, output, (long long)i, x,
                           y);
            return;
        }
        differ += fabs(x - y) > bound->least;
    }
    if (rounded && bound->out_of > 0 && differ * bound->out_of > count + bound->out_of)
        operator_wrong("%s, acc %u, output %d: %lld of %lld results are rounded otherwise", c->name,
                       (unsigned)c->attr.acc, output, (long long)differ, (long long)count);
}

/* Changes a call or what its operands hold before it runs. */
typedef void operator_change(struct op_data *data);

static inline void operator_init(struct op_data *out, const struct op_case *c, enum ah_dtype dtype,
                                 operator_change *change)
{
    op_data_init_in(out, c, dtype, 1);
    op_data_fill_sums(out, 77);
    if (change)
        change(out);
}

static inline void inputs_compare(const struct op_case *c, const struct op_data *data, enum ah_dtype dtype,
                                  operator_change *change)
{
    struct op_data before;
    operator_init(&before, c, dtype, change);
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++) {
        const struct ah_operand *in = &data->call.in[i];
        bool over = false;
        for (int j = 0; j < AH_OP_MAX_OUTPUTS; j++)
            over |= data->call.out[j].space && data->call.out[j].offset == in->offset;
        if (in->space && !over)
            assert_memory_equal(operand_at(data, in), operand_at(&before, in), (size_t)operand_bytes(in));
    }
    op_data_fini(&before);
}

/* The call on one device. */
static inline void operator_run(struct op_data *out, struct test_device *d, const struct op_case *c,
                                enum ah_dtype dtype, int64_t shift, operator_change *change)
{
    operator_init(out, c, dtype, change);
    struct ah_program program = {.count = 1, .calls = &out->call};
    test_device_run(d, &program, out->memory, out->bytes, shift);
}

/* `change` null: none. */
static inline void operator_check(struct device_pair *p, const struct op_case *c, enum ah_dtype dtype,
                                  struct bound bound, operator_change *change)
{
    struct op_data want, got, again;
    operator_run(&want, &p->cpu, c, dtype, 0, change);
    operator_run(&got, &p->cuda, c, dtype, 0, change);
    operator_run(&again, &p->cuda, c, dtype, 5 * 16, change);
    for (int i = 0; i < ah__op_table[c->op]->outputs; i++)
        if (want.call.out[i].space && ah__op_table[c->op]->out[i].kind != AH_OPERAND_SCRATCH)
            outputs_compare(c, &bound, i, &got, &want);
    inputs_compare(c, &got, dtype, change);
    if (memcmp(got.memory, again.memory, (size_t)got.bytes) != 0)
        operator_wrong("%s, acc %u: other bits at other addresses", c->name, (unsigned)c->attr.acc);
    op_data_fini(&want);
    op_data_fini(&got);
    op_data_fini(&again);
}

/* In both dtypes, and with all outputs added to that can be; of the `number`-th case a sample has one dtype. */
static inline void operator_check_all(struct device_pair *p, const struct op_case *c, size_t number,
                                      struct bound (*bound)(enum ah_op))
{
    struct op_case adding = *c;
    adding.attr.acc = op_adds(c->op);
    for (size_t dtype = 0; dtype < 2; dtype++) {
        if (ah_test_samples() && number % 2 != dtype)
            continue;
        operator_check(p, c, dtype ? AH_BF16 : AH_F32, bound(c->op), NULL);
        if (adding.attr.acc != c->attr.acc)
            operator_check(p, &adding, dtype ? AH_BF16 : AH_F32, bound(c->op), NULL);
    }
}

#endif
