/* Tasks that the host runs for any device, over a pool: the work of a host lane. They give the same bits for any number
 * of threads and any instruction set. Do not check where memory is. */
#ifndef AH_DEV_HOST_TASK_H
#define AH_DEV_HOST_TASK_H

#include "dev/dev.h"
#include "dev/host/pool.h"

/* Run a task on a thread that has entered the pool, and return when it is done. AH_EDEVICE: a dtype other than AH_F32
 * and AH_BF16. */
int ah__host_adam(struct ah_pool *pool, const struct ah_task *task);
int ah__host_sqnorm(struct ah_pool *pool, const struct ah_task *task);
int ah__host_cast(struct ah_pool *pool, const struct ah_task *task);
int ah__host_disk(const struct ah_task *task); /* needs no pool. The status of the read or write */
int ah__host_expand(struct ah_pool *pool, const struct ah_task *task); /* the task must have been checked */

#endif
