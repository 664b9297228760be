/* Plans that a search looks at first: of every placement that matters those that fit a budget, with what no schedule of
 * them can beat. Simulates nothing.
 *
 * Of models of few layers all (c, selective, p, o, staged, a, buffers, refetch distance) in unsharded blocks. Of these
 * and of deeper ones (p, o), evenly spread where there are many, in unsharded blocks and in many pieces, of which
 * nothing, parts, or all streams in many pieces; of deeper ones fewer (p, o) also with activations of parts of the
 * blocks on the host, and then in few pieces, too; of equal switches only the most buffers that fit and the longest
 * refetch distance, of equal (p, o, buffers) only the least that is recomputed: nothing, then selectively one block
 * after the other, then more and more blocks whole. */
#ifndef AH_PLAN_CANDIDATES_H
#define AH_PLAN_CANDIDATES_H

#include "plan/descents.h"

enum { AH_CANDIDATES_WHOLE_LAYERS = 6 }; /* models up to this are looked at whole */
enum { AH_CANDIDATES_FEW_PIECES = 2 };   /* in which states are staged, beside many */

/* A plan that fits, and what no schedule of it can beat. */
struct ah_candidate {
    struct ah_plan plan;
    int64_t bound_ns;
    size_t number; /* in the order in which they were found */
    bool visited;  /* the search has simulated it */
};

struct ah_candidates {
    struct ah_candidate *list;
    size_t count, capacity;
    int64_t least_bytes; /* of the smallest plan that respects the host budget */
    struct ah_plan least;
    int64_t least_host_bytes;
    struct ah_plan least_host;   /* the one with the least host memory */
    struct ah_plan least_within; /* the same among those that respect the device budget; layers 0: none does */
};

/* Adds to *candidates, zero at first; the caller frees the list, also after a failure. For the predictor and the budget
 * of the trials, on all cores; any number of them finds the same in the same order. A published system brings its own
 * placements. AH_ENOMEM. */
int ah__candidates_find(struct ah_candidates *candidates, struct ah_trials *trials, struct ah_descents *descents);

/* The same for who has neither. */
int ah__candidates_list(struct ah_candidates *candidates, const struct ah_predictor *predictor,
                        const struct ah_budget *budget);

/* A published system's index-th placement with all its switches but out_of_order and both peaks, be it within a budget
 * or not; false: there are fewer. */
bool ah__candidate_placed(struct ah_plan *out, const struct ah_predictor *predictor, int index);

#endif
