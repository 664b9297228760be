/* Prepares and runs programs: everything that an operator needs is resolved once; running binds operands to addresses
 * and calls it. */
#include "dev/cpu/kernels.h"

#include "dev/host/prepared.h"

static const struct ah_cpu_operator *const operators[AH_OP_COUNT] = {
#define ENTRY(id, name) [AH_OP_##id] = &ah__cpu_##name,
    AH_OP_LIST(ENTRY)
#undef ENTRY
};

/* ---- making ready ------------------------------------------------------------------------------------------------ */

static int call_prepare(struct ah_cpu_call *out, const struct ah_call *call, int threads)
{
    const struct ah_cpu_operator *operator= operators[call->op];
    *out = (struct ah_cpu_call){.run = operator->run, .call = call, .threads = threads};
    out->dtype = call->in[0].meta.dtype;
    out->kernels = ah__kernels(out->dtype);
    for (int i = 0; i < AH_OP_MAX_OUTPUTS; i++)
        out->adds[i] = call->attr.acc >> i & 1U;
    return operator->prepare(out);
}

static int calls_prepare(struct ah_cpu_program *out, const struct ah_program *program, int threads)
{
    for (int i = 0; i < program->count; i++) {
        const struct ah_call *call = &program->calls[i];
        if (call_prepare(&out->calls[i], call, threads) != AH_OK)
            return ah__fail_prefix(AH_EDEVICE, "cpu: call %d, %s", i, ah__op_table[call->op]->name);
        ah__prepared_workspace(&out->prepared, out->calls[i].workspace_bytes);
    }
    return AH_OK;
}

int ah__cpu_program_new(struct ah_cpu_program **out, const struct ah_program *program, int threads)
{
    struct ah_cpu_program *made;
    AH_TRY(ah__new(&made, 1, sizeof *made));
    int status = ah__prepared_init(&made->prepared, program, "cpu");
    if (status == AH_OK)
        status = ah__new(&made->calls, (size_t)program->count, sizeof *made->calls);
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
        if (program->prepared.extent[i].to > 0 && !base[i])
            return ah__fail(AH_EINTERNAL, "cpu: the program uses space %d, which is not bound", i);
    for (int i = 0; i < program->count; i++)
        AH_TRY(call_run(&program->calls[i], pool, base));
    return AH_OK;
}
