/* Rotation by position, in place and token by token. The angles depend on shape and attributes alone, so their cosines
 * and sines are made with the program: in double, rounded once. */
#include "dev/cpu/kernels.h"
#include "op/rotary.h"

#include <math.h>

enum { ROW_ELEMENTS = 16384 };

static void angles_fill(float *table, int64_t seq, int64_t half, const struct ah_attr *attr, double direction)
{
    for (int64_t i = 0; i < half; i++) {
        double turn = ah__rotary_angle(attr, i, half);
        for (int64_t t = 0; t < seq; t++) {
            table[t * 2 * half + i] = (float)cos((double)t * turn);
            table[(t * 2 + 1) * half + i] = (float)(direction * sin((double)t * turn));
        }
    }
}

static int angles_prepare(struct ah_cpu_call *call, double direction)
{
    const struct ah_meta *x = &call->call->in[0].meta;
    const struct ah_attr *attr = &call->call->attr;
    int64_t seq = x->shape.dim[1], half = ah__rotary_pairs(x, attr);
    float *table;
    AH_TRY(ah__new(&table, (size_t)(seq * 2 * half), sizeof *table));
    angles_fill(table, seq, half, attr, direction);
    call->owned = table;
    call->as.rotary.seq = seq;
    call->as.rotary.size = ah__rotary_size(x, attr);
    call->as.rotary.half = half;
    call->cols = x->shape.dim[2];
    call->pieces = ah__pieces(ah__shape_rows(&x->shape), ROW_ELEMENTS / call->cols);
    return AH_OK;
}

static int rotary_prepare(struct ah_cpu_call *call)
{
    return angles_prepare(call, 1);
}

/* The way back is the same rotation by the negative angle. */
static int rotary_bwd_prepare(struct ah_cpu_call *call)
{
    return angles_prepare(call, -1);
}

/* Of one token, whose channels begin at `at`: x, or q and k of each head. */
static void token_run(const struct ah_bound *b, int64_t at, const float *cosine)
{
    const struct ah_cpu_call *call = b->call;
    const struct ah_attr *attr = &call->call->attr;
    int64_t half = call->as.rotary.half, size = call->as.rotary.size, stride = attr->by_head ? 3 * size : size;
    for (int part = 0; part < (attr->by_head ? 2 : 1); part++)
        call->kernels->rotary(ah__out_at(b, 0, at + part * size), cosine, cosine + half, attr->heads, stride, half);
}

static void rotary_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    const struct ah_cpu_call *call = b->call;
    int64_t half = call->as.rotary.half, from = index * call->pieces.size;
    int64_t to = from + ah__pieces_length(&call->pieces, index);
    for (int64_t row = from; row < to; row++) {
        const float *cosine = (const float *)call->owned + row % call->as.rotary.seq * 2 * half;
        token_run(b, row * call->cols, cosine);
    }
}

static int rotary_run(const struct ah_bound *bound)
{
    struct ah_bound own = *bound;
    ah__pool_run(bound->pool, rotary_piece, bound->call->pieces.count, &own);
    return AH_OK;
}

const struct ah_cpu_operator ah__cpu_rotary = {rotary_prepare, rotary_run};
const struct ah_cpu_operator ah__cpu_rotary_bwd = {rotary_bwd_prepare, rotary_run};
