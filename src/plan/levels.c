#include "plan/levels.h"

void ah__levels_init(struct ah_levels *out, const struct ah_predictor *predictor)
{
    const struct ah_costs *costs = &predictor->profile->costs;
    const struct ah_code *block = &predictor->partition->code[AH_CLASS_BLOCK];
    double selective_ns = (double)costs->selective_ns[AH_CLASS_BLOCK];
    double freed = (double)(block->saved_bytes - block->kept_bytes);
    bool pays = selective_ns * (double)block->saved_bytes < (double)costs->recompute_ns[AH_CLASS_BLOCK] * freed;
    int layers = predictor->partition->layers;
    out->selective = ah__policy_uses(predictor->policy, AH_SWITCH_selective) && pays;
    out->layers = layers;
    out->last = out->selective ? 2 * layers : layers;
}

void ah__levels_set(struct ah_switches *switches, const struct ah_levels *levels, int step)
{
    int whole = levels->selective ? step - levels->layers : step;
    switches->checkpoint = whole > 0 ? whole : 0;
    switches->selective = !levels->selective ? 0 : whole > 0 ? levels->layers - whole : step;
}

int64_t ah__levels_freed(const struct ah_levels *levels, int step, const struct ah_partition *partition)
{
    const struct ah_code *block = &partition->code[AH_CLASS_BLOCK];
    int64_t freed = !levels->selective       ? block->saved_bytes
                    : step >= levels->layers ? block->kept_bytes
                                             : block->saved_bytes - block->kept_bytes;
    return ah__micro_batches(partition) * (freed + AH_LAYOUT_ALIGN);
}
