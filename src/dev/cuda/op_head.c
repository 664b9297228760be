/* The LM head's product and its loss by chunks of tokens: logits, their gradients in the same memory, and the gradients
 * of the input and the weight. The weight's gradient is a sum over chunks, in their order.
 *
 * Rows of logits begin at multiples of 16 bytes for every vocabulary (50257 is odd), since cuBLASLt's fast kernels and
 * the wide accesses of the loss's kernel need this. */
#include "dev/cuda/gemm.h"
#include "dev/cuda/kernels.h"
#include "dev/cuda/program.h"
#include "op/gpu_head.h"

/* The products of one chunk. */
enum product { LOGITS, DX, DWEIGHT, PRODUCTS };

/* The layout of a prepared call. Scratch has, in this order: the scale, each row's loss, a chunk of logits if it is no
 * operand, and the products' own. */
struct head {
    struct ah_cuda_gemm whole[PRODUCTS], rest[PRODUCTS]; /* products of a whole chunk, and of a shorter last one */
    int64_t rows, chunk, channels, vocab;
    int64_t stride;                            /* elements from one row of logits to the next */
    bool own_logits;                           /* logits are in the workspace */
    int64_t losses_at, logits_at, products_at; /* byte offsets in it */
};

static void head_release(struct ah_cuda_call *call)
{
    struct head *head = call->owned;
    for (int i = 0; i < PRODUCTS; i++) {
        ah__cuda_gemm_fini(&head->whole[i], call->cuda);
        ah__cuda_gemm_fini(&head->rest[i], call->cuda);
    }
}

static int64_t aligned(int64_t bytes)
{
    return (bytes + AH_CUDA_ALIGN - 1) / AH_CUDA_ALIGN * AH_CUDA_ALIGN;
}

/* Returns the alignment of the operands: chunks of x and dx begin at every multiple of a chunk. */
static int64_t align_of(const struct ah_cuda_call *call, const struct head *head)
{
    const struct ah_call *c = call->call;
    const struct ah_operand *const operands[] = {&c->in[0], &c->in[1], &c->out[1], &c->out[2], &c->out[3]};
    int64_t bits = ah__cuda_align(operands, (int)AH_LENGTH(operands));
    if (head->rows > head->chunk)
        bits |= head->chunk * head->channels * ah__dtype_bytes(call->dtype);
    return bits & -bits;
}

/* Prepares the products of a chunk of `rows` tokens whose results are needed. */
static int products_init(struct ah_cuda_gemm out[PRODUCTS], struct ah_cuda_call *call, int64_t rows)
{
    const struct head *head = call->owned;
    int64_t align = align_of(call, head), c = head->channels, v = head->vocab;
    const struct ah_cuda_gemm_shape shape[PRODUCTS] = {
        [LOGITS] = {.trans_b = true,
                    .dtype = call->dtype,
                    .c_dtype = call->dtype,
                    .m = rows,
                    .n = v,
                    .k = c,
                    .lda = c,
                    .ldb = c,
                    .ldc = head->stride,
                    .align_bytes = align},
        [DX] = {.dtype = call->dtype,
                .c_dtype = call->dtype,
                .m = rows,
                .n = c,
                .k = v,
                .lda = head->stride,
                .ldb = c,
                .ldc = c,
                .align_bytes = align},
        [DWEIGHT] = {.trans_a = true,
                     .dtype = call->dtype,
                     .c_dtype = AH_F32,
                     .m = v,
                     .n = c,
                     .k = rows,
                     .lda = head->stride,
                     .ldb = c,
                     .ldc = c,
                     .align_bytes = align},
    };
    for (int i = 0; i < PRODUCTS; i++) {
        if (call->call->out[i + 1].space == AH_SPACE_NONE)
            continue;
        AH_TRY(ah__cuda_gemm_init(&out[i], call->cuda, &shape[i]));
        if (head->products_at + out[i].workspace_bytes > call->workspace_bytes)
            call->workspace_bytes = head->products_at + out[i].workspace_bytes;
    }
    return AH_OK;
}

/* Chooses the chunks, by shape and GPU alone. */
static void chunks_choose(struct head *head, const struct ah_cuda_call *call, int64_t operator_chunk)
{
    const struct cudaDeviceProp *gpu = &call->cuda->properties;
    struct ah_gpu_chunk chunk = ah__gpu_chunk(&(struct ah_gpu_head){.rows = head->rows,
                                                                    .channels = head->channels,
                                                                    .vocab = head->vocab,
                                                                    .dtype_bytes = ah__dtype_bytes(call->dtype),
                                                                    .operator_chunk = operator_chunk,
                                                                    .multiprocessors = gpu->multiProcessorCount,
                                                                    .memory_bytes = (int64_t)gpu->totalGlobalMem});
    head->chunk = chunk.rows;
    head->stride = chunk.stride;
    head->own_logits = chunk.own_logits;
}

static int head_prepare(struct ah_cuda_call *call)
{
    const struct ah_shape *x = &call->call->in[0].meta.shape, *logits = &call->call->out[1].meta.shape;
    struct head *head;
    AH_TRY(ah__new(&head, 1, sizeof *head));
    call->owned = head;
    call->release = head_release;
    head->rows = ah__shape_rows(x);
    head->channels = x->dim[2];
    head->vocab = logits->dim[1];
    chunks_choose(head, call, logits->dim[0]);
    head->losses_at = aligned(sizeof(struct ah_cuda_loss_scale));
    head->logits_at = head->losses_at + aligned(head->rows * (int64_t)sizeof(double));
    int64_t own = head->own_logits ? head->chunk * head->stride * ah__dtype_bytes(call->dtype) : 0;
    head->products_at = head->logits_at + aligned(own);
    call->workspace_bytes = head->products_at;
    AH_TRY(products_init(head->whole, call, head->chunk));
    return head->rows % head->chunk == 0 ? AH_OK : products_init(head->rest, call, head->rows % head->chunk);
}

static const struct ah_cuda_loss_scale *scale_of(const struct ah_cuda_bound *bound)
{
    return (const void *)bound->workspace;
}

static double *losses_of(const struct ah_cuda_bound *bound)
{
    return (double *)(void *)(bound->workspace + ((const struct head *)bound->call->owned)->losses_at);
}

static void *logits_of(const struct ah_cuda_bound *bound)
{
    const struct head *head = bound->call->owned;
    return head->own_logits ? bound->workspace + head->logits_at : bound->out[1];
}

static int product(const struct ah_cuda_bound *bound, const struct ah_cuda_gemm *gemm, const void *a, const void *b,
                   void *c)
{
    const struct head *head = bound->call->owned;
    const struct ah_cuda_gemm_at at = {a, b, NULL, c, bound->workspace + head->products_at};
    return ah__cuda_gemm_enqueue(gemm, bound->call->cuda, bound->stream, &at);
}

/* Enqueues the loss of rows [from, from + rows). */
static int loss_enqueue(const struct ah_cuda_bound *bound, int64_t from, int64_t rows)
{
    const struct head *head = bound->call->owned;
    const struct ah_cuda_cross_entropy job = {.dlogits = logits_of(bound),
                                              .logits = logits_of(bound),
                                              .targets = (const int32_t *)bound->in[2] + from,
                                              .losses = losses_of(bound) + from,
                                              .rows = rows,
                                              .cols = head->vocab,
                                              .stride = head->stride,
                                              .may_ignore = true,
                                              .cap = bound->call->call->attr.cap,
                                              .scale = scale_of(bound)};
    AH_CUDA_TRY(ah__cuda_cross_entropy_enqueue(bound->stream, bound->call->dtype, &job));
    return AH_OK;
}

static int chunk_enqueue(const struct ah_cuda_bound *bound, int64_t from)
{
    const struct head *head = bound->call->owned;
    const struct ah_cuda_gemm *gemm = head->rows - from < head->chunk ? head->rest : head->whole;
    int64_t at = from * head->channels * ah__dtype_bytes(bound->call->dtype);
    const char *x = (const char *)bound->in[0] + at;
    void *logits = logits_of(bound);
    struct ah_cuda_gemm dweight = gemm[DWEIGHT];
    dweight.shape.accumulate = bound->call->adds[3] || from > 0;
    AH_TRY(product(bound, &gemm[LOGITS], x, bound->in[1], logits));
    AH_TRY(loss_enqueue(bound, from, gemm[LOGITS].shape.m));
    if (bound->out[2])
        AH_TRY(product(bound, &gemm[DX], logits, bound->in[1], (char *)bound->out[2] + at));
    return bound->out[3] ? product(bound, &dweight, logits, x, bound->out[3]) : AH_OK;
}

static int head_enqueue(const struct ah_cuda_bound *bound)
{
    const struct head *head = bound->call->owned;
    struct ah_cuda_loss_scale *scale = (struct ah_cuda_loss_scale *)(void *)bound->workspace;
    AH_CUDA_TRY(ah__cuda_loss_scale_enqueue(bound->stream, scale, bound->in[3], bound->in[2], head->rows));
    for (int64_t from = 0; from < head->rows; from += head->chunk)
        AH_TRY(chunk_enqueue(bound, from));
    AH_CUDA_TRY(ah__cuda_loss_sum_enqueue(bound->stream, bound->out[0], losses_of(bound), head->rows, scale));
    return AH_OK;
}

const struct ah_cuda_operator ah__cuda_linear_cross_entropy = {head_prepare, head_enqueue};
