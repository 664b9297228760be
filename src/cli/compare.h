/* Comparison of policies on a model and a machine, point by point, as a table and as JSON. Decides nothing. */
#ifndef AH_CLI_COMPARE_H
#define AH_CLI_COMPARE_H

#include "cli/artefacts.h"
#include "cli/sweep.h"

/* Options of the comparison. Null: not given. */
struct ah_compare_args {
    const char *sweep;
};

enum { AH_COMPARE_POLICIES = 32 };

struct ah_compare {
    const struct ah_session_options *inputs; /* its policy is a list, or "all" */
    const struct ah_compare_args *args;
    struct ah_sweep sweep;
    const char *policies[AH_COMPARE_POLICIES + 1]; /* null-terminated; they point into `names` or the library */
    char names[512];
    struct ah_point point;                      /* the point that is evaluated */
    struct ah_session *session;                 /* model, partition and profile of `batch` and `seq` */
    int64_t batch, seq;                         /* batch and sequence length of the session */
    struct ah_plan plan;                        /* plan of one policy at the point, if it was asked for */
    struct ah_budget budget;                    /* budget of one rank at the point */
    struct ah_plan before[AH_COMPARE_POLICIES]; /* each policy's plan at the point before, of the same model and step;
                                                 * layers 0: there is none */
};

/* Returns true if the options ask to compare: several policies, a machine or a sweep. */
bool ah__compare_wanted(const struct ah_session_options *inputs, const struct ah_compare_args *args);

/* Reads inputs and args, which stay borrowed until fini. Call fini also after a failure. This and the functions below
 * return the library's statuses. */
int ah__compare_init(struct ah_compare *out, const struct ah_session_options *inputs,
                     const struct ah_compare_args *args);
void ah__compare_fini(struct ah_compare *compare);
/* Opens the session up to the profile for point `index` of the sweep, unless it is open already. */
int ah__compare_point(struct ah_compare *compare, int index);
/* Searches the plan of the first policy for the point, into compare->plan. */
int ah__compare_search(struct ah_compare *compare);
/* Evaluates all policies at all points. Prints the table to `text` and one JSON object as a line to `json` (null: no
 * JSON). */
int ah__compare_show(struct ah_compare *compare, FILE *text, FILE *json);

#endif
