/* A graph of operations over tensors as cuDNN's backend interface wants it, and its plan. All of it is made when a
 * program is made ready. */
#ifndef AH_DEV_CUDA_CUDNN_GRAPH_H
#define AH_DEV_CUDA_CUDNN_GRAPH_H

#include <stdint.h>

#include <cudnn.h>

struct ah_cuda;

enum { AH_CUDNN_MADE = 160, AH_CUDNN_OPERATIONS = 32 };

/* Zero but for `cuda` to begin with. After a failure, which it remembers, nothing more is done: functions may be called
 * one after the other and looked at in the end. */
struct ah_cudnn_graph {
    struct ah_cuda *cuda;
    cudnnBackendDescriptor_t made[AH_CUDNN_MADE]; /* every descriptor, as long as the graph lives */
    cudnnBackendDescriptor_t operation[AH_CUDNN_OPERATIONS];
    int made_count, operations;
    int64_t tensors; /* the last one's unique id */
    cudnnStatus_t status;
    const char *call;              /* that failed; static text */
    cudnnBackendDescriptor_t plan; /* null: none was found */
    int64_t plan_bytes;            /* of workspace that it wants */
    char reason[96];               /* why the last configuration that was refused is none */
};

/* Dimensions of a tensor and strides in elements: batch, head, row, column. */
struct ah_cudnn_extent {
    int64_t size[4], stride[4];
};

/* What a pointwise operation does. */
struct ah_cudnn_pointwise {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t type; /* it computes in */
    int64_t axis;         /* of CUDNN_POINTWISE_GEN_INDEX */
};

/* `flag`: the attribute that is true of it (virtual or by value), CUDNN_ATTR_TENSOR_UNIQUE_ID: neither. */
cudnnBackendDescriptor_t ah__cudnn_tensor(struct ah_cudnn_graph *g, cudnnDataType_t type,
                                          const struct ah_cudnn_extent *extent, cudnnBackendAttributeName_t flag);
/* c = a b, over the last two dimensions, in fp32. */
void ah__cudnn_matmul(struct ah_cudnn_graph *g, cudnnBackendDescriptor_t c, cudnnBackendDescriptor_t a,
                      cudnnBackendDescriptor_t b);
/* y = mode(x), x mode b, or t ? x : b; b and t may be null. */
void ah__cudnn_pointwise(struct ah_cudnn_graph *g, struct ah_cudnn_pointwise what, cudnnBackendDescriptor_t y,
                         cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t t);
/* y is smaller than x in the dimensions that are reduced; in fp32. */
void ah__cudnn_reduce(struct ah_cudnn_graph *g, cudnnReduceTensorOp_t operator, cudnnBackendDescriptor_t y,
                      cudnnBackendDescriptor_t x);
/* y: the elements of x in other dimensions and strides, perhaps of another type. */
void ah__cudnn_reshape(struct ah_cudnn_graph *g, cudnnBackendDescriptor_t y, cudnnBackendDescriptor_t x);
/* The plan is the first of the heuristic's (mode A) choices that can be finalized, is deterministic and wants no more
 * workspace. None: AH_OK without a plan, and `reason` says why. AH_EDEVICE: the graph itself is refused; AH_ENOMEM. */
int ah__cudnn_plan(struct ah_cudnn_graph *g, int64_t limit_bytes);
void ah__cudnn_graph_fini(struct ah_cudnn_graph *g);

/* AH_EDEVICE, with "cuDNN: CALL: what it says". */
int ah__cudnn_failure(const struct ah_cuda *cuda, const char *call, cudnnStatus_t status);

#endif
