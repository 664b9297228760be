#include "plan/config.h"

void ah__sched_config_of(struct ah_sched_config *out, const struct ah_switches *switches,
                         const struct ah_partition *partition, const struct ah_policy *policy)
{
    *out = (struct ah_sched_config){
        .switches = *switches,
        .shared_embedding = partition->shared_group == 0,
        .own_gradients = ah__blocks_keep_gradients(partition),
        .frozen_embedding = partition->groups[0].trained == 0,
        .clips = partition->step.clips,
        .rounds = ah__rounds(switches, ah__micro_batches(partition)),
        .micro_batches = ah__micro_batches(partition),
        .sums_blocks = ah__block_group(partition)->trained > 0,
        .policy = policy,
    };
    out->switches.world_size = ah__world_size(switches);
    out->switches.chunks = ah__chunks(switches);
}
