/* In which order a plan gives up activations: steps from keeping all of them to keeping none but the inputs of blocks.
 *
 * Where a byte that selective recomputation frees takes less time than one that recomputing the whole block frees,
 * first one block after the other recomputes selectively, then one after the other whole; else whole at once. Knows
 * times of one block, must not know schedules. */
#ifndef AH_PLAN_LEVELS_H
#define AH_PLAN_LEVELS_H

#include "plan/predict.h"

struct ah_levels {
    bool selective;   /* there are steps of selective recomputation, because the policy has it and it pays */
    int layers, last; /* steps are 0 (all is kept) .. last (every block recomputes) */
};
void ah__levels_init(struct ah_levels *out, const struct ah_predictor *predictor);
/* Sets checkpoint and selective. */
void ah__levels_set(struct ah_switches *switches, const struct ah_levels *levels, int step);
/* The bytes, or some more, that step + 1 frees beyond `step` < last; the last may free scratch, too. */
int64_t ah__levels_freed(const struct ah_levels *levels, int step, const struct ah_partition *partition);

#endif
