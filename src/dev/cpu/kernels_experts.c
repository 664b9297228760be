/* Mixtures of experts: who computes which rows, copies and sums of rows. Their products: kernels_grouped.c. */
#include "dev/cpu/kernels.h"

#include <string.h>

#include "dev/host/kernels.h"
#include "op/bf16.h"

enum { ELEMENTS = 16384, MOST_EXPERTS = 65536 };
_Static_assert(3 * (int)MOST_EXPERTS <= (int)AH_POOL_SCRATCH, "scratch of a worker");

static int run_rows(const struct ah_bound *bound, void (*piece)(void *context, int index, int worker))
{
    struct ah_bound own = *bound;
    ah__pool_run(bound->pool, piece, bound->call->pieces.count, &own);
    return AH_OK;
}

/* Prepares work on rows of `cols` elements. */
static void rows_prepare(struct ah_cpu_call *call, int64_t rows, int64_t cols)
{
    call->rows = rows;
    call->cols = cols;
    call->pieces = ah__pieces(rows, ELEMENTS / cols);
}

/* The rows of a piece: [from, to). */
struct range {
    int64_t from, to;
};

static struct range range_of(const struct ah_bound *bound, int index)
{
    int64_t from = index * bound->call->pieces.size;
    return (struct range){from, from + ah__pieces_length(&bound->call->pieces, index)};
}

/* ---- route ------------------------------------------------------------------------------------------------------- */

static int route_prepare(struct ah_cpu_call *call)
{
    const struct ah_shape *logits = ah__call_in(call, 0);
    if (ah__shape_last(logits) > MOST_EXPERTS)
        return ah__fail(AH_EDEVICE, "logits of %lld experts, expected at most %d", (long long)ah__shape_last(logits),
                        (int)MOST_EXPERTS);
    rows_prepare(call, ah__shape_rows(logits), ah__shape_last(logits));
    return AH_OK;
}

/* Returns a token's logits as floats, in scratch if they are not. */
static const float *logits_of(const struct ah_bound *bound, int64_t row, float *scratch)
{
    int64_t experts = bound->call->cols;
    if (bound->call->dtype == AH_F32)
        return (const float *)bound->in[0] + row * experts;
    ah__host_kernels()->from_bf16(scratch, (const uint16_t *)bound->in[0] + row * experts, experts);
    return scratch;
}

static bool taken(const int32_t *pick, int count, int64_t expert)
{
    for (int i = 0; i < count; i++)
        if (pick[i] == expert)
            return true;
    return false;
}

/* Takes the largest logits; of equal ones, and beside NaN, the first from `first` on, counted round. */
static void picks_take(int32_t *pick, int picks, const float *logit, int64_t experts, int64_t first)
{
    for (int k = 0; k < picks; k++) {
        int64_t best = -1;
        for (int64_t i = 0; i < experts; i++) {
            int64_t at = first + i < experts ? first + i : first + i - experts;
            if ((best < 0 || logit[at] > logit[best]) && !taken(pick, k, at))
                best = at;
        }
        pick[k] = (int32_t)best;
    }
}

/* Writes e^(logit - shift) of all experts; returns their sum. */
static float exps(const struct ah_kernels *kernels, float *e, const float *logit, int64_t experts, float shift)
{
    float sum = 0;
    for (int64_t i = 0; i < experts; i++)
        e[i] = logit[i] - shift;
    kernels->exp(e, e, experts);
    for (int64_t i = 0; i < experts; i++)
        sum += e[i];
    return sum;
}

/* The first pick has the largest logit. */
static void weights_put(const struct ah_bound *bound, float *weight, const int32_t *pick, const float *logit, float *e)
{
    const struct ah_attr *attr = &bound->call->call->attr;
    float chosen[AH_MOST_PICKS], sum;
    for (int k = 0; k < attr->picks; k++)
        chosen[k] = logit[pick[k]];
    if (attr->normalised) {
        sum = exps(bound->call->kernels, e, chosen, attr->picks, chosen[0]);
        for (int k = 0; k < attr->picks; k++)
            weight[k] = e[k] / sum;
        return;
    }
    sum = exps(bound->call->kernels, e, logit, bound->call->cols, chosen[0]);
    for (int k = 0; k < attr->picks; k++)
        weight[k] = e[pick[k]] / sum;
}

/* Leaves in `slots` the experts themselves. */
static void route_piece(void *context, int index, int worker)
{
    const struct ah_bound *b = context;
    struct range range = range_of(b, index);
    float *scratch = ah__pool_scratch(b->pool, worker);
    int64_t experts = b->call->cols;
    int picks = b->call->call->attr.picks;
    for (int64_t row = range.from; row < range.to; row++) {
        const float *logit = logits_of(b, row, scratch);
        int32_t *pick = (int32_t *)b->out[1] + row * picks;
        picks_take(pick, picks, logit, experts, row * picks % experts);
        weights_put(b, (float *)b->out[0] + row * picks, pick, logit, scratch + experts);
    }
}

/* Sorts the copies of tokens by expert, those of one expert in the order of tokens. */
static void rows_sort(int32_t *slots, int32_t *source, int32_t *ends, int64_t rows, int64_t experts)
{
    memset(ends, 0, (size_t)experts * sizeof *ends);
    for (int64_t i = 0; i < rows; i++)
        ends[slots[i]]++;
    int32_t sum = 0;
    for (int64_t e = 0; e < experts; e++) { /* now where the expert's rows begin */
        int32_t count = ends[e];
        ends[e] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < rows; i++) { /* in the end where they end */
        slots[i] = ends[slots[i]]++;
        source[slots[i]] = (int32_t)i;
    }
}

static int route_run(const struct ah_bound *bound)
{
    run_rows(bound, route_piece);
    rows_sort(bound->out[1], bound->out[2], bound->out[3], bound->call->rows * bound->call->call->attr.picks,
              bound->call->cols);
    return AH_OK;
}

const struct ah_cpu_operator ah__cpu_route = {route_prepare, route_run};

/* Returns the expert whose rows hold `slot`. */
static int64_t expert_of(const int32_t *ends, int64_t experts, int32_t slot)
{
    int64_t low = 0, high = experts - 1;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (ends[middle] > slot)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Computes a token's gradient p * (d - s): p are the probabilities, d is dweight of the experts that were picked and 0
 * of the others, s the sum of dweight * weight. If the weights were normalised, p is 0 for the others. */
static void token_bwd(const struct ah_bound *b, int64_t row, float *dlogit, float *scratch)
{
    const struct ah_attr *attr = &b->call->call->attr;
    int64_t experts = b->call->cols;
    const float *dweight = (const float *)b->in[1] + row * attr->picks;
    const float *weight = (const float *)b->in[2] + row * attr->picks;
    const int32_t *slot = (const int32_t *)b->in[3] + row * attr->picks, *ends = b->in[4];
    float sum = 0, total = 1;
    for (int k = 0; k < attr->picks; k++)
        sum += dweight[k] * weight[k];
    memset(dlogit, 0, (size_t)experts * sizeof *dlogit);
    if (!attr->normalised) {
        const float *logit = logits_of(b, row, scratch);
        total = exps(b->call->kernels, dlogit, logit, experts, logit[expert_of(ends, experts, slot[0])]);
        for (int64_t i = 0; i < experts; i++)
            dlogit[i] = dlogit[i] / total * -sum;
    }
    for (int k = 0; k < attr->picks; k++)
        dlogit[expert_of(ends, experts, slot[k])] = weight[k] * (dweight[k] - sum);
}

static void route_bwd_piece(void *context, int index, int worker)
{
    const struct ah_bound *b = context;
    struct range range = range_of(b, index);
    int64_t experts = b->call->cols;
    float *scratch = ah__pool_scratch(b->pool, worker), *rounded = scratch + experts;
    for (int64_t row = range.from; row < range.to; row++) {
        float *dlogit = b->call->dtype == AH_F32 ? (float *)b->out[0] + row * experts : rounded;
        token_bwd(b, row, dlogit, scratch);
        if (dlogit == rounded)
            ah__host_kernels()->to_bf16((uint16_t *)b->out[0] + row * experts, rounded, experts);
    }
}

static int route_bwd_run(const struct ah_bound *bound)
{
    return run_rows(bound, route_bwd_piece);
}

const struct ah_cpu_operator ah__cpu_route_bwd = {route_prepare, route_bwd_run};

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static int dispatch_prepare(struct ah_cpu_call *call)
{
    const struct ah_shape *y = ah__call_out(call, 0);
    rows_prepare(call, y->dim[0], y->dim[1]);
    return AH_OK;
}

static void dispatch_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    struct range range = range_of(b, index);
    int64_t cols = b->call->cols, picks = ah__shape_last(ah__call_in(b->call, 1));
    const int32_t *source = b->in[2];
    for (int64_t row = range.from; row < range.to; row++)
        memcpy(ah__out_at(b, 0, row * cols), ah__in_at(b, 0, source[row] / picks * cols),
               (size_t)(cols * ah__dtype_bytes(b->call->dtype)));
}

static int dispatch_run(const struct ah_bound *bound)
{
    return run_rows(bound, dispatch_piece);
}

const struct ah_cpu_operator ah__cpu_dispatch = {dispatch_prepare, dispatch_run};

static int combine_prepare(struct ah_cpu_call *call)
{
    const struct ah_shape *y = ah__call_out(call, 0);
    rows_prepare(call, ah__shape_rows(y), ah__shape_last(y));
    return AH_OK;
}

static void combine_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    struct range range = range_of(b, index);
    int64_t cols = b->call->cols, picks = ah__shape_last(ah__call_in(b->call, 1));
    const int32_t *slots = b->in[1];
    for (int64_t row = range.from; row < range.to; row++)
        b->call->kernels->sum_rows(ah__out_at(b, 0, row * cols), b->in[0], slots + row * picks, (int)picks, cols);
}

static int combine_run(const struct ah_bound *bound)
{
    return run_rows(bound, combine_piece);
}

const struct ah_cpu_operator ah__cpu_combine = {combine_prepare, combine_run};

static void scale_rows_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    struct range range = range_of(b, index);
    int64_t cols = b->call->cols;
    const float *weights = b->in[1];
    const int32_t *source = b->in[2];
    for (int64_t row = range.from; row < range.to; row++)
        b->call->kernels->scale(ah__out_at(b, 0, row * cols), ah__in_at(b, 0, row * cols), cols, weights[source[row]]);
}

static int scale_rows_run(const struct ah_bound *bound)
{
    return run_rows(bound, scale_rows_piece);
}

const struct ah_cpu_operator ah__cpu_scale_rows = {dispatch_prepare, scale_rows_run};

static void scale_rows_bwd_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    struct range range = range_of(b, index);
    int64_t cols = b->call->cols;
    const float *weights = b->in[2];
    const int32_t *source = b->in[3];
    float *dweights = b->out[1];
    for (int64_t row = range.from; row < range.to; row++)
        dweights[source[row]] =
            b->call->kernels->scale_row_bwd(ah__out_at(b, 0, row * cols), ah__in_at(b, 0, row * cols),
                                            ah__in_at(b, 1, row * cols), cols, weights[source[row]]);
}

static int scale_rows_bwd_run(const struct ah_bound *bound)
{
    return run_rows(bound, scale_rows_bwd_piece);
}

const struct ah_cpu_operator ah__cpu_scale_rows_bwd = {dispatch_prepare, scale_rows_bwd_run};

/* Returns the logistic function of a row's gate; *rest: 1 minus it. */
static float gate_of(const struct ah_bound *bound, const void *gates, int64_t row, float *rest)
{
    float minus =
        bound->call->dtype == AH_F32 ? -((const float *)gates)[row] : -ah__bf16_value(((const uint16_t *)gates)[row]);
    float e;
    bound->call->kernels->exp(&e, &minus, 1);
    float share = 1 / (1 + e);
    *rest = e * share;
    return share;
}

static void gate_rows_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    struct range range = range_of(b, index);
    int64_t cols = b->call->cols;
    float rest;
    for (int64_t row = range.from; row < range.to; row++)
        b->call->kernels->scale(ah__out_at(b, 0, row * cols), ah__in_at(b, 0, row * cols), cols,
                                gate_of(b, b->in[1], row, &rest));
}

static int gate_rows_run(const struct ah_bound *bound)
{
    return run_rows(bound, gate_rows_piece);
}

const struct ah_cpu_operator ah__cpu_gate_rows = {combine_prepare, gate_rows_run};

static void gate_rows_bwd_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    struct range range = range_of(b, index);
    int64_t cols = b->call->cols;
    for (int64_t row = range.from; row < range.to; row++) {
        float rest, share = gate_of(b, b->in[2], row, &rest);
        float sum = b->call->kernels->scale_row_bwd(ah__out_at(b, 0, row * cols), ah__in_at(b, 0, row * cols),
                                                    ah__in_at(b, 1, row * cols), cols, share);
        float slope = share * rest * sum;
        if (b->call->dtype == AH_F32)
            ((float *)b->out[1])[row] = slope;
        else
            ((uint16_t *)b->out[1])[row] = ah__bf16_of(slope);
    }
}

static int gate_rows_bwd_run(const struct ah_bound *bound)
{
    return run_rows(bound, gate_rows_bwd_piece);
}

const struct ah_cpu_operator ah__cpu_gate_rows_bwd = {combine_prepare, gate_rows_bwd_run};

/* ---- weights as a matrix ----------------------------------------------------------------------------------------- */

static void shares_piece(void *context, int index, int worker)
{
    const struct ah_bound *b = context;
    struct range range = range_of(b, index);
    int64_t experts = b->call->cols, picks = ah__shape_last(ah__call_in(b->call, 1));
    const float *weights = b->in[1];
    const int32_t *slots = b->in[2], *ends = b->in[3];
    for (int64_t row = range.from; row < range.to; row++) {
        float *share =
            b->call->dtype == AH_F32 ? (float *)b->out[0] + row * experts : ah__pool_scratch(b->pool, worker);
        memset(share, 0, (size_t)experts * sizeof *share);
        for (int64_t k = row * picks; k < (row + 1) * picks; k++)
            share[expert_of(ends, experts, slots[k])] = weights[k];
        if (b->call->dtype == AH_BF16)
            ah__host_kernels()->to_bf16((uint16_t *)b->out[0] + row * experts, share, experts);
    }
}

static int shares_run(const struct ah_bound *bound)
{
    return run_rows(bound, shares_piece);
}

const struct ah_cpu_operator ah__cpu_shares = {route_prepare, shares_run};

static void shares_bwd_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct ah_bound *b = context;
    struct range range = range_of(b, index);
    int64_t experts = b->call->cols, picks = ah__shape_last(ah__call_in(b->call, 1));
    const int32_t *slots = b->in[1], *ends = b->in[2];
    float *dweights = b->out[0];
    for (int64_t row = range.from; row < range.to; row++)
        for (int64_t k = row * picks; k < (row + 1) * picks; k++) {
            int64_t at = row * experts + expert_of(ends, experts, slots[k]);
            dweights[k] = b->call->dtype == AH_F32 ? ((const float *)b->in[0])[at]
                                                   : ah__bf16_value(((const uint16_t *)b->in[0])[at]);
        }
}

static int shares_bwd_run(const struct ah_bound *bound)
{
    return run_rows(bound, shares_bwd_piece);
}

const struct ah_cpu_operator ah__cpu_shares_bwd = {route_prepare, shares_bwd_run};
