/* Attention written as graphs of operations, for cuDNN (attention_cudnn.h): which tensors have addresses, and the two
 * graphs. */
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
    AH_SDPA_MASK, /* as well */
    AH_SDPA_SCALE,
    AH_SDPA_NOTHING, /* -inf */
    AH_SDPA_ONE,
    AH_SDPA_WINDOW,
    AH_SDPA_ROLES
};

struct ah_cuda_sdpa {
    struct ah_cudnn_graph graph;
    int64_t uid[AH_SDPA_ROLES];        /* 0: no such tensor in this graph */
    int64_t batch, heads;              /* of a piece, divisors of the job's */
    int64_t dot_bytes, mask_bytes;     /* of the workspace, in front of the plan's */
    float scale, nothing, one, window; /* what by-value tensors point to */
};

/* Elements from one row of a sequence's mask of documents to the next: [T,T] in bf16, to be added to scores. */
int64_t ah__cuda_sdpa_mask_stride(const struct ah_cuda_attention *job);

/* Add the operations of a piece to the empty graph; a failure is the graph's. `batch` and `heads` are set. */
void ah__cuda_sdpa_forward(struct ah_cuda_sdpa *sdpa, const struct ah_cuda_attention *job);
void ah__cuda_sdpa_backward(struct ah_cuda_sdpa *sdpa, const struct ah_cuda_attention *job);

#endif
