/* Plans that searches found before, kept in files between programs: so that more of something is never worse than what
 * was planned with less, and the same question has the same answer. A file has those of one partition, policy, number
 * of ranks and rule of memory, the last ones first; what it holds is predicted again by who takes it, so that a damaged
 * or an old one can cost time, but not a good plan. */
#ifndef AH_PLAN_KEPT_H
#define AH_PLAN_KEPT_H

#include "plan/predict.h"

enum { AH_KEPT_MOST = 32 };

struct ah_kept {
    char *path;        /* of the file; null: nothing is kept */
    uint64_t question; /* the one that is asked now */
    int count;
    struct {
        uint64_t question; /* to which it was the answer: times, budget and all that is loaded */
        struct ah_plan plan;
    } plans[AH_KEPT_MOST]; /* the answer to the question, if there is one, comes first */
};

/* What the options' cache (none: nothing) has of plans for this partition. Closed by fini, also after a failure:
 * AH_ENOMEM. A file that cannot be read or used counts as none. */
int ah__kept_load(struct ah_kept *out, const struct ah_predictor *predictor, const struct ah_budget *budget,
                  const struct ah_search_options *options);
/* Whether plans[0] was the answer to this question. */
bool ah__kept_answers(const struct ah_kept *kept);
/* Keeps the answer, where that can be done. */
void ah__kept_add(const struct ah_kept *kept, const struct ah_plan *answer);
void ah__kept_fini(struct ah_kept *kept);

#endif
