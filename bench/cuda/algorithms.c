/* How far cuBLASLt's first choice, which the CUDA device takes, is from the fastest of all that it offers for the
 * product, on the products of a GPT-2 block and of the head.
 *
 *     algorithms [--tokens N] [--channels N] [--vocabulary N] [--dtype bf16|fp32] [--rounds N]
 *
 * Times are the GPU's, medians; choices take turns within each round; what the first choice is stands behind them. A dx
 * with gelu's backward in its epilogue is beside the same without. The last line sums up. Nothing that is measured here
 * changes what is chosen: the same command gives the same bits tomorrow. */
#include "bench.h"
#include "dev/cuda/gemm.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum {
    MOST_CHOICES = 16,
    MOST_ROUNDS = 64,
    WORKSPACE_BYTES = 32 << 20,
    SHAPES = 16,
    STAGED_BYTES = 1 << 22,
    HEAD_ROWS = 2048
};

struct product {
    const char *name, *what; /* of which layer, and which of its products */
    struct ah_cuda_gemm_shape shape;
};

struct state {
    struct ah_cuda cuda;
    cudaStream_t stream;
    cudaEvent_t start, end;
    char *a, *b, *c, *extra, *workspace;
    int rounds;
};

static void check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess)
        bench_check(ah__cuda_status(what, error), "CUDA");
}
#define CUDA(call) check(call, #call)

/* y = x w + b, its gradients dx and dw; weights are [in,out]. */
static int linear_add(struct product *out, const char *name, enum ah_dtype dtype, int64_t tokens, int64_t in,
                      int64_t to)
{
    const struct ah_cuda_gemm_shape forward = {.epilogue = AH_CUDA_BIAS,
                                               .dtype = dtype,
                                               .c_dtype = dtype,
                                               .m = tokens,
                                               .n = to,
                                               .k = in,
                                               .lda = in,
                                               .ldb = to,
                                               .ldc = to,
                                               .align_bytes = 16};
    const struct ah_cuda_gemm_shape dx = {.trans_b = true,
                                          .dtype = dtype,
                                          .c_dtype = dtype,
                                          .m = tokens,
                                          .n = in,
                                          .k = to,
                                          .lda = to,
                                          .ldb = to,
                                          .ldc = in,
                                          .align_bytes = 16};
    const struct ah_cuda_gemm_shape dw = {.trans_a = true,
                                          .dtype = dtype,
                                          .c_dtype = AH_F32,
                                          .m = in,
                                          .n = to,
                                          .k = tokens,
                                          .lda = in,
                                          .ldb = to,
                                          .ldc = to,
                                          .align_bytes = 16};
    out[0] = (struct product){name, "y", forward};
    out[1] = (struct product){name, "dx", dx};
    out[2] = (struct product){name, "dw", dw};
    return 3;
}

/* A chunk of the head, whose logits are never whole; their rows begin at multiples of 16 bytes. */
static int head_add(struct product *out, enum ah_dtype dtype, int64_t rows, int64_t channels, int64_t vocabulary)
{
    int64_t lanes = 16 / ah__dtype_bytes(dtype), stride = (vocabulary + lanes - 1) / lanes * lanes;
    const struct ah_cuda_gemm_shape logits = {.trans_b = true,
                                              .dtype = dtype,
                                              .c_dtype = dtype,
                                              .m = rows,
                                              .n = vocabulary,
                                              .k = channels,
                                              .lda = channels,
                                              .ldb = channels,
                                              .ldc = stride,
                                              .align_bytes = 16};
    const struct ah_cuda_gemm_shape dx = {.dtype = dtype,
                                          .c_dtype = dtype,
                                          .m = rows,
                                          .n = channels,
                                          .k = vocabulary,
                                          .lda = stride,
                                          .ldb = channels,
                                          .ldc = channels,
                                          .align_bytes = 16};
    const struct ah_cuda_gemm_shape dw = {.trans_a = true,
                                          .dtype = dtype,
                                          .c_dtype = AH_F32,
                                          .m = vocabulary,
                                          .n = channels,
                                          .k = rows,
                                          .lda = stride,
                                          .ldb = channels,
                                          .ldc = channels,
                                          .align_bytes = 16};
    out[0] = (struct product){"head", "y", logits};
    out[1] = (struct product){"head", "dx", dx};
    out[2] = (struct product){"head", "dw", dw};
    return 3;
}

static int products_of(struct product *out, enum ah_dtype dtype, int64_t tokens, int64_t channels, int64_t vocabulary)
{
    int count = linear_add(out, "qkv", dtype, tokens, channels, 3 * channels);
    count += linear_add(out + count, "proj", dtype, tokens, channels, channels);
    count += linear_add(out + count, "fc", dtype, tokens, channels, 4 * channels);
    count += linear_add(out + count, "out", dtype, tokens, 4 * channels, channels);
    out[count] = out[count - 2];
    out[count].what = "dx, gelu";
    out[count++].shape.epilogue = AH_CUDA_GELU_BWD;
    return count + head_add(out + count, dtype, tokens < HEAD_ROWS ? tokens : HEAD_ROWS, channels, vocabulary);
}

/* ---- the GPU ----------------------------------------------------------------------------------------------------- */

/* Random numbers around 0.03 in either dtype, the same megabytes again and again. */
static void random_fill(struct state *s, char *at, int64_t bytes)
{
    uint32_t *staged;
    CUDA(cudaHostAlloc((void **)&staged, STAGED_BYTES, cudaHostAllocDefault));
    for (int i = 0; i < STAGED_BYTES / 4; i++)
        staged[i] = ((uint32_t)ah__random_bits(1, (uint64_t)i) & 0x80FF80FFU) | 0x3D003D00U;
    for (int64_t from = 0; from < bytes; from += STAGED_BYTES) {
        int64_t length = bytes - from < STAGED_BYTES ? bytes - from : STAGED_BYTES;
        CUDA(cudaMemcpyAsync(at + from, staged, (size_t)length, cudaMemcpyHostToDevice, s->stream));
    }
    CUDA(cudaStreamSynchronize(s->stream));
    CUDA(cudaFreeHost(staged));
}

static char *memory_new(struct state *s, int64_t bytes)
{
    char *at;
    CUDA(cudaMalloc((void **)&at, (size_t)bytes));
    random_fill(s, at, bytes);
    return at;
}

static void memory_open(struct state *s, const struct product *products, int count)
{
    int64_t a = 0, b = 0, c = 0, extra = 0;
    for (int i = 0; i < count; i++) {
        const struct ah_cuda_gemm_shape *p = &products[i].shape;
        int64_t bytes = ah__dtype_bytes(p->dtype), c_bytes = p->m * p->ldc * ah__dtype_bytes(p->c_dtype);
        int64_t a_bytes = (p->trans_a ? p->k : p->m) * p->lda * bytes;
        int64_t b_bytes = (p->trans_b ? p->n : p->k) * p->ldb * bytes;
        a = a_bytes > a ? a_bytes : a;
        b = b_bytes > b ? b_bytes : b;
        c = c_bytes > c ? c_bytes : c;
        int64_t extra_bytes = p->epilogue == AH_CUDA_GELU_BWD ? c_bytes : p->n * bytes;
        extra = extra_bytes > extra ? extra_bytes : extra;
    }
    s->a = memory_new(s, a);
    s->b = memory_new(s, b);
    s->c = memory_new(s, c);
    s->extra = memory_new(s, extra);
    s->workspace = memory_new(s, WORKSPACE_BYTES);
}

static void state_open(struct state *s)
{
    CUDA(cudaSetDevice(0));
    BENCH(ah__cuda_library_open(&s->cuda.library));
    if (s->cuda.library.cublasLtCreate(&s->cuda.lt) != CUBLAS_STATUS_SUCCESS)
        bench_check(ah__fail(AH_EDEVICE, "it cannot be opened"), "cublasLtCreate");
    CUDA(cudaGetDeviceProperties(&s->cuda.properties, 0));
    CUDA(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&s->start, cudaEventDefault));
    CUDA(cudaEventCreateWithFlags(&s->end, cudaEventDefault));
}

static void state_close(struct state *s)
{
    char *const memory[] = {s->a, s->b, s->c, s->extra, s->workspace};
    for (size_t i = 0; i < AH_LENGTH(memory); i++)
        CUDA(cudaFree(memory[i]));
    CUDA(cudaEventDestroy(s->start));
    CUDA(cudaEventDestroy(s->end));
    CUDA(cudaStreamDestroy(s->stream));
    s->cuda.library.cublasLtDestroy(s->cuda.lt);
    ah__cuda_library_close(&s->cuda.library);
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

static double seconds_of(struct state *s, const struct ah_cuda_gemm *gemm)
{
    const struct ah_cuda_gemm_at at = {s->a, s->b, gemm->shape.epilogue == AH_CUDA_PLAIN ? NULL : s->extra, s->c,
                                       s->workspace};
    float ms;
    CUDA(cudaEventRecord(s->start, s->stream));
    BENCH(ah__cuda_gemm_enqueue(gemm, &s->cuda, s->stream, &at));
    CUDA(cudaEventRecord(s->end, s->stream));
    CUDA(cudaEventSynchronize(s->end));
    CUDA(cudaEventElapsedTime(&ms, s->start, s->end));
    return 1e-3 * (double)(ms > 0 ? ms : 1e-6F);
}

/* Medians of each choice. */
static void choices_measure(double *median, struct state *s, const struct ah_cuda_gemm *gemm,
                            const cublasLtMatmulHeuristicResult_t *choices, int count)
{
    static double seconds[MOST_CHOICES][MOST_ROUNDS];
    for (int round = -1; round < s->rounds; round++)
        for (int i = 0; i < count; i++) {
            struct ah_cuda_gemm other = *gemm;
            other.algorithm = choices[i].algo;
            other.workspace_bytes = (int64_t)choices[i].workspaceSize;
            double took = seconds_of(s, &other);
            if (round >= 0)
                seconds[i][round] = took;
        }
    for (int i = 0; i < count; i++)
        median[i] = bench_quantile(seconds[i], (size_t)s->rounds, 0.5);
}

/* What the first choice is, as the library numbers it; 1 part of k: not split. Nothing where it does not tell. */
static void choice_print(const struct state *s, const cublasLtMatmulHeuristicResult_t *choice)
{
    int32_t id = 0;
    uint32_t tile = 0, parts = 0;
    __typeof__(cublasLtMatmulAlgoConfigGetAttribute) *get;
    *(void **)&get = dlsym(s->cuda.library.cublaslt_library, "cublasLtMatmulAlgoConfigGetAttribute");
    if (get && get(&choice->algo, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof id, NULL) == CUBLAS_STATUS_SUCCESS &&
        get(&choice->algo, CUBLASLT_ALGO_CONFIG_TILE_ID, &tile, sizeof tile, NULL) == CUBLAS_STATUS_SUCCESS &&
        get(&choice->algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof parts, NULL) == CUBLAS_STATUS_SUCCESS)
        printf("  algorithm %d, tile %u, %u parts of k,", (int)id, (unsigned)tile, (unsigned)parts);
    printf(" %.1f MiB of workspace\n", (double)choice->workspaceSize / (1 << 20));
}

/* The share that the fastest has of the time of the one that is taken. */
static double product_print(struct state *s, const struct product *product)
{
    const struct ah_cuda_gemm_shape *p = &product->shape;
    cublasLtMatmulHeuristicResult_t choices[MOST_CHOICES];
    struct ah_cuda_gemm gemm;
    double median[MOST_CHOICES], flops = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    int count, best = 0;
    bool found;
    BENCH(ah__cuda_gemm_try(&gemm, &found, &s->cuda, p));
    if (!found) {
        printf("%-4s %-8s %7lld %7lld %7lld  not offered\n", product->name, product->what, (long long)p->m,
               (long long)p->n, (long long)p->k);
        return 1;
    }
    BENCH(ah__cuda_gemm_choices(choices, MOST_CHOICES, &count, &gemm, &s->cuda));
    choices_measure(median, s, &gemm, choices, count);
    for (int i = 1; i < count; i++)
        best = median[i] < median[best] ? i : best;
    printf("%-4s %-8s %7lld %7lld %7lld %10.2f %10.2f %7.1f%% %5d of %2d", product->name, product->what,
           (long long)p->m, (long long)p->n, (long long)p->k, flops / median[0] * 1e-12, flops / median[best] * 1e-12,
           100 * median[best] / median[0], best + 1, count);
    choice_print(s, &choices[0]);
    fflush(stdout);
    ah__cuda_gemm_fini(&gemm, &s->cuda);
    return median[best] / median[0];
}

int main(int argc, char **argv)
{
    const char *dtype = "bf16";
    int tokens = 8192, channels = 1600, vocabulary = 50257, rounds = 9;
    const struct bench_option options[] = {
        {"tokens", BENCH_COUNT, &tokens, "rows of activations"},
        {"channels", BENCH_COUNT, &channels, "of the block"},
        {"vocabulary", BENCH_COUNT, &vocabulary, "ids"},
        {"dtype", BENCH_TEXT, &dtype, "bf16 or fp32"},
        {"rounds", BENCH_COUNT, &rounds, "of which medians are taken, 64 at most"},
    };
    static struct state s;
    struct product products[SHAPES];
    double worst = 1, shares[SHAPES];
    BENCH_OPTIONS(argc, argv, "How far cuBLASLt's first choice is from the fastest of what it offers.", options);
    s.rounds = bench_least(rounds, MOST_ROUNDS);
    int count = products_of(products, bench_dtype(dtype), tokens, channels, vocabulary);
    state_open(&s);
    memory_open(&s, products, count);
    printf("%s, %s; TFLOP/s of the first choice and of the fastest\n%-13s %7s %7s %7s %10s %10s %8s %s\n",
           s.cuda.properties.name, dtype, "product", "m", "n", "k", "first", "fastest", "share", "fastest is");
    for (int i = 0; i < count; i++) {
        shares[i] = product_print(&s, &products[i]);
        worst = shares[i] < worst ? shares[i] : worst;
    }
    printf("first choices at %.1f%% of the fastest in the median, %.1f%% at worst\n",
           100 * bench_quantile(shares, (size_t)count, 0.5), 100 * worst);
    state_close(&s);
    return 0;
}
