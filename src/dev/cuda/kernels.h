/* The device's own kernels as C functions: each puts launches on a stream and returns what the launch says. Elements
 * are of `dtype` where an address is `void *`; arithmetic is fp32, results are rounded once, and sums have one order
 * that follows from shapes alone. Addresses are 16-byte aligned unless said otherwise.
 *
 * The .cu files behind it launch through launch.cuh only. */
#ifndef AH_DEV_CUDA_KERNELS_H
#define AH_DEV_CUDA_KERNELS_H

#include <cuda_runtime_api.h>

#include "dev/dev.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- kernels_task.cu, kernels_adam.cu: tasks that are no programs; the struct is as in dev.h */

cudaError_t ah__cuda_adam(cudaStream_t stream, const struct ah_task *task);
/* Narrowing in place included; `zeros` become zero. */
cudaError_t ah__cuda_cast(cudaStream_t stream, const struct ah_task *task);
cudaError_t ah__cuda_expand(cudaStream_t stream, const struct ah_task *task);
/* `partials`: AH_CUDA_PARTIALS doubles. */
cudaError_t ah__cuda_sqnorm(cudaStream_t stream, const struct ah_task *task, double *partials);
cudaError_t ah__cuda_clip(cudaStream_t stream, const struct ah_task *task);

/* to[i] is the sum of what each rank has for it, in order of ranks: this one's from `own`, which may be `to`, the
 * others' from step_bytes * rank bytes into the scratch. In fp32, rounded once; `_doubles`: in double. */
struct ah_cuda_rank_sum {
    void *to;
    const void *own;
    const char *scratch;
    int64_t step_bytes, count;
    int rank, world_size;
};
cudaError_t ah__cuda_rank_sum_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_rank_sum *sum);
cudaError_t ah__cuda_rank_sum_doubles_enqueue(cudaStream_t stream, const struct ah_cuda_rank_sum *sum);

/* ---- kernels_elementwise.cu */

/* gelu, gelu_erf, relu, silu_mul, gelu_mul, their gradients, add and scale, by `factor`: operands as in the operator's
 * row, n elements each, in place where the row says so. cudaErrorNotSupported for other operators. */
cudaError_t ah__cuda_elementwise_enqueue(cudaStream_t stream, enum ah_op op, enum ah_dtype dtype, void *const *out,
                                         const void *const *in, int64_t n, float factor);

/* ---- kernels_embedding.cu: ids need 4-byte alignment only. A row of the table for an id that is not below
 * `vocabulary` is not read: its token becomes NaN, and so does the loss. */

/* x [rows,cols] from table [vocabulary,cols]. */
cudaError_t ah__cuda_embedding_enqueue(cudaStream_t stream, enum ah_dtype dtype, void *x, const void *table,
                                       const int32_t *ids, int64_t rows, int64_t cols, int64_t vocabulary);
/* dtable [vocabulary,cols] (+)= the rows of dx [rows,cols] whose id it is: those of up to 64 tokens in order, then
 * these sums in order. Ids outside the table count nowhere. */
struct ah_cuda_embedding_bwd {
    float *dtable;
    const void *dx;
    const int32_t *ids;
    int64_t rows, cols, vocabulary; /* rows below 2^31 */
    bool adds;
    char *workspace;
};
int64_t ah__cuda_embedding_bwd_workspace(int64_t rows, int64_t cols); /* bytes */
cudaError_t ah__cuda_embedding_bwd_enqueue(cudaStream_t stream, enum ah_dtype dtype,
                                           const struct ah_cuda_embedding_bwd *job);
/* y [batch,seq,cols] = x + seq rows of table, which need no alignment as a whole; y may be x. */
cudaError_t ah__cuda_add_position_enqueue(cudaStream_t stream, enum ah_dtype dtype, void *y, const void *x,
                                          const void *table, int64_t batch, int64_t seq, int64_t cols);
/* dtable [positions,cols]: from row `first` on (+)= the sum over the batch of dx [batch,seq,cols], in order; other rows
 * are zero. */
cudaError_t ah__cuda_position_bwd_enqueue(cudaStream_t stream, enum ah_dtype dtype, float *dtable, const void *dx,
                                          int64_t batch, int64_t seq, int64_t cols, int64_t positions, int64_t first,
                                          bool adds);

/* ---- kernels_norm.cu: rows of up to AH_CUDA_NORM_BYTES */

enum { AH_CUDA_NORM_BYTES = 1 << 16 };

/* Layer normalisation; without mean (null) root mean square. */
struct ah_cuda_norm {
    void *y;
    float *mean, *rstd; /* [rows] */
    const void *x;      /* [rows,cols] */
    const void *weight; /* [cols] */
    const void *bias;   /* [cols] or null */
    int64_t rows, cols;
    float eps, offset; /* added to the mean square; to the weight */
};
cudaError_t ah__cuda_norm_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_norm *job);

struct ah_cuda_norm_bwd {
    void *dx;               /* may be dy or x */
    float *dweight, *dbias; /* [cols]; null: not wanted */
    const void *dy, *x, *weight;
    const float *mean, *rstd; /* mean null: root mean square */
    int64_t rows, cols;
    float offset; /* of the weight */
    bool add_x, add_weight, add_bias;
    float *partials;
};
int64_t ah__cuda_norm_bwd_workspace(enum ah_dtype dtype, int64_t rows, int64_t cols); /* bytes of `partials` */
cudaError_t ah__cuda_norm_bwd_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_norm_bwd *job);

/* ---- kernels_sums.cu */

/* sum [cols] (+)= the rows of x [rows,cols]. */
int64_t ah__cuda_column_sum_workspace(enum ah_dtype dtype, int64_t rows, int64_t cols); /* bytes of `partials` */
cudaError_t ah__cuda_column_sum_enqueue(cudaStream_t stream, enum ah_dtype dtype, float *sum, const void *x,
                                        int64_t rows, int64_t cols, bool adds, float *partials);

/* ---- kernels_rotary.cu */

enum { AH_CUDA_ROTARY_PAIRS = 256 };

/* In place: of each head of `size` elements the pairs (i, i + half), i from `first` on, turn by their angle at the
 * token's position. by_head: of each three, which are q, k and v of a head, the first two. */
struct ah_cuda_rotary {
    void *x;                  /* [batch,seq,heads * size], by_head [batch,seq,heads / 2 * 3 * size] */
    const int32_t *positions; /* [batch,seq]; null: tokens are where they lie */
    int64_t batch, seq, heads, size, half;
    int64_t first, pairs; /* at most AH_CUDA_ROTARY_PAIRS */
    float magnitude;      /* what is rotated is multiplied by it */
    bool by_head;
    /* The angle from one position to the next in parts of 2^-64 of a turn: what exceeds whole turns falls away, and no
     * position costs precision. */
    uint64_t turn[AH_CUDA_ROTARY_PAIRS];
};
cudaError_t ah__cuda_rotary_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_rotary *job);

/* ---- kernels_cache.cu */

/* Keys and values of generation; strides are elements. */
struct ah_cuda_cache {
    void *cache;              /* [batch,rows,2*keys]: of each row the keys of all heads, then their values */
    const void *q, *k, *v;    /* [batch,seq,...] from the first channel of head 0; q null when it is written, k and v
                               * when it is seen */
    void *y;                  /* [batch,seq,heads * size] */
    const int32_t *positions; /* [batch,seq]; null: tokens are where they lie. Those outside the cache are left out */
    int64_t batch, seq, rows, keys;
    int64_t stride, head;   /* of q, or of k and v: from one token to the next, from one head to the next */
    int64_t window;         /* rows that a query sees; rows or more: all up to its own */
    int heads, size, group; /* of q; heads that share one of the cache. When it is written, heads of the cache */
    float scale, cap;       /* of scores; cap 0: they have none */
};
cudaError_t ah__cuda_cache_write_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_cache *job);
cudaError_t ah__cuda_attention_cached_enqueue(cudaStream_t stream, enum ah_dtype dtype,
                                              const struct ah_cuda_cache *job);

/* ---- kernels_loss.cu: targets need 4-byte alignment only. A target that is no class makes the loss NaN. */

/* What losses are multiplied by, in device memory. */
struct ah_cuda_loss_scale {
    double loss;     /* the sum of the rows' losses */
    float gradients; /* those of the logits */
};
/* *given, or one over `rows`; with targets over the number of those that are not AH_TARGET_IGNORED, at least 1. */
cudaError_t ah__cuda_loss_scale_enqueue(cudaStream_t stream, struct ah_cuda_loss_scale *scale, const float *given,
                                        const int32_t *targets, int64_t rows);
/* Softmax cross-entropy of rows: what they lose goes to losses[rows], and their logits' gradients times the scale to
 * dlogits, which may be logits. Both [rows,cols], rows `stride` elements apart; what lies between is undefined. */
struct ah_cuda_cross_entropy {
    void *dlogits;
    const void *logits;
    const int32_t *targets;
    double *losses;
    int64_t rows, cols, stride;
    bool may_ignore; /* AH_TARGET_IGNORED loses nothing and has no gradient; else it is no class */
    float cap;       /* logits l count as cap * tanh(l / cap); 0: as they are */
    const struct ah_cuda_loss_scale *scale;
};
cudaError_t ah__cuda_cross_entropy_enqueue(cudaStream_t stream, enum ah_dtype dtype,
                                           const struct ah_cuda_cross_entropy *job);
/* loss [1]: the sum of losses [rows], in an order that follows from their number, scaled. */
cudaError_t ah__cuda_loss_sum_enqueue(cudaStream_t stream, float *loss, const double *losses, int64_t rows,
                                      const struct ah_cuda_loss_scale *scale);

#ifdef __cplusplus
}
#endif

#endif
