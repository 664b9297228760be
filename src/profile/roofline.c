#include "profile/roofline.h"

#include <math.h>

#include "op/gpu_head.h"

double ah__curve_best(const struct ah_curve *curve)
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
        return ah__fail(AH_EINPUT, "hardware %s: key 'device.gemm_f32' is missing: a model in F32 needs it",
                        hardware->name);
    double best = ah__curve_best(curve);
    *out = (struct ah_roofline){
        .curve = curve,
        .bytes_per_s = figure[AH_FIGURE_MEMORY_BANDWIDTH] * figure[AH_FIGURE_MEMORY_EFFICIENCY],
        .attention_flops_per_s = {best * figure[AH_FIGURE_ATTENTION_FORWARD],
                                  best * figure[AH_FIGURE_ATTENTION_BACKWARD]},
        .kernel_ns = figure[AH_FIGURE_KERNEL],
        .multiprocessors = llround(figure[AH_FIGURE_MULTIPROCESSORS]),
        .memory_bytes = llround(figure[AH_FIGURE_MEMORY]),
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

/* The operands of a call, as its operator's rules expect them: absent ones have rank 0. */
struct metas {
    struct ah_meta in[AH_OP_MAX_INPUTS], out[AH_OP_MAX_OUTPUTS];
};

static void metas_init(struct metas *metas, const struct ah_call *call)
{
    *metas = (struct metas){0};
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
        if (call->in[i].space != AH_SPACE_NONE)
            metas->in[i] = call->in[i].meta;
    for (int i = 0; i < AH_OP_MAX_OUTPUTS; i++)
        if (call->out[i].space != AH_SPACE_NONE)
            metas->out[i] = call->out[i].meta;
}

static bool is_gpu_head(const struct ah_call *call, const struct ah_roofline *roofline)
{
    return roofline->multiprocessors > 0 && call->op == AH_OP_LINEAR_CROSS_ENTROPY &&
           call->out[1].space != AH_SPACE_NONE;
}

static struct ah_gpu_chunk head_chunk(const struct metas *metas, const struct ah_roofline *roofline)
{
    const struct ah_meta *x = &metas->in[0], *logits = &metas->out[1];
    return ah__gpu_chunk(&(struct ah_gpu_head){.rows = ah__shape_rows(&x->shape),
                                               .channels = x->shape.dim[2],
                                               .vocab = logits->shape.dim[1],
                                               .dtype_bytes = ah__dtype_bytes(logits->dtype),
                                               .operator_chunk = logits->shape.dim[0],
                                               .multiprocessors = roofline->multiprocessors,
                                               .memory_bytes = roofline->memory_bytes});
}

static double product_rate(const struct ah_roofline *roofline, struct ah_op_product product)
{
    return ah__curve_rate(roofline->curve, (double)product.m, (double)product.n, (double)product.k);
}

/* Returns flops per second; 0: only memory limits the call. */
static double call_rate(const struct ah_call *call, const struct metas *metas, const struct ah_roofline *roofline)
{
    const struct ah_op_row *row = ah__op_table[call->op];
    switch (row->limit) {
    case AH_OP_LIMIT_PRODUCT:
        return product_rate(roofline, row->product(metas->in, metas->out));
    case AH_OP_LIMIT_ATTENTION:
        return roofline->attention_flops_per_s[0];
    case AH_OP_LIMIT_ATTENTION_BWD:
        return roofline->attention_flops_per_s[1];
    case AH_OP_LIMIT_MEMORY:
        break;
    }
    return 0;
}

static double call_flops(const struct ah_call *call, const struct metas *metas)
{
    return ah__op_table[call->op]->flops(metas->in, metas->out, &call->attr);
}

void ah__roofline_add_bytes(struct ah_roofline_time *time, const struct ah_roofline *roofline, double bytes)
{
    double ns = bytes / roofline->bytes_per_s * 1e9;
    time->ns += ns + roofline->kernel_ns;
    time->memory_ns += ns;
}

void ah__roofline_add(struct ah_roofline_time *time, const struct ah_roofline *roofline,
                      const struct ah_program *program)
{
    for (int i = 0; i < program->count; i++) {
        const struct ah_call *call = &program->calls[i];
        struct metas metas;
        metas_init(&metas, call);
        if (is_gpu_head(call, roofline))
            metas.out[1].shape.dim[0] = head_chunk(&metas, roofline).rows;
        double rate = call_rate(call, &metas, roofline);
        double bytes = ah__op_bytes(call->op, metas.in, metas.out, &call->attr);
        double arithmetic_ns = rate > 0 ? call_flops(call, &metas) / rate * 1e9 : 0;
        if (arithmetic_ns > bytes / roofline->bytes_per_s * 1e9)
            time->ns += arithmetic_ns + roofline->kernel_ns;
        else
            ah__roofline_add_bytes(time, roofline, bytes);
    }
}

int64_t ah__roofline_workspace(const struct ah_roofline *roofline, const struct ah_program *program)
{
    int64_t most = 0;
    for (int i = 0; i < program->count; i++) {
        struct metas metas;
        if (!is_gpu_head(&program->calls[i], roofline))
            continue;
        metas_init(&metas, &program->calls[i]);
        struct ah_gpu_chunk chunk = head_chunk(&metas, roofline);
        int64_t bytes = chunk.rows * chunk.stride * ah__dtype_bytes(metas.out[1].dtype);
        most = chunk.own_logits && bytes > most ? bytes : most;
    }
    return most;
}
