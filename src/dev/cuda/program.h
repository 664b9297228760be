/* Inside the CUDA device: programs made ready and enqueued, and the operators they are built of.
 *
 * An operator is a prepare (shapes to launch geometry, algorithms, scratch) and an enqueue (addresses to launches on a
 * stream). Kernels proper are behind kernels.h, products behind gemm.h, cuDNN's attention behind attention_cudnn.h. */
#ifndef AH_DEV_CUDA_PROGRAM_H
#define AH_DEV_CUDA_PROGRAM_H

#include "base/alloc.h"
#include "dev/cuda/state.h"

struct ah_cuda_bound;

/* A call made ready: what enqueue() needs besides addresses. */
struct ah_cuda_call {
    int (*enqueue)(const struct ah_cuda_bound *bound);
    const struct ah_call *call;
    const struct ah_call *next; /* that follows it in the program, or null */
    bool takes_next;            /* set by prepare: both are done at once, and the next is passed over */
    struct ah_cuda *cuda;
    enum ah_dtype dtype;          /* the compute dtype: of parameters, activations and their gradients */
    int64_t workspace_bytes;      /* scratch while it runs */
    bool adds[AH_OP_MAX_OUTPUTS]; /* output j is added to */
    void *owned;                  /* made by prepare with ah__new(), or null */
    /* Called before `owned` is freed, also when the prepare that set it has failed: gives back what lies behind it. Or
     * null. */
    void (*release)(struct ah_cuda_call *call);
};

/* A call with its operands bound to addresses; absent operands are null. */
struct ah_cuda_bound {
    cudaStream_t stream;
    const struct ah_cuda_call *call;
    const void *in[AH_OP_MAX_INPUTS];
    void *out[AH_OP_MAX_OUTPUTS];
    const void *next_in[AH_OP_MAX_INPUTS]; /* of the call that is taken along, else null */
    char *workspace;                       /* 256-byte aligned */
};

/* `prepare` finds all of the call filled in but its own part, and the operands as the operator table wants them.
 * AH_EDEVICE for what the kernels cannot do, naming operand, found and expected. */
struct ah_cuda_operator {
    int (*prepare)(struct ah_cuda_call *call);
    int (*enqueue)(const struct ah_cuda_bound *bound);
};

/* A program with everything resolved that does not depend on addresses. */
struct ah_cuda_program {
    struct ah_prepared prepared;
    struct ah_cuda_call *calls;
    int count;
};

/* AH_EDEVICE names the call, the operand, what it is and what the device runs; AH_ENOMEM. */
int ah__cuda_program_new(struct ah_cuda_program **out, struct ah_cuda *cuda, const struct ah_program *program);
void ah__cuda_program_free(struct ah_cuda_program *program); /* null is fine */
/* Puts all launches of a program on the stream. */
int ah__cuda_program_enqueue(const struct ah_cuda_program *program, cudaStream_t stream,
                             char *const base[AH_SPACE_COUNT]);

#define AH_CUDA_DECLARE(id, name) extern const struct ah_cuda_operator ah__cuda_##name;
AH_OP_LIST(AH_CUDA_DECLARE)
#undef AH_CUDA_DECLARE

#endif
