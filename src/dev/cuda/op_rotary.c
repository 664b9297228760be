/* Rotation by position. The angle of a pair from one position to the next is computed when the program is prepared, in
 * double; angles are then integers, exact at every position. */
#include "dev/cuda/kernels.h"
#include "dev/cuda/program.h"
#include "op/rotary.h"

#include <math.h>

/* Returns an angle in parts of 2^-64 of a turn. */
static uint64_t turn_of(double angle, bool back)
{
    const double two_pi = 6.283185307179586476925;
    double turns = angle / two_pi;
    uint64_t out = (uint64_t)((turns - floor(turns)) * 0x1p64);
    return back ? 0 - out : out;
}

/* Prepares a call, which owns the angle of each pair; backward rotates by the negative angles. */
static int rotary_prepare(struct ah_cuda_call *call)
{
    const struct ah_attr *attr = &call->call->attr;
    int64_t half = ah__rotary_pairs(&call->call->in[0].meta, attr);
    uint64_t *turn;
    AH_TRY(ah__new(&turn, (size_t)half, sizeof *turn));
    for (int64_t i = 0; i < half; i++)
        turn[i] = turn_of(ah__rotary_angle(attr, i, half), call->call->op == AH_OP_ROTARY_BWD);
    call->owned = turn;
    return AH_OK;
}

static int rotary_enqueue(const struct ah_cuda_bound *bound)
{
    const struct ah_call *call = bound->call->call;
    const struct ah_meta *x = &call->in[0].meta;
    bool by_head = call->attr.by_head;
    const uint64_t *turn = bound->call->owned;
    int64_t half = ah__rotary_pairs(x, &call->attr);
    struct ah_cuda_rotary job = {.x = bound->out[0],
                                 .positions = bound->in[1],
                                 .batch = bound->in[1] ? 1 : x->shape.dim[0],
                                 .seq = x->shape.dim[1] * (bound->in[1] ? x->shape.dim[0] : 1),
                                 .heads = call->attr.heads * (by_head ? 2 : 1),
                                 .size = ah__rotary_size(x, &call->attr),
                                 .by_head = by_head,
                                 .half = half,
                                 .magnitude = (float)ah__rotary_magnitude(&call->attr)};
    for (; job.first < half; job.first += job.pairs) {
        job.pairs = half - job.first < AH_CUDA_ROTARY_PAIRS ? half - job.first : AH_CUDA_ROTARY_PAIRS;
        for (int64_t i = 0; i < job.pairs; i++)
            job.turn[i] = turn[job.first + i];
        AH_CUDA_TRY(ah__cuda_rotary_enqueue(bound->stream, bound->call->dtype, &job));
    }
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_rotary = {rotary_prepare, rotary_enqueue};
const struct ah_cuda_operator ah__cuda_rotary_bwd = {rotary_prepare, rotary_enqueue};
