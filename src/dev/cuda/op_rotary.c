/* Rotation by position. How far a pair turns from one position to the next is worked out with the program, in double;
 * angles are then integers, exact at every position. */
#include "dev/cuda/kernels.h"
#include "dev/cuda/program.h"

#include <math.h>

/* In parts of 2^-64 of a turn. */
static uint64_t turn_of(double theta, double part, bool back)
{
    const double two_pi = 6.283185307179586476925;
    double turns = pow(theta, -part) / two_pi;
    uint64_t out = (uint64_t)((turns - floor(turns)) * 0x1p64);
    return back ? 0 - out : out;
}

static int64_t half_of(const struct ah_call *call)
{
    const struct ah_attr *attr = &call->attr;
    return (attr->dims ? attr->dims : call->in[0].meta.shape.dim[2] / attr->heads) / 2;
}

/* Owned: how far each pair turns; backward is the same rotation the other way. */
static int rotary_prepare(struct ah_cuda_call *call)
{
    int64_t half = half_of(call->call);
    uint64_t *turn;
    AH_TRY(ah__new(&turn, (size_t)half, sizeof *turn));
    for (int64_t i = 0; i < half; i++)
        turn[i] = turn_of((double)call->call->attr.theta, (double)i / (double)half, call->call->op == AH_OP_ROTARY_BWD);
    call->owned = turn;
    return AH_OK;
}

static int rotary_enqueue(const struct ah_cuda_bound *bound)
{
    const struct ah_call *call = bound->call->call;
    const struct ah_shape *x = &call->in[0].meta.shape;
    const uint64_t *turn = bound->call->owned;
    int64_t half = half_of(call);
    struct ah_cuda_rotary job = {.x = bound->out[0],
                                 .batch = x->dim[0],
                                 .seq = x->dim[1],
                                 .heads = call->attr.heads,
                                 .size = x->dim[2] / call->attr.heads,
                                 .half = half};
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
