/* Attention as graphs of operations for cuDNN (attention_cudnn.h): the tensors with addresses, and the two graphs. */
#ifndef AH_DEV_CUDA_ATTENTION_GRAPH_H
#define AH_DEV_CUDA_ATTENTION_GRAPH_H

#include "dev/cuda/attention.h"
#include "dev/cuda/cudnn_graph.h"

/* Tensors that have an address. */
enum ah_sdpa_role {
    AH_SDPA_Q,
    AH_SDPA_K,
    AH_SDPA_V,
    AH_SDPA_Y,
    AH_SDPA_LSE,
    AH_SDPA_DY,
    AH_SDPA_DQ,
    AH_SDPA_DK,
    AH_SDPA_DV,
    AH_SDPA_DOT,  /* in the workspace */
    AH_SDPA_MASK, /* in the workspace */
    AH_SDPA_SCALE,
    AH_SDPA_NOTHING, /* -inf */
    AH_SDPA_ONE,
    AH_SDPA_WINDOW,
    AH_SDPA_ROLES
};

struct ah_cuda_sdpa {
    struct ah_cudnn_graph graph;
    int64_t uid[AH_SDPA_ROLES];        /* 0: no such tensor in this graph */
    int64_t batch, heads;              /* size of a piece; divisors of the job's */
    int64_t dot_bytes, mask_bytes;     /* bytes of the workspace before the plan's */
    float scale, nothing, one, window; /* values of by-value tensors */
};

/* Returns the elements from one row to the next of a sequence's mask of documents: [T,T] in bf16, added to scores. */
int64_t ah__cuda_sdpa_mask_stride(const struct ah_cuda_attention *job);

/* Add the operations of a piece to the empty graph, which records a failure. `batch` and `heads` are set. */
void ah__cuda_sdpa_forward(struct ah_cuda_sdpa *sdpa, const struct ah_cuda_attention *job);
void ah__cuda_sdpa_backward(struct ah_cuda_sdpa *sdpa, const struct ah_cuda_attention *job);

#endif
