/* Inside the CUDA device: work on the lanes' streams, from submission to completion. */
#ifndef AH_DEV_CUDA_STREAM_H
#define AH_DEV_CUDA_STREAM_H

#include "dev/cuda/state.h"

/* Opens the streams and events of all lanes but the host's, the lanes' numbers and the thread that reads them, and the
 * first epoch. After a failure ah__cuda_watch_stop and ah__cuda_streams_close free the rest. */
int ah__cuda_streams_open(struct ah_cuda *cuda);
/* Waits for all work on the streams. Returns the first error. */
cudaError_t ah__cuda_streams_drain(struct ah_cuda *cuda);
/* Clears a failure that was not the GPU's. Nothing may be in flight. */
void ah__cuda_streams_settle(struct ah_cuda *cuda);
void ah__cuda_streams_close(struct ah_cuda *cuda);
/* Members of struct ah_dev_ops. */
int ah__cuda_submit(struct ah_dev *dev, const struct ah_work *work, struct ah_event *done);
int ah__cuda_wait_any(struct ah_dev *dev, struct ah_done *done);

#endif
