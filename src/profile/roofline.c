#include "profile/roofline.h"

#include <math.h>

static double curve_best(const struct ah_curve *curve)
{
    double best = 0;
    for (int i = 0; i < curve->count; i++)
        best = fmax(best, curve->flops_per_s[i]);
    return best;
}

int ah__roofline_init(struct ah_roofline *out, const struct ah_hardware *hardware, enum ah_dtype compute)
{
    const struct ah_curve *curve = compute == AH_F32 ? &hardware->gemm_f32 : &hardware->gemm;
    const double *figure = hardware->figure;
    if (!curve->count)
        return ah__fail(AH_EINPUT, "hardware %s: key 'device.gemm_f32': found nothing, expected it for a model in F32",
                        hardware->name);
    double best = curve_best(curve);
    *out = (struct ah_roofline){
        .curve = curve,
        .bytes_per_s = figure[AH_FIGURE_MEMORY_BANDWIDTH] * figure[AH_FIGURE_MEMORY_EFFICIENCY],
        .attention_flops_per_s = {best * figure[AH_FIGURE_ATTENTION_FORWARD], best * figure[AH_FIGURE_ATTENTION_BACKWARD]},
        .kernel_ns = figure[AH_FIGURE_KERNEL],
    };
    return AH_OK;
}

double ah__curve_rate(const struct ah_curve *curve, double m, double n, double k)
{
    double size = 3 / (1 / m + 1 / n + 1 / k);
    int last = curve->count - 1, i = 0;
    if (size <= curve->size[0])
        return curve->flops_per_s[0] * size / curve->size[0];
    if (size >= curve->size[last])
        return curve->flops_per_s[last];
    while (size > curve->size[i + 1])
        i++;
    double part = log(size / curve->size[i]) / log(curve->size[i + 1] / curve->size[i]);
    return curve->flops_per_s[i] + part * (curve->flops_per_s[i + 1] - curve->flops_per_s[i]);
}

/* ---- memory traffic */

static double meta_bytes(const struct ah_operand *operand)
{
    if (operand->space == AH_SPACE_NONE)
        return 0;
    return (double)(ah__shape_count(&operand->meta.shape) * ah__dtype_bytes(operand->meta.dtype));
}

/* Each operand crosses once, an output that is added to twice. Look-ups touch only the rows they need. */
static double call_bytes(const struct ah_call *call)
{
    const struct ah_op_row *row = &ah__op_table[call->op];
    double bytes = 0;
    for (int i = 0; i < row->inputs; i++)
        bytes += meta_bytes(&call->in[i]);
    for (int i = 0; i < row->outputs; i++)
        bytes += meta_bytes(&call->out[i]) * (call->attr.acc >> i & 1 ? 2 : 1);
    if (call->op == AH_OP_EMBEDDING)
        bytes += meta_bytes(&call->out[0]) - meta_bytes(&call->in[0]);
    if (call->op == AH_OP_ADD_POSITION && meta_bytes(&call->in[1]) > meta_bytes(&call->in[0]))
        bytes += meta_bytes(&call->in[0]) - meta_bytes(&call->in[1]);
    return bytes;
}

/* ---- arithmetic */

static double rows(const struct ah_operand *operand)
{
    return (double)ah__shape_rows(&operand->meta.shape);
}

/* The matrix among a linear operator's operands, [I,O] or [O,I], and the rows of what it meets. */
static double gemm_rate(const struct ah_call *call, const struct ah_roofline *roofline)
{
    const struct ah_operand *matrix = call->op == AH_OP_LINEAR_BWD_W ? &call->out[0] : &call->in[1];
    const int64_t *dim = matrix->meta.shape.dim;
    return ah__curve_rate(roofline->curve, rows(&call->in[0]), (double)dim[0], (double)dim[1]);
}

static double call_rate(const struct ah_call *call, const struct ah_roofline *roofline)
{
    switch (call->op) {
    case AH_OP_LINEAR:
    case AH_OP_LINEAR_BWD_X:
    case AH_OP_LINEAR_BWD_W:
        return gemm_rate(call, roofline);
    case AH_OP_ATTENTION:
        return roofline->attention_flops_per_s[0];
    case AH_OP_ATTENTION_BWD:
        return roofline->attention_flops_per_s[1];
    default:
        return 0; /* bound by memory */
    }
}

static double call_flops(const struct ah_call *call)
{
    struct ah_meta in[AH_OP_MAX_INPUTS] = {0}, out[AH_OP_MAX_OUTPUTS] = {0};
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
        if (call->in[i].space != AH_SPACE_NONE)
            in[i] = call->in[i].meta;
    for (int i = 0; i < AH_OP_MAX_OUTPUTS; i++)
        out[i] = call->out[i].meta;
    return ah__op_table[call->op].flops(in, out, &call->attr);
}

void ah__roofline_add_bytes(struct ah_roofline_time *time, const struct ah_roofline *roofline, double bytes)
{
    double ns = bytes / roofline->bytes_per_s * 1e9;
    time->ns += ns + roofline->kernel_ns;
    time->memory_ns += ns;
}

void ah__roofline_add(struct ah_roofline_time *time, const struct ah_roofline *roofline, const struct ah_program *program)
{
    for (int i = 0; i < program->count; i++) {
        const struct ah_call *call = &program->calls[i];
        double rate = call_rate(call, roofline), bytes = call_bytes(call);
        double arithmetic_ns = rate > 0 ? call_flops(call) / rate * 1e9 : 0;
        if (arithmetic_ns > bytes / roofline->bytes_per_s * 1e9)
            time->ns += arithmetic_ns + roofline->kernel_ns;
        else
            ah__roofline_add_bytes(time, roofline, bytes);
    }
}
