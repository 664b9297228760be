/* The tasks the host does beside any device, over a pool: what a host lane runs. The same bits for any number of
 * threads and any instruction set. Does not ask where memory lies. */
#ifndef AH_DEV_HOST_TASK_H
#define AH_DEV_HOST_TASK_H

#include "dev/dev.h"
#include "dev/host/pool.h"

/* Called on a thread that has entered the pool; returns when done. AH_EDEVICE for a dtype other than AH_F32 and
 * AH_BF16. */
int ah__host_adam(struct ah_pool *pool, const struct ah_task *task);
int ah__host_sqnorm(struct ah_pool *pool, const struct ah_task *task);
int ah__host_cast(struct ah_pool *pool, const struct ah_task *task);
int ah__host_expand(struct ah_pool *pool, const struct ah_task *task); /* checked before */

#endif
