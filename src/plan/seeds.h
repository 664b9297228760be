/* Seeds of a search: plans of different kinds, completed by the cost model; and the smallest plan. Simulates
 * nothing. */
#ifndef AH_PLAN_SEEDS_H
#define AH_PLAN_SEEDS_H

#include "plan/workers.h"

/* The smallest plans; layers 0: there is no such plan. */
struct ah_least {
    struct ah_plan device; /* smallest in device memory, of plans within the host budget */
    struct ah_plan host;   /* smallest in host memory */
    struct ah_plan within; /* smallest in host memory, of plans within the device budget */
    struct ah_plan disk;   /* smallest on disk, then in device memory, of plans within both budgets */
};
void ah__least_note(struct ah_least *least, const struct ah_plan *plan, const struct ah_budget *budget);
/* ah__least_find finds the smallest plans over all placements that can be the smallest. ah__least_fits returns true if
 * any plan fits, which is the case if `disk` does. */
void ah__least_find(struct ah_least *out, const struct ah_predictor *predictor, const struct ah_budget *budget);
bool ah__least_fits(const struct ah_least *least, const struct ah_budget *budget);

/* Finds one plan of each kind, that with the least cost: its bound, and a little of its lanes' work. Plans are of
 * different kinds if no small step leads from one to the other: placements of embedding and head, staged blocks,
 * offloaded activations, few buffers or many. Lowest cost first; *considered is the number of completed plans. The
 * caller frees *out. Runs on all cores; the result does not depend on their number. AH_ENOMEM. */
int ah__seeds_find(struct ah_plan **out, int *count, int64_t *considered, struct ah_workers *workers,
                   struct ah_trials *trials);

#endif
