/* Mixtures of experts. How many rows an expert has is known on the device alone: no launch depends on it. */
#include "dev/cuda/kernels.h"
#include "dev/cuda/program.h"

static int nothing_prepare(struct ah_cuda_call *call)
{
    (void)call;
    return AH_OK;
}

/* ---- route ------------------------------------------------------------------------------------------------------- */

/* Returns the number of copies of tokens. */
static int64_t copies_of(const struct ah_cuda_call *call)
{
    return ah__shape_rows(&call->call->in[0].meta.shape) * call->call->attr.picks;
}

static int64_t last_of(const struct ah_operand *operand)
{
    return operand->meta.shape.dim[operand->meta.shape.rank - 1];
}

static int route_prepare(struct ah_cuda_call *call)
{
    const struct ah_operand *logits = &call->call->in[0];
    char found[96];
    if (copies_of(call) > INT32_MAX)
        return ah__fail(AH_EDEVICE, "input 0 (logits) is %s, %d experts for each token, expected at most %d in all",
                        ah__shape_format(found, sizeof found, &logits->meta.shape), call->call->attr.picks, INT32_MAX);
    call->workspace_bytes = ah__cuda_route_workspace(copies_of(call), last_of(logits));
    return AH_OK;
}

static int route_enqueue(const struct ah_cuda_bound *bound)
{
    const struct ah_call *call = bound->call->call;
    struct ah_cuda_route job = {.weights = bound->out[0],
                                .slots = bound->out[1],
                                .source = bound->out[2],
                                .ends = bound->out[3],
                                .logits = bound->in[0],
                                .rows = ah__shape_rows(&call->in[0].meta.shape),
                                .experts = last_of(&call->in[0]),
                                .picks = call->attr.picks,
                                .normalised = call->attr.normalised,
                                .workspace = bound->workspace};
    AH_CUDA_TRY(ah__cuda_route_enqueue(bound->stream, bound->call->dtype, &job));
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_route = {route_prepare, route_enqueue};

static int route_bwd_enqueue(const struct ah_cuda_bound *bound)
{
    const struct ah_call *call = bound->call->call;
    struct ah_cuda_route_bwd job = {.dlogits = bound->out[0],
                                    .logits = bound->in[0],
                                    .dweights = bound->in[1],
                                    .weights = bound->in[2],
                                    .slots = bound->in[3],
                                    .ends = bound->in[4],
                                    .rows = ah__shape_rows(&call->in[0].meta.shape),
                                    .experts = last_of(&call->in[0]),
                                    .picks = call->attr.picks,
                                    .normalised = call->attr.normalised};
    AH_CUDA_TRY(ah__cuda_route_bwd_enqueue(bound->stream, bound->call->dtype, &job));
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_route_bwd = {nothing_prepare, route_bwd_enqueue};

/* ---- weights as a matrix ----------------------------------------------------------------------------------------- */

/* Returns the job of a matrix [..,E] and slots [..,K]. */
static struct ah_cuda_shares shares_of(const struct ah_operand *matrix, const struct ah_operand *slots)
{
    return (struct ah_cuda_shares){
        .rows = ah__shape_rows(&matrix->meta.shape), .experts = last_of(matrix), .picks = (int)last_of(slots)};
}

static int shares_enqueue(const struct ah_cuda_bound *bound)
{
    const struct ah_operand *in = bound->call->call->in;
    struct ah_cuda_shares job = shares_of(&in[0], &in[2]);
    job.y = bound->out[0], job.weights = bound->in[1];
    job.slots = bound->in[2], job.ends = bound->in[3];
    AH_CUDA_TRY(ah__cuda_shares_enqueue(bound->stream, bound->call->dtype, &job));
    return AH_OK;
}

static int shares_bwd_enqueue(const struct ah_cuda_bound *bound)
{
    const struct ah_operand *in = bound->call->call->in;
    struct ah_cuda_shares job = shares_of(&in[0], &in[1]);
    job.dy = bound->in[0], job.dweights = bound->out[0];
    job.slots = bound->in[1], job.ends = bound->in[2];
    AH_CUDA_TRY(ah__cuda_shares_bwd_enqueue(bound->stream, bound->call->dtype, &job));
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_shares = {nothing_prepare, shares_enqueue};
const struct ah_cuda_operator ah__cuda_shares_bwd = {nothing_prepare, shares_bwd_enqueue};

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* Enqueues work on the rows of output 0; `job` has what differs between operators. */
static int rows_enqueue(const struct ah_cuda_bound *bound, struct ah_cuda_rows job)
{
    const struct ah_call *call = bound->call->call;
    job.to = bound->out[0];
    job.from = bound->in[0];
    job.rows = ah__shape_rows(&call->out[0].meta.shape);
    job.cols = last_of(&call->out[0]);
    AH_CUDA_TRY(ah__cuda_rows_enqueue(bound->stream, call->op, bound->call->dtype, &job));
    return AH_OK;
}

static int picks_of(const struct ah_cuda_bound *bound)
{
    return (int)last_of(&bound->call->call->in[1]);
}

static int dispatch_enqueue(const struct ah_cuda_bound *bound)
{
    return rows_enqueue(bound, (struct ah_cuda_rows){.ids = bound->in[2], .picks = picks_of(bound)});
}

static int combine_enqueue(const struct ah_cuda_bound *bound)
{
    return rows_enqueue(bound, (struct ah_cuda_rows){.ids = bound->in[1], .picks = picks_of(bound)});
}

static int scale_rows_enqueue(const struct ah_cuda_bound *bound)
{
    return rows_enqueue(bound, (struct ah_cuda_rows){.weights = bound->in[1], .ids = bound->in[2]});
}

static int scale_rows_bwd_enqueue(const struct ah_cuda_bound *bound)
{
    return rows_enqueue(
        bound, (struct ah_cuda_rows){
                   .other = bound->in[1], .weights = bound->in[2], .ids = bound->in[3], .dweights = bound->out[1]});
}

static int gate_rows_enqueue(const struct ah_cuda_bound *bound)
{
    return rows_enqueue(bound, (struct ah_cuda_rows){.gate = bound->in[1]});
}

static int gate_rows_bwd_enqueue(const struct ah_cuda_bound *bound)
{
    return rows_enqueue(bound,
                        (struct ah_cuda_rows){.other = bound->in[1], .gate = bound->in[2], .dgate = bound->out[1]});
}

const struct ah_cuda_operator ah__cuda_dispatch = {nothing_prepare, dispatch_enqueue};
const struct ah_cuda_operator ah__cuda_combine = {nothing_prepare, combine_enqueue};
const struct ah_cuda_operator ah__cuda_scale_rows = {nothing_prepare, scale_rows_enqueue};
const struct ah_cuda_operator ah__cuda_scale_rows_bwd = {nothing_prepare, scale_rows_bwd_enqueue};
const struct ah_cuda_operator ah__cuda_gate_rows = {nothing_prepare, gate_rows_enqueue};
const struct ah_cuda_operator ah__cuda_gate_rows_bwd = {nothing_prepare, gate_rows_bwd_enqueue};

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* Enqueues products with matrices of the shape of `matrices`. */
static int grouped_enqueue(const struct ah_cuda_bound *bound, const struct ah_operand *matrices)
{
    const struct ah_call *call = bound->call->call;
    const int64_t *dim = matrices->meta.shape.dim;
    struct ah_cuda_grouped job = {.c = bound->out[0],
                                  .a = bound->in[0],
                                  .b = bound->in[1],
                                  .bias = call->op == AH_OP_GROUPED_LINEAR ? bound->in[3] : NULL,
                                  .ends = bound->in[2],
                                  .experts = dim[0],
                                  .rows = call->in[0].meta.shape.dim[0],
                                  .outer = dim[1],
                                  .inner = dim[2],
                                  .adds = bound->call->adds[0]};
    AH_CUDA_TRY(ah__cuda_grouped_enqueue(bound->stream, call->op, bound->call->dtype, &job));
    return AH_OK;
}

static int by_weight_enqueue(const struct ah_cuda_bound *bound)
{
    return grouped_enqueue(bound, &bound->call->call->in[1]);
}

static int to_weight_enqueue(const struct ah_cuda_bound *bound)
{
    return grouped_enqueue(bound, &bound->call->call->out[0]);
}

const struct ah_cuda_operator ah__cuda_grouped_linear = {nothing_prepare, by_weight_enqueue};
const struct ah_cuda_operator ah__cuda_grouped_linear_bwd_x = {nothing_prepare, by_weight_enqueue};
const struct ah_cuda_operator ah__cuda_grouped_linear_bwd_w = {nothing_prepare, to_weight_enqueue};

static int to_bias_enqueue(const struct ah_cuda_bound *bound)
{
    const struct ah_call *call = bound->call->call;
    const int64_t *dim = call->out[0].meta.shape.dim;
    const struct ah_cuda_grouped_sum job = {.sums = bound->out[0],
                                            .x = bound->in[0],
                                            .ends = bound->in[1],
                                            .experts = dim[0],
                                            .cols = dim[1],
                                            .adds = bound->call->adds[0]};
    AH_CUDA_TRY(ah__cuda_grouped_sum_enqueue(bound->stream, bound->call->dtype, &job));
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_grouped_linear_bwd_b = {nothing_prepare, to_bias_enqueue};
