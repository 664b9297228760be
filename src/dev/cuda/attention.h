/* Causal attention on the GPU: one job, which the kernels of kernels_attention.cu do for every shape and cuDNN for
 * some.
 *
 * Both save the natural logarithm of each row's sum of exponentials and read it in backward, so that one may do the
 * forward and the other the backward. */
#ifndef AH_DEV_CUDA_ATTENTION_H
#define AH_DEV_CUDA_ATTENTION_H

#include <cuda_runtime_api.h>

#include "dev/dev.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { AH_CUDA_ATTENTION_MAX_HEAD = 256 };

/* An attention job. Strides are elements from one token to the next; a batch is `seq` tokens. Pointers are views from
 * the first channel of head 0 on; the gradients are null in forward. */
struct ah_cuda_attention {
    enum ah_dtype dtype;
    const void *q, *k, *v; /* [B,T,heads * size] of q_stride, [B,T,kv_heads * size] of kv_stride */
    void *y;               /* [B,T,channels] */
    float *lse;            /* [B,heads,T] */
    const void *dy;        /* [B,T,channels] */
    void *dq, *dk, *dv;    /* as q, k, v */
    float *dot;            /* [B,heads,T] scratch of backward, 16-byte aligned: sums of dy * y */
    int64_t batch, seq, channels, q_stride, kv_stride;
    int64_t q_head, kv_head;  /* elements from one head to the next */
    int64_t window;           /* number of keys that a query sees; seq or more: all up to its own */
    const int32_t *positions; /* [B,T] position of each token in its document, before which it sees nothing; or null */
    bool documents;           /* enqueued jobs will have positions; known before the addresses are */
    int heads, head_size;
    int group; /* number of adjacent heads that share a head of k and v */
    float scale;
    float cap;                /* cap of scores: s becomes cap * tanh(s / cap); 0: no cap */
    const void *sinks;        /* forward, and the sinks' gradient: [heads]; or null */
    float *dsinks;            /* the sinks' gradient: [heads] */
    bool add_sinks;           /* add to dsinks instead of overwriting */
    bool add_q, add_k, add_v; /* add to dq, dk, dv instead of overwriting */
};

/* Enqueue our own kernels: any head size up to AH_CUDA_ATTENTION_MAX_HEAD, any seq. */
cudaError_t ah__cuda_attention_enqueue(cudaStream_t stream, const struct ah_cuda_attention *job);
cudaError_t ah__cuda_attention_bwd_enqueue(cudaStream_t stream, const struct ah_cuda_attention *job);
/* Gives sinks their share of y and lse, which are of attention without sinks. Our own forward needs no such step. */
cudaError_t ah__cuda_sinks_enqueue(cudaStream_t stream, const struct ah_cuda_attention *job);
/* Computes dsinks from dy, y, lse and sinks, through dot. */
cudaError_t ah__cuda_sinks_bwd_enqueue(cudaStream_t stream, const struct ah_cuda_attention *job);
/* Fills a mask [batch,seq,stride] in bf16, which cuDNN adds to scores because it knows no positions: 0 from the first
 * token of the query's document on, and before it a number so low that no score counts. It is finite, so that keys of
 * which a query sees none make no NaN. `stride`: a multiple of 8, at least `seq`; `mask`: 16-byte aligned. */
cudaError_t ah__cuda_document_mask_enqueue(cudaStream_t stream, void *mask, const int32_t *positions, int64_t batch,
                                           int64_t seq, int64_t stride);

#ifdef __cplusplus
}
#endif

#endif
