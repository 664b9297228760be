/* cuDNN's backend interface as far as the CUDA plugin uses it, in a library of its own (libcudnn.so.9): every attribute
 * has the type and count that NVIDIA documents, what refers to a descriptor wants it finalized, and what is finalized
 * takes no more attributes. Graphs are run operation by operation (cudnn_run.c).
 *
 * It says it is as old as nobody uses for attention, unless the environment variable AUTOHETE_EMULATION_CUDNN names a
 * version. Of the four engines that a graph has, the first is not deterministic, the second is not supported by the
 * time it is to be planned, the third wants a workspace beyond measure, and the last one does it. */
#include "dnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulation.h"

enum { MAGIC = 0x43554444, HANDLE = 0x48444C45, OLD_VERSION = 90000, ENGINES = 4 };
enum engine { NONDETERMINISTIC, UNSUPPORTED, LARGE, GOOD };
static const int64_t workspace_bytes[ENGINES] = {64, 64, (int64_t)1 << 40, 1000};

struct handle {
    int magic;
    cudaStream_t stream;
};

#define ENTER(function)                                                                                                \
    do {                                                                                                               \
        int error_ = emulation_enter(function);                                                                        \
        if (error_)                                                                                                    \
            return (cudnnStatus_t)error_;                                                                              \
    } while (0)
#define ENTER_RELEASE(function)                                                                                        \
    do {                                                                                                               \
        int error_ = emulation_enter_release(function);                                                                \
        if (error_)                                                                                                    \
            return (cudnnStatus_t)error_;                                                                              \
    } while (0)
#define REFUSE(status, ...) return (cudnnStatus_t)emulation_object(status, __VA_ARGS__)

/* ---- what attributes there are ----------------------------------------------------------------------------------- */

struct rule {
    cudnnBackendDescriptorType_t of;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t most; /* elements */
    bool optional;
};

#define RULE(of, name, type, most, optional)                                                                           \
    {                                                                                                                  \
        CUDNN_BACKEND_##of##_DESCRIPTOR, CUDNN_ATTR_##name, CUDNN_TYPE_##type, most, optional                          \
    }
static const struct rule rules[] = {
    RULE(TENSOR, TENSOR_DATA_TYPE, DATA_TYPE, 1, false),
    RULE(TENSOR, TENSOR_DIMENSIONS, INT64, 4, false),
    RULE(TENSOR, TENSOR_STRIDES, INT64, 4, false),
    RULE(TENSOR, TENSOR_UNIQUE_ID, INT64, 1, false),
    RULE(TENSOR, TENSOR_BYTE_ALIGNMENT, INT64, 1, false),
    RULE(TENSOR, TENSOR_IS_VIRTUAL, BOOLEAN, 1, true),
    RULE(TENSOR, TENSOR_IS_BY_VALUE, BOOLEAN, 1, true),
    RULE(MATMUL, MATMUL_COMP_TYPE, DATA_TYPE, 1, false),
    RULE(OPERATION_MATMUL, OPERATION_MATMUL_ADESC, BACKEND_DESCRIPTOR, 1, false),
    RULE(OPERATION_MATMUL, OPERATION_MATMUL_BDESC, BACKEND_DESCRIPTOR, 1, false),
    RULE(OPERATION_MATMUL, OPERATION_MATMUL_CDESC, BACKEND_DESCRIPTOR, 1, false),
    RULE(OPERATION_MATMUL, OPERATION_MATMUL_DESC, BACKEND_DESCRIPTOR, 1, false),
    RULE(POINTWISE, POINTWISE_MODE, POINTWISE_MODE, 1, false),
    RULE(POINTWISE, POINTWISE_MATH_PREC, DATA_TYPE, 1, false),
    RULE(POINTWISE, POINTWISE_AXIS, INT64, 1, true),
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR, 1, false),
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR, 1, false),
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_TDESC, BACKEND_DESCRIPTOR, 1, true),
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR, 1, false),
    RULE(REDUCTION, REDUCTION_OPERATOR, REDUCTION_OPERATOR_TYPE, 1, false),
    RULE(REDUCTION, REDUCTION_COMP_TYPE, DATA_TYPE, 1, false),
    RULE(OPERATION_REDUCTION, OPERATION_REDUCTION_XDESC, BACKEND_DESCRIPTOR, 1, false),
    RULE(OPERATION_REDUCTION, OPERATION_REDUCTION_YDESC, BACKEND_DESCRIPTOR, 1, false),
    RULE(OPERATION_REDUCTION, OPERATION_REDUCTION_DESC, BACKEND_DESCRIPTOR, 1, false),
    RULE(OPERATION_RESHAPE, OPERATION_RESHAPE_XDESC, BACKEND_DESCRIPTOR, 1, false),
    RULE(OPERATION_RESHAPE, OPERATION_RESHAPE_YDESC, BACKEND_DESCRIPTOR, 1, false),
    RULE(OPERATIONGRAPH, OPERATIONGRAPH_HANDLE, HANDLE, 1, false),
    RULE(OPERATIONGRAPH, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, CUDNN_OPERATIONS_MOST, false),
    RULE(ENGINEHEUR, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, false),
    RULE(ENGINEHEUR, ENGINEHEUR_MODE, HEUR_MODE, 1, false),
    RULE(EXECUTION_PLAN, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, false),
    RULE(VARIANT_PACK, VARIANT_PACK_UNIQUE_IDS, INT64, 16, false),
    RULE(VARIANT_PACK, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 16, false),
    RULE(VARIANT_PACK, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, false),
};
enum { RULES = sizeof rules / sizeof rules[0] };

static size_t element_bytes(cudnnBackendAttributeType_t type)
{
    switch ((int)type) {
    case CUDNN_TYPE_INT64:
        return sizeof(int64_t);
    case CUDNN_TYPE_BOOLEAN:
        return sizeof(bool);
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
        return sizeof(void *);
    default:
        return sizeof(int); /* the enumerations */
    }
}

static const struct rule *rule_find(cudnnBackendDescriptorType_t of, cudnnBackendAttributeName_t name)
{
    for (int i = 0; i < RULES; i++)
        if (rules[i].of == of && rules[i].name == name)
            return &rules[i];
    return NULL;
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

const void *cudnn_elements(const struct cudnn_descriptor *descriptor, cudnnBackendAttributeName_t name)
{
    for (int i = 0; i < descriptor->values; i++)
        if (descriptor->value[i].name == name)
            return descriptor->value[i].elements;
    return NULL;
}

int64_t cudnn_count(const struct cudnn_descriptor *descriptor, cudnnBackendAttributeName_t name)
{
    for (int i = 0; i < descriptor->values; i++)
        if (descriptor->value[i].name == name)
            return descriptor->value[i].count;
    return 0;
}

struct cudnn_descriptor *cudnn_link(const struct cudnn_descriptor *descriptor, cudnnBackendAttributeName_t name)
{
    struct cudnn_descriptor *const *elements = cudnn_elements(descriptor, name);
    return elements ? elements[0] : NULL;
}

int64_t cudnn_int(const struct cudnn_descriptor *descriptor, cudnnBackendAttributeName_t name)
{
    const int64_t *elements = cudnn_elements(descriptor, name);
    return elements ? elements[0] : 0;
}

int cudnn_enum(const struct cudnn_descriptor *descriptor, cudnnBackendAttributeName_t name)
{
    const int *elements = cudnn_elements(descriptor, name);
    return elements ? elements[0] : 0;
}

static bool is_descriptor(const struct cudnn_descriptor *descriptor)
{
    return descriptor && descriptor->magic == MAGIC;
}

static void *memory_new(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (!memory)
        abort();
    emulation_library_object(1);
    return memory;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)
{
    ENTER("cudnnBackendCreateDescriptor");
    struct cudnn_descriptor *made = memory_new(sizeof *made);
    made->magic = MAGIC;
    made->type = type;
    *out = made;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    struct cudnn_descriptor *d = descriptor;
    ENTER_RELEASE("cudnnBackendDestroyDescriptor");
    if (!is_descriptor(d))
        REFUSE(CUDNN_STATUS_BAD_PARAM, "cudnnBackendDestroyDescriptor: no descriptor");
    for (int i = 0; i < d->values; i++)
        free(d->value[i].elements);
    d->magic = 0;
    free(d);
    emulation_library_object(-1);
    return CUDNN_STATUS_SUCCESS;
}

/* Null, or what is wrong with them. */
static const char *links_wrong(const struct cudnn_descriptor *const *links, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (!is_descriptor(links[i]))
            return "is no descriptor";
        if (!links[i]->finalized)
            return "is not finalized";
    }
    return NULL;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *elements)
{
    struct cudnn_descriptor *d = descriptor;
    ENTER("cudnnBackendSetAttribute");
    if (!is_descriptor(d) || !elements)
        REFUSE(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "cudnnBackendSetAttribute: no descriptor or no elements");
    if (d->finalized)
        REFUSE(CUDNN_STATUS_NOT_INITIALIZED, "attribute %d is set when the descriptor is finalized", (int)name);
    const struct rule *rule = rule_find(d->type, name);
    if (!rule)
        REFUSE(CUDNN_STATUS_BAD_PARAM, "attribute %d of a descriptor of type %d", (int)name, (int)d->type);
    if (rule->type != type || count < 1 || count > rule->most)
        REFUSE(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
               "attribute %d: %lld elements of type %d, expected at most %lld of type %d", (int)name, (long long)count,
               (int)type, (long long)rule->most, (int)rule->type);
    if (cudnn_elements(d, name))
        REFUSE(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES, "attribute %d is set twice", (int)name);
    const char *wrong = type == CUDNN_TYPE_BACKEND_DESCRIPTOR ? links_wrong(elements, count) : NULL;
    if (wrong)
        REFUSE(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "attribute %d: what it refers to %s", (int)name, wrong);
    size_t bytes = element_bytes(type) * (size_t)count;
    struct cudnn_value value = {name, count, malloc(bytes)};
    if (!value.elements)
        abort();
    memcpy(value.elements, elements, bytes);
    d->value[d->values++] = value;
    return CUDNN_STATUS_SUCCESS;
}

/* A configuration that heuristics filled in. */
static const struct cudnn_descriptor *configuration_of(const struct cudnn_descriptor *plan)
{
    return cudnn_link(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    struct cudnn_descriptor *d = descriptor;
    ENTER("cudnnBackendFinalize");
    if (!is_descriptor(d) || d->finalized)
        REFUSE(CUDNN_STATUS_BAD_PARAM, "cudnnBackendFinalize: no descriptor, or finalized already");
    for (int i = 0; i < RULES; i++)
        if (rules[i].of == d->type && !rules[i].optional && !cudnn_elements(d, rules[i].name))
            REFUSE(CUDNN_STATUS_BAD_PARAM, "cudnnBackendFinalize: attribute %d is not set", (int)rules[i].name);
    if (!cudnn_operation_good(d))
        REFUSE(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "cudnnBackendFinalize: operands do not fit each other");
    if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && configuration_of(d)->engine == UNSUPPORTED)
        return CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN;
    d->finalized = true;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- what is read ------------------------------------------------------------------------------------------------ */

static cudnnStatus_t results_get(struct cudnn_descriptor *heuristics, int64_t room, int64_t *count, void *elements)
{
    struct cudnn_descriptor *const *into = elements;
    for (*count = 0; *count < ENGINES && *count < room; ++*count) {
        struct cudnn_descriptor *configuration = into[*count];
        if (!is_descriptor(configuration) || configuration->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
            REFUSE(CUDNN_STATUS_BAD_PARAM, "heuristics' results go into engine configurations");
        configuration->engine = (int)*count;
        configuration->from = cudnn_link(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        configuration->finalized = true;
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t engine_get(const struct cudnn_descriptor *configuration, int64_t *count, void *elements)
{
    struct cudnn_descriptor *engine = *(struct cudnn_descriptor **)elements;
    if (!is_descriptor(engine) || engine->type != CUDNN_BACKEND_ENGINE_DESCRIPTOR)
        REFUSE(CUDNN_STATUS_BAD_PARAM, "a configuration's engine goes into an engine");
    engine->engine = configuration->engine;
    engine->finalized = true;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t notes_get(const struct cudnn_descriptor *engine, int64_t room, int64_t *count, void *elements)
{
    cudnnBackendNumericalNote_t *notes = elements;
    const cudnnBackendNumericalNote_t all[] = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
    int64_t there = engine->engine == NONDETERMINISTIC ? 2 : 1;
    for (*count = 0; *count < there && *count < room; ++*count)
        notes[*count] = all[*count];
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room, int64_t *count, void *elements)
{
    struct cudnn_descriptor *d = descriptor;
    ENTER("cudnnBackendGetAttribute");
    if (!is_descriptor(d) || !d->finalized || !elements || !count || room < 1)
        REFUSE(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "attribute %d is asked of what is not finalized", (int)name);
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        return results_get(d, room, count, elements);
    if (name == CUDNN_ATTR_ENGINECFG_ENGINE && type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        return engine_get(d, count, elements);
    if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && type == CUDNN_TYPE_NUMERICAL_NOTE)
        return notes_get(d, room, count, elements);
    if (name != CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE || type != CUDNN_TYPE_INT64)
        REFUSE(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "attribute %d is asked for as type %d", (int)name, (int)type);
    *(int64_t *)elements = workspace_bytes[configuration_of(d)->engine];
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* The tensors of an operation that have an address must be in the pack, as aligned as they are said to be. */
static bool tensor_bound(const struct cudnn_run *run, const struct cudnn_descriptor *tensor)
{
    if (!tensor || cudnn_elements(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL))
        return true;
    int64_t align = cudnn_int(tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    bool by_value = cudnn_elements(tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE) != NULL;
    for (int i = 0; i < run->tensors; i++)
        if (run->tensor[i].uid == cudnn_int(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID))
            return by_value || (uintptr_t)run->tensor[i].at % (uintptr_t)align == 0;
    return false;
}

static bool all_bound(const struct cudnn_run *run)
{
    struct cudnn_descriptor *const *operations = cudnn_elements(run->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    for (int64_t i = 0; i < cudnn_count(run->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS); i++)
        for (int j = 0; j < RULES; j++) {
            const struct cudnn_descriptor *link =
                rules[j].of == operations[i]->type ? cudnn_link(operations[i], rules[j].name) : NULL;
            if (link && link->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR && !tensor_bound(run, link))
                return false;
        }
    return true;
}

/* Numbers are read now, as cuDNN does; all else is device memory. */
static bool pack_take(struct cudnn_run *run, const struct cudnn_descriptor *pack)
{
    const int64_t *uid = cudnn_elements(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    char *const *at = cudnn_elements(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    run->tensors = (int)cudnn_count(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    if (run->tensors != cudnn_count(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS))
        return false;
    for (int i = 0; i < run->tensors; i++) {
        run->tensor[i].uid = uid[i];
        run->tensor[i].at = at[i];
        if (!at[i] || (uintptr_t)at[i] % 4 != 0)
            return false;
        if (!emulation_is_device(at[i], 4))
            run->tensor[i].number = *(const float *)(const void *)at[i];
    }
    return run->workspace_bytes == 0 || emulation_is_device(run->workspace, (size_t)run->workspace_bytes);
}

static void run_and_free(void *argument)
{
    struct cudnn_run *run = *(struct cudnn_run **)argument;
    cudnn_run(run);
    free(run);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack)
{
    const struct handle *h = (const void *)handle;
    const struct cudnn_descriptor *p = plan, *v = pack;
    ENTER("cudnnBackendExecute");
    if (!h || h->magic != HANDLE || !is_descriptor(p) || !is_descriptor(v) || !p->finalized || !v->finalized ||
        p->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR || v->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
        REFUSE(CUDNN_STATUS_BAD_PARAM, "cudnnBackendExecute: no handle, plan or pack that is finalized");
    struct cudnn_run *run = calloc(1, sizeof *run);
    if (!run)
        abort();
    run->graph = configuration_of(p)->from;
    run->workspace = *(char *const *)cudnn_elements(v, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    run->workspace_bytes = workspace_bytes[configuration_of(p)->engine];
    if (!pack_take(run, v) || !all_bound(run)) {
        free(run);
        REFUSE(CUDNN_STATUS_BAD_PARAM, "cudnnBackendExecute: the pack does not fit the plan");
    }
    emulation_count_product();
    return emulation_enqueue(h->stream, "cudnnBackendExecute", run_and_free, &run, sizeof run)
               ? CUDNN_STATUS_EXECUTION_FAILED
               : CUDNN_STATUS_SUCCESS;
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

cudnnStatus_t cudnnCreate(cudnnHandle_t *out)
{
    ENTER("cudnnCreate");
    struct handle *made = memory_new(sizeof *made);
    made->magic = HANDLE;
    *out = (cudnnHandle_t)(void *)made;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    struct handle *h = (void *)handle;
    ENTER_RELEASE("cudnnDestroy");
    if (!h || h->magic != HANDLE)
        REFUSE(CUDNN_STATUS_BAD_PARAM, "cudnnDestroy: no handle");
    h->magic = 0;
    free(h);
    emulation_library_object(-1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    struct handle *h = (void *)handle;
    ENTER("cudnnSetStream");
    if (!h || h->magic != HANDLE)
        REFUSE(CUDNN_STATUS_BAD_PARAM, "cudnnSetStream: no handle");
    h->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

size_t cudnnGetVersion(void)
{
    const char *named = getenv("AUTOHETE_EMULATION_CUDNN");
    return named ? (size_t)atol(named) : OLD_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    static __thread char text[32];
    snprintf(text, sizeof text, "CUDNN_STATUS %d", (int)status);
    return text;
}

void cudnnGetLastErrorString(char *message, size_t size)
{
    snprintf(message, size, "%s", emulation_message());
}
