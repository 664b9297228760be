/* Programs made ready and run: what an operator needs is resolved once; running binds operands to addresses and calls
 * it. */
#include "dev/cpu/kernels.h"

static const struct ah_cpu_operator *const operators[AH_OP_COUNT] = {
#define ENTRY(id, name) [AH_OP_##id] = &ah__cpu_##name,
    AH_OP_LIST(ENTRY)
#undef ENTRY
};

const struct ah_kernels *ah__kernels(enum ah_dtype dtype)
{
    static const struct ah_kernels *const tables[AH_ISA_COUNT][2] = {
        [AH_ISA_AVX512] = {&ah__kernels_avx512, &ah__kernels_avx512_bf16},
        [AH_ISA_AVX2] = {&ah__kernels_avx2, &ah__kernels_avx2_bf16},
        [AH_ISA_PLAIN] = {&ah__kernels_plain, &ah__kernels_plain_bf16},
    };
    return tables[ah__host_isa()][dtype == AH_BF16];
}

/* ---- what the device can run ------------------------------------------------------------------------------------- */

/* What input 0 is: with every operator it has the compute dtype. */
static int compute_dtype(enum ah_dtype *out, const struct ah_call *call)
{
    *out = call->in[0].meta.dtype;
    if (call->in[0].space == AH_SPACE_NONE || *out == AH_F32 || *out == AH_BF16)
        return AH_OK;
    return ah__fail(AH_EDEVICE, "input 0 (%s) is %s, expected F32 or BF16", ah__op_table[call->op]->in[0].name,
                    ah__dtype_name(*out));
}

/* Statistics, losses and gradients of parameters are fp32 whatever the compute dtype is. */
static enum ah_dtype dtype_of(enum ah_operand_kind kind, enum ah_dtype compute)
{
    switch (kind) {
    case AH_OPERAND_TOKENS:
    case AH_OPERAND_TARGETS:
        return AH_I32;
    case AH_OPERAND_STATISTICS:
    case AH_OPERAND_LOSS:
    case AH_OPERAND_SCALE:
    case AH_OPERAND_PARAM_GRADIENT:
        return AH_F32;
    case AH_OPERAND_ACTIVATION:
    case AH_OPERAND_PARAM:
    case AH_OPERAND_GRADIENT:
    case AH_OPERAND_SCRATCH:
        break;
    }
    return compute;
}

/* `direction` is "input" or "output". */
static int operand_check(const struct ah_operand *operand, const struct ah_op_operand *row, enum ah_dtype compute,
                         const char *direction, int index)
{
    enum ah_dtype expected = dtype_of(row->kind, compute);
    if (operand->space == AH_SPACE_NONE && row->optional)
        return AH_OK;
    if (operand->space == AH_SPACE_NONE)
        return ah__fail(AH_EDEVICE, "%s %d (%s) is absent", direction, index, row->name);
    if ((unsigned)operand->space >= AH_SPACE_COUNT)
        return ah__fail(AH_EDEVICE, "%s %d (%s) lies in space %d, which does not exist", direction, index, row->name,
                        (int)operand->space);
    if (operand->meta.dtype != expected)
        return ah__fail(AH_EDEVICE, "%s %d (%s) is %s, expected %s", direction, index, row->name,
                        ah__dtype_name(operand->meta.dtype), ah__dtype_name(expected));
    return AH_OK;
}

/* The outputs must have the shapes that the operator table derives from the inputs. */
static int shapes_check(const struct ah_call *call)
{
    const struct ah_op_row *row = ah__op_table[call->op];
    struct ah_meta in[AH_OP_MAX_INPUTS] = {{0}}, out[AH_OP_MAX_OUTPUTS] = {{0}};
    char found[96], expected[96];
    for (int i = 0; i < row->inputs; i++)
        if (call->in[i].space)
            in[i] = call->in[i].meta;
    for (int i = 0; i < row->outputs; i++)
        if (row->out[i].given)
            out[i] = call->out[i].meta;
    AH_TRY(row->infer(out, in, &call->attr));
    for (int i = 0; i < row->outputs; i++)
        if (call->out[i].space && !ah__shape_equal(&out[i].shape, &call->out[i].meta.shape))
            return ah__fail(AH_EDEVICE, "output %d (%s) is %s, expected %s", i, row->out[i].name,
                            ah__shape_format(found, sizeof found, &call->out[i].meta.shape),
                            ah__shape_format(expected, sizeof expected, &out[i].shape));
    return AH_OK;
}

static int call_check(const struct ah_call *call, enum ah_dtype compute)
{
    const struct ah_op_row *row = ah__op_table[call->op];
    for (int i = 0; i < row->inputs; i++)
        AH_TRY(operand_check(&call->in[i], &row->in[i], compute, "input", i));
    for (int i = 0; i < row->outputs; i++)
        AH_TRY(operand_check(&call->out[i], &row->out[i], compute, "output", i));
    return shapes_check(call);
}

/* ---- making ready ------------------------------------------------------------------------------------------------ */

static void extent_add(struct ah_extent extent[AH_SPACE_COUNT], const struct ah_operand *operand)
{
    struct ah_extent *e = &extent[operand->space];
    if (operand->space == AH_SPACE_NONE)
        return;
    int64_t end = operand->offset + ah__shape_count(&operand->meta.shape) * ah__dtype_bytes(operand->meta.dtype);
    bool first = e->from == 0 && e->to == 0;
    e->from = first || operand->offset < e->from ? operand->offset : e->from;
    e->to = first || end > e->to ? end : e->to;
}

static int call_prepare(struct ah_cpu_call *out, const struct ah_call *call, int threads)
{
    const struct ah_cpu_operator *operator = operators[call->op];
    *out = (struct ah_cpu_call){.run = operator->run, .call = call, .threads = threads};
    AH_TRY(compute_dtype(&out->dtype, call));
    AH_TRY(call_check(call, out->dtype));
    out->kernels = ah__kernels(out->dtype);
    for (int i = 0; i < AH_OP_MAX_OUTPUTS; i++)
        out->adds[i] = call->attr.acc >> i & 1U;
    return operator->prepare(out);
}

static int calls_prepare(struct ah_cpu_program *out, const struct ah_program *program, int threads)
{
    for (int i = 0; i < program->count; i++) {
        const struct ah_call *call = &program->calls[i];
        if ((unsigned)call->op >= AH_OP_COUNT)
            return ah__fail(AH_EDEVICE, "cpu: call %d: operator %d does not exist", i, (int)call->op);
        if (call_prepare(&out->calls[i], call, threads) != AH_OK)
            return ah__fail_prefix(AH_EDEVICE, "cpu: call %d, %s", i, ah__op_table[call->op]->name);
        for (int j = 0; j < AH_OP_MAX_INPUTS; j++)
            extent_add(out->extent, &call->in[j]);
        for (int j = 0; j < AH_OP_MAX_OUTPUTS; j++)
            extent_add(out->extent, &call->out[j]);
        if (out->calls[i].workspace_bytes > out->prepared.workspace_bytes)
            out->prepared.workspace_bytes = out->calls[i].workspace_bytes;
    }
    out->extent[AH_SPACE_WORKSPACE].to = out->prepared.workspace_bytes;
    return AH_OK;
}

int ah__cpu_program_new(struct ah_cpu_program **out, const struct ah_program *program, int threads)
{
    struct ah_cpu_program *made;
    AH_TRY(ah__new(&made, 1, sizeof *made));
    made->prepared.program = program;
    int status = ah__new(&made->calls, (size_t)program->count, sizeof *made->calls);
    if (status == AH_OK) {
        made->count = program->count;
        status = calls_prepare(made, program, threads);
    }
    if (status != AH_OK) {
        ah__cpu_program_free(made);
        return status;
    }
    *out = made;
    return AH_OK;
}

void ah__cpu_program_free(struct ah_cpu_program *program)
{
    if (!program)
        return;
    for (int i = 0; i < program->count; i++)
        ah__free(program->calls[i].owned);
    ah__free(program->calls);
    ah__free(program);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static char *address(const struct ah_operand *operand, char *const base[AH_SPACE_COUNT])
{
    return operand->space == AH_SPACE_NONE ? NULL : base[operand->space] + operand->offset;
}

static int call_run(const struct ah_cpu_call *call, struct ah_pool *pool, char *const base[AH_SPACE_COUNT])
{
    struct ah_bound bound = {.pool = pool, .call = call, .workspace = base[AH_SPACE_WORKSPACE]};
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
        bound.in[i] = address(&call->call->in[i], base);
    for (int i = 0; i < AH_OP_MAX_OUTPUTS; i++)
        bound.out[i] = address(&call->call->out[i], base);
    return call->run(&bound);
}

int ah__cpu_program_run(const struct ah_cpu_program *program, struct ah_pool *pool, char *const base[AH_SPACE_COUNT])
{
    for (int i = 0; i < AH_SPACE_COUNT; i++)
        if (program->extent[i].to > 0 && !base[i])
            return ah__fail(AH_EINTERNAL, "cpu: the program uses space %d, which is not bound", i);
    for (int i = 0; i < program->count; i++)
        AH_TRY(call_run(&program->calls[i], pool, base));
    return AH_OK;
}
