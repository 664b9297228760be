/* Rotation by position, in place and token by token. If positions are not given, the angles depend on shape and
 * attributes alone, and their cosines and sines are computed when the program is prepared: in double, rounded once. */
#include "dev/cpu/kernels.h"
#include "op/rotary.h"

#include <math.h>

enum { ROW_ELEMENTS = 16384 };

/* Memory of a call: the angle of each pair from one position to the next, then the cosines and sines of all positions,
 * unless tokens have positions that are known only when it runs. */
struct angles {
    double *turn; /* [half] */
    float *table; /* [seq][2][half]; null: positions are given */
    double direction, magnitude;
};

/* Computes the cosines and sines [2][half] of one position. */
static void angles_of(float *to, const struct angles *angles, int64_t position, int64_t half)
{
    for (int64_t i = 0; i < half; i++) {
        to[i] = (float)(angles->magnitude * cos((double)position * angles->turn[i]));
        to[half + i] = (float)(angles->direction * angles->magnitude * sin((double)position * angles->turn[i]));
    }
}

static int angles_prepare(struct ah_cpu_call *call, double direction)
{
    const struct ah_meta *x = &call->call->in[0].meta;
    const struct ah_attr *attr = &call->call->attr;
    int64_t seq = x->shape.dim[1], half = ah__rotary_pairs(x, attr);
    bool placed = call->call->in[1].space == AH_SPACE_NONE;
    struct angles *angles;
    AH_TRY(ah__new(&angles, 1,
                   sizeof *angles + (size_t)half * sizeof *angles->turn +
                       (placed ? (size_t)(seq * 2 * half) * sizeof *angles->table : 0)));
    call->owned = angles;
    *angles = (struct angles){
        .turn = (double *)(void *)(angles + 1), .direction = direction, .magnitude = ah__rotary_magnitude(attr)};
    for (int64_t i = 0; i < half; i++)
        angles->turn[i] = ah__rotary_angle(attr, i, half);
    if (placed)
        angles->table = (float *)(void *)(angles->turn + half);
    for (int64_t t = 0; placed && t < seq; t++)
        angles_of(angles->table + t * 2 * half, angles, t, half);
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

/* Prepares backward, which is the rotation by the negative angle. */
static int rotary_bwd_prepare(struct ah_cpu_call *call)
{
    return angles_prepare(call, -1);
}

/* Rotates one token, whose channels begin at `at`: x, or q and k of each head. */
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
    const struct ah_bound *b = context;
    const struct ah_cpu_call *call = b->call;
    const struct angles *angles = call->owned;
    const int32_t *positions = b->in[1];
    float *own = ah__pool_scratch(b->pool, worker);
    int64_t half = call->as.rotary.half, from = index * call->pieces.size;
    int64_t to = from + ah__pieces_length(&call->pieces, index);
    for (int64_t row = from; row < to; row++) {
        if (positions)
            angles_of(own, angles, positions[row], half);
        token_run(b, row * call->cols, positions ? own : angles->table + row % call->as.rotary.seq * 2 * half);
    }
}

static int rotary_run(const struct ah_bound *bound)
{
    struct ah_bound own = *bound;
    if (bound->call->as.rotary.half > 0)
        ah__pool_run(bound->pool, rotary_piece, bound->call->pieces.count, &own);
    return AH_OK;
}

const struct ah_cpu_operator ah__cpu_rotary = {rotary_prepare, rotary_run};
const struct ah_cpu_operator ah__cpu_rotary_bwd = {rotary_bwd_prepare, rotary_run};
