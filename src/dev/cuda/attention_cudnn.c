/* Runs attention by cuDNN. A finalized descriptor takes no more attributes (cudnnBackendSetAttribute() answers
 * CUDNN_STATUS_NOT_INITIALIZED), so a variant pack cannot get new addresses, and the same call runs at many. Each
 * enqueue makes its own pack and destroys it when cudnnBackendExecute() has launched, as NVIDIA's front end does: a few
 * hundred bytes of cuDNN's on the host, none on the device, and nothing waits. */
#include "dev/cuda/attention_cudnn.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "dev/cuda/attention_graph.h"

enum {
    MIN_VERSION = 91600, /* older versions need lengths that are multiples of 128, padded by hand, in backward */
    SCORES_TILE = 128,   /* backward keeps scores in tiles of this many rows and columns */
    WORKSPACE_PART = 4   /* part of the GPU's memory that no workspace exceeds; up to there the planner weighs it */
};

/* Major versions of GPUs: Ampere and Ada; Hopper; Blackwell of workstations (sm_120, sm_121), which cuDNN treats as
 * Ampere. Blackwell of data centers (10, 11) is none of them. */
enum { AMPERE = 8, HOPPER = 9, BLACKWELL = 12 };

/* Returns the widest head that cuDNN can do in both directions, or in forward alone. */
static int widest_head(int architecture, bool backward)
{
    bool small = architecture == AMPERE || architecture == BLACKWELL;
    return architecture == HOPPER || (small && !backward) ? 256 : 128;
}

/* Returns true if the graph with a product of its own for dq gives the same bits each time. On other GPUs this needs an
 * engine and knobs chosen by hand. */
static bool backward_is_deterministic(int architecture)
{
    return architecture == AMPERE || architecture == HOPPER || architecture == BLACKWELL;
}

/* Returns the bytes of a sequence's mask of documents. */
static int64_t mask_bytes(const struct ah_cuda_attention *job)
{
    return job->documents ? 2 * job->seq * ah__cuda_sdpa_mask_stride(job) : 0;
}

static int64_t workspace_most(const struct ah_cuda *cuda)
{
    return (int64_t)(cuda->properties.totalGlobalMem / WORKSPACE_PART);
}

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
        {architecture < AMPERE, "the GPU is older than sm_80"},
        {job->head_size % 8 != 0, "heads are no multiple of 8 channels"},
        {job->head_size > widest_head(architecture, backward), "heads are too wide for cuDNN on this GPU"},
        {mask_bytes(job) > workspace_most(cuda) / 2, "sequences are too long for a mask of their documents"},
        {job->cap > 0, "cuDNN is not asked for scores with a soft cap"},
        {backward && !backward_is_deterministic(architecture), "cuDNN's backward is not deterministic on this GPU"},
        {backward && (job->add_q || job->add_k || job->add_v), "cuDNN cannot add to gradients that are there"},
    };
    for (size_t i = 0; i < AH_LENGTH(unfit); i++)
        if (unfit[i].is)
            return unfit[i].reason;
    return NULL;
}

/* ---- pieces, plan ------------------------------------------------------------------------------------------------ */

static int64_t divisor_up_to(int64_t n, int64_t most)
{
    int64_t divisor = most < n ? most : n;
    while (divisor > 1 && n % divisor != 0)
        divisor--;
    return divisor > 1 ? divisor : 1;
}

/* Chooses the pieces of a job. Deterministic backward keeps the gradients of all scores, in bf16 and whole tiles, in
 * the workspace, which grows with the square of the sequence. So it runs in equal pieces, of whole sequences or of some
 * heads of one sequence, whose scores stay below a limit if heads that share keys can stay together. Forward has pieces
 * only because each sequence needs a mask of documents. */
static void piece_choose(struct ah_cuda_sdpa *sdpa, const struct ah_cuda *cuda, const struct ah_cuda_attention *job,
                         bool backward)
{
    int64_t seq = (job->seq + SCORES_TILE - 1) / SCORES_TILE * SCORES_TILE;
    int64_t heads = cuda->scores_bytes / (2 * seq * seq); /* most heads of a piece */
    sdpa->batch = job->documents ? divisor_up_to(job->batch, cuda->scores_bytes / mask_bytes(job)) : job->batch;
    sdpa->heads = job->heads;
    if (!backward)
        return;
    sdpa->batch = divisor_up_to(job->batch, heads / job->heads);
    if (heads < job->heads)
        sdpa->heads = job->group * divisor_up_to(job->heads / job->group, heads / job->group);
}

static int64_t aligned(int64_t bytes)
{
    return (bytes + AH_CUDA_ALIGN - 1) / AH_CUDA_ALIGN * AH_CUDA_ALIGN;
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
    sdpa->dot_bytes = backward ? aligned(dots) : 0;
    piece_choose(sdpa, cuda, job, backward);
    sdpa->mask_bytes = aligned(sdpa->batch * mask_bytes(job));
}

int ah__cuda_sdpa_new(struct ah_cuda_sdpa **out, struct ah_cuda *cuda, const struct ah_cuda_attention *job,
                      bool backward, char reason[AH_CUDA_SDPA_REASON])
{
    struct ah_cuda_sdpa *sdpa;
    *out = NULL;
    AH_TRY(ah__new(&sdpa, 1, sizeof *sdpa));
    sdpa_init(sdpa, cuda, job, backward);
    (backward ? ah__cuda_sdpa_backward : ah__cuda_sdpa_forward)(sdpa, job);
    int status = ah__cudnn_plan(&sdpa->graph, workspace_most(cuda));
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
    return sdpa->dot_bytes + sdpa->mask_bytes + sdpa->graph.plan_bytes;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* The first sequence and head of a piece. */
struct piece {
    int64_t sequence, head;
};

/* Returns an address without const, as cuDNN requires; cuDNN writes only to the outputs of the graph. */
static void *moved(const void *address, int64_t bytes)
{
    return (void *)((uintptr_t)address + (uintptr_t)bytes);
}

static cudnnStatus_t pack_fill(const struct ah_cuda_sdpa *sdpa, const struct ah_cuda *cuda,
                               cudnnBackendDescriptor_t pack, void *const address[AH_SDPA_ROLES], void *workspace)
{
    int64_t uid[AH_SDPA_ROLES], count = 0;
    void *pointer[AH_SDPA_ROLES];
    for (int i = 0; i < AH_SDPA_ROLES; i++)
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

/* Fills the addresses of a piece. */
static void addresses_of(void *address[AH_SDPA_ROLES], struct ah_cuda_sdpa *sdpa, const struct ah_cuda_attention *job,
                         const struct piece *piece, char *workspace)
{
    const int64_t bytes = 2, size = job->head_size; /* bytes of an element; channels of a head */
    int64_t token = piece->sequence * job->seq, shared = piece->head / job->group;
    int64_t query = (token * job->q_stride + piece->head * job->q_head) * bytes;
    int64_t key = (token * job->kv_stride + shared * job->kv_head) * bytes;
    int64_t out = (token * job->channels + piece->head * size) * bytes;
    int64_t row = (piece->sequence * job->heads + piece->head) * job->seq * (int64_t)sizeof(float);
    void *const made[AH_SDPA_ROLES] = {
        [AH_SDPA_Q] = moved(job->q, query),
        [AH_SDPA_K] = moved(job->k, key),
        [AH_SDPA_V] = moved(job->v, key),
        [AH_SDPA_Y] = moved(job->y, out),
        [AH_SDPA_LSE] = moved(job->lse, row),
        [AH_SDPA_DY] = moved(job->dy, out),
        [AH_SDPA_DQ] = moved(job->dq, query),
        [AH_SDPA_DK] = moved(job->dk, key),
        [AH_SDPA_DV] = moved(job->dv, key),
        [AH_SDPA_DOT] = moved(workspace, row),
        [AH_SDPA_MASK] = moved(workspace, sdpa->dot_bytes),
        [AH_SDPA_SCALE] = &sdpa->scale,
        [AH_SDPA_NOTHING] = &sdpa->nothing,
        [AH_SDPA_ONE] = &sdpa->one,
        [AH_SDPA_WINDOW] = &sdpa->window,
    };
    memcpy(address, made, sizeof made);
}

static int piece_enqueue(struct ah_cuda_sdpa *sdpa, const struct ah_cuda_attention *job, const struct piece *piece,
                         char *workspace)
{
    const struct ah_cuda *cuda = sdpa->graph.cuda;
    void *address[AH_SDPA_ROLES];
    cudnnBackendDescriptor_t pack;
    addresses_of(address, sdpa, job, piece, workspace);
    cudnnStatus_t status = cuda->library.cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (status != CUDNN_STATUS_SUCCESS)
        return ah__cudnn_failure(cuda, "cudnnBackendCreateDescriptor", status);
    status = pack_fill(sdpa, cuda, pack, address, workspace + sdpa->dot_bytes + sdpa->mask_bytes);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cuda->library.cudnnBackendExecute(cuda->dnn, sdpa->graph.plan, pack);
    cuda->library.cudnnBackendDestroyDescriptor(pack);
    return status == CUDNN_STATUS_SUCCESS ? AH_OK : ah__cudnn_failure(cuda, "cudnnBackendExecute", status);
}

/* Enqueues the mask of documents for the sequences of a piece. */
static int mask_enqueue(const struct ah_cuda_sdpa *sdpa, cudaStream_t stream, const struct ah_cuda_attention *job,
                        const struct piece *piece, char *workspace)
{
    if (job->documents)
        AH_CUDA_TRY(ah__cuda_document_mask_enqueue(stream, workspace + sdpa->dot_bytes,
                                                   job->positions + piece->sequence * job->seq, sdpa->batch, job->seq,
                                                   ah__cuda_sdpa_mask_stride(job)));
    return AH_OK;
}

int ah__cuda_sdpa_enqueue(struct ah_cuda_sdpa *sdpa, cudaStream_t stream, const struct ah_cuda_attention *job,
                          char *workspace)
{
    const struct ah_cuda *cuda = sdpa->graph.cuda;
    struct piece piece = {0};
    cudnnStatus_t status = cuda->library.cudnnSetStream(cuda->dnn, stream);
    if (status != CUDNN_STATUS_SUCCESS)
        return ah__cudnn_failure(cuda, "cudnnSetStream", status);
    for (piece.sequence = 0; piece.sequence < job->batch; piece.sequence += sdpa->batch) {
        AH_TRY(mask_enqueue(sdpa, stream, job, &piece, workspace));
        for (piece.head = 0; piece.head < job->heads; piece.head += sdpa->heads)
            AH_TRY(piece_enqueue(sdpa, job, &piece, workspace));
    }
    return AH_OK;
}
