/* Fits plans into a budget: buffers and shadow states, and the peaks that follow. Knows no times. */
#ifndef AH_PLAN_FIT_H
#define AH_PLAN_FIT_H

#include "plan/predict.h"

/* Return the fewest buffers with which the switches can run under the policy, and the most that are useful. */
int ah__plan_min_buffers(const struct ah_switches *switches, const struct ah_predictor *predictor);
int ah__plan_max_buffers(const struct ah_switches *switches, const struct ah_predictor *predictor);

/* Keeps the fewest blocks on disk with which the plan fits in host memory, or as many as possible, and sets the peaks.
 * Only sets the peaks if the search may keep none there, or their number is fixed. */
void ah__plan_spill(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget);

/* Returns true if all predicted peaks are within the budget. */
bool ah__plan_within(const struct ah_plan *plan, const struct ah_budget *budget);

/* Fails with AH_EBUDGET. The message says which peaks exceed which budgets, then `what`. */
int ah__plan_over_budget(const struct ah_plan *plan, const struct ah_budget *budget, const char *what);

/* Gives the plan, whose other switches are set, the most useful buffers that fit, then unsharded blocks, and sets both
 * peaks. Returns false, with the peaks at the fewest buffers, if not even those fit. */
bool ah__plan_fit(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget);

/* Gives the plan the most useful buffers that fit, or the fewest if not even those fit; other switches stay. */
void ah__plan_buffers_fit(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget);

/* Returns the most blocks whose activations may be offloaded under the policy. */
int ah__plan_most_leaving(const struct ah_predictor *predictor);

/* ah__plan_most_passes returns the most rounds that a step may have under the policy: one for each micro-batch, or at
 * most the requested number; with several ranks one. ah__plan_passes returns the number with which plans are searched:
 * the requested one, or one. */
int ah__plan_most_passes(const struct ah_predictor *predictor);
int ah__plan_passes(const struct ah_predictor *predictor);

/* Returns the most blocks that may be unsharded under the policy; 0 with one rank, which computes with the parameters
 * that it updates. */
int ah__plan_most_unsharded(const struct ah_switches *switches, const struct ah_predictor *predictor);

/* Returns the most blocks whose sums may stay on the device: with several passes all that have any. */
int ah__plan_most_sums(const struct ah_switches *switches, const struct ah_predictor *predictor);

/* Adds as many unsharded blocks, and as many sums on the device, as fit, and sets both peaks. */
void ah__plan_fill(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget);

/* Returns true if under the policy embedding and head of this model may share a buffer in plans that allow it. */
bool ah__plan_shares_ends(const struct ah_predictor *predictor);

/* Returns the prefetch distance beyond which nothing changes: from the first backward step down to the lowest block
 * that is re-fetched. */
int ah__plan_farthest_refetch(const struct ah_switches *switches);

#endif
