/* What policies make of a model on a machine: one point of a question after another, as a table and as JSON. Decides
 * nothing. */
#ifndef AH_CLI_COMPARE_H
#define AH_CLI_COMPARE_H

#include "cli/artefacts.h"
#include "cli/sweep.h"

/* The question. Null or 0: not given. */
struct ah_compare_args {
    const char *sweep;
};

enum { AH_COMPARE_POLICIES = 32 };

struct ah_compare {
    const struct ah_session_options *inputs; /* its policy is a list, or "all" */
    const struct ah_compare_args *args;
    struct ah_sweep sweep;
    const char *policies[AH_COMPARE_POLICIES + 1]; /* null-terminated; into `names` or the library's */
    char names[512];
    struct ah_point point;                      /* the one that is looked at */
    struct ah_session *session;                 /* model, partition and profile of its batch and sequence length */
    int64_t batch, seq;                         /* which the session was opened with */
    struct ah_plan plan;                        /* of one policy for the point, where that was asked for */
    struct ah_budget budget;                    /* of one rank at the point */
    struct ah_plan before[AH_COMPARE_POLICIES]; /* what won at the point before, of the same model and step; layers 0:
                                                 * there is none */
};

/* Whether the options ask to compare: several policies, a machine or a sweep. */
bool ah__compare_wanted(const struct ah_session_options *inputs, const struct ah_compare_args *args);

/* Reads the question; both stay borrowed. Closed by fini, also after a failure. Statuses as the library's. */
int ah__compare_init(struct ah_compare *out, const struct ah_session_options *inputs,
                     const struct ah_compare_args *args);
void ah__compare_fini(struct ah_compare *compare);
/* Opens the session up to the profile for point `index` of the sweep, unless it is open already. */
int ah__compare_point(struct ah_compare *compare, int index);
/* The plan of the first policy for the point. */
int ah__compare_search(struct ah_compare *compare);
/* Evaluates all policies at all points: the table on `text`, one JSON object as a line on `json` (null: none). */
int ah__compare_show(struct ah_compare *compare, FILE *text, FILE *json);

#endif
