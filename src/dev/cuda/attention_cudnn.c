/* cuDNN has fused engines for attention written out as matrix products, pointwise operations and reductions over
 * tensors that mostly exist in name only ("virtual"). Its operation of one piece (CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR)
 * takes no causal mask before version 9.21, so the long form is used; it is the one NVIDIA's front end writes for these
 * versions, deterministic backward included: dq is then a product of its own instead of a sum by atomics.
 *
 *   forward   s = scale q k^T;  s = row >= column ? s : -inf;  m = max s;  e = exp(s - m);  z = sum e;
 *             lse = m + log z;  p = e / z;  y = p v
 *   backward  d = 1 sum(dy y);  p = exp(mask(scale q k^T - lse));  dv = p^T dy;
 *             ds = scale p (dy v^T - d);  dk = ds^T q;  dq = ds k;  dk, dv summed over the heads that share them
 *
 * Attributes that are set, with the types that cuDNN's reference of the graph library gives them (all counts are 1 but
 * where said); names begin with CUDNN_ATTR_, types with CUDNN_TYPE_:
 *
 *   TENSOR_DATA_TYPE                      DATA_TYPE            cudnnDataType_t
 *   TENSOR_DIMENSIONS, _STRIDES           INT64 x 4            elements; batch, head, row, column
 *   TENSOR_UNIQUE_ID, _BYTE_ALIGNMENT     INT64
 *   TENSOR_IS_VIRTUAL, _IS_BY_VALUE       BOOLEAN              bool; only where true, the default being false
 *   MATMUL_COMP_TYPE                      DATA_TYPE
 *   OPERATION_MATMUL_ADESC, BDESC, CDESC  BACKEND_DESCRIPTOR   tensors
 *   OPERATION_MATMUL_DESC                 BACKEND_DESCRIPTOR   matmul
 *   POINTWISE_MODE                        POINTWISE_MODE       cudnnPointwiseMode_t
 *   POINTWISE_MATH_PREC                   DATA_TYPE
 *   POINTWISE_AXIS                        INT64                for CUDNN_POINTWISE_GEN_INDEX
 *   OPERATION_POINTWISE_PW_DESCRIPTOR     BACKEND_DESCRIPTOR   pointwise
 *   OPERATION_POINTWISE_XDESC, BDESC, TDESC, YDESC  BACKEND_DESCRIPTOR  tensors; t chooses x where true, else b
 *   REDUCTION_OPERATOR                    REDUCTION_OPERATOR_TYPE  cudnnReduceTensorOp_t
 *   REDUCTION_COMP_TYPE                   DATA_TYPE
 *   OPERATION_REDUCTION_XDESC, YDESC      BACKEND_DESCRIPTOR   tensors
 *   OPERATION_REDUCTION_DESC              BACKEND_DESCRIPTOR   reduction
 *   OPERATION_RESHAPE_XDESC, YDESC        BACKEND_DESCRIPTOR   tensors
 *   OPERATIONGRAPH_HANDLE                 HANDLE               cudnnHandle_t
 *   OPERATIONGRAPH_OPS                    BACKEND_DESCRIPTOR x operations
 *   ENGINEHEUR_OPERATION_GRAPH            BACKEND_DESCRIPTOR   graph
 *   ENGINEHEUR_MODE                       HEUR_MODE            CUDNN_HEUR_MODE_A
 *   EXECUTION_PLAN_ENGINE_CONFIG          BACKEND_DESCRIPTOR   engine configuration
 *   VARIANT_PACK_UNIQUE_IDS               INT64 x tensors
 *   VARIANT_PACK_DATA_POINTERS            VOID_PTR x tensors   device memory; of by-value tensors host memory
 *   VARIANT_PACK_WORKSPACE                VOID_PTR
 * and read:
 *   ENGINEHEUR_RESULTS                    BACKEND_DESCRIPTOR x wanted  into engine configurations that exist
 *   ENGINECFG_ENGINE                      BACKEND_DESCRIPTOR   into an engine that exists
 *   ENGINE_NUMERICAL_NOTE                 NUMERICAL_NOTE x at most CUDNN_NUMERICAL_NOTE_TYPE_COUNT
 *   EXECUTION_PLAN_WORKSPACE_SIZE         INT64                bytes
 *
 * A finalized descriptor takes no more attributes (cudnnBackendSetAttribute() answers CUDNN_STATUS_NOT_INITIALIZED), so
 * a variant pack cannot get new addresses; and the same call runs at many. Each enqueue makes its own and destroys it
 * when cudnnBackendExecute() has launched, as NVIDIA's front end does: a few hundred bytes of cuDNN's on the host, none
 * on the device, and nothing waits. */
#include "dev/cuda/attention_cudnn.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

enum {
    MAX_MADE = 160,       /* descriptors of one graph, its configurations and plan */
    MAX_OPERATIONS = 32,
    MAX_CONFIGURATIONS = 8,
    MIN_VERSION = 91600,  /* before it, backward wants lengths that are multiples of 128 padded by hand */
    MAX_HEAD = 128,
    ALIGN = 16,           /* of every tensor: heads are multiples of 8 bf16 */
    WORKSPACE_LIMIT = 512 << 20 /* an engine that wants more is not taken */
};

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
    ROLE_COUNT
};

struct ah_cuda_sdpa {
    cudnnBackendDescriptor_t made[MAX_MADE]; /* all live as long as the plan */
    int made_count;
    cudnnBackendDescriptor_t plan; /* one of them */
    int64_t uid[ROLE_COUNT];       /* 0: no such tensor in this graph */
    int64_t dot_bytes, plan_bytes; /* of the workspace, in this order */
    float scale, nothing, one;     /* what by-value tensors point to */
};

bool ah__cuda_sdpa_wanted(const struct ah_cuda *cuda, const struct ah_cuda_attention *job, bool backward)
{
    int architecture = cuda->properties.major;
    if (!cuda->dnn || job->dtype != AH_BF16 || cuda->library.cudnnGetVersion() < MIN_VERSION)
        return false;
    if (job->head_size % 8 != 0 || job->head_size > MAX_HEAD || job->seq < 2 || architecture < 8)
        return false;
    /* Later GPUs than Hopper are deterministic in backward only by engines and knobs picked by hand; and cuDNN cannot
     * add to what is there. */
    return !backward || (architecture <= 9 && !job->add_q && !job->add_k && !job->add_v);
}

/* ---- building a graph -------------------------------------------------------------------------------------------- */

/* A graph while it is built. After a failure nothing more is done. */
struct graph {
    struct ah_cuda *cuda;
    struct ah_cuda_sdpa *sdpa;
    const struct ah_cuda_attention *job;
    cudnnBackendDescriptor_t operation[MAX_OPERATIONS];
    int operations;
    int64_t tensors;
    cudnnStatus_t status;
    const char *call; /* that failed */
};

/* Dimensions and strides of a tensor. */
struct extent4 {
    int64_t size[4], stride[4];
};

static bool note(struct graph *g, const char *call, cudnnStatus_t status)
{
    if (g->status == CUDNN_STATUS_SUCCESS && status != CUDNN_STATUS_SUCCESS) {
        g->status = status;
        g->call = call;
    }
    return g->status == CUDNN_STATUS_SUCCESS;
}

/* Null after a failure. */
static cudnnBackendDescriptor_t make(struct graph *g, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t made = NULL;
    if (!note(g, "graph", g->sdpa->made_count < MAX_MADE ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR))
        return NULL;
    if (!note(g, "cudnnBackendCreateDescriptor", g->cuda->library.cudnnBackendCreateDescriptor(type, &made)))
        return NULL;
    return g->sdpa->made[g->sdpa->made_count++] = made;
}

static void set(struct graph *g, cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (g->status == CUDNN_STATUS_SUCCESS)
        note(g, "cudnnBackendSetAttribute",
             g->cuda->library.cudnnBackendSetAttribute(descriptor, name, type, count, values));
}

static void set_descriptor(struct graph *g, cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                           cudnnBackendDescriptor_t value)
{
    set(g, descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void set_type(struct graph *g, cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                     cudnnDataType_t value)
{
    set(g, descriptor, name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}

static void set_int(struct graph *g, cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                    int64_t value)
{
    set(g, descriptor, name, CUDNN_TYPE_INT64, 1, &value);
}

static cudnnBackendDescriptor_t finish(struct graph *g, cudnnBackendDescriptor_t descriptor)
{
    if (g->status == CUDNN_STATUS_SUCCESS)
        note(g, "cudnnBackendFinalize", g->cuda->library.cudnnBackendFinalize(descriptor));
    return descriptor;
}

/* `flag`: the attribute that is true of it, or TENSOR_UNIQUE_ID for a plain tensor. */
static cudnnBackendDescriptor_t tensor(struct graph *g, cudnnDataType_t type, const struct extent4 *extent,
                                       cudnnBackendAttributeName_t flag)
{
    cudnnBackendDescriptor_t t = make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    bool yes = true;
    set_type(g, t, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    set(g, t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, extent->size);
    set(g, t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, extent->stride);
    set_int(g, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, ++g->tensors);
    set_int(g, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, ALIGN);
    if (flag != CUDNN_ATTR_TENSOR_UNIQUE_ID)
        set(g, t, flag, CUDNN_TYPE_BOOLEAN, 1, &yes);
    return finish(g, t);
}

static cudnnBackendDescriptor_t named(struct graph *g, cudnnDataType_t type, const struct extent4 *extent)
{
    return tensor(g, type, extent, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
}

static cudnnBackendDescriptor_t addressed(struct graph *g, enum role role, cudnnDataType_t type,
                                          const struct extent4 *extent)
{
    cudnnBackendDescriptor_t t = tensor(g, type, extent, CUDNN_ATTR_TENSOR_UNIQUE_ID);
    g->sdpa->uid[role] = g->tensors;
    return t;
}

static cudnnBackendDescriptor_t number(struct graph *g, enum role role)
{
    const struct extent4 one = {{1, 1, 1, 1}, {1, 1, 1, 1}};
    cudnnBackendDescriptor_t t = tensor(g, CUDNN_DATA_FLOAT, &one, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
    g->sdpa->uid[role] = g->tensors;
    return t;
}

static void operation_add(struct graph *g, cudnnBackendDescriptor_t operation)
{
    finish(g, operation);
    if (note(g, "graph", g->operations < MAX_OPERATIONS ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR))
        g->operation[g->operations++] = operation;
}

/* c = a b, over the last two dimensions. */
static void matmul(struct graph *g, cudnnBackendDescriptor_t c, cudnnBackendDescriptor_t a, cudnnBackendDescriptor_t b)
{
    cudnnBackendDescriptor_t how = make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set_type(g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    finish(g, how);
    cudnnBackendDescriptor_t operation = make(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    operation_add(g, operation);
}

/* What a pointwise operation does. */
struct pointwise {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t type; /* it computes in */
    int64_t axis;         /* of CUDNN_POINTWISE_GEN_INDEX */
};

/* y = x, y = x mode b, or y = t ? x : b; b and t may be null. */
static void pointwise(struct graph *g, struct pointwise what, cudnnBackendDescriptor_t y, cudnnBackendDescriptor_t x,
                      cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t t)
{
    cudnnBackendDescriptor_t how = make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &what.mode);
    set_type(g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, what.type);
    if (what.mode == CUDNN_POINTWISE_GEN_INDEX)
        set_int(g, how, CUDNN_ATTR_POINTWISE_AXIS, what.axis);
    finish(g, how);
    cudnnBackendDescriptor_t operation = make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b)
        set_descriptor(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    if (t)
        set_descriptor(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    operation_add(g, operation);
}

/* The result of a pointwise operation in fp32 as a named tensor. */
static cudnnBackendDescriptor_t computed(struct graph *g, cudnnPointwiseMode_t mode, const struct extent4 *extent,
                                         cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b)
{
    cudnnBackendDescriptor_t y = named(g, CUDNN_DATA_FLOAT, extent);
    pointwise(g, (struct pointwise){.mode = mode, .type = CUDNN_DATA_FLOAT}, y, x, b, NULL);
    return y;
}

/* y is smaller than x in the dimensions that are reduced. */
static void reduce(struct graph *g, cudnnReduceTensorOp_t operator, cudnnBackendDescriptor_t y,
                   cudnnBackendDescriptor_t x)
{
    cudnnBackendDescriptor_t how = make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    set(g, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &operator);
    set_type(g, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    finish(g, how);
    cudnnBackendDescriptor_t operation = make(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    operation_add(g, operation);
}

/* The same elements in other strides, as a bf16 tensor. */
static cudnnBackendDescriptor_t reshaped(struct graph *g, const struct extent4 *extent, cudnnBackendDescriptor_t x)
{
    cudnnBackendDescriptor_t y = named(g, CUDNN_DATA_BFLOAT16, extent);
    cudnnBackendDescriptor_t operation = make(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    operation_add(g, operation);
    return y;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* [B, heads, T, size] in tokens of `stride` elements. */
static struct extent4 rows_of(const struct ah_cuda_attention *job, int64_t heads, int64_t stride)
{
    return (struct extent4){{job->batch, heads, job->seq, job->head_size},
                            {job->seq * stride, job->head_size, stride, 1}};
}

static struct extent4 transposed(struct extent4 e)
{
    return (struct extent4){{e.size[0], e.size[1], e.size[3], e.size[2]},
                            {e.stride[0], e.stride[1], e.stride[3], e.stride[2]}};
}

/* [B, heads, rows, cols], dense. */
static struct extent4 dense(const struct ah_cuda_attention *job, int64_t rows, int64_t cols)
{
    return (struct extent4){{job->batch, job->heads, rows, cols}, {job->heads * rows * cols, rows * cols, cols, 1}};
}

/* score where the row is not before the column, else -inf. */
static cudnnBackendDescriptor_t masked(struct graph *g, const struct extent4 *extent, cudnnBackendDescriptor_t score)
{
    struct pointwise index = {.mode = CUDNN_POINTWISE_GEN_INDEX, .type = CUDNN_DATA_FLOAT, .axis = 2};
    struct pointwise compare = {.mode = CUDNN_POINTWISE_CMP_GE, .type = CUDNN_DATA_BOOLEAN};
    struct pointwise choose = {.mode = CUDNN_POINTWISE_BINARY_SELECT, .type = CUDNN_DATA_FLOAT};
    cudnnBackendDescriptor_t row = named(g, CUDNN_DATA_INT32, extent), column = named(g, CUDNN_DATA_INT32, extent);
    cudnnBackendDescriptor_t seen = named(g, CUDNN_DATA_BOOLEAN, extent), y = named(g, CUDNN_DATA_FLOAT, extent);
    pointwise(g, index, row, score, NULL, NULL);
    index.axis = 3;
    pointwise(g, index, column, score, NULL, NULL);
    pointwise(g, compare, seen, row, column, NULL);
    pointwise(g, choose, y, score, number(g, ROLE_NOTHING), seen);
    return y;
}

/* ---- the two graphs ---------------------------------------------------------------------------------------------- */

static void forward_build(struct graph *g)
{
    const struct ah_cuda_attention *job = g->job;
    struct extent4 q = rows_of(job, job->heads, job->q_stride), y = rows_of(job, job->heads, job->channels);
    struct extent4 v = rows_of(job, job->heads / job->group, job->kv_stride), k = transposed(v);
    struct extent4 square = dense(job, job->seq, job->seq), column = dense(job, job->seq, 1);
    cudnnBackendDescriptor_t product = named(g, CUDNN_DATA_FLOAT, &square), scale = number(g, ROLE_SCALE);
    matmul(g, product, addressed(g, ROLE_Q, CUDNN_DATA_BFLOAT16, &q), addressed(g, ROLE_K, CUDNN_DATA_BFLOAT16, &k));
    cudnnBackendDescriptor_t score = masked(g, &square, computed(g, CUDNN_POINTWISE_MUL, &square, product, scale));
    cudnnBackendDescriptor_t most = named(g, CUDNN_DATA_FLOAT, &column), sum = named(g, CUDNN_DATA_FLOAT, &column);
    reduce(g, CUDNN_REDUCE_TENSOR_MAX, most, score);
    cudnnBackendDescriptor_t below = computed(g, CUDNN_POINTWISE_SUB, &square, score, most);
    cudnnBackendDescriptor_t power = computed(g, CUDNN_POINTWISE_EXP, &square, below, NULL);
    reduce(g, CUDNN_REDUCE_TENSOR_ADD, sum, power);
    cudnnBackendDescriptor_t logarithm = computed(g, CUDNN_POINTWISE_LOG, &column, sum, NULL);
    pointwise(g, (struct pointwise){.mode = CUDNN_POINTWISE_ADD, .type = CUDNN_DATA_FLOAT},
              addressed(g, ROLE_LSE, CUDNN_DATA_FLOAT, &column), most, logarithm, NULL);
    cudnnBackendDescriptor_t prob = named(g, CUDNN_DATA_BFLOAT16, &square);
    pointwise(g, (struct pointwise){.mode = CUDNN_POINTWISE_DIV, .type = CUDNN_DATA_FLOAT}, prob, power, sum, NULL);
    matmul(g, addressed(g, ROLE_Y, CUDNN_DATA_BFLOAT16, &y), prob, addressed(g, ROLE_V, CUDNN_DATA_BFLOAT16, &v));
}

/* The gradient of keys or values: a product for every head of queries, summed over those that share them. */
static void shared_gradient(struct graph *g, enum role role, cudnnBackendDescriptor_t left,
                            cudnnBackendDescriptor_t right)
{
    const struct ah_cuda_attention *job = g->job;
    struct extent4 shared = rows_of(job, job->heads / job->group, job->kv_stride);
    struct extent4 each = dense(job, job->seq, job->head_size);
    cudnnBackendDescriptor_t gradient = addressed(g, role, CUDNN_DATA_BFLOAT16, &shared);
    if (job->group == 1) {
        matmul(g, gradient, left, right);
        return;
    }
    cudnnBackendDescriptor_t all = named(g, CUDNN_DATA_BFLOAT16, &each);
    matmul(g, all, left, right);
    reduce(g, CUDNN_REDUCE_TENSOR_ADD, gradient, all);
}

/* What the softmax's gradient subtracts. */
static cudnnBackendDescriptor_t dot_build(struct graph *g, cudnnBackendDescriptor_t dy, const struct extent4 *y)
{
    const struct ah_cuda_attention *job = g->job;
    struct extent4 column = dense(job, job->seq, 1), each = dense(job, job->seq, job->head_size);
    cudnnBackendDescriptor_t saved = addressed(g, ROLE_Y, CUDNN_DATA_BFLOAT16, y);
    cudnnBackendDescriptor_t product = computed(g, CUDNN_POINTWISE_MUL, &each, dy, saved);
    cudnnBackendDescriptor_t sum = named(g, CUDNN_DATA_FLOAT, &column);
    cudnnBackendDescriptor_t dot = addressed(g, ROLE_DOT, CUDNN_DATA_FLOAT, &column);
    reduce(g, CUDNN_REDUCE_TENSOR_ADD, sum, product);
    pointwise(g, (struct pointwise){.mode = CUDNN_POINTWISE_MUL, .type = CUDNN_DATA_FLOAT}, dot, sum,
              number(g, ROLE_ONE), NULL);
    return dot;
}

static void backward_build(struct graph *g)
{
    const struct ah_cuda_attention *job = g->job;
    struct extent4 q = rows_of(job, job->heads, job->q_stride), y = rows_of(job, job->heads, job->channels);
    struct extent4 k = rows_of(job, job->heads / job->group, job->kv_stride), across = transposed(k);
    struct extent4 square = dense(job, job->seq, job->seq), turned = transposed(square);
    struct extent4 column = dense(job, job->seq, 1);
    cudnnBackendDescriptor_t dy = addressed(g, ROLE_DY, CUDNN_DATA_BFLOAT16, &y), dot = dot_build(g, dy, &y);
    cudnnBackendDescriptor_t query = addressed(g, ROLE_Q, CUDNN_DATA_BFLOAT16, &q);
    cudnnBackendDescriptor_t key = addressed(g, ROLE_K, CUDNN_DATA_BFLOAT16, &across);
    cudnnBackendDescriptor_t product = named(g, CUDNN_DATA_FLOAT, &square), scale = number(g, ROLE_SCALE);
    matmul(g, product, query, key);
    cudnnBackendDescriptor_t score = computed(g, CUDNN_POINTWISE_MUL, &square, product, scale);
    score = computed(g, CUDNN_POINTWISE_SUB, &square, score, addressed(g, ROLE_LSE, CUDNN_DATA_FLOAT, &column));
    cudnnBackendDescriptor_t prob = computed(g, CUDNN_POINTWISE_EXP, &square, masked(g, &square, score), NULL);
    shared_gradient(g, ROLE_DV, reshaped(g, &turned, prob), dy);
    cudnnBackendDescriptor_t dprob = named(g, CUDNN_DATA_FLOAT, &square);
    matmul(g, dprob, dy, addressed(g, ROLE_V, CUDNN_DATA_BFLOAT16, &across));
    cudnnBackendDescriptor_t dscore = computed(g, CUDNN_POINTWISE_SUB, &square, dprob, dot);
    dscore = computed(g, CUDNN_POINTWISE_MUL, &square, dscore, prob);
    dscore = computed(g, CUDNN_POINTWISE_MUL, &square, dscore, scale);
    shared_gradient(g, ROLE_DK, reshaped(g, &turned, dscore), query);
    matmul(g, addressed(g, ROLE_DQ, CUDNN_DATA_BFLOAT16, &q), dscore, reshaped(g, &k, key));
}

/* ---- from graph to plan ------------------------------------------------------------------------------------------ */

static cudnnBackendDescriptor_t heuristics_ask(struct graph *g)
{
    cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    cudnnBackendDescriptor_t graph = make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->cuda->dnn);
    set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->operations, g->operation);
    finish(g, graph);
    cudnnBackendDescriptor_t heuristics = make(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_descriptor(g, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    set(g, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    return finish(g, heuristics);
}

static int64_t get(struct graph *g, cudnnBackendDescriptor_t from, cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, int64_t room, void *values)
{
    int64_t count = 0;
    if (g->status == CUDNN_STATUS_SUCCESS)
        note(g, "cudnnBackendGetAttribute",
             g->cuda->library.cudnnBackendGetAttribute(from, name, type, room, &count, values));
    return g->status == CUDNN_STATUS_SUCCESS ? count : 0;
}

/* Whether the engine gives the same bits every time. */
static bool is_deterministic(struct graph *g, cudnnBackendDescriptor_t configuration)
{
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    cudnnBackendDescriptor_t engine = make(g, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    get(g, configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
    int64_t count = get(g, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                        CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes);
    for (int64_t i = 0; i < count; i++)
        if (notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)
            return false;
    return g->status == CUDNN_STATUS_SUCCESS;
}

/* All that cuDNN says when it has no engine for what it was asked. */
static bool is_unsupported(cudnnStatus_t status)
{
    return status >= CUDNN_STATUS_NOT_SUPPORTED && status < CUDNN_STATUS_NOT_SUPPORTED + 1000;
}

/* The configuration becomes the plan, when it is fit. A refusal is not remembered as a failure. */
static void plan_try(struct graph *g, cudnnBackendDescriptor_t configuration)
{
    int64_t bytes = 0;
    if (!is_deterministic(g, configuration))
        return;
    cudnnBackendDescriptor_t plan = make(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set_descriptor(g, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    finish(g, plan);
    get(g, plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
    if (is_unsupported(g->status)) {
        g->status = CUDNN_STATUS_SUCCESS;
        return;
    }
    if (g->status == CUDNN_STATUS_SUCCESS && bytes <= WORKSPACE_LIMIT) {
        g->sdpa->plan = plan;
        g->sdpa->plan_bytes = bytes;
    }
}

/* The first of the heuristic's choices that is fit. */
static void plan_choose(struct graph *g)
{
    cudnnBackendDescriptor_t heuristics = heuristics_ask(g), configuration[MAX_CONFIGURATIONS];
    for (int i = 0; i < MAX_CONFIGURATIONS; i++)
        configuration[i] = make(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    int64_t count = get(g, heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                        MAX_CONFIGURATIONS, configuration);
    for (int64_t i = 0; i < count && i < MAX_CONFIGURATIONS && !g->sdpa->plan; i++)
        plan_try(g, configuration[i]);
}

static void sdpa_init(struct ah_cuda_sdpa *sdpa, const struct ah_cuda_attention *job, bool backward)
{
    int64_t dots = job->batch * job->heads * job->seq * (int64_t)sizeof(float);
    sdpa->scale = job->scale;
    sdpa->nothing = -INFINITY;
    sdpa->one = 1.0F;
    sdpa->dot_bytes = backward ? (dots + AH_CUDA_ALIGN - 1) / AH_CUDA_ALIGN * AH_CUDA_ALIGN : 0;
}

static int failure(const struct ah_cuda *cuda, const char *call, cudnnStatus_t status)
{
    return ah__fail(AH_EDEVICE, "cuDNN: %s: %s", call, cuda->library.cudnnGetErrorString(status));
}

int ah__cuda_sdpa_new(struct ah_cuda_sdpa **out, struct ah_cuda *cuda, const struct ah_cuda_attention *job,
                      bool backward)
{
    struct ah_cuda_sdpa *sdpa;
    *out = NULL;
    AH_TRY(ah__new(&sdpa, 1, sizeof *sdpa));
    struct graph graph = {.cuda = cuda, .sdpa = sdpa, .job = job, .status = CUDNN_STATUS_SUCCESS};
    sdpa_init(sdpa, job, backward);
    (backward ? backward_build : forward_build)(&graph);
    plan_choose(&graph);
    if (sdpa->plan) {
        *out = sdpa;
        return AH_OK;
    }
    ah__cuda_sdpa_free(sdpa, cuda);
    if (graph.status == CUDNN_STATUS_SUCCESS || is_unsupported(graph.status))
        return AH_OK;
    return failure(cuda, graph.call, graph.status);
}

void ah__cuda_sdpa_free(struct ah_cuda_sdpa *sdpa, struct ah_cuda *cuda)
{
    if (!sdpa)
        return;
    while (sdpa->made_count > 0)
        cuda->library.cudnnBackendDestroyDescriptor(sdpa->made[--sdpa->made_count]);
    ah__free(sdpa);
}

int64_t ah__cuda_sdpa_workspace(const struct ah_cuda_sdpa *sdpa)
{
    return sdpa->dot_bytes + sdpa->plan_bytes;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* cuDNN wants every address without const; it writes to what the graph makes, and to nothing else. */
static void *writable(const void *address)
{
    return (void *)(uintptr_t)address;
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
        status = cuda->library.cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
                                                        1, &workspace);
    return status == CUDNN_STATUS_SUCCESS ? cuda->library.cudnnBackendFinalize(pack) : status;
}

int ah__cuda_sdpa_enqueue(struct ah_cuda_sdpa *sdpa, struct ah_cuda *cuda, cudaStream_t stream,
                          const struct ah_cuda_attention *job, char *workspace)
{
    void *const address[ROLE_COUNT] = {
        [ROLE_Q] = writable(job->q), [ROLE_K] = writable(job->k), [ROLE_V] = writable(job->v), [ROLE_Y] = job->y,
        [ROLE_LSE] = job->lse, [ROLE_DY] = writable(job->dy), [ROLE_DQ] = job->dq, [ROLE_DK] = job->dk,
        [ROLE_DV] = job->dv, [ROLE_DOT] = workspace, [ROLE_SCALE] = &sdpa->scale, [ROLE_NOTHING] = &sdpa->nothing,
        [ROLE_ONE] = &sdpa->one,
    };
    cudnnBackendDescriptor_t pack;
    cudnnStatus_t status = cuda->library.cudnnSetStream(cuda->dnn, stream);
    if (status != CUDNN_STATUS_SUCCESS)
        return failure(cuda, "cudnnSetStream", status);
    status = cuda->library.cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (status != CUDNN_STATUS_SUCCESS)
        return failure(cuda, "cudnnBackendCreateDescriptor", status);
    status = pack_fill(sdpa, cuda, pack, address, workspace + sdpa->dot_bytes);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cuda->library.cudnnBackendExecute(cuda->dnn, sdpa->plan, pack);
    cuda->library.cudnnBackendDestroyDescriptor(pack);
    return status == CUDNN_STATUS_SUCCESS ? AH_OK : failure(cuda, "cudnnBackendExecute", status);
}
