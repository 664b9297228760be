/* From a plan downhill over all switches together, and by small leaps out of where that ends. */
#ifndef AH_PLAN_IMPROVE_H
#define AH_PLAN_IMPROVE_H

#include "plan/trial.h"

/* How much is tried. */
struct ah_effort {
    int64_t items;   /* that are simulated, at most; of a plan with staged states, which has more, twice as many */
    int leaps;       /* in a row that gain nothing, after which it ends */
    uint64_t stream; /* of the numbers that leaps draw */
};

/* Replaces `best`, whose step_ns is simulated, by the fastest plan within the budget that it finds by changing a few
 * switches at a time, until nothing helps, then by leaps until so many in a row have not helped: several switches at
 * once, followed by the same where that helped, or another order of the same blocks. Ends when so many more items were
 * simulated or hardly anything is left to gain over floor_ns, which no plan can beat. The predictor is that of the
 * trials or one with a narrower policy of the same costs. The same input gives the same plan. */
int ah__plan_improve(struct ah_plan *best, struct ah_trials *trials, const struct ah_predictor *predictor,
                     int64_t floor_ns, const struct ah_effort *effort);

#endif
