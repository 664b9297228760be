/* What fits: buffers and shadow states of a plan within a budget, and the peaks that follow. Knows no times. */
#ifndef AH_PLAN_FIT_H
#define AH_PLAN_FIT_H

#include "plan/predict.h"

/* The fewest buffers with which the switches can run under the policy, and the most that could serve. */
int ah__plan_min_buffers(const struct ah_switches *switches, const struct ah_predictor *predictor);
int ah__plan_max_buffers(const struct ah_switches *switches, const struct ah_predictor *predictor);

/* Whether both predicted peaks are within the budget. */
bool ah__plan_within(const struct ah_plan *plan, const struct ah_budget *budget);

/* Fails with AH_EBUDGET: which of the plan's peaks are beyond which budget, both where both are; then `what`. */
int ah__plan_over_budget(const struct ah_plan *plan, const struct ah_budget *budget, const char *what);

/* Gives plan (its switches set) the most useful buffers that fit, then unsharded blocks, and both peaks; false, with
 * the peaks at the fewest buffers, when not even those fit. */
bool ah__plan_fit(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget);

/* Gives plan, whose other switches stay, the most useful buffers that fit; the fewest where not even those do. */
void ah__plan_buffers_fit(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget);

/* The most blocks whose activations the policy lets wait on the host. */
int ah__plan_most_leaving(const struct ah_predictor *predictor);

/* The most rounds that the policy lets a step have: one for each micro-batch, or those that are asked for; of several
 * ranks one. And those that plans are looked for with: as many as are asked for, or one. */
int ah__plan_most_passes(const struct ah_predictor *predictor);
int ah__plan_passes(const struct ah_predictor *predictor);

/* The most blocks that the policy lets stay whole; 0 of one rank, which uses what it updates. */
int ah__plan_most_unsharded(const struct ah_switches *switches, const struct ah_predictor *predictor);

/* Both peaks, with as many unsharded blocks as the budget then has room for. */
void ah__plan_fill(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget);

/* Whether the policy lets embedding and head of this model share a place, with switches that allow it. */
bool ah__plan_shares_ends(const struct ah_predictor *predictor);

/* The refetch distance beyond which nothing changes: from the first backward step down to the lowest block that
 * refetches. */
int ah__plan_farthest_refetch(const struct ah_switches *switches);

#endif
