/* Running the linear-program solver: what it throws, allocates and does to signals ends here. */
#ifndef AH_PLAN_SOLVER_H
#define AH_PLAN_SOLVER_H

/* Calls solve(context), which calls CBC. AH_ENOMEM where memory is short, AH_EINTERNAL for what else it throws. */
int ah__solver_run(void (*solve)(void *context), void *context);

#endif
