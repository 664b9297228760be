/* The tokens of an iteration, and what goes with them to the device. */
#include <string.h>

#include "run/internal.h"

/* Returns the factor that makes a mean of the summed loss of `count` targets. */
static float scale_of(const int32_t *targets, int64_t count)
{
    int64_t counted = 0;
    for (int64_t i = 0; i < count; i++)
        counted += targets[i] != AH_TARGET_IGNORED;
    return 1.0F / (float)(counted > 0 ? counted : 1);
}

/* Writes this rank's part of the batch, and its flags. The loss is the mean over all counted tokens of all
 * micro-batches and ranks; their number is known only here, so the factor is sent along. */
void ah__run_input(struct ah_run *run, const struct ah_batch *batch, unsigned flags)
{
    const struct ah_partition *partition = ah__run_partition(run);
    int64_t tokens = ah__step_tokens(partition), first = run->comm->rank * tokens, ranks = run->comm->world_size;
    size_t bytes = (size_t)tokens * sizeof *batch->ids;
    char *at = ah__host_tokens(&run->memory, run->queue.begun);
    int32_t *ids = (int32_t *)(void *)at, *targets = (int32_t *)(void *)(at + run->layout->tokens_bytes / 2);
    memcpy(ids, batch->ids + first, bytes);
    memcpy(targets, batch->targets + first, bytes);
    if (partition->packed)
        memcpy(ids + tokens, batch->positions + first, bytes);
    if (ranks > 1 || ah__micro_batches(run->partition) > 1)
        *(float *)(void *)(targets + tokens) = scale_of(batch->targets, ranks * tokens);
    for (int flag = 0; ranks > 1 && flag < AH_FLAGS; flag++)
        ((float *)(void *)(at + ah__tokens_flags(partition)))[flag] = (float)(flags >> flag & 1);
}
