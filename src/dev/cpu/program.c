/* Runs compiled programs: binds operands to addresses and calls the operator. */
#include "dev/cpu/kernels.h"

static int (*const operators[AH_OP_COUNT])(const struct ah_bound *bound) = {
    [AH_OP_EMBEDDING] = ah__cpu_embedding,
    [AH_OP_ADD_POSITION] = ah__cpu_add_position,
    [AH_OP_LAYERNORM] = ah__cpu_layernorm,
    [AH_OP_LINEAR] = ah__cpu_linear,
    [AH_OP_ATTENTION] = ah__cpu_attention,
    [AH_OP_GELU] = ah__cpu_gelu,
    [AH_OP_RELU] = ah__cpu_relu,
    [AH_OP_ADD] = ah__cpu_add,
    [AH_OP_COPY] = ah__cpu_copy,
    [AH_OP_CROSS_ENTROPY] = ah__cpu_cross_entropy,
    [AH_OP_EMBEDDING_BWD] = ah__cpu_embedding_bwd,
    [AH_OP_POSITION_BWD] = ah__cpu_position_bwd,
    [AH_OP_LAYERNORM_BWD] = ah__cpu_layernorm_bwd,
    [AH_OP_LINEAR_BWD_X] = ah__cpu_linear_bwd_x,
    [AH_OP_LINEAR_BWD_W] = ah__cpu_linear_bwd_w,
    [AH_OP_LINEAR_BWD_B] = ah__cpu_linear_bwd_b,
    [AH_OP_ATTENTION_BWD] = ah__cpu_attention_bwd,
    [AH_OP_GELU_BWD] = ah__cpu_gelu_bwd,
    [AH_OP_RELU_BWD] = ah__cpu_relu_bwd,
};

static int bind_one(void **out, const struct ah_call *call, const struct ah_operand *operand,
                    char *const base[AH_SPACE_COUNT])
{
    *out = NULL;
    if (operand->space == AH_SPACE_NONE)
        return AH_OK;
    if (!base[operand->space])
        return ah__fail(AH_EINTERNAL, "cpu: %s: an operand lies in space %d, which is not bound",
                        ah__op_table[call->op]->name, (int)operand->space);
    if (operand->meta.dtype != AH_F32 && operand->meta.dtype != AH_I32)
        return ah__fail(AH_EDEVICE, "cpu: %s: an operand is %s, expected F32 or I32", ah__op_table[call->op]->name,
                        ah__dtype_name(operand->meta.dtype));
    *out = base[operand->space] + operand->offset;
    return AH_OK;
}

int ah__cpu_call(struct ah_pool *pool, const struct ah_call *call, char *const base[AH_SPACE_COUNT])
{
    struct ah_bound bound = {.pool = pool, .kernels = ah__kernels(), .call = call};
    if ((int)call->op < 0 || call->op >= AH_OP_COUNT)
        return ah__fail(AH_EINTERNAL, "cpu: operator %d does not exist", (int)call->op);
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++) {
        void *address;
        AH_TRY(bind_one(&address, call, &call->in[i], base));
        bound.in[i] = address;
    }
    for (int i = 0; i < AH_OP_MAX_OUTPUTS; i++)
        AH_TRY(bind_one(&bound.out[i], call, &call->out[i], base));
    return operators[call->op](&bound);
}

int ah__cpu_program(struct ah_pool *pool, const struct ah_program *program, char *const base[AH_SPACE_COUNT])
{
    for (int i = 0; i < program->count; i++)
        AH_TRY(ah__cpu_call(pool, &program->calls[i], base));
    return AH_OK;
}
