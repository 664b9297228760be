/* Runs the linear-program solver, and contains its exceptions, failed allocations and signal handlers. */
#ifndef AH_PLAN_SOLVER_H
#define AH_PLAN_SOLVER_H

/* Calls solve(context), which calls CBC. AH_ENOMEM if memory is short, AH_EINTERNAL for any other exception. */
int ah__solver_run(void (*solve)(void *context), void *context);

#endif
