/* Plans that were made before, or elsewhere, as they are on this machine: what a search must not be slower than.
 * Takes plans nobody has checked against this budget and policy, gives those that can run, with their times here. */
#ifndef AH_PLAN_KNOWN_H
#define AH_PLAN_KNOWN_H

#include "plan/trial.h"

enum { AH_KNOWN_MOST = 16 };
struct ah_known {
    struct ah_plan plans[AH_KNOWN_MOST]; /* the fastest first; of more that can run the slower ones are left out */
    int64_t promised_ns[AH_KNOWN_MOST];  /* their steps where they were made; 0: not told */
    int count;
    int fastest; /* which of the options' plans plans[0] is */
};

/* Takes the workspace of the predictor's profile and measures both peaks. AH_ESTALE: of another model or step;
 * AH_EINPUT: the policy has no such plan, "key 'staged': found 4, expected at most 0 with policy autohete-paper";
 * AH_EBUDGET. */
int ah__known_check(struct ah_plan *plan, const struct ah_predictor *predictor, const struct ah_budget *budget);

/* Those of the options' plans (null: none) that ah__known_check lets pass. AH_ESTALE for one of another model or
 * step. */
int ah__known_find(struct ah_known *out, struct ah_trials *trials, const struct ah_search_options *options);

#endif
