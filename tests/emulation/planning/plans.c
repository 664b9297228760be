/* plans CUDNN FOLDER DESCRIPTION...: the real cuDNN plans attention for every model of a folder of configurations, in
 * both directions, for GPUs that are only described; and shapes beside them that change what is asked for. Each is to
 * have a plan, a deterministic one, within its workspace; or to be one that cuDNN is not for by the plugin's own rule,
 * which says why. Prints one line for each; exit status 1 when one is not as expected. Executes nothing.
 *
 * The plugin's own sources do it all. Between them and cuDNN is what a machine without a GPU needs: the graph has no
 * handle, and the heuristics are told of the GPU. */
#include "dev/cuda/attention_cudnn.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "dev/cuda/cudnn_graph.h"
#include "partition/partition.h"

/* One attention of one step. */
struct shape {
    char name[48];
    struct ah_cuda_attention job;
};

enum { SHAPES_MOST = 96 };
struct shapes {
    struct shape shape[SHAPES_MOST];
    int count;
};

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static bool same(const struct ah_cuda_attention *a, const struct ah_cuda_attention *b)
{
    return a->batch == b->batch && a->seq == b->seq && a->heads == b->heads && a->head_size == b->head_size &&
           a->group == b->group && a->q_stride == b->q_stride && a->kv_stride == b->kv_stride &&
           a->q_head == b->q_head && a->window == b->window && a->documents == b->documents;
}

static void shape_add(struct shapes *out, const char *name, const struct ah_cuda_attention *job)
{
    for (int i = 0; i < out->count; i++)
        if (same(&out->shape[i].job, job))
            return;
    if (out->count == SHAPES_MOST)
        abort();
    struct shape *shape = &out->shape[out->count++];
    snprintf(shape->name, sizeof shape->name, "%s", name);
    shape->job = *job;
}

/* As the operator makes it of a call (op_attention.c). */
static struct ah_cuda_attention job_of(int64_t batch, int64_t seq, int heads, int kv_heads, int64_t size, bool packed,
                                       bool by_head, int64_t window)
{
    int64_t channels = heads * size;
    struct ah_cuda_attention job = {.dtype = AH_BF16,
                                    .batch = batch,
                                    .seq = seq,
                                    .heads = heads,
                                    .head_size = (int)size,
                                    .group = heads / kv_heads,
                                    .channels = channels,
                                    .scale = 0.125F};
    job.q_stride = packed ? 3 * channels : channels;
    job.kv_stride = packed ? 3 * channels : kv_heads * size;
    job.q_head = job.kv_head = size * (by_head ? 3 : 1);
    job.window = window > 0 ? window : seq;
    return job;
}

/* The forward attention of a block's program. */
static void block_add(struct shapes *out, const char *name, const struct ah_partition *partition)
{
    const struct ah_program *program = &partition->code[AH_CLASS_BLOCK].program[AH_PROGRAM_FORWARD];
    for (int i = 0; i < program->count; i++) {
        const struct ah_call *call = &program->calls[i];
        bool packed = call->op == AH_OP_ATTENTION;
        if (!packed && call->op != AH_OP_ATTENTION_QKV)
            continue;
        const struct ah_shape *y = &call->out[0].meta.shape;
        int heads = call->attr.heads, kv_heads = packed ? heads : call->attr.kv_heads;
        struct ah_cuda_attention job = job_of(y->dim[0], y->dim[1], heads, kv_heads, y->dim[2] / heads, packed,
                                              call->attr.by_head, call->attr.window);
        shape_add(out, name, &job);
    }
}

/* The longest step of a model up to 8192 tokens, and one of 1024 that begins at no multiple of a tile. */
static int model_add(struct shapes *out, const char *path, const char *name)
{
    enum { LONGEST = 8192, SHORT = 1000 };
    struct ah_model *model;
    AH_TRY(ah_model_load(&model, path));
    int64_t longest = ah_model_get(model)->max_seq;
    const int64_t seqs[] = {longest < LONGEST ? longest : LONGEST, longest < SHORT ? longest : SHORT};
    int status = AH_OK;
    for (int i = 0; i < 2 && status == AH_OK; i++) {
        struct ah_graph *graph = NULL;
        struct ah_partition *partition = NULL;
        status = ah_model_record(&graph, model,
                                 &(struct ah_record_options){.batch = i ? 8 : 1, .seq = seqs[i], .compute = AH_BF16});
        if (status == AH_OK)
            status = ah_partition_new(&partition, graph, NULL);
        if (status == AH_OK)
            block_add(out, name, partition);
        ah_partition_free(partition);
        ah_graph_free(graph);
    }
    ah_model_free(model);
    return status;
}

static struct ah_cuda_attention with_documents(struct ah_cuda_attention job)
{
    job.documents = true;
    return job;
}

/* What no model has: heads of 160 to 256 channels, more scores than a piece has, a window beside shared heads; and
 * several documents in a sequence, of lengths that are no multiples of anything. */
static void others_add(struct shapes *out)
{
    const struct {
        const char *name;
        struct ah_cuda_attention job;
    } others[] = {
        {"heads of 256", job_of(1, 2048, 8, 4, 256, false, false, 0)},
        {"heads of 160, interleaved", job_of(2, 1000, 16, 16, 160, true, true, 0)},
        {"28 heads on 4, 8192", job_of(1, 8192, 28, 4, 128, false, false, 0)},
        {"one head at a time, 16384", job_of(1, 16384, 16, 16, 128, true, false, 0)},
        {"window of 100 of 1000", job_of(2, 1000, 32, 8, 64, false, false, 100)},
        {"documents", with_documents(job_of(8, 1024, 32, 8, 128, false, false, 0))},
        {"documents, side by side", with_documents(job_of(4, 1001, 12, 12, 64, true, false, 0))},
        {"documents, 28 heads on 4", with_documents(job_of(1, 8192, 28, 4, 128, false, false, 0))},
        {"documents, window of 99", with_documents(job_of(3, 999, 32, 32, 96, true, true, 99))},
        {"documents, heads of 256", with_documents(job_of(2, 2047, 8, 1, 256, false, false, 0))},
    };
    for (size_t i = 0; i < AH_LENGTH(others); i++)
        shape_add(out, others[i].name, &others[i].job);
}

static int is_model(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return end && strcmp(end, ".json") == 0;
}

/* All models, in the order of their names; `models`: how many shapes are theirs. */
static int shapes_find(struct shapes *out, int *models, const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_model, alphasort), status = AH_OK;
    if (count < 1)
        return ah__fail(AH_EINPUT, "%s: found no models", folder);
    for (int i = 0; i < count; i++) {
        char *path = NULL;
        if (status == AH_OK)
            status = ah__sprintf(&path, "%s/%s", folder, entries[i]->d_name);
        if (status == AH_OK)
            status = model_add(out, path, entries[i]->d_name);
        ah__free(path);
        free(entries[i]);
    }
    free(entries);
    *models = out->count;
    others_add(out);
    return status;
}

/* ---- the real cuDNN ---------------------------------------------------------------------------------------------- */

static struct ah_cuda_library cudnn;       /* as it is */
static cudnnBackendDescriptor_t described; /* the GPU */

/* A graph without a device has no handle, and its heuristics are told of one. */
static cudnnStatus_t attribute_set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                   cudnnBackendAttributeType_t type, int64_t count, const void *elements)
{
    if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE)
        return CUDNN_STATUS_SUCCESS;
    cudnnStatus_t status = cudnn.cudnnBackendSetAttribute(descriptor, name, type, count, elements);
    if (name != CUDNN_ATTR_ENGINEHEUR_MODE || status != CUDNN_STATUS_SUCCESS)
        return status;
    return cudnn.cudnnBackendSetAttribute(descriptor, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                          1, &described);
}

static int cudnn_find(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return ah__fail(AH_EDEVICE, "%s", dlerror());
#define FIND(name)                                                                                                     \
    {                                                                                                                  \
        void *symbol = dlsym(library, #name);                                                                          \
        if (!symbol)                                                                                                   \
            return ah__fail(AH_EDEVICE, "%s: no function %s", path, #name);                                            \
        memcpy(&cudnn.name, &symbol, sizeof symbol);                                                                   \
    }
    AH_CUDNN_LIST(FIND)
#undef FIND
    return AH_OK;
}

/* What cuDNN is told of the GPU. */
static int description_make(const char *path)
{
    char *text;
    size_t length;
    AH_TRY(ah__file_read(&text, &length, path, 1 << 16));
    cudnnStatus_t status = cudnn.cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &described);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn.cudnnBackendSetAttribute(described, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                                (int64_t)length, text);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn.cudnnBackendFinalize(described);
    ah__free(text);
    return status == CUDNN_STATUS_SUCCESS
               ? AH_OK
               : ah__fail(AH_EINPUT, "%s: cuDNN: %s", path, cudnn.cudnnGetErrorString(status));
}

/* The GPU of a description, and what the plugin looks at. */
static int gpu_describe(struct ah_cuda *out, const char *path)
{
    enum { VERSION_UNIT = 100 }; /* "deviceVer": 890 is sm_89 */
    struct ah_json json;
    int64_t version, memory;
    AH_TRY(ah__json_load(&json, path));
    int status = ah__json_int(&version, &json, "deviceVer", 8 * VERSION_UNIT, 20 * VERSION_UNIT);
    if (status == AH_OK)
        status = ah__json_int(&memory, &json, "totalGlobalMem", 1, (int64_t)1 << 50);
    ah__json_free(&json);
    AH_TRY(status);
    *out = (struct ah_cuda){.dnn = (cudnnHandle_t)(void *)&cudnn, .library = cudnn};
    out->scores_bytes = AH_CUDA_SCORES_BYTES;
    out->library.cudnnBackendSetAttribute = attribute_set;
    out->properties.major = (int)version / VERSION_UNIT;
    out->properties.totalGlobalMem = (size_t)memory;
    return description_make(path);
}

/* What attention needs of the plugin when it runs: nothing runs here. */
cudaError_t ah__cuda_document_mask_enqueue(cudaStream_t stream, void *mask, const int32_t *positions, int64_t batch,
                                           int64_t seq, int64_t stride)
{
    (void)stream, (void)mask, (void)positions, (void)batch, (void)seq, (void)stride;
    return cudaErrorNotSupported;
}

int ah__cuda_status(const char *what, cudaError_t error)
{
    return ah__fail(AH_EDEVICE, "%s: CUDA error %d", what, (int)error);
}

/* ---- one plan ---------------------------------------------------------------------------------------------------- */

/* Every address that cuDNN gets is as aligned as its tensors say. */
static bool is_aligned(const struct ah_cuda_attention *job)
{
    enum { ALIGN = 16, ELEMENT = 2 };
    return (job->q_stride | job->kv_stride | job->channels | job->q_head | job->kv_head) * ELEMENT % ALIGN == 0;
}

/* Whether all is as it should be: on others than sm_90 only heads wider than 128 may be other kernels' by rule, as
 * Gemma's, or shapes beside the models'. */
static bool plan_check(struct ah_cuda *gpu, const struct shape *shape, bool backward, bool of_model)
{
    char reason[AH_CUDA_SDPA_REASON] = "";
    struct ah_cuda_sdpa *sdpa = NULL;
    const struct ah_cuda_attention *job = &shape->job;
    const char *unfit = ah__cuda_sdpa_unfit(gpu, job, backward);
    printf("%-28s %-8s %lld x %5lld, %d heads / %d of %d, window %lld: ", shape->name,
           backward ? "backward" : "forward", (long long)job->batch, (long long)job->seq, job->heads,
           job->heads / job->group, job->head_size, (long long)job->window);
    if (unfit) {
        printf("own kernels: %s\n", unfit);
        return (!of_model || job->head_size > 128) && gpu->properties.major != 9;
    }
    int status = ah__cuda_sdpa_new(&sdpa, gpu, job, backward, reason);
    if (status != AH_OK || !sdpa)
        printf("NO PLAN: %s\n", status != AH_OK ? ah_error() : reason);
    else
        printf("planned, workspace %.1f MiB%s\n", (double)ah__cuda_sdpa_workspace(sdpa) / (1 << 20),
               is_aligned(job) ? "" : ", NOT ALIGNED");
    bool good = sdpa && is_aligned(job);
    ah__cuda_sdpa_free(sdpa);
    return good;
}

/* Each plan takes about a second: without AUTOHETE_FULL a few are asked for. */
static bool gpu_check(const struct shapes *shapes, int models, const char *path)
{
    enum { SAMPLE = 19 }; /* odd: both directions */
    const int step = getenv("AUTOHETE_FULL") ? 1 : SAMPLE;
    struct ah_cuda gpu;
    int good = 0, tried = 0, all = 2 * shapes->count;
    printf("== %s, cuDNN %zu\n", path, cudnn.cudnnGetVersion());
    if (gpu_describe(&gpu, path) != AH_OK) {
        printf("%s\n", ah_error());
        return false;
    }
    for (int i = 0; i < all; i += step, tried++)
        good += plan_check(&gpu, &shapes->shape[i / 2], i % 2, i / 2 < models);
    cudnn.cudnnBackendDestroyDescriptor(described);
    printf("== %s: %d of %d as expected\n", path, good, tried);
    return good == tried;
}

int main(int argc, char **argv)
{
    enum { SKIPPED = 77 };
    static struct shapes shapes;
    int models, bad = 0;
    if (argc < 4) {
        fprintf(stderr, "usage: %s CUDNN FOLDER DESCRIPTION...\n", argv[0]);
        return 2;
    }
    if (cudnn_find(argv[1]) != AH_OK) {
        printf("skipped: no cuDNN: %s\n", ah_error());
        return SKIPPED;
    }
    if (shapes_find(&shapes, &models, argv[2]) != AH_OK) {
        fprintf(stderr, "%s\n", ah_error());
        return 2;
    }
    for (int i = 3; i < argc; i++)
        bad += !gpu_check(&shapes, models, argv[i]);
    return bad > 0;
}
