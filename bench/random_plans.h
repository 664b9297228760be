/* A random search over all switches of a plan together, which shares the simulator with the planner but none of its
 * search: half of its draws are uniform, half change some switches of its best. Simulates by the real scheduler and
 * prints nothing. */
#ifndef AH_BENCH_RANDOM_PLANS_H
#define AH_BENCH_RANDOM_PLANS_H

#include "plan/predict.h"

/* Seconds of processor time of this program's own threads, whoever else is on the machine. */
double random_plans_now_s(void);

/* The fastest plan within the budget that it finds in so many seconds of processor time, beginning with `from` (null:
 * with nothing), and how many it simulated. step_ns 0: nothing fitted. */
struct ah_plan random_plans_search(const struct ah_predictor *predictor, const struct ah_budget *budget,
                                   const struct ah_plan *from, double seconds, int64_t *count);

#endif
