/* Inside the CUDA device: prepared programs, and the operators of which they are built.
 *
 * An operator is a prepare (shapes to launch geometry, algorithms, scratch) and an enqueue (addresses to launches on a
 * stream). kernels.h has the kernels, gemm.h the products, attention_cudnn.h cuDNN's attention. */
#ifndef AH_DEV_CUDA_PROGRAM_H
#define AH_DEV_CUDA_PROGRAM_H

#include "base/alloc.h"
#include "dev/cuda/state.h"

struct ah_cuda_bound;

/* A prepared call: everything that enqueue() needs but addresses. */
struct ah_cuda_call {
    int (*enqueue)(const struct ah_cuda_bound *bound);
    const struct ah_call *call;
    const struct ah_call *next; /* next call of the program, or null */
    bool takes_next;            /* set by prepare: this call also does the next call, which is skipped */
    struct ah_cuda *cuda;
    enum ah_dtype dtype;          /* dtype of parameters, activations and their gradients */
    int64_t workspace_bytes;      /* scratch while it runs */
    bool adds[AH_OP_MAX_OUTPUTS]; /* adds to output j instead of overwriting */
    void *owned;                  /* memory that prepare made with ah__new(), or null */
    /* Frees everything that `owned` holds. Called before `owned` is freed, also if the prepare that set it has failed.
     * Or null. */
    void (*release)(struct ah_cuda_call *call);
};

/* A call whose operands are bound to addresses; absent operands are null. */
struct ah_cuda_bound {
    cudaStream_t stream;
    const struct ah_cuda_call *call;
    const void *in[AH_OP_MAX_INPUTS];
    void *out[AH_OP_MAX_OUTPUTS];
    const void *next_in[AH_OP_MAX_INPUTS]; /* inputs of the next call if it is done, too; else null */
    char *workspace;                       /* 256-byte aligned */
};

/* An operator. When `prepare` is called, the call is set but for the operator's own part, and the operands agree with
 * the operator table. AH_EDEVICE: the kernels cannot do this; the message names operand, found and expected. */
struct ah_cuda_operator {
    int (*prepare)(struct ah_cuda_call *call);
    int (*enqueue)(const struct ah_cuda_bound *bound);
};

/* A prepared program: everything that does not depend on addresses is resolved. */
struct ah_cuda_program {
    struct ah_prepared prepared;
    struct ah_cuda_call *calls;
    int count;
};

/* Prepares a program. AH_EDEVICE names the call, the operand, what it is and what the device can run; AH_ENOMEM. */
int ah__cuda_program_new(struct ah_cuda_program **out, struct ah_cuda *cuda, const struct ah_program *program);
void ah__cuda_program_free(struct ah_cuda_program *program); /* null is fine */
/* Enqueues all launches of a program on the stream. */
int ah__cuda_program_enqueue(const struct ah_cuda_program *program, cudaStream_t stream,
                             char *const base[AH_SPACE_COUNT]);

#define AH_CUDA_DECLARE(id, name) extern const struct ah_cuda_operator ah__cuda_##name;
AH_OP_LIST(AH_CUDA_DECLARE)
#undef AH_CUDA_DECLARE

#endif
