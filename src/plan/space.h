/* The space of plans that a search walks: the switches as a table, and what completes a plan by rule.
 *
 * A search decides switches; recomputation or buffers follow from the memory that is left, then unsharded blocks and
 * shadow states take the rest. Takes plans of any switches, gives plans that can run within the budget. Knows bounds,
 * simulates nothing. */
#ifndef AH_PLAN_SPACE_H
#define AH_PLAN_SPACE_H

#include "plan/predict.h"
#include "sched/switch_table.h"

/* What a switch is for a search. */
enum ah_role {
    AH_ROLE_PLACE, /* memory for time: steps, and pairs of steps that trade memory */
    AH_ROLE_FLAG,  /* the same, on or off */
    AH_ROLE_ORDER, /* what happens when, in the same places */
    AH_ROLE_REST,  /* takes the memory that is left; a search gives it fewer */
};

struct ah_row {
    int at; /* enum ah_switch */
    enum ah_role role;
    /* The most that the rows before it, the policy and the machine allow; below the switch's lowest value: unused. */
    int (*most)(const struct ah_switches *switches, const struct ah_predictor *predictor);
};
/* A value of a switch that goes as far as the others let it, and still does when those change: settling brings it down.
 * Far above any value of a switch, and so far below INT_MAX that sums and doubles of it are numbers. */
enum { AH_AS_FAR_AS_IT_GOES = 1 << 28 };
extern const struct ah_row ah__rows[];
extern const int ah__row_count;

/* Brings each switch within its row's limits; passes, which have no row, are those of the search. */
void ah__space_settle(struct ah_switches *switches, const struct ah_predictor *predictor);

/* What follows from the other switches. */
enum ah_completion {
    AH_COMPLETES_RECOMPUTATION, /* the least with which that many buffers fit; where all of it is not enough, more
                                 * parameters are given back, then there are fewer buffers */
    AH_COMPLETES_BUFFERS,       /* as many as fit, at most that many */
};
/* Settles the plan and completes it, both peaks included. False: nothing within the budget. */
bool ah__space_complete(struct ah_plan *plan, enum ah_completion completion, const struct ah_predictor *predictor,
                        const struct ah_budget *budget);

/* The steps in which a plan gives up activations, 0 (keeps all) .. the last one (keeps none but the blocks' inputs):
 * one block after the other recomputes selectively where that frees a byte in less time, then one after the other
 * whole. */
int ah__space_levels(const struct ah_predictor *predictor);
void ah__space_set_level(struct ah_switches *switches, int level, const struct ah_predictor *predictor);

#endif
