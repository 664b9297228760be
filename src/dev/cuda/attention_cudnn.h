/* Attention by cuDNN's backend interface: a graph of operations that cuDNN recognizes as attention, made into a plan
 * once.
 *
 * A rule over shape, dtype, GPU and cuDNN's version selects the jobs that are given to cuDNN; whether it has an engine
 * for a job with a bounded workspace is cuDNN's own answer, which depends on the same. Timings play no role. */
#ifndef AH_DEV_CUDA_ATTENTION_CUDNN_H
#define AH_DEV_CUDA_ATTENTION_CUDNN_H

#include "dev/cuda/attention.h"
#include "dev/cuda/state.h"

struct ah_cuda_sdpa;

enum { AH_CUDA_SDPA_REASON = 96 };

/* Applies the rule: returns null if cuDNN is tried, else the reason why not, a static text. */
const char *ah__cuda_sdpa_unfit(const struct ah_cuda *cuda, const struct ah_cuda_attention *job, bool backward);
/* Makes a plan. *out is null if cuDNN has no engine for the job; `reason` then has its reason. AH_EDEVICE: the graph is
 * wrong; AH_ENOMEM. Ignores the job's addresses. */
int ah__cuda_sdpa_new(struct ah_cuda_sdpa **out, struct ah_cuda *cuda, const struct ah_cuda_attention *job,
                      bool backward, char reason[AH_CUDA_SDPA_REASON]);
void ah__cuda_sdpa_free(struct ah_cuda_sdpa *sdpa);               /* null is fine */
int64_t ah__cuda_sdpa_workspace(const struct ah_cuda_sdpa *sdpa); /* bytes */
/* Enqueues the job of the plan, with addresses; asynchronous. `dot` is not used. AH_EDEVICE. */
int ah__cuda_sdpa_enqueue(struct ah_cuda_sdpa *sdpa, cudaStream_t stream, const struct ah_cuda_attention *job,
                          char *workspace);

#endif
