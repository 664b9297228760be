#include "op/program.h"

const struct ah_op_row *const ah__op_table[AH_OP_COUNT] = {
#define ENTRY(id, name) [AH_OP_##id] = &ah__op_##name,
    AH_OP_LIST(ENTRY)
#undef ENTRY
};

int ah__op_inplace_output(enum ah_op op)
{
    const struct ah_op_row *row = ah__op_table[op];
    for (int i = 0; i < row->outputs; i++)
        if (row->out[i].in_place)
            return i;
    return -1;
}

int ah__op_input_of(enum ah_op op, enum ah_operand_kind kind)
{
    const struct ah_op_row *row = ah__op_table[op];
    for (int i = 0; i < row->inputs; i++)
        if (row->in[i].kind == kind)
            return i;
    return -1;
}

double ah__op_bytes(enum ah_op op, const struct ah_meta *in, const struct ah_meta *out, const struct ah_attr *attr)
{
    const struct ah_op_row *row = ah__op_table[op];
    if (row->bytes)
        return row->bytes(in, out, attr);
    double bytes = 0;
    for (int i = 0; i < row->inputs; i++)
        bytes += (double)ah__meta_bytes(&in[i]);
    for (int i = 0; i < row->outputs; i++)
        bytes += (double)ah__meta_bytes(&out[i]) * (attr->acc >> i & 1 ? 2 : 1);
    return bytes;
}

double ah__call_flops(const struct ah_call *call)
{
    struct ah_meta in[AH_OP_MAX_INPUTS], out[AH_OP_MAX_OUTPUTS];
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
        in[i] = call->in[i].meta;
    for (int i = 0; i < AH_OP_MAX_OUTPUTS; i++)
        out[i] = call->out[i].meta;
    return ah__op_table[call->op]->flops(in, out, &call->attr);
}
