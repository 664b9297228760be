/* Inside the CPU device: the kernels one instruction set offers, and the operators built on them.
 *
 * A kernel works on a piece of an operator on one thread, with no knowledge of pools or operands; the operators
 * (kernels_*.c) cut their work into pieces and hand them to the pool. Every table gives the same bits. */
#ifndef AH_DEV_CPU_KERNELS_H
#define AH_DEV_CPU_KERNELS_H

#include "dev/cpu/cpu.h"

enum { AH_ATTENTION_TILE = 64, AH_ATTENTION_MAX_HEAD = 256 };

/* Strided views of one attention call; the gradients are null in forward. */
struct ah_attention {
    const float *qkv; /* [B,T,3C] */
    float *y, *lse;   /* [B,T,C], [B,H,T] */
    const float *dy;  /* [B,T,C] */
    float *dqkv;      /* [B,T,3C] */
    int64_t seq, channels;
    int heads, head_size;
    float scale;
    bool accumulate; /* into dqkv */
};

/* A strip of columns of two row-major matrices of `rows` rows and `stride` columns; every pointer is at the strip. */
struct ah_strip {
    const float *dy, *x; /* x is null for a plain column sum */
    const float *mean, *rstd;
    float *dweight, *dbias;
    int64_t rows, stride, cols;
    bool add_weight, add_bias;
};

struct ah_kernels {
    const char *name;
    bool (*usable)(void);
    void (*exp)(float *y, const float *x, int64_t n);
    void (*gelu)(float *y, const float *x, int64_t n);
    void (*gelu_bwd)(float *dx, const float *dy, const float *x, int64_t n, bool accumulate);
    void (*relu)(float *y, const float *x, int64_t n);
    void (*relu_bwd)(float *dx, const float *dy, const float *x, int64_t n, bool accumulate);
    void (*add)(float *y, const float *a, const float *b, int64_t n);
    void (*layernorm)(float *y, float *mean, float *rstd, const float *x, const float *weight, const float *bias,
                      int64_t rows, int64_t cols, float eps);
    void (*layernorm_bwd)(float *dx, const float *dy, const float *x, const float *weight, const float *mean,
                          const float *rstd, int64_t rows, int64_t cols, bool accumulate);
    void (*strip)(const struct ah_strip *strip);
    /* One row: dlogits = (softmax(logits) - onehot(target)) * scale, may be in place; gives -log softmax[target]. */
    double (*cross_entropy)(float *dlogits, const float *logits, int64_t cols, int64_t target, float scale);
    /* One tile of queries of one (batch, head) / one whole (batch, head). */
    void (*attention)(const struct ah_attention *job, int64_t batch, int head, int64_t tile, float *scratch);
    void (*attention_bwd)(const struct ah_attention *job, int64_t batch, int head, float *scratch);
    void (*adam)(float *p, float *m, float *v, const float *g, int64_t n, const struct ah_adam *adam, float decay_factor);
    double (*sum_squares)(const float *x, int64_t n);
};

extern const struct ah_kernels ah__kernels_avx512, ah__kernels_avx2, ah__kernels_plain;
/* The table in use: the widest usable one unless forced. */
const struct ah_kernels *ah__kernels(void);

/* A call with its operands bound to addresses; absent operands are null. */
struct ah_bound {
    struct ah_pool *pool;
    const struct ah_kernels *kernels;
    const struct ah_call *call;
    const void *in[AH_OP_MAX_INPUTS];
    void *out[AH_OP_MAX_OUTPUTS];
};

static inline bool ah__bound_adds(const struct ah_bound *bound, int output)
{
    return bound->call->attr.acc >> output & 1U;
}

/* `total` cut into `count` equal parts of `size` (the last one smaller), about `wanted` each and at most 2^20 parts. */
struct ah_cut {
    int64_t total, size;
    int count;
};
struct ah_cut ah__cut(int64_t total, int64_t wanted);
/* The length of part `index`, which begins at index * cut->size. */
int64_t ah__cut_length(const struct ah_cut *cut, int index);

/* The column sums of a whole matrix, strip by strip over the pool. */
void ah__strip_run(struct ah_pool *pool, const struct ah_kernels *kernels, const struct ah_strip *whole);

int ah__cpu_embedding(const struct ah_bound *bound);
int ah__cpu_embedding_bwd(const struct ah_bound *bound);
int ah__cpu_add_position(const struct ah_bound *bound);
int ah__cpu_position_bwd(const struct ah_bound *bound);
int ah__cpu_gelu(const struct ah_bound *bound);
int ah__cpu_gelu_bwd(const struct ah_bound *bound);
int ah__cpu_relu(const struct ah_bound *bound);
int ah__cpu_relu_bwd(const struct ah_bound *bound);
int ah__cpu_add(const struct ah_bound *bound);
int ah__cpu_copy(const struct ah_bound *bound);
int ah__cpu_layernorm(const struct ah_bound *bound);
int ah__cpu_layernorm_bwd(const struct ah_bound *bound);
int ah__cpu_linear(const struct ah_bound *bound);
int ah__cpu_linear_bwd_x(const struct ah_bound *bound);
int ah__cpu_linear_bwd_w(const struct ah_bound *bound);
int ah__cpu_linear_bwd_b(const struct ah_bound *bound);
int ah__cpu_attention(const struct ah_bound *bound);
int ah__cpu_attention_bwd(const struct ah_bound *bound);
int ah__cpu_cross_entropy(const struct ah_bound *bound);

#endif
