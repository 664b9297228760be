/* Inside the CPU device: the kernels of one instruction set, and the operators built on them.
 *
 * A kernel computes a piece of an operator on one thread, without knowledge of pools or operands. The operators
 * (kernels_*.c) cut their work into pieces and run them over the pool. Every table gives the same bits. */
#ifndef AH_DEV_CPU_KERNELS_H
#define AH_DEV_CPU_KERNELS_H

#include "dev/cpu/cpu.h"
#include "dev/host/isa.h"

enum { AH_ATTENTION_TILE = 64, AH_ATTENTION_GROUP = 4, AH_ATTENTION_MAX_HEAD = 256 };

/* An attention call. Pointers are strided views; the gradients are null in forward. */
struct ah_attention {
    const void *q, *k, *v; /* [B,T,stride], from the first channel of head 0 on */
    void *y;               /* [B,T,C] */
    float *lse;            /* [B,H,T] */
    const void *dy;        /* [B,T,C] */
    void *dq, *dk, *dv;    /* as q, k, v */
    int64_t seq, channels;
    int64_t q_stride, kv_stride; /* from one token to the next */
    int64_t q_head, kv_head;     /* from one head to the next */
    int64_t window;              /* number of keys that a query sees; seq or more: all up to its own */
    const int32_t *positions;    /* [B,T] position of each token in its document, before which it sees nothing; or
                                  * null */
    int heads, head_size;
    int group; /* number of adjacent heads that share a head of k and v */
    float scale;
    float cap;                /* cap of scores: s becomes cap * tanh(s / cap); 0: no cap */
    float most, total;        /* where the softmax of each query of this head begins, in powers of two: at its sink and
                               * 1, or at -FLT_MAX and 0 */
    bool add_q, add_k, add_v; /* add to dq, dk, dv instead of overwriting */
};

/* A strip of columns of two row-major matrices of `rows` rows and `stride` columns; every pointer points to the
 * strip. */
struct ah_strip {
    const void *dy, *x;       /* x is null for a plain column sum */
    const float *mean, *rstd; /* mean and 1/deviation of rows of x; no mean: 0 */
    float *dweight, *dbias;   /* dbias may be null beside dweight */
    int64_t rows, stride, cols;
    bool add_weight, add_bias;
};

/* The kernels of one instruction set and one compute dtype, which is the type behind `void *`. Arithmetic is in float,
 * and every result is rounded once, when it is stored. */
struct ah_kernels {
    void (*exp)(float *y, const float *x, int64_t n);
    void (*gelu)(void *y, const void *x, int64_t n);
    void (*gelu_bwd)(void *dx, const void *dy, const void *x, int64_t n, bool accumulate);
    void (*gelu_erf)(void *y, const void *x, int64_t n);
    void (*gelu_erf_bwd)(void *dx, const void *dy, const void *x, int64_t n, bool accumulate);
    void (*relu)(void *y, const void *x, int64_t n);
    void (*relu_bwd)(void *dx, const void *dy, const void *x, int64_t n, bool accumulate);
    void (*silu_mul)(void *y, const void *gate, const void *up, int64_t n);
    /* dgate may be the same as dy. */
    void (*silu_mul_bwd)(void *dgate, void *dup, const void *dy, const void *gate, const void *up, int64_t n);
    /* y = g / (1 + e^(-scale g)) * (u + 1), with g = min(gate, limit) and u = up within the limit. */
    void (*swiglu_clamped)(void *y, const void *gate, const void *up, int64_t n, float scale, float limit);
    void (*swiglu_clamped_bwd)(void *dgate, void *dup, const void *dy, const void *gate, const void *up, int64_t n,
                               float scale, float limit);
    void (*gelu_mul)(void *y, const void *gate, const void *up, int64_t n);
    void (*gelu_mul_bwd)(void *dgate, void *dup, const void *dy, const void *gate, const void *up, int64_t n);
    void (*scale)(void *y, const void *x, int64_t n, float factor);
    void (*soft_cap)(void *y, const void *x, int64_t n, float cap);
    /* Rotates one token in place: the first 2 * half channels of each of the heads, which are `stride` channels apart,
     * by the angles of half pairs. */
    void (*rotary)(void *x, const float *cosine, const float *sine, int heads, int64_t stride, int64_t half);
    void (*add)(void *y, const void *a, const void *b, int64_t n);
    void (*add_to)(float *sum, const void *x, int64_t n);
    /* y[n] = sum of the `count` rows of x [..,n] */
    void (*sum_rows)(void *y, const void *x, const int32_t *rows, int count, int64_t n);
    /* dx = dy * weight, which may be in place; returns the sum of dy * x. */
    float (*scale_row_bwd)(void *dx, const void *dy, const void *x, int64_t n, float weight);
    void (*layernorm)(void *y, float *mean, float *rstd, const void *x, const void *weight, const void *bias,
                      int64_t rows, int64_t cols, float eps);
    void (*layernorm_bwd)(void *dx, const void *dy, const void *x, const void *weight, const float *mean,
                          const float *rstd, int64_t rows, int64_t cols, bool accumulate);
    void (*rmsnorm)(void *y, float *rstd, const void *x, const void *weight, int64_t rows, int64_t cols, float eps,
                    float offset);
    void (*rmsnorm_bwd)(void *dx, const void *dy, const void *x, const void *weight, const float *rstd, int64_t rows,
                        int64_t cols, float offset, bool accumulate);
    void (*strip)(const struct ah_strip *strip);
    /* Computes one row dlogits = (softmax(logits) - onehot(target)) * scale, which may be in place. Returns -log
     * softmax[target]. */
    double (*cross_entropy)(void *dlogits, const void *logits, int64_t cols, int64_t target, float scale);
    /* Does the same for cap * tanh(logits / cap); the gradient is that of the uncapped logits. */
    double (*cross_entropy_capped)(void *dlogits, const void *logits, int64_t cols, int64_t target, float scale,
                                   float cap);
    /* Compute a group of query tiles of one (batch, head), and one whole (batch, head). Call it for the heads that
     * share keys in order: all but the first add to dk and dv. `sums`: ah__attention_sums() floats that are kept from
     * head to head, for dtypes whose stores round. */
    void (*attention)(const struct ah_attention *job, int64_t batch, int head, int64_t group, float *scratch);
    void (*attention_bwd)(const struct ah_attention *job, int64_t batch, int head, float *scratch, float *sums);
};

extern const struct ah_kernels ah__kernels_avx512, ah__kernels_avx2, ah__kernels_plain;
extern const struct ah_kernels ah__kernels_avx512_bf16, ah__kernels_avx2_bf16, ah__kernels_plain_bf16;
/* Returns the table in use; `dtype` is AH_F32 or AH_BF16. */
const struct ah_kernels *ah__kernels(enum ah_dtype dtype);

/* Returns the floats of the gradient of all queries, or of all keys, of one (batch, head): rows and columns padded to
 * 16. */
static inline int64_t ah__attention_sum(const struct ah_attention *job)
{
    return (job->seq + 15) / 16 * 16 * ((job->head_size + 15) / 16 * 16);
}

/* Returns the floats of the sums of a head: of queries, and of keys and values too if heads share them. */
static inline int64_t ah__attention_sums(const struct ah_attention *job)
{
    return ah__attention_sum(job) * (job->group > 1 ? 3 : 1);
}

struct ah_bound;

/* A prepared call: everything that run() needs but addresses. */
struct ah_cpu_call {
    int (*run)(const struct ah_bound *bound);
    const struct ah_call *call;
    const struct ah_kernels *kernels;
    enum ah_dtype dtype;          /* dtype of parameters, activations and their gradients */
    int threads;                  /* threads of the pool that will run it */
    int64_t workspace_bytes;      /* scratch while it runs */
    int64_t rows, cols;           /* shape of the matrix that the operator processes */
    struct ah_pieces pieces;      /* pieces of the whole work, or of its last step */
    struct ah_pieces first;       /* pieces of an earlier step */
    bool adds[AH_OP_MAX_OUTPUTS]; /* adds to output j instead of overwriting */
    void *owned;                  /* memory that prepare made with ah__new(), freed with the program; or null */
    union {
        void (*unary)(void *y, const void *x, int64_t n);
        void (*unary_bwd)(void *dx, const void *dy, const void *x, int64_t n, bool accumulate);
        void (*gated)(void *y, const void *gate, const void *up, int64_t n);
        void (*gated_bwd)(void *dgate, void *dup, const void *dy, const void *gate, const void *up, int64_t n);
        struct {
            int64_t seq, batch, first;
        } position;
        int64_t vocabulary; /* all ids are less */
        struct ah_gemm gemm;
        struct {
            struct ah_gemm logits, dx, dweight; /* products of a whole chunk */
        } head;
        struct {
            struct ah_attention job;
            int64_t batch, groups; /* groups of query tiles */
        } attention;
        struct {
            int64_t seq, size, half;
        } rotary;
        struct {
            int64_t seq, rows, keys, heads, group, size, window; /* rows and key channels of the cache */
            int64_t q_stride, q_head;                            /* step from one token, from one head to the next */
            int64_t k_head, k_first, v_first;                    /* channels of keys and values in a token that is
                                                                  * written */
        } cache;
        struct ah_strip strip;
    } as; /* pointers in it are null */
};

/* A call whose operands are bound to addresses; absent operands are null. */
struct ah_bound {
    struct ah_pool *pool;
    const struct ah_cpu_call *call;
    const void *in[AH_OP_MAX_INPUTS];
    void *out[AH_OP_MAX_OUTPUTS];
    char *workspace;
};

/* An operator. When `prepare` is called, the call's kernels, dtype, threads, `adds` and operands are set, and the
 * operands agree with the operator table. AH_EDEVICE: the kernels cannot do this. */
struct ah_cpu_operator {
    int (*prepare)(struct ah_cpu_call *call);
    int (*run)(const struct ah_bound *bound);
};

static inline const struct ah_shape *ah__call_in(const struct ah_cpu_call *call, int input)
{
    return &call->call->in[input].meta.shape;
}

static inline const struct ah_shape *ah__call_out(const struct ah_cpu_call *call, int output)
{
    return &call->call->out[output].meta.shape;
}

static inline int64_t ah__shape_last(const struct ah_shape *shape)
{
    return shape->dim[shape->rank - 1];
}

/* Returns the address of element `at` of an operand in the compute dtype. */
static inline const void *ah__in_at(const struct ah_bound *bound, int input, int64_t at)
{
    return (const char *)bound->in[input] + at * ah__dtype_bytes(bound->call->dtype);
}

static inline void *ah__out_at(const struct ah_bound *bound, int output, int64_t at)
{
    return (char *)bound->out[output] + at * ah__dtype_bytes(bound->call->dtype);
}

/* Operands of a product, in the compute dtype. The result is written to an output, from element `at` on. */
struct ah_product {
    const void *a, *b, *bias; /* bias may be null */
    int output;
    int64_t at;
};
/* Computes a product. `gemm` has everything but its addresses. AH_EDEVICE: a library call failed. */
int ah__cpu_product(const struct ah_bound *bound, const struct ah_gemm *gemm, const struct ah_product *product);

/* Compute the column sums of a whole matrix, strip by strip over the pool. */
struct ah_pieces ah__strip_pieces(int64_t cols);
void ah__strip_run(const struct ah_bound *bound, const struct ah_strip *whole, const struct ah_pieces *pieces);

#define AH_CPU_DECLARE(id, name) extern const struct ah_cpu_operator ah__cpu_##name;
AH_OP_LIST(AH_CPU_DECLARE)
#undef AH_CPU_DECLARE

#endif
