/* Where ways down begin: the best plan of each kind among the candidates, as far as they are worth simulating. */
#ifndef AH_PLAN_VISIT_H
#define AH_PLAN_VISIT_H

#include "plan/candidates.h"
#include "plan/descents.h"
#include "plan/search.h"

/* Candidates of a kind: what no small step leads from to the others. */
enum { AH_KINDS = 1024 };
struct ah_starts {
    struct ah_plan best[AH_KINDS]; /* layers 0: none */
    int64_t visited[AH_KINDS];
};

/* Simulates the candidates, at least one, some of each kind first, then whichever come next, until no bound of another
 * is below the best time or so many items were simulated; puts them in order. Fills starts (zero at first) and, of the
 * report, candidates and open_bound_ns. Several are simulated at once, each knowing what was known before all of these:
 * the same plans come out on any number of cores. */
int ah__visit(struct ah_starts *starts, struct ah_search_report *report, struct ah_candidates *candidates,
              struct ah_trials *trials, struct ah_descents *descents, int64_t most_items);

/* By score. Null: nothing was visited. */
const struct ah_plan *ah__starts_fastest(const struct ah_starts *starts);

#endif
