/* Graphs of operations for cuDNN's backend interface, descriptor by descriptor.
 *
 * Attributes that are set, with their types in cuDNN's reference of the graph library (all counts are 1 unless said
 * otherwise); names begin with CUDNN_ATTR_, types with CUDNN_TYPE_:
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
 *   EXECUTION_PLAN_ENGINE_CONFIG          BACKEND_DESCRIPTOR   engine configuration; the handle is its graph's: the
 *                                                              plan's own attribute for it is for plans read from JSON
 *   VARIANT_PACK_UNIQUE_IDS               INT64 x tensors
 *   VARIANT_PACK_DATA_POINTERS            VOID_PTR x tensors   device memory; of by-value tensors host memory
 *   VARIANT_PACK_WORKSPACE                VOID_PTR
 * Attributes that are read:
 *   ENGINEHEUR_RESULTS                    BACKEND_DESCRIPTOR x wanted  into engine configurations that exist
 *   ENGINECFG_ENGINE                      BACKEND_DESCRIPTOR   into an engine that exists
 *   ENGINE_NUMERICAL_NOTE                 NUMERICAL_NOTE x at most CUDNN_NUMERICAL_NOTE_TYPE_COUNT
 *   EXECUTION_PLAN_WORKSPACE_SIZE         INT64                bytes */
#include "dev/cuda/cudnn_graph.h"

#include <string.h>

#include "dev/cuda/state.h"

enum { ALIGN = 16, ALIGN_FLOAT = 4, MAX_CONFIGURATIONS = 8 };

static bool note(struct ah_cudnn_graph *g, const char *call, cudnnStatus_t status)
{
    if (g->status == CUDNN_STATUS_SUCCESS && status != CUDNN_STATUS_SUCCESS) {
        g->status = status;
        g->call = call;
    }
    return g->status == CUDNN_STATUS_SUCCESS;
}

/* Makes a descriptor; null after a failure. */
static cudnnBackendDescriptor_t make(struct ah_cudnn_graph *g, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t made = NULL;
    if (!note(g, "graph", g->made_count < AH_CUDNN_MADE ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR))
        return NULL;
    if (!note(g, "cudnnBackendCreateDescriptor", g->cuda->library.cudnnBackendCreateDescriptor(type, &made)))
        return NULL;
    return g->made[g->made_count++] = made;
}

static void set(struct ah_cudnn_graph *g, cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (g->status == CUDNN_STATUS_SUCCESS)
        note(g, "cudnnBackendSetAttribute",
             g->cuda->library.cudnnBackendSetAttribute(descriptor, name, type, count, values));
}

static void set_descriptor(struct ah_cudnn_graph *g, cudnnBackendDescriptor_t descriptor,
                           cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value)
{
    set(g, descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void set_type(struct ah_cudnn_graph *g, cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                     cudnnDataType_t value)
{
    set(g, descriptor, name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}

static void set_int(struct ah_cudnn_graph *g, cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                    int64_t value)
{
    set(g, descriptor, name, CUDNN_TYPE_INT64, 1, &value);
}

static cudnnBackendDescriptor_t finish(struct ah_cudnn_graph *g, cudnnBackendDescriptor_t descriptor)
{
    if (g->status == CUDNN_STATUS_SUCCESS)
        note(g, "cudnnBackendFinalize", g->cuda->library.cudnnBackendFinalize(descriptor));
    return descriptor;
}

cudnnBackendDescriptor_t ah__cudnn_tensor(struct ah_cudnn_graph *g, cudnnDataType_t type,
                                          const struct ah_cudnn_extent *extent, cudnnBackendAttributeName_t flag)
{
    cudnnBackendDescriptor_t t = make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    bool yes = true;
    set_type(g, t, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    set(g, t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, extent->size);
    set(g, t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, extent->stride);
    set_int(g, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, ++g->tensors);
    set_int(g, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, type == CUDNN_DATA_FLOAT ? ALIGN_FLOAT : ALIGN);
    if (flag != CUDNN_ATTR_TENSOR_UNIQUE_ID)
        set(g, t, flag, CUDNN_TYPE_BOOLEAN, 1, &yes);
    return finish(g, t);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static void operation_add(struct ah_cudnn_graph *g, cudnnBackendDescriptor_t operation)
{
    finish(g, operation);
    if (note(g, "graph", g->operations < AH_CUDNN_OPERATIONS ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR))
        g->operation[g->operations++] = operation;
}

void ah__cudnn_matmul(struct ah_cudnn_graph *g, cudnnBackendDescriptor_t c, cudnnBackendDescriptor_t a,
                      cudnnBackendDescriptor_t b)
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

void ah__cudnn_pointwise(struct ah_cudnn_graph *g, struct ah_cudnn_pointwise what, cudnnBackendDescriptor_t y,
                         cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t t)
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

void ah__cudnn_reduce(struct ah_cudnn_graph *g, cudnnReduceTensorOp_t operator, cudnnBackendDescriptor_t y,
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

void ah__cudnn_reshape(struct ah_cudnn_graph *g, cudnnBackendDescriptor_t y, cudnnBackendDescriptor_t x)
{
    cudnnBackendDescriptor_t operation = make(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    operation_add(g, operation);
}

/* ---- from graph to plan ------------------------------------------------------------------------------------------ */

static cudnnBackendDescriptor_t heuristics_ask(struct ah_cudnn_graph *g)
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

static int64_t get(struct ah_cudnn_graph *g, cudnnBackendDescriptor_t from, cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, int64_t room, void *values)
{
    int64_t count = 0;
    if (g->status == CUDNN_STATUS_SUCCESS)
        note(g, "cudnnBackendGetAttribute",
             g->cuda->library.cudnnBackendGetAttribute(from, name, type, room, &count, values));
    return g->status == CUDNN_STATUS_SUCCESS ? count : 0;
}

/* Returns true for statuses of missing memory; all others are cuDNN's answer to the request. */
static bool is_failure(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
           status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
}

/* Returns true if cuDNN has refused a request: stores its message as the reason and clears the status. */
static bool refused(struct ah_cudnn_graph *g)
{
    char message[sizeof g->reason] = "";
    if (g->status == CUDNN_STATUS_SUCCESS || is_failure(g->status))
        return false;
    g->cuda->library.cudnnGetLastErrorString(message, sizeof message);
    message[sizeof message - 1] = 0;
    message[strcspn(message, "\n")] = 0;
    snprintf(g->reason, sizeof g->reason, "%s", *message ? message : g->cuda->library.cudnnGetErrorString(g->status));
    g->status = CUDNN_STATUS_SUCCESS;
    return true;
}

/* Returns false if the engine says that its bits may differ from run to run. Backward is deterministic by its graph:
 * version 9.19 does not say it of the graph with atomics either. */
static bool is_deterministic(struct ah_cudnn_graph *g, cudnnBackendDescriptor_t configuration)
{
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    cudnnBackendDescriptor_t engine = make(g, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    get(g, configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
    int64_t count = get(g, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                        CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes);
    for (int64_t i = 0; i < count; i++)
        if (notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) {
            snprintf(g->reason, sizeof g->reason, "its engine is not deterministic");
            return false;
        }
    return true;
}

/* Makes the configuration the plan if it is fit. */
static void plan_try(struct ah_cudnn_graph *g, cudnnBackendDescriptor_t configuration, int64_t limit_bytes)
{
    int64_t bytes = 0;
    bool deterministic = is_deterministic(g, configuration);
    if (refused(g) || !deterministic)
        return;
    cudnnBackendDescriptor_t plan = make(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set_descriptor(g, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    finish(g, plan);
    get(g, plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
    if (refused(g) || g->status != CUDNN_STATUS_SUCCESS)
        return;
    if (bytes > limit_bytes) {
        snprintf(g->reason, sizeof g->reason, "its engine wants %lld MiB of workspace", (long long)(bytes >> 20));
        return;
    }
    g->plan = plan;
    g->plan_bytes = bytes;
}

int ah__cudnn_plan(struct ah_cudnn_graph *g, int64_t limit_bytes)
{
    cudnnBackendDescriptor_t configuration[MAX_CONFIGURATIONS];
    snprintf(g->reason, sizeof g->reason, "it has no engine for the graph");
    if (g->status != CUDNN_STATUS_SUCCESS)
        return ah__cudnn_failure(g->cuda, g->call, g->status);
    cudnnBackendDescriptor_t heuristics = heuristics_ask(g);
    for (int i = 0; i < MAX_CONFIGURATIONS; i++)
        configuration[i] = make(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    int64_t count = get(g, heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, MAX_CONFIGURATIONS,
                        configuration);
    if (refused(g))
        return AH_OK;
    for (int64_t i = 0; i < count && i < MAX_CONFIGURATIONS && !g->plan; i++)
        plan_try(g, configuration[i], limit_bytes);
    return g->status == CUDNN_STATUS_SUCCESS ? AH_OK : ah__cudnn_failure(g->cuda, g->call, g->status);
}

void ah__cudnn_graph_fini(struct ah_cudnn_graph *g)
{
    while (g->made_count > 0)
        g->cuda->library.cudnnBackendDestroyDescriptor(g->made[--g->made_count]);
}

int ah__cudnn_failure(const struct ah_cuda *cuda, const char *call, cudnnStatus_t status)
{
    return ah__fail(is_failure(status) ? AH_ENOMEM : AH_EDEVICE, "cuDNN: %s: %s", call,
                    cuda->library.cudnnGetErrorString(status));
}
