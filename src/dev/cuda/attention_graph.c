/* cuDNN has fused engines for attention written out as matrix products, pointwise operations and reductions over
 * tensors, most of which exist in name only ("virtual"). Its single operation for attention
 * (CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR) takes no causal mask before version 9.21, so the long form is used. It
 * is the one that NVIDIA's front end writes for these versions, including deterministic backward: dq is then a product
 * of its own, of gradients of scores in the workspace, instead of a sum by atomics.
 *
 *   forward   s = scale q k^T;  s = row >= column ? s : -inf;  m = max s;  e = exp(s - m);  z = sum e;
 *             lse = m + log z;  p = e / z;  y = p v
 *   backward  d = 1 sum(dy y);  p = exp(mask(scale q k^T - lse));  dv = p^T dy;
 *             ds = scale p (dy v^T - d);  dk = ds^T q;  dq = ds k;  dk, dv summed over the heads that share them
 *
 * It knows nothing of several documents in a sequence; there scale q k^T gets a bias from the workspace that hides the
 * keys before a query's document. */
#include "dev/cuda/attention_graph.h"

/* ---- tensors and operations of a graph --------------------------------------------------------------------------- */

enum { MASK_TILE = 64 }; /* the elements of a mask's row are a multiple of this */

/* A graph under construction. */
struct build {
    struct ah_cudnn_graph *graph;
    struct ah_cuda_sdpa *sdpa;
    const struct ah_cuda_attention *job; /* the whole job, for its strides */
};

static cudnnBackendDescriptor_t named(struct build *g, cudnnDataType_t type, const struct ah_cudnn_extent *extent)
{
    return ah__cudnn_tensor(g->graph, type, extent, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
}

static cudnnBackendDescriptor_t addressed(struct build *g, enum ah_sdpa_role role, cudnnDataType_t type,
                                          const struct ah_cudnn_extent *extent)
{
    cudnnBackendDescriptor_t t = ah__cudnn_tensor(g->graph, type, extent, CUDNN_ATTR_TENSOR_UNIQUE_ID);
    g->sdpa->uid[role] = g->graph->tensors;
    return t;
}

static cudnnBackendDescriptor_t number(struct build *g, enum ah_sdpa_role role)
{
    const struct ah_cudnn_extent one = {{1, 1, 1, 1}, {1, 1, 1, 1}};
    cudnnBackendDescriptor_t t = ah__cudnn_tensor(g->graph, CUDNN_DATA_FLOAT, &one, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
    g->sdpa->uid[role] = g->graph->tensors;
    return t;
}

/* Adds y = x mode b in fp32; b may be null. */
static void compute(struct build *g, cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t y, cudnnBackendDescriptor_t x,
                    cudnnBackendDescriptor_t b)
{
    ah__cudnn_pointwise(g->graph, (struct ah_cudnn_pointwise){.mode = mode, .type = CUDNN_DATA_FLOAT}, y, x, b, NULL);
}

/* Does the same with a new tensor y, and returns it. */
static cudnnBackendDescriptor_t computed(struct build *g, cudnnPointwiseMode_t mode,
                                         const struct ah_cudnn_extent *extent, cudnnBackendDescriptor_t x,
                                         cudnnBackendDescriptor_t b)
{
    cudnnBackendDescriptor_t y = named(g, CUDNN_DATA_FLOAT, extent);
    compute(g, mode, y, x, b);
    return y;
}

/* Returns the same elements in other strides, as a bf16 tensor. */
static cudnnBackendDescriptor_t reshaped(struct build *g, const struct ah_cudnn_extent *extent,
                                         cudnnBackendDescriptor_t x)
{
    cudnnBackendDescriptor_t y = named(g, CUDNN_DATA_BFLOAT16, extent);
    ah__cudnn_reshape(g->graph, y, x);
    return y;
}

/* ---- shapes of a piece ------------------------------------------------------------------------------------------- */

/* Returns the extent [batch, heads, T, size] of tokens `stride` elements apart, and heads `head` elements apart. */
static struct ah_cudnn_extent rows_of(const struct build *g, int64_t heads, int64_t head, int64_t stride)
{
    const struct ah_cuda_attention *job = g->job;
    return (struct ah_cudnn_extent){{g->sdpa->batch, heads, job->seq, job->head_size},
                                    {job->seq * stride, head, stride, 1}};
}

static struct ah_cudnn_extent queries_of(const struct build *g)
{
    return rows_of(g, g->sdpa->heads, g->job->q_head, g->job->q_stride);
}

static struct ah_cudnn_extent keys_of(const struct build *g)
{
    return rows_of(g, g->sdpa->heads / g->job->group, g->job->kv_head, g->job->kv_stride);
}

static struct ah_cudnn_extent results_of(const struct build *g)
{
    return rows_of(g, g->sdpa->heads, g->job->head_size, g->job->channels);
}

static struct ah_cudnn_extent transposed(struct ah_cudnn_extent e)
{
    return (struct ah_cudnn_extent){{e.size[0], e.size[1], e.size[3], e.size[2]},
                                    {e.stride[0], e.stride[1], e.stride[3], e.stride[2]}};
}

/* Returns the dense extent [batch, heads, rows, cols]. It also fits the job's [B,heads,rows], since a piece has all
 * heads or one sequence. */
static struct ah_cudnn_extent dense(const struct build *g, int64_t rows, int64_t cols)
{
    int64_t heads = g->sdpa->heads;
    return (struct ah_cudnn_extent){{g->sdpa->batch, heads, rows, cols}, {heads * rows * cols, rows * cols, cols, 1}};
}

/* Returns the row or column of each score. */
static cudnnBackendDescriptor_t indexed(struct build *g, const struct ah_cudnn_extent *extent,
                                        cudnnBackendDescriptor_t score, int64_t axis)
{
    struct ah_cudnn_pointwise index = {.mode = CUDNN_POINTWISE_GEN_INDEX, .type = CUDNN_DATA_FLOAT, .axis = axis};
    cudnnBackendDescriptor_t y = named(g, CUDNN_DATA_INT32, extent);
    ah__cudnn_pointwise(g->graph, index, y, score, NULL, NULL);
    return y;
}

/* Returns score if a mode b, else `nothing`. */
static cudnnBackendDescriptor_t chosen(struct build *g, const struct ah_cudnn_extent *extent, cudnnPointwiseMode_t mode,
                                       cudnnBackendDescriptor_t a, cudnnBackendDescriptor_t b,
                                       cudnnBackendDescriptor_t score, cudnnBackendDescriptor_t nothing)
{
    struct ah_cudnn_pointwise compare = {.mode = mode, .type = CUDNN_DATA_BOOLEAN};
    struct ah_cudnn_pointwise choose = {.mode = CUDNN_POINTWISE_BINARY_SELECT, .type = CUDNN_DATA_FLOAT};
    cudnnBackendDescriptor_t seen = named(g, CUDNN_DATA_BOOLEAN, extent), y = named(g, CUDNN_DATA_FLOAT, extent);
    ah__cudnn_pointwise(g->graph, compare, seen, a, b, NULL);
    ah__cudnn_pointwise(g->graph, choose, y, score, nothing, seen);
    return y;
}

/* Returns score if column <= row and, with a window, row < column + window; else -inf. */
static cudnnBackendDescriptor_t masked(struct build *g, const struct ah_cudnn_extent *extent,
                                       cudnnBackendDescriptor_t score)
{
    cudnnBackendDescriptor_t row = indexed(g, extent, score, 2), column = indexed(g, extent, score, 3);
    cudnnBackendDescriptor_t nothing = number(g, AH_SDPA_NOTHING);
    cudnnBackendDescriptor_t causal = chosen(g, extent, CUDNN_POINTWISE_CMP_GE, row, column, score, nothing);
    if (g->job->window >= g->job->seq)
        return causal;
    row = indexed(g, extent, causal, 2);
    column = indexed(g, extent, causal, 3);
    cudnnBackendDescriptor_t end = computed(g, CUDNN_POINTWISE_ADD, extent, column, number(g, AH_SDPA_WINDOW));
    return chosen(g, extent, CUDNN_POINTWISE_CMP_GT, end, row, causal, nothing);
}

int64_t ah__cuda_sdpa_mask_stride(const struct ah_cuda_attention *job)
{
    return (job->seq + MASK_TILE - 1) / MASK_TILE * MASK_TILE;
}

/* Returns scores, very low for keys before the query's document. */
static cudnnBackendDescriptor_t within_documents(struct build *g, const struct ah_cudnn_extent *extent,
                                                 cudnnBackendDescriptor_t score)
{
    if (!g->job->documents)
        return score;
    const int64_t stride = ah__cuda_sdpa_mask_stride(g->job), sequence = g->job->seq * stride;
    struct ah_cudnn_extent mask = {{g->sdpa->batch, 1, g->job->seq, g->job->seq}, {sequence, sequence, stride, 1}};
    return computed(g, CUDNN_POINTWISE_ADD, extent, score, addressed(g, AH_SDPA_MASK, CUDNN_DATA_BFLOAT16, &mask));
}

/* ---- the two graphs ---------------------------------------------------------------------------------------------- */

void ah__cuda_sdpa_forward(struct ah_cuda_sdpa *sdpa, const struct ah_cuda_attention *job)
{
    struct build build = {.graph = &sdpa->graph, .sdpa = sdpa, .job = job}, *g = &build;
    struct ah_cudnn_extent q = queries_of(g), y = results_of(g), v = keys_of(g), k = transposed(v);
    struct ah_cudnn_extent square = dense(g, job->seq, job->seq), column = dense(g, job->seq, 1);
    cudnnBackendDescriptor_t product = named(g, CUDNN_DATA_FLOAT, &square), scale = number(g, AH_SDPA_SCALE);
    ah__cudnn_matmul(g->graph, product, addressed(g, AH_SDPA_Q, CUDNN_DATA_BFLOAT16, &q),
                     addressed(g, AH_SDPA_K, CUDNN_DATA_BFLOAT16, &k));
    cudnnBackendDescriptor_t score = computed(g, CUDNN_POINTWISE_MUL, &square, product, scale);
    score = masked(g, &square, within_documents(g, &square, score));
    cudnnBackendDescriptor_t most = named(g, CUDNN_DATA_FLOAT, &column), sum = named(g, CUDNN_DATA_FLOAT, &column);
    ah__cudnn_reduce(g->graph, CUDNN_REDUCE_TENSOR_MAX, most, score);
    cudnnBackendDescriptor_t below = computed(g, CUDNN_POINTWISE_SUB, &square, score, most);
    cudnnBackendDescriptor_t power = computed(g, CUDNN_POINTWISE_EXP, &square, below, NULL);
    ah__cudnn_reduce(g->graph, CUDNN_REDUCE_TENSOR_ADD, sum, power);
    cudnnBackendDescriptor_t logarithm = computed(g, CUDNN_POINTWISE_LOG, &column, sum, NULL);
    compute(g, CUDNN_POINTWISE_ADD, addressed(g, AH_SDPA_LSE, CUDNN_DATA_FLOAT, &column), most, logarithm);
    cudnnBackendDescriptor_t prob = named(g, CUDNN_DATA_BFLOAT16, &square);
    compute(g, CUDNN_POINTWISE_DIV, prob, power, sum);
    ah__cudnn_matmul(g->graph, addressed(g, AH_SDPA_Y, CUDNN_DATA_BFLOAT16, &y), prob,
                     addressed(g, AH_SDPA_V, CUDNN_DATA_BFLOAT16, &v));
}

/* Adds the gradient of keys or values: a product for every head of queries, summed over the heads that share it. */
static void shared_gradient(struct build *g, enum ah_sdpa_role role, cudnnBackendDescriptor_t left,
                            cudnnBackendDescriptor_t right)
{
    const struct ah_cuda_attention *job = g->job;
    struct ah_cudnn_extent shared = keys_of(g), each = dense(g, job->seq, job->head_size);
    cudnnBackendDescriptor_t gradient = addressed(g, role, CUDNN_DATA_BFLOAT16, &shared);
    if (job->group == 1) {
        ah__cudnn_matmul(g->graph, gradient, left, right);
        return;
    }
    cudnnBackendDescriptor_t all = named(g, CUDNN_DATA_BFLOAT16, &each);
    ah__cudnn_matmul(g->graph, all, left, right);
    ah__cudnn_reduce(g->graph, CUDNN_REDUCE_TENSOR_ADD, gradient, all);
}

/* Returns sum(dy y) of each row, which the softmax's gradient subtracts. */
static cudnnBackendDescriptor_t dot_build(struct build *g, cudnnBackendDescriptor_t dy, const struct ah_cudnn_extent *y)
{
    const struct ah_cuda_attention *job = g->job;
    struct ah_cudnn_extent column = dense(g, job->seq, 1);
    struct ah_cudnn_extent each = dense(g, job->seq, job->head_size);
    cudnnBackendDescriptor_t saved = addressed(g, AH_SDPA_Y, CUDNN_DATA_BFLOAT16, y);
    cudnnBackendDescriptor_t product = computed(g, CUDNN_POINTWISE_MUL, &each, dy, saved);
    cudnnBackendDescriptor_t sum = named(g, CUDNN_DATA_FLOAT, &column);
    cudnnBackendDescriptor_t dot = addressed(g, AH_SDPA_DOT, CUDNN_DATA_FLOAT, &column);
    ah__cudnn_reduce(g->graph, CUDNN_REDUCE_TENSOR_ADD, sum, product);
    compute(g, CUDNN_POINTWISE_MUL, dot, sum, number(g, AH_SDPA_ONE));
    return dot;
}

void ah__cuda_sdpa_backward(struct ah_cuda_sdpa *sdpa, const struct ah_cuda_attention *job)
{
    struct build build = {.graph = &sdpa->graph, .sdpa = sdpa, .job = job}, *g = &build;
    struct ah_cudnn_extent q = queries_of(g), y = results_of(g), k = keys_of(g), across = transposed(k);
    struct ah_cudnn_extent column = dense(g, job->seq, 1);
    struct ah_cudnn_extent square = dense(g, job->seq, job->seq), turned = transposed(square);
    cudnnBackendDescriptor_t dy = addressed(g, AH_SDPA_DY, CUDNN_DATA_BFLOAT16, &y), dot = dot_build(g, dy, &y);
    cudnnBackendDescriptor_t query = addressed(g, AH_SDPA_Q, CUDNN_DATA_BFLOAT16, &q);
    cudnnBackendDescriptor_t key = addressed(g, AH_SDPA_K, CUDNN_DATA_BFLOAT16, &across);
    cudnnBackendDescriptor_t product = named(g, CUDNN_DATA_FLOAT, &square), scale = number(g, AH_SDPA_SCALE);
    ah__cudnn_matmul(g->graph, product, query, key);
    cudnnBackendDescriptor_t score = computed(g, CUDNN_POINTWISE_MUL, &square, product, scale);
    score = within_documents(g, &square, score);
    score = computed(g, CUDNN_POINTWISE_SUB, &square, score, addressed(g, AH_SDPA_LSE, CUDNN_DATA_FLOAT, &column));
    cudnnBackendDescriptor_t prob = computed(g, CUDNN_POINTWISE_EXP, &square, masked(g, &square, score), NULL);
    shared_gradient(g, AH_SDPA_DV, reshaped(g, &turned, prob), dy);
    cudnnBackendDescriptor_t dprob = named(g, CUDNN_DATA_FLOAT, &square);
    ah__cudnn_matmul(g->graph, dprob, dy, addressed(g, AH_SDPA_V, CUDNN_DATA_BFLOAT16, &across));
    cudnnBackendDescriptor_t dscore = computed(g, CUDNN_POINTWISE_SUB, &square, dprob, dot);
    dscore = computed(g, CUDNN_POINTWISE_MUL, &square, dscore, prob);
    dscore = computed(g, CUDNN_POINTWISE_MUL, &square, dscore, scale);
    shared_gradient(g, AH_SDPA_DK, reshaped(g, &turned, dscore), query);
    ah__cudnn_matmul(g->graph, addressed(g, AH_SDPA_DQ, CUDNN_DATA_BFLOAT16, &q), dscore, reshaped(g, &k, key));
}
