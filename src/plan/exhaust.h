/* Exhaustive search: tries all plans of a model with few blocks. */
#ifndef AH_PLAN_EXHAUST_H
#define AH_PLAN_EXHAUST_H

#include "plan/workers.h"

enum { AH_EXHAUSTED_LAYERS = 6 };

/* Sets *best to the fastest of all plans with one chunk within the budget, if it is faster than *best. Shadow states
 * and unsharded blocks take the memory that is left. For at most AH_EXHAUSTED_LAYERS blocks. *whole: every plan was
 * tried or skipped because of its bound; else the search ended at a limit that follows from the effort and is the same
 * on any machine. AH_ENOMEM. */
int ah__exhaust(bool *whole, struct ah_plan *best, struct ah_workers *workers, struct ah_trials *trials);

#endif
