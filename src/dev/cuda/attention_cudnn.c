/* cuDNN has fused engines for attention written out as matrix products, pointwise operations and reductions over
 * tensors that mostly exist in name only ("virtual"). Its operation that is attention as one
 * (CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR) takes no causal mask before version 9.21, so the long form is used; it
 * is the one NVIDIA's front end writes for these versions, deterministic backward included: dq is then a product of its
 * own, made from gradients of scores in the workspace, instead of a sum by atomics.
 *
 *   forward   s = scale q k^T;  s = row >= column ? s : -inf;  m = max s;  e = exp(s - m);  z = sum e;
 *             lse = m + log z;  p = e / z;  y = p v
 *   backward  d = 1 sum(dy y);  p = exp(mask(scale q k^T - lse));  dv = p^T dy;
 *             ds = scale p (dy v^T - d);  dk = ds^T q;  dq = ds k;  dk, dv summed over the heads that share them
 *
 * A finalized descriptor takes no more attributes (cudnnBackendSetAttribute() answers CUDNN_STATUS_NOT_INITIALIZED), so
 * a variant pack cannot get new addresses; and the same call runs at many. Each enqueue makes its own and destroys it
 * when cudnnBackendExecute() has launched, as NVIDIA's front end does: a few hundred bytes of cuDNN's on the host, none
 * on the device, and nothing waits. */
#include "dev/cuda/attention_cudnn.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "dev/cuda/cudnn_graph.h"

enum {
    MIN_VERSION = 91600, /* before it, backward wants lengths that are multiples of 128 padded by hand */
    SCORES_TILE = 128,   /* multiples of which backward keeps scores in */
    WORKSPACE_PART = 4   /* of the GPU's memory, that no workspace exceeds: up to there the planner weighs it */
};

/* The widest head, in both directions and in forward alone, by the GPU's major version. */
static int widest_head(int architecture, bool backward)
{
    return architecture == 9 || (architecture == 8 && !backward) ? 256 : 128;
}

/* Tensors that have an address. */
enum role {
    ROLE_Q,
    ROLE_K,
    ROLE_V,
    ROLE_Y,
    ROLE_LSE,
    ROLE_DY,
    ROLE_DQ,
    ROLE_DK,
    ROLE_DV,
    ROLE_DOT, /* in the workspace */
    ROLE_SCALE,
    ROLE_NOTHING, /* -inf */
    ROLE_ONE,
    ROLE_WINDOW,
    ROLE_COUNT
};

struct ah_cuda_sdpa {
    struct ah_cudnn_graph graph;
    int64_t uid[ROLE_COUNT];           /* 0: no such tensor in this graph */
    int64_t batch, heads;              /* of a piece, divisors of the job's */
    int64_t dot_bytes;                 /* of the workspace, in front of the plan's */
    float scale, nothing, one, window; /* what by-value tensors point to */
};

const char *ah__cuda_sdpa_unfit(const struct ah_cuda *cuda, const struct ah_cuda_attention *job, bool backward)
{
    int architecture = cuda->properties.major;
    const struct {
        bool is;
        const char *reason;
    } unfit[] = {
        {!cuda->dnn, cuda->own_attention ? "AUTOHETE_CUDA_ATTENTION is own" : "there is no cuDNN"},
        {job->dtype != AH_BF16, "cuDNN is for bf16"},
        {cuda->dnn && cuda->library.cudnnGetVersion() < MIN_VERSION, "cuDNN is older than 9.16"},
        {job->seq < 2, "one token"},
        {architecture < 8, "the GPU is older than sm_80"},
        {job->head_size % 8 != 0, "heads are no multiple of 8 channels"},
        {job->head_size > widest_head(architecture, backward), "heads are too wide for cuDNN on this GPU"},
        {job->documents, "cuDNN knows no documents within a sequence"},
        {job->cap > 0, "cuDNN is not asked for scores with a soft cap"},
        /* Later GPUs than Hopper are deterministic in backward only by engines and knobs picked by hand. */
        {backward && architecture > 9, "cuDNN's backward is not deterministic on this GPU"},
        {backward && (job->add_q || job->add_k || job->add_v), "cuDNN cannot add to gradients that are there"},
    };
    for (size_t i = 0; i < AH_LENGTH(unfit); i++)
        if (unfit[i].is)
            return unfit[i].reason;
    return NULL;
}

/* ---- tensors and operations of a graph --------------------------------------------------------------------------- */

/* A graph while it is built. */
struct build {
    struct ah_cudnn_graph *graph;
    struct ah_cuda_sdpa *sdpa;
    const struct ah_cuda_attention *job; /* whole: strides */
};

static cudnnBackendDescriptor_t named(struct build *g, cudnnDataType_t type, const struct ah_cudnn_extent *extent)
{
    return ah__cudnn_tensor(g->graph, type, extent, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
}

static cudnnBackendDescriptor_t addressed(struct build *g, enum role role, cudnnDataType_t type,
                                          const struct ah_cudnn_extent *extent)
{
    cudnnBackendDescriptor_t t = ah__cudnn_tensor(g->graph, type, extent, CUDNN_ATTR_TENSOR_UNIQUE_ID);
    g->sdpa->uid[role] = g->graph->tensors;
    return t;
}

static cudnnBackendDescriptor_t number(struct build *g, enum role role)
{
    const struct ah_cudnn_extent one = {{1, 1, 1, 1}, {1, 1, 1, 1}};
    cudnnBackendDescriptor_t t = ah__cudnn_tensor(g->graph, CUDNN_DATA_FLOAT, &one, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
    g->sdpa->uid[role] = g->graph->tensors;
    return t;
}

/* y = x mode b in fp32; b may be null. */
static void compute(struct build *g, cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t y, cudnnBackendDescriptor_t x,
                    cudnnBackendDescriptor_t b)
{
    ah__cudnn_pointwise(g->graph, (struct ah_cudnn_pointwise){.mode = mode, .type = CUDNN_DATA_FLOAT}, y, x, b, NULL);
}

/* The same as a named tensor. */
static cudnnBackendDescriptor_t computed(struct build *g, cudnnPointwiseMode_t mode,
                                         const struct ah_cudnn_extent *extent, cudnnBackendDescriptor_t x,
                                         cudnnBackendDescriptor_t b)
{
    cudnnBackendDescriptor_t y = named(g, CUDNN_DATA_FLOAT, extent);
    compute(g, mode, y, x, b);
    return y;
}

/* The same elements in other strides, as a bf16 tensor. */
static cudnnBackendDescriptor_t reshaped(struct build *g, const struct ah_cudnn_extent *extent,
                                         cudnnBackendDescriptor_t x)
{
    cudnnBackendDescriptor_t y = named(g, CUDNN_DATA_BFLOAT16, extent);
    ah__cudnn_reshape(g->graph, y, x);
    return y;
}

/* ---- shapes of a piece ------------------------------------------------------------------------------------------- */

/* [batch, heads, T, size] in tokens of `stride` elements, heads `head` elements apart. */
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

/* [batch, heads, rows, cols], dense. */
static struct ah_cudnn_extent dense(const struct build *g, int64_t rows, int64_t cols)
{
    int64_t heads = g->sdpa->heads;
    return (struct ah_cudnn_extent){{g->sdpa->batch, heads, rows, cols}, {heads * rows * cols, rows * cols, cols, 1}};
}

/* [batch, heads, T, 1] of the job's [B,heads,T]. */
static struct ah_cudnn_extent column_of(const struct build *g)
{
    struct ah_cudnn_extent e = dense(g, g->job->seq, 1);
    e.stride[0] = g->job->heads * g->job->seq;
    return e;
}

/* Row or column of each score. */
static cudnnBackendDescriptor_t indexed(struct build *g, const struct ah_cudnn_extent *extent,
                                        cudnnBackendDescriptor_t score, int64_t axis)
{
    struct ah_cudnn_pointwise index = {.mode = CUDNN_POINTWISE_GEN_INDEX, .type = CUDNN_DATA_FLOAT, .axis = axis};
    cudnnBackendDescriptor_t y = named(g, CUDNN_DATA_INT32, extent);
    ah__cudnn_pointwise(g->graph, index, y, score, NULL, NULL);
    return y;
}

/* score where a mode b, else `nothing`. */
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

/* score where the row is not before the column and, with a window, before column + window; else -inf. */
static cudnnBackendDescriptor_t masked(struct build *g, const struct ah_cudnn_extent *extent,
                                       cudnnBackendDescriptor_t score)
{
    cudnnBackendDescriptor_t row = indexed(g, extent, score, 2), column = indexed(g, extent, score, 3);
    cudnnBackendDescriptor_t nothing = number(g, ROLE_NOTHING);
    cudnnBackendDescriptor_t causal = chosen(g, extent, CUDNN_POINTWISE_CMP_GE, row, column, score, nothing);
    if (g->job->window >= g->job->seq)
        return causal;
    row = indexed(g, extent, causal, 2);
    column = indexed(g, extent, causal, 3);
    cudnnBackendDescriptor_t end = computed(g, CUDNN_POINTWISE_ADD, extent, column, number(g, ROLE_WINDOW));
    return chosen(g, extent, CUDNN_POINTWISE_CMP_GT, end, row, causal, nothing);
}

/* ---- the two graphs ---------------------------------------------------------------------------------------------- */

static void forward_build(struct build *g)
{
    const struct ah_cuda_attention *job = g->job;
    struct ah_cudnn_extent q = queries_of(g), y = results_of(g), v = keys_of(g), k = transposed(v), lse = column_of(g);
    struct ah_cudnn_extent square = dense(g, job->seq, job->seq), column = dense(g, job->seq, 1);
    cudnnBackendDescriptor_t product = named(g, CUDNN_DATA_FLOAT, &square), scale = number(g, ROLE_SCALE);
    ah__cudnn_matmul(g->graph, product, addressed(g, ROLE_Q, CUDNN_DATA_BFLOAT16, &q),
                     addressed(g, ROLE_K, CUDNN_DATA_BFLOAT16, &k));
    cudnnBackendDescriptor_t score = masked(g, &square, computed(g, CUDNN_POINTWISE_MUL, &square, product, scale));
    cudnnBackendDescriptor_t most = named(g, CUDNN_DATA_FLOAT, &column), sum = named(g, CUDNN_DATA_FLOAT, &column);
    ah__cudnn_reduce(g->graph, CUDNN_REDUCE_TENSOR_MAX, most, score);
    cudnnBackendDescriptor_t below = computed(g, CUDNN_POINTWISE_SUB, &square, score, most);
    cudnnBackendDescriptor_t power = computed(g, CUDNN_POINTWISE_EXP, &square, below, NULL);
    ah__cudnn_reduce(g->graph, CUDNN_REDUCE_TENSOR_ADD, sum, power);
    cudnnBackendDescriptor_t logarithm = computed(g, CUDNN_POINTWISE_LOG, &column, sum, NULL);
    compute(g, CUDNN_POINTWISE_ADD, addressed(g, ROLE_LSE, CUDNN_DATA_FLOAT, &lse), most, logarithm);
    cudnnBackendDescriptor_t prob = named(g, CUDNN_DATA_BFLOAT16, &square);
    compute(g, CUDNN_POINTWISE_DIV, prob, power, sum);
    ah__cudnn_matmul(g->graph, addressed(g, ROLE_Y, CUDNN_DATA_BFLOAT16, &y), prob,
                     addressed(g, ROLE_V, CUDNN_DATA_BFLOAT16, &v));
}

/* The gradient of keys or values: a product for every head of queries, summed over those that share them. */
static void shared_gradient(struct build *g, enum role role, cudnnBackendDescriptor_t left,
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

/* What the softmax's gradient subtracts. */
static cudnnBackendDescriptor_t dot_build(struct build *g, cudnnBackendDescriptor_t dy, const struct ah_cudnn_extent *y)
{
    const struct ah_cuda_attention *job = g->job;
    struct ah_cudnn_extent column = dense(g, job->seq, 1), all = column_of(g);
    struct ah_cudnn_extent each = dense(g, job->seq, job->head_size);
    cudnnBackendDescriptor_t saved = addressed(g, ROLE_Y, CUDNN_DATA_BFLOAT16, y);
    cudnnBackendDescriptor_t product = computed(g, CUDNN_POINTWISE_MUL, &each, dy, saved);
    cudnnBackendDescriptor_t sum = named(g, CUDNN_DATA_FLOAT, &column);
    cudnnBackendDescriptor_t dot = addressed(g, ROLE_DOT, CUDNN_DATA_FLOAT, &all);
    ah__cudnn_reduce(g->graph, CUDNN_REDUCE_TENSOR_ADD, sum, product);
    compute(g, CUDNN_POINTWISE_MUL, dot, sum, number(g, ROLE_ONE));
    return dot;
}

static void backward_build(struct build *g)
{
    const struct ah_cuda_attention *job = g->job;
    struct ah_cudnn_extent q = queries_of(g), y = results_of(g), k = keys_of(g), across = transposed(k);
    struct ah_cudnn_extent lse = column_of(g);
    struct ah_cudnn_extent square = dense(g, job->seq, job->seq), turned = transposed(square);
    cudnnBackendDescriptor_t dy = addressed(g, ROLE_DY, CUDNN_DATA_BFLOAT16, &y), dot = dot_build(g, dy, &y);
    cudnnBackendDescriptor_t query = addressed(g, ROLE_Q, CUDNN_DATA_BFLOAT16, &q);
    cudnnBackendDescriptor_t key = addressed(g, ROLE_K, CUDNN_DATA_BFLOAT16, &across);
    cudnnBackendDescriptor_t product = named(g, CUDNN_DATA_FLOAT, &square), scale = number(g, ROLE_SCALE);
    ah__cudnn_matmul(g->graph, product, query, key);
    cudnnBackendDescriptor_t score = computed(g, CUDNN_POINTWISE_MUL, &square, product, scale);
    score = computed(g, CUDNN_POINTWISE_SUB, &square, score, addressed(g, ROLE_LSE, CUDNN_DATA_FLOAT, &lse));
    cudnnBackendDescriptor_t prob = computed(g, CUDNN_POINTWISE_EXP, &square, masked(g, &square, score), NULL);
    shared_gradient(g, ROLE_DV, reshaped(g, &turned, prob), dy);
    cudnnBackendDescriptor_t dprob = named(g, CUDNN_DATA_FLOAT, &square);
    ah__cudnn_matmul(g->graph, dprob, dy, addressed(g, ROLE_V, CUDNN_DATA_BFLOAT16, &across));
    cudnnBackendDescriptor_t dscore = computed(g, CUDNN_POINTWISE_SUB, &square, dprob, dot);
    dscore = computed(g, CUDNN_POINTWISE_MUL, &square, dscore, prob);
    dscore = computed(g, CUDNN_POINTWISE_MUL, &square, dscore, scale);
    shared_gradient(g, ROLE_DK, reshaped(g, &turned, dscore), query);
    ah__cudnn_matmul(g->graph, addressed(g, ROLE_DQ, CUDNN_DATA_BFLOAT16, &q), dscore, reshaped(g, &k, key));
}

/* ---- pieces, plan ------------------------------------------------------------------------------------------------ */

static int64_t divisor_up_to(int64_t n, int64_t most)
{
    int64_t divisor = most < n ? most : n;
    while (divisor > 1 && n % divisor != 0)
        divisor--;
    return divisor > 1 ? divisor : 1;
}

/* Deterministic backward keeps the gradients of all scores, in bf16 and whole tiles, in the workspace: it grows with
 * the square of the sequence. So it is done in equal pieces, of whole sequences or of some heads of one, whose scores
 * stay below a limit as far as heads that share keys stay together. */
static void piece_choose(struct ah_cuda_sdpa *sdpa, const struct ah_cuda *cuda, const struct ah_cuda_attention *job,
                         bool backward)
{
    int64_t seq = (job->seq + SCORES_TILE - 1) / SCORES_TILE * SCORES_TILE;
    int64_t heads = cuda->scores_bytes / (2 * seq * seq); /* that a piece may have */
    sdpa->batch = job->batch;
    sdpa->heads = job->heads;
    if (!backward)
        return;
    sdpa->batch = divisor_up_to(job->batch, heads / job->heads);
    if (heads < job->heads)
        sdpa->heads = job->group * divisor_up_to(job->heads / job->group, heads / job->group);
}

static void sdpa_init(struct ah_cuda_sdpa *sdpa, struct ah_cuda *cuda, const struct ah_cuda_attention *job,
                      bool backward)
{
    int64_t dots = job->batch * job->heads * job->seq * (int64_t)sizeof(float);
    sdpa->graph.cuda = cuda;
    sdpa->scale = job->scale;
    sdpa->window = (float)job->window;
    sdpa->nothing = -INFINITY;
    sdpa->one = 1.0F;
    sdpa->dot_bytes = backward ? (dots + AH_CUDA_ALIGN - 1) / AH_CUDA_ALIGN * AH_CUDA_ALIGN : 0;
    piece_choose(sdpa, cuda, job, backward);
}

int ah__cuda_sdpa_new(struct ah_cuda_sdpa **out, struct ah_cuda *cuda, const struct ah_cuda_attention *job,
                      bool backward, char reason[AH_CUDA_SDPA_REASON])
{
    struct ah_cuda_sdpa *sdpa;
    *out = NULL;
    AH_TRY(ah__new(&sdpa, 1, sizeof *sdpa));
    struct build build = {.graph = &sdpa->graph, .sdpa = sdpa, .job = job};
    sdpa_init(sdpa, cuda, job, backward);
    (backward ? backward_build : forward_build)(&build);
    int status = ah__cudnn_plan(&sdpa->graph, (int64_t)(cuda->properties.totalGlobalMem / WORKSPACE_PART));
    snprintf(reason, AH_CUDA_SDPA_REASON, "%s", sdpa->graph.reason);
    if (sdpa->graph.plan)
        *out = sdpa;
    else
        ah__cuda_sdpa_free(sdpa);
    return status;
}

void ah__cuda_sdpa_free(struct ah_cuda_sdpa *sdpa)
{
    if (!sdpa)
        return;
    ah__cudnn_graph_fini(&sdpa->graph);
    ah__free(sdpa);
}

int64_t ah__cuda_sdpa_workspace(const struct ah_cuda_sdpa *sdpa)
{
    return sdpa->dot_bytes + sdpa->graph.plan_bytes;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* Where a piece begins. */
struct piece {
    int64_t sequence, head;
};

/* cuDNN wants every address without const; it writes to what the graph makes, and to nothing else. */
static void *moved(const void *address, int64_t bytes)
{
    return (void *)((uintptr_t)address + (uintptr_t)bytes);
}

static cudnnStatus_t pack_fill(const struct ah_cuda_sdpa *sdpa, const struct ah_cuda *cuda,
                               cudnnBackendDescriptor_t pack, void *const address[ROLE_COUNT], void *workspace)
{
    int64_t uid[ROLE_COUNT], count = 0;
    void *pointer[ROLE_COUNT];
    for (int i = 0; i < ROLE_COUNT; i++)
        if (sdpa->uid[i]) {
            uid[count] = sdpa->uid[i];
            pointer[count++] = address[i];
        }
    cudnnStatus_t status = cuda->library.cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                                                  CUDNN_TYPE_VOID_PTR, count, pointer);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cuda->library.cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
                                                        count, uid);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cuda->library.cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
                                                        &workspace);
    return status == CUDNN_STATUS_SUCCESS ? cuda->library.cudnnBackendFinalize(pack) : status;
}

/* The piece that begins with this sequence and this head of queries. */
static void addresses_of(void *address[ROLE_COUNT], struct ah_cuda_sdpa *sdpa, const struct ah_cuda_attention *job,
                         const struct piece *piece, char *workspace)
{
    const int64_t bytes = 2, size = job->head_size; /* of an element, of a head */
    int64_t token = piece->sequence * job->seq, shared = piece->head / job->group;
    int64_t query = (token * job->q_stride + piece->head * job->q_head) * bytes;
    int64_t key = (token * job->kv_stride + shared * job->kv_head) * bytes;
    int64_t out = (token * job->channels + piece->head * size) * bytes;
    int64_t row = (piece->sequence * job->heads + piece->head) * job->seq * (int64_t)sizeof(float);
    void *const made[ROLE_COUNT] = {
        [ROLE_Q] = moved(job->q, query),   [ROLE_K] = moved(job->k, key),
        [ROLE_V] = moved(job->v, key),     [ROLE_Y] = moved(job->y, out),
        [ROLE_LSE] = moved(job->lse, row), [ROLE_DY] = moved(job->dy, out),
        [ROLE_DQ] = moved(job->dq, query), [ROLE_DK] = moved(job->dk, key),
        [ROLE_DV] = moved(job->dv, key),   [ROLE_DOT] = moved(workspace, row),
        [ROLE_SCALE] = &sdpa->scale,       [ROLE_NOTHING] = &sdpa->nothing,
        [ROLE_ONE] = &sdpa->one,           [ROLE_WINDOW] = &sdpa->window,
    };
    memcpy(address, made, sizeof made);
}

static int piece_enqueue(struct ah_cuda_sdpa *sdpa, const struct ah_cuda_attention *job, const struct piece *piece,
                         char *workspace)
{
    const struct ah_cuda *cuda = sdpa->graph.cuda;
    void *address[ROLE_COUNT];
    cudnnBackendDescriptor_t pack;
    addresses_of(address, sdpa, job, piece, workspace);
    cudnnStatus_t status = cuda->library.cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (status != CUDNN_STATUS_SUCCESS)
        return ah__cudnn_failure(cuda, "cudnnBackendCreateDescriptor", status);
    status = pack_fill(sdpa, cuda, pack, address, workspace + sdpa->dot_bytes);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cuda->library.cudnnBackendExecute(cuda->dnn, sdpa->graph.plan, pack);
    cuda->library.cudnnBackendDestroyDescriptor(pack);
    return status == CUDNN_STATUS_SUCCESS ? AH_OK : ah__cudnn_failure(cuda, "cudnnBackendExecute", status);
}

int ah__cuda_sdpa_enqueue(struct ah_cuda_sdpa *sdpa, cudaStream_t stream, const struct ah_cuda_attention *job,
                          char *workspace)
{
    const struct ah_cuda *cuda = sdpa->graph.cuda;
    struct piece piece = {0};
    cudnnStatus_t status = cuda->library.cudnnSetStream(cuda->dnn, stream);
    if (status != CUDNN_STATUS_SUCCESS)
        return ah__cudnn_failure(cuda, "cudnnSetStream", status);
    for (piece.sequence = 0; piece.sequence < job->batch; piece.sequence += sdpa->batch)
        for (piece.head = 0; piece.head < job->heads; piece.head += sdpa->heads)
            AH_TRY(piece_enqueue(sdpa, job, &piece, workspace));
    return AH_OK;
}
