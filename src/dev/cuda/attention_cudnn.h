/* Attention by cuDNN's backend interface: a graph of operations that cuDNN knows as attention, made into a plan once.
 *
 * Which jobs it is asked for is a rule over shape, dtype, GPU and cuDNN's version; whether it has an engine for one
 * that is content with a bounded workspace is cuDNN's own answer, which follows from the same. No timing has a say. */
#ifndef AH_DEV_CUDA_ATTENTION_CUDNN_H
#define AH_DEV_CUDA_ATTENTION_CUDNN_H

#include "dev/cuda/attention.h"
#include "dev/cuda/state.h"

struct ah_cuda_sdpa;

enum { AH_CUDA_SDPA_REASON = 96 };

/* The rule: null where cuDNN is asked, else why not; static text. */
const char *ah__cuda_sdpa_unfit(const struct ah_cuda *cuda, const struct ah_cuda_attention *job, bool backward);
/* Null when cuDNN has no engine for it; then `reason` has why, in its words. AH_EDEVICE when the graph is wrong,
 * AH_ENOMEM. Addresses of the job are not looked at. */
int ah__cuda_sdpa_new(struct ah_cuda_sdpa **out, struct ah_cuda *cuda, const struct ah_cuda_attention *job,
                      bool backward, char reason[AH_CUDA_SDPA_REASON]);
void ah__cuda_sdpa_free(struct ah_cuda_sdpa *sdpa);               /* null is fine */
int64_t ah__cuda_sdpa_workspace(const struct ah_cuda_sdpa *sdpa); /* bytes */
/* Asynchronous. The job it was made of, with addresses; `dot` is not used. AH_EDEVICE. */
int ah__cuda_sdpa_enqueue(struct ah_cuda_sdpa *sdpa, cudaStream_t stream, const struct ah_cuda_attention *job,
                          char *workspace);

#endif
