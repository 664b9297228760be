/* Prepares and enqueues programs: everything that an operator needs is resolved once; enqueueing binds operands to
 * addresses and calls it. */
#include "dev/cuda/program.h"

#include "dev/host/prepared.h"

static const struct ah_cuda_operator *const operators[AH_OP_COUNT] = {
#define ENTRY(id, name) [AH_OP_##id] = &ah__cuda_##name,
    AH_OP_LIST(ENTRY)
#undef ENTRY
};

/* ---- making ready ------------------------------------------------------------------------------------------------ */

static int call_prepare(struct ah_cuda_call *out, struct ah_cuda *cuda, const struct ah_call *call,
                        const struct ah_call *next)
{
    const struct ah_cuda_operator *operator= operators[call->op];
    *out = (struct ah_cuda_call){.enqueue = operator->enqueue, .call = call, .next = next, .cuda = cuda};
    out->dtype = call->in[0].meta.dtype;
    for (int i = 0; i < AH_OP_MAX_OUTPUTS; i++)
        out->adds[i] = call->attr.acc >> i & 1U;
    return operator->prepare(out);
}

static int calls_prepare(struct ah_cuda_program *out, struct ah_cuda *cuda, const struct ah_program *program)
{
    for (int i = 0; i < program->count; i += out->calls[i].takes_next ? 2 : 1) {
        const struct ah_call *call = &program->calls[i];
        int status = call_prepare(&out->calls[i], cuda, call, i + 1 < program->count ? call + 1 : NULL);
        if (status != AH_OK)
            return ah__fail_prefix(status, "cuda: call %d, %s", i, ah__op_table[call->op]->name);
        ah__prepared_workspace(&out->prepared, out->calls[i].workspace_bytes);
    }
    return AH_OK;
}

int ah__cuda_program_new(struct ah_cuda_program **out, struct ah_cuda *cuda, const struct ah_program *program)
{
    struct ah_cuda_program *made;
    AH_TRY(ah__new(&made, 1, sizeof *made));
    int status = ah__prepared_init(&made->prepared, program, "cuda");
    if (status == AH_OK)
        status = ah__new(&made->calls, (size_t)program->count, sizeof *made->calls);
    if (status == AH_OK) {
        made->count = program->count;
        status = calls_prepare(made, cuda, program);
    }
    if (status != AH_OK) {
        ah__cuda_program_free(made);
        return status;
    }
    *out = made;
    return AH_OK;
}

void ah__cuda_program_free(struct ah_cuda_program *program)
{
    if (!program)
        return;
    for (int i = 0; i < program->count; i++) {
        if (program->calls[i].release)
            program->calls[i].release(&program->calls[i]);
        ah__free(program->calls[i].owned);
    }
    ah__free(program->calls);
    ah__free(program);
}

/* ---- enqueueing -------------------------------------------------------------------------------------------------- */

static char *address(const struct ah_operand *operand, char *const base[AH_SPACE_COUNT])
{
    return operand->space == AH_SPACE_NONE ? NULL : base[operand->space] + operand->offset;
}

static int call_enqueue(const struct ah_cuda_call *call, cudaStream_t stream, char *const base[AH_SPACE_COUNT])
{
    struct ah_cuda_bound bound = {.stream = stream, .call = call, .workspace = base[AH_SPACE_WORKSPACE]};
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
        bound.in[i] = address(&call->call->in[i], base);
    for (int i = 0; i < AH_OP_MAX_OUTPUTS; i++)
        bound.out[i] = address(&call->call->out[i], base);
    for (int i = 0; i < AH_OP_MAX_INPUTS && call->takes_next; i++)
        bound.next_in[i] = address(&call->next->in[i], base);
    return call->enqueue(&bound);
}

int ah__cuda_program_enqueue(const struct ah_cuda_program *program, cudaStream_t stream,
                             char *const base[AH_SPACE_COUNT])
{
    for (int i = 0; i < program->count; i += program->calls[i].takes_next ? 2 : 1) {
        const struct ah_call *call = program->calls[i].call;
        int status = call_enqueue(&program->calls[i], stream, base);
        if (status != AH_OK)
            return ah__fail_prefix(status, "call %d, %s", i, ah__op_table[call->op]->name);
    }
    return AH_OK;
}
