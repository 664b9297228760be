/* Memory as published systems need it: PyTorch's activations, logits and gradients, and each system's own model data.
 * For comparisons alone; nothing is placed by it. Takes a partition, switches and a policy, gives two totals. */
#ifndef AH_BENCH_PAPER_PUBLISHED_H
#define AH_BENCH_PAPER_PUBLISHED_H

#include "partition/partition.h"
#include "sched/sched.h"

/* What is counted of a model, besides what its groups' parameters are. */
struct published_shape {
    int64_t tokens; /* of one micro-batch and rank */
    int64_t seq, width, vocabulary;
    int heads;
};
/* From the programs of a partition. */
struct published_shape published_shape(const struct ah_partition *partition);

/* Peak bytes of one rank on device and host, in the compute dtype: half precision as published, F32 with 4 bytes where
 * those have 2.
 * - A block that keeps its activations: 34 bytes for each token and channel and 5 for each attention score (Korthikanti
 *   et al., arXiv 2205.05198, section 4.1); one that recomputes: its input, 2; all of a block again while its backward
 *   runs. Around the blocks: 5 for each token and channel (dropout mask of the embedding, input and output of the last
 *   normalization).
 * - 12 bytes a logit: half precision, an fp32 copy, its softmax, the half-precision gradient. The head runs when no
 *   block recomputes, so of it and of a recomputed block the larger counts.
 * - Model data: 2 bytes a parameter in the buffers the plan has, 12 for states; embedding and head 2 and 2 for the
 *   gradient. ZeRO-Offload has all parameters and two buckets for gradients instead.
 * - On the host 14 bytes a parameter, ZeRO-Offload 18. */
void published_bytes(int64_t *device, int64_t *host, const struct ah_partition *partition,
                     const struct ah_switches *switches, const struct ah_policy *policy);
/* Of the device's that part which is no model data: activations and logits, where they are most. */
int64_t published_activation_bytes(const struct ah_partition *partition, const struct ah_switches *switches);

#endif
