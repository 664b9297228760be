/* The space of plans that a search walks through: the switches as a table, and rules that complete a plan.
 *
 * A search decides switches; recomputation or buffers follow from the memory that is left, then unsharded blocks and
 * shadow states take the rest. Takes plans of any switches, gives plans that can run within the budget. Knows bounds,
 * simulates nothing. */
#ifndef AH_PLAN_SPACE_H
#define AH_PLAN_SPACE_H

#include "plan/predict.h"
#include "sched/switch_table.h"

/* The role of a switch in a search. */
enum ah_role {
    AH_ROLE_PLACE, /* trades memory for time; changed by steps, and by pairs of steps that trade memory */
    AH_ROLE_FLAG,  /* trades memory for time; on or off */
    AH_ROLE_ORDER, /* changes the order of work, not the placement */
    AH_ROLE_SPILL, /* takes what does not fit in memory; follows from the other switches */
    AH_ROLE_REST,  /* takes the memory that is left; a search only lowers it */
};

struct ah_row {
    int at; /* enum ah_switch */
    enum ah_role role;
    /* Returns the most that the rows before it, the policy and the machine allow; below the switch's lowest value:
     * unused. */
    int (*most)(const struct ah_switches *switches, const struct ah_predictor *predictor);
};
/* A value of a switch that is always the highest that the other switches allow, also after they change: settling lowers
 * it. Far above any value of a switch, and so far below INT_MAX that sums and doubles do not overflow. */
enum { AH_AS_FAR_AS_IT_GOES = 1 << 28 };
extern const struct ah_row ah__rows[];
/* Returns the number of rows that matter: without a drive those of the disk, which are last, do not. */
int ah__row_count(const struct ah_predictor *predictor);
/* The most chunks that a search makes. */
enum { AH_CHUNKS_MOST = 8 };

/* Brings each switch within its row's limits. Passes, which have no row, are set to those of the search. */
void ah__space_settle(struct ah_switches *switches, const struct ah_predictor *predictor);

/* Which switches the completion of a plan decides. */
enum ah_completion {
    /* recomputation: the least with which the plan's buffers fit; if even the most is not enough, parameters of more
     * blocks are offloaded, then there are fewer buffers */
    AH_COMPLETES_RECOMPUTATION,
    /* buffers: as many as fit, at most the plan's */
    AH_COMPLETES_BUFFERS,
};
/* Settles the plan and completes it, both peaks included. False: it does not fit the budget. */
bool ah__space_complete(struct ah_plan *plan, enum ah_completion completion, const struct ah_predictor *predictor,
                        const struct ah_budget *budget);

/* ah__space_levels returns the last level of recomputation. Levels go from 0 (all activations are kept) to the last
 * (only the blocks' inputs are): with each level one more block recomputes selectively, if that frees a byte in less
 * time, then with each one more block recomputes fully. ah__space_set_level sets a level. */
int ah__space_levels(const struct ah_predictor *predictor);
void ah__space_set_level(struct ah_switches *switches, int level, const struct ah_predictor *predictor);

#endif
