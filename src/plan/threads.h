/* Which splits of the cores between device and host are tried, apart from how one is judged. */
#ifndef AH_PLAN_THREADS_H
#define AH_PLAN_THREADS_H

#include <stdbool.h>

/* Calls `attempt` for each split that is worth it. It says in *faster whether that split's plan is predicted faster
 * than those before it, of which there may be none; without a plan it is not. A failure ends all, and is returned.
 * `host_threads` 0: they are chosen, too. */
int ah__threads_attempts(int cores, int host_threads,
                         int (*attempt)(bool *faster, int threads, int host_threads, void *context), void *context);

#endif
