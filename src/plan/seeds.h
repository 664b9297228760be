/* Where a search starts: plans of different kinds, completed by the cost model; and the smallest plan there is.
 * Simulates nothing. */
#ifndef AH_PLAN_SEEDS_H
#define AH_PLAN_SEEDS_H

#include "plan/workers.h"

/* The smallest plans; layers 0: there is none. */
struct ah_least {
    struct ah_plan device; /* in device memory, of those within the host budget */
    struct ah_plan host;   /* in host memory */
    struct ah_plan within; /* the same of those within the device budget */
};
void ah__least_note(struct ah_least *least, const struct ah_plan *plan, const struct ah_budget *budget);
/* Of all placements that can be the smallest. Whether anything fits: `device` does. */
void ah__least_find(struct ah_least *out, const struct ah_predictor *predictor, const struct ah_budget *budget);
bool ah__least_fits(const struct ah_least *least, const struct ah_budget *budget);

/* One plan of each kind, the one with the least cost: its bound, and a little of what its lanes do. A kind is what no
 * small step leads to from another: places, what streams, what leaves, few buffers or many. Lowest cost first;
 * *considered is how many were completed. The caller frees *out. On all cores; any number of them finds the same.
 * AH_ENOMEM. */
int ah__seeds_find(struct ah_plan **out, int *count, int64_t *considered, struct ah_workers *workers,
                   struct ah_trials *trials);

#endif
