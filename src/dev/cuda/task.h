/* Inside the CUDA device: runs tasks on lanes. */
#ifndef AH_DEV_CUDA_TASK_H
#define AH_DEV_CUDA_TASK_H

#include "dev/cuda/state.h"

/* Enqueues a task on a lane's stream. Its operands are checked. Allocates nothing, waits for nothing. */
int ah__cuda_task(struct ah_cuda *cuda, enum ah_lane lane, const struct ah_task *task);
/* Runs a work of the host lane on its thread: the function of host/lanes.h. `context` is the device. */
int ah__cuda_host_work(void *context, const struct ah_work *work, struct ah_done *done);
/* Returns the next random delay of a lane. */
int64_t ah__cuda_jitter_ns(struct ah_cuda_stream *stream);

#endif
