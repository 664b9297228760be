#include "dev/host/prepared.h"

/* ---- check of a call against its row ----------------------------------------------------------------------------- */

/* Sets *out to the dtype of input 0, which has the compute dtype in every operator. */
static int compute_dtype(enum ah_dtype *out, const struct ah_call *call)
{
    *out = call->in[0].meta.dtype;
    if (call->in[0].space == AH_SPACE_NONE || *out == AH_F32 || *out == AH_BF16)
        return AH_OK;
    return ah__fail(AH_EDEVICE, "input 0 (%s) is %s, expected F32 or BF16", ah__op_table[call->op]->in[0].name,
                    ah__dtype_name(*out));
}

/* Returns the dtype of an operand. Statistics, losses and gradients of parameters are fp32 for every compute dtype. */
static enum ah_dtype dtype_of(enum ah_operand_kind kind, enum ah_dtype compute)
{
    switch (kind) {
    case AH_OPERAND_TOKENS:
    case AH_OPERAND_TARGETS:
    case AH_OPERAND_POSITIONS:
    case AH_OPERAND_INDEX:
        return AH_I32;
    case AH_OPERAND_STATISTICS:
    case AH_OPERAND_SHARE:
    case AH_OPERAND_LOSS:
    case AH_OPERAND_SCALE:
    case AH_OPERAND_PARAM_GRADIENT:
        return AH_F32;
    case AH_OPERAND_ACTIVATION:
    case AH_OPERAND_PARAM:
    case AH_OPERAND_GRADIENT:
    case AH_OPERAND_SCRATCH:
    case AH_OPERAND_CACHE:
        break;
    }
    return compute;
}

/* Checks an operand. `direction` is "input" or "output". */
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

/* Checks that the outputs have the shapes that the operator table derives from the inputs. */
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

static int call_check(const struct ah_call *call)
{
    const struct ah_op_row *row = ah__op_table[call->op];
    enum ah_dtype compute;
    AH_TRY(compute_dtype(&compute, call));
    for (int i = 0; i < row->inputs; i++)
        AH_TRY(operand_check(&call->in[i], &row->in[i], compute, "input", i));
    for (int i = 0; i < row->outputs; i++)
        AH_TRY(operand_check(&call->out[i], &row->out[i], compute, "output", i));
    return shapes_check(call);
}

/* ---- bytes that programs cover ----------------------------------------------------------------------------------- */

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

int ah__prepared_init(struct ah_prepared *out, const struct ah_program *program, const char *device)
{
    *out = (struct ah_prepared){.program = program};
    for (int i = 0; i < program->count; i++) {
        const struct ah_call *call = &program->calls[i];
        if ((unsigned)call->op >= AH_OP_COUNT)
            return ah__fail(AH_EDEVICE, "%s: call %d: operator %d does not exist", device, i, (int)call->op);
        if (call_check(call) != AH_OK)
            return ah__fail_prefix(AH_EDEVICE, "%s: call %d, %s", device, i, ah__op_table[call->op]->name);
        for (int j = 0; j < AH_OP_MAX_INPUTS; j++)
            extent_add(out->extent, &call->in[j]);
        for (int j = 0; j < AH_OP_MAX_OUTPUTS; j++)
            extent_add(out->extent, &call->out[j]);
    }
    return AH_OK;
}

void ah__prepared_workspace(struct ah_prepared *prepared, int64_t bytes)
{
    if (bytes > prepared->workspace_bytes)
        prepared->workspace_bytes = prepared->extent[AH_SPACE_WORKSPACE].to = bytes;
}
