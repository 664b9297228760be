/* The plans of a model of few blocks, one after the other. */
#ifndef AH_PLAN_EXHAUST_H
#define AH_PLAN_EXHAUST_H

#include "plan/workers.h"

enum { AH_EXHAUSTED_LAYERS = 6 };

/* Takes the best of all plans in one chunk within the budget where that is faster; shadow states and unsharded blocks
 * take the memory that is left. At most AH_EXHAUSTED_LAYERS blocks. *whole: every plan was tried or passed over by its
 * bound; else a limit that follows from the effort ended it, the same on any machine. AH_ENOMEM. */
int ah__exhaust(bool *whole, struct ah_plan *best, struct ah_workers *workers, struct ah_trials *trials);

#endif
