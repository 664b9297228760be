/* The device's own kernels as C functions: each enqueues launches on a stream and returns their error. `void *`
 * addresses are elements of `dtype`; arithmetic is fp32, results are rounded once, and the order of sums follows from
 * shapes alone. Addresses are 16-byte aligned unless said otherwise.
 *
 * The .cu files launch kernels through launch.cuh only. */
#ifndef AH_DEV_CUDA_KERNELS_H
#define AH_DEV_CUDA_KERNELS_H

#include <cuda_runtime_api.h>

#include "dev/dev.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- kernels_task.cu, kernels_adam.cu: tasks that are no programs; the struct is as in dev.h */

cudaError_t ah__cuda_adam(cudaStream_t stream, const struct ah_task *task);
/* Casts, also narrowing in place; `zeros` become zero. */
cudaError_t ah__cuda_cast(cudaStream_t stream, const struct ah_task *task);
cudaError_t ah__cuda_expand(cudaStream_t stream, const struct ah_task *task);
/* `partials`: AH_CUDA_PARTIALS doubles. */
cudaError_t ah__cuda_sqnorm(cudaStream_t stream, const struct ah_task *task, double *partials);
cudaError_t ah__cuda_clip(cudaStream_t stream, const struct ah_task *task);

/* Sums over ranks: to[i] is the sum of element i of each rank, in order of ranks. This rank's elements are at `own`,
 * which may be `to`, the others' are step_bytes * rank bytes into the scratch. In fp32, rounded once; `_doubles`: in
 * double. */
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

/* Does gelu, gelu_erf, relu, silu_mul, gelu_mul, their gradients, add and scale, by `factor`. Operands are as in the
 * operator table, n elements each, in place if the table allows it. cudaErrorNotSupported for other operators. */
cudaError_t ah__cuda_elementwise_enqueue(cudaStream_t stream, enum ah_op op, enum ah_dtype dtype, void *const *out,
                                         const void *const *in, int64_t n, float factor);

/* Products of halves of rows: dy and y have `rows` of `cols` elements, x and dx of 2 * cols. */
struct ah_cuda_halves {
    void *out;
    const void *const *in; /* x, or dy and x */
    int64_t rows, cols;
    float scale, limit; /* of swiglu_clamped */
};
/* Does silu_mul_halves, swiglu_clamped and their gradients. cudaErrorNotSupported for other operators. */
cudaError_t ah__cuda_halves_enqueue(cudaStream_t stream, enum ah_op op, enum ah_dtype dtype,
                                    const struct ah_cuda_halves *job);

/* ---- kernels_embedding.cu: ids need 4-byte alignment only. For an id that is not below `vocabulary` no row of the
 * table is read: its token becomes NaN, and so does the loss. */

/* Looks up x [rows,cols] in table [vocabulary,cols]. */
cudaError_t ah__cuda_embedding_enqueue(cudaStream_t stream, enum ah_dtype dtype, void *x, const void *table,
                                       const int32_t *ids, int64_t rows, int64_t cols, int64_t vocabulary);
/* Computes dtable [vocabulary,cols] (+)= the rows of dx [rows,cols] with that id: sums of up to 64 tokens in order,
 * then the sum of these in order. Ids outside the table are ignored. */
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
/* Computes y [batch,seq,cols] = x + seq rows of table, which needs no alignment as a whole; y may be x. */
cudaError_t ah__cuda_add_position_enqueue(cudaStream_t stream, enum ah_dtype dtype, void *y, const void *x,
                                          const void *table, int64_t batch, int64_t seq, int64_t cols);
/* Computes dtable [positions,cols]: from row `first` on (+)= the sum over the batch of dx [batch,seq,cols], in order;
 * other rows are zero. */
cudaError_t ah__cuda_position_bwd_enqueue(cudaStream_t stream, enum ah_dtype dtype, float *dtable, const void *dx,
                                          int64_t batch, int64_t seq, int64_t cols, int64_t positions, int64_t first,
                                          bool adds);

/* ---- kernels_norm.cu: rows of up to AH_CUDA_NORM_BYTES */

enum { AH_CUDA_NORM_BYTES = 1 << 16 };

/* Layer normalisation; if `mean` is null, by the root mean square. */
struct ah_cuda_norm {
    void *y;
    float *mean, *rstd; /* [rows] */
    const void *x;      /* [rows,cols] */
    const void *weight; /* [cols] */
    const void *bias;   /* [cols] or null */
    int64_t rows, cols;
    float eps, offset; /* eps is added to the mean square, offset to the weight */
};
cudaError_t ah__cuda_norm_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_norm *job);

struct ah_cuda_norm_bwd {
    void *dx;               /* may be dy or x */
    float *dweight, *dbias; /* [cols]; null: not computed */
    const void *dy, *x, *weight;
    const float *mean, *rstd; /* mean null: by the root mean square */
    int64_t rows, cols;
    float offset; /* added to the weight */
    bool add_x, add_weight, add_bias;
    float *partials;
};
int64_t ah__cuda_norm_bwd_workspace(enum ah_dtype dtype, int64_t rows, int64_t cols); /* bytes of `partials` */
cudaError_t ah__cuda_norm_bwd_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_norm_bwd *job);

/* ---- kernels_sums.cu */

/* Computes sum [cols] (+)= the sum of the rows of x [rows,cols]. */
int64_t ah__cuda_column_sum_workspace(enum ah_dtype dtype, int64_t rows, int64_t cols); /* bytes of `partials` */
cudaError_t ah__cuda_column_sum_enqueue(cudaStream_t stream, enum ah_dtype dtype, float *sum, const void *x,
                                        int64_t rows, int64_t cols, bool adds, float *partials);

/* ---- kernels_rotary.cu */

enum { AH_CUDA_ROTARY_PAIRS = 256 };

/* Rotates in place: in each head of `size` elements the pairs (i, i + half), from i = `first` on, by their angle at the
 * token's position. by_head: heads are q, k and v in turn, and only q and k are rotated. */
struct ah_cuda_rotary {
    void *x;                  /* [batch,seq,heads * size], by_head [batch,seq,heads / 2 * 3 * size] */
    const int32_t *positions; /* [batch,seq]; null: position = place in the sequence */
    int64_t batch, seq, heads, size, half;
    int64_t first, pairs; /* at most AH_CUDA_ROTARY_PAIRS */
    float magnitude;      /* factor of the rotated elements */
    bool by_head;
    /* The angle from one position to the next in parts of 2^-64 of a turn: whole turns overflow and vanish, so that no
     * position costs precision. */
    uint64_t turn[AH_CUDA_ROTARY_PAIRS];
};
cudaError_t ah__cuda_rotary_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_rotary *job);

/* ---- kernels_cache.cu */

/* The key/value cache of generation; strides are elements. */
struct ah_cuda_cache {
    void *cache;              /* [batch,rows,2*keys]: each row has the keys of all heads, then their values */
    const void *q, *k, *v;    /* [batch,seq,...] from the first channel of head 0 on; q is null in a write, k and v in
                               * attention */
    void *y;                  /* [batch,seq,heads * size] */
    const int32_t *positions; /* [batch,seq]; null: place in the sequence. Tokens outside the cache are ignored */
    int64_t batch, seq, rows, keys;
    int64_t stride, head;   /* steps of q, or of k and v: elements from one token, and from one head, to the next */
    int64_t window;         /* number of rows that a query sees; rows or more: all up to its own */
    int heads, size, group; /* heads of q; group: heads that share a head of the cache. In a write, heads of the
                             * cache */
    float scale, cap;       /* factor and cap of scores; cap 0: no cap */
    const void *sinks;      /* [heads]; or null */
};
cudaError_t ah__cuda_cache_write_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_cache *job);
cudaError_t ah__cuda_attention_cached_enqueue(cudaStream_t stream, enum ah_dtype dtype,
                                              const struct ah_cuda_cache *job);

/* ---- kernels_experts.cu: mixtures of experts; operands as src/op/experts.c has them, [rows,picks] of each token. Ids
 * need 4-byte alignment only. */

struct ah_cuda_route {
    float *weights;         /* [rows,picks] */
    int32_t *slots;         /* [rows,picks] */
    int32_t *source, *ends; /* [rows * picks], below 2^31; [experts] */
    const void *logits;     /* [rows,experts] */
    int64_t rows, experts;
    int picks; /* at most AH_MOST_PICKS */
    bool normalised;
    char *workspace;
};
int64_t ah__cuda_route_workspace(int64_t copies, int64_t experts); /* bytes; copies: rows * picks */
/* A logit that is NaN counts as the largest, so that the loss becomes NaN. */
cudaError_t ah__cuda_route_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_route *job);

struct ah_cuda_route_bwd {
    void *dlogits;
    const void *logits;
    const float *dweights, *weights;
    const int32_t *slots, *ends;
    int64_t rows, experts;
    int picks;
    bool normalised;
};
cudaError_t ah__cuda_route_bwd_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_route_bwd *job);

/* The weights of experts as a matrix [rows,experts]. */
struct ah_cuda_shares {
    void *y;
    const float *weights; /* [rows,picks] */
    const void *dy;
    float *dweights;
    const int32_t *slots, *ends;
    int64_t rows, experts;
    int picks;
};
cudaError_t ah__cuda_shares_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_shares *job);
cudaError_t ah__cuda_shares_bwd_enqueue(cudaStream_t stream, enum ah_dtype dtype, const struct ah_cuda_shares *job);

/* Sums of the rows of each expert. */
struct ah_cuda_grouped_sum {
    float *sums; /* [experts,cols] */
    const void *x;
    const int32_t *ends;
    int64_t experts, cols;
    bool adds;
};
cudaError_t ah__cuda_grouped_sum_enqueue(cudaStream_t stream, enum ah_dtype dtype,
                                         const struct ah_cuda_grouped_sum *job);

/* Copies, sums and scaled copies of rows of `cols` elements. */
struct ah_cuda_rows {
    void *to;
    const void *from, *other; /* other: x of scale_rows_bwd and gate_rows_bwd */
    const int32_t *ids;       /* slots of combine, else source */
    const float *weights;
    float *dweights;
    const void *gate; /* [rows], of gate_rows and its gradient */
    void *dgate;
    int64_t rows, cols; /* rows of `to` */
    int picks;
};
/* Does dispatch, combine, scale_rows, gate_rows and the gradients of the last two. cudaErrorNotSupported for other
 * operators. */
cudaError_t ah__cuda_rows_enqueue(cudaStream_t stream, enum ah_op op, enum ah_dtype dtype,
                                  const struct ah_cuda_rows *job);

/* ---- kernels_grouped.cu: a product for each expert, of its rows [ends[e - 1], ends[e]) */

/* Each element is one sum, in the order of its terms, whatever the tiles are. */
struct ah_cuda_grouped {
    void *c;
    const void *a, *b;
    const void *bias;                    /* [experts,outer], of grouped_linear; null: none */
    const int32_t *ends;                 /* [experts] */
    int64_t experts, rows, outer, inner; /* matrices are [experts,outer,inner] */
    bool adds;                           /* to c, of gradients */
};
/* Does grouped_linear and its gradients: c, a, b are output 0 and inputs 0 and 1. cudaErrorNotSupported for other
 * operators. */
cudaError_t ah__cuda_grouped_enqueue(cudaStream_t stream, enum ah_op op, enum ah_dtype dtype,
                                     const struct ah_cuda_grouped *job);

/* ---- kernels_loss.cu: targets need 4-byte alignment only. A target that is no class makes the loss NaN. */

/* Factors of losses, in device memory. */
struct ah_cuda_loss_scale {
    double loss;     /* factor of the sum of the rows' losses */
    float gradients; /* factor of the gradients of logits */
};
/* Sets the factors to *given, or 1 / `rows`; with targets to 1 / the number of those that are not AH_TARGET_IGNORED, at
 * least 1. */
cudaError_t ah__cuda_loss_scale_enqueue(cudaStream_t stream, struct ah_cuda_loss_scale *scale, const float *given,
                                        const int32_t *targets, int64_t rows);
/* Softmax cross-entropy of rows: writes their losses to losses[rows], and the gradients of their logits times the
 * factor to dlogits, which may be logits. Both are [rows,cols] with rows `stride` elements apart; the elements between
 * rows are undefined. */
struct ah_cuda_cross_entropy {
    void *dlogits;
    const void *logits;
    const int32_t *targets;
    double *losses;
    int64_t rows, cols, stride;
    bool may_ignore; /* AH_TARGET_IGNORED has no loss and no gradient; else it is an invalid class */
    float cap;       /* logits l become cap * tanh(l / cap); 0: no cap */
    const struct ah_cuda_loss_scale *scale;
};
cudaError_t ah__cuda_cross_entropy_enqueue(cudaStream_t stream, enum ah_dtype dtype,
                                           const struct ah_cuda_cross_entropy *job);
/* Computes loss [1]: the sum of losses [rows], scaled, in an order that follows from their number. */
cudaError_t ah__cuda_loss_sum_enqueue(cudaStream_t stream, float *loss, const double *losses, int64_t rows,
                                      const struct ah_cuda_loss_scale *scale);

#ifdef __cplusplus
}
#endif

#endif
