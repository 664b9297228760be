/* A graph of operations over tensors for cuDNN's backend interface, and its plan. All of it is made when a program is
 * prepared. */
#ifndef AH_DEV_CUDA_CUDNN_GRAPH_H
#define AH_DEV_CUDA_CUDNN_GRAPH_H

#include <stdint.h>

#include <cudnn.h>

struct ah_cuda;

enum { AH_CUDNN_MADE = 160, AH_CUDNN_OPERATIONS = 32 };

/* Zero but for `cuda` to begin with. It remembers a failure and does nothing after it, so that many calls need one
 * check at the end. */
struct ah_cudnn_graph {
    struct ah_cuda *cuda;
    cudnnBackendDescriptor_t made[AH_CUDNN_MADE]; /* every descriptor, as long as the graph lives */
    cudnnBackendDescriptor_t operation[AH_CUDNN_OPERATIONS];
    int made_count, operations;
    int64_t tensors; /* the last tensor's unique id */
    cudnnStatus_t status;
    const char *call;              /* the call that failed; static text */
    cudnnBackendDescriptor_t plan; /* null: no plan was found */
    int64_t plan_bytes;            /* bytes of the plan's workspace */
    char reason[96];               /* reason why the last configuration was refused */
};

/* Dimensions of a tensor and strides in elements: batch, head, row, column. */
struct ah_cudnn_extent {
    int64_t size[4], stride[4];
};

/* A pointwise operation. */
struct ah_cudnn_pointwise {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t type; /* type of the arithmetic */
    int64_t axis;         /* for CUDNN_POINTWISE_GEN_INDEX */
};

/* Adds a tensor. `flag`: the attribute that is true for it (virtual or by value); CUDNN_ATTR_TENSOR_UNIQUE_ID:
 * neither. */
cudnnBackendDescriptor_t ah__cudnn_tensor(struct ah_cudnn_graph *g, cudnnDataType_t type,
                                          const struct ah_cudnn_extent *extent, cudnnBackendAttributeName_t flag);
/* Adds c = a b, over the last two dimensions, in fp32. */
void ah__cudnn_matmul(struct ah_cudnn_graph *g, cudnnBackendDescriptor_t c, cudnnBackendDescriptor_t a,
                      cudnnBackendDescriptor_t b);
/* Adds y = mode(x), x mode b, or t ? x : b; b and t may be null. */
void ah__cudnn_pointwise(struct ah_cudnn_graph *g, struct ah_cudnn_pointwise what, cudnnBackendDescriptor_t y,
                         cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t t);
/* Adds a reduction of x to y, which is smaller in the reduced dimensions; in fp32. */
void ah__cudnn_reduce(struct ah_cudnn_graph *g, cudnnReduceTensorOp_t operator, cudnnBackendDescriptor_t y,
                      cudnnBackendDescriptor_t x);
/* Adds y: the elements of x in other dimensions and strides, perhaps of another type. */
void ah__cudnn_reshape(struct ah_cudnn_graph *g, cudnnBackendDescriptor_t y, cudnnBackendDescriptor_t x);
/* Makes the plan: the first of the heuristic's (mode A) choices that can be finalized, is deterministic and needs no
 * more workspace. If there is none, returns AH_OK without a plan, and `reason` says why. AH_EDEVICE: the graph itself
 * is refused; AH_ENOMEM. */
int ah__cudnn_plan(struct ah_cudnn_graph *g, int64_t limit_bytes);
void ah__cudnn_graph_fini(struct ah_cudnn_graph *g);

/* Fails with AH_EDEVICE and "cuDNN: CALL: its message". */
int ah__cudnn_failure(const struct ah_cuda *cuda, const char *call, cudnnStatus_t status);

#endif
