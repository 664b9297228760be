/* Inside the CUDA device: reports completed works to the lanes, and ends all works after a failure.
 *
 * After each work its stream writes the work's number to pinned memory. A thread reads these numbers; it spins for a
 * moment after each change and then sleeps, longer and longer. It makes no CUDA calls. */
#ifndef AH_DEV_CUDA_COMPLETION_H
#define AH_DEV_CUDA_COMPLETION_H

#include "dev/cuda/state.h"

/* Loops over the lanes that are streams. */
#define AH_EACH_STREAM(stream, cuda)                                                                                   \
    for (struct ah_cuda_stream *stream = (cuda)->stream; stream < (cuda)->stream + AH_LANE_COUNT; stream++)            \
        if (stream->work)

/* Returns the slot of a stream's work. */
struct ah_cuda_slot *ah__cuda_slot(struct ah_cuda_stream *stream, uint64_t sequence);
/* Returns the address of a lane's number. */
uint64_t *ah__cuda_passed(const struct ah_cuda *cuda, enum ah_lane lane);

int ah__cuda_watch_start(struct ah_cuda *cuda); /* AH_ENOMEM */
void ah__cuda_watch_stop(struct ah_cuda *cuda); /* not started is fine */

/* Puts lane and label before a failure's message. */
int ah__cuda_label_prefix(int status, enum ah_lane lane, const struct ah_label *label);
/* Keeps the first failure: `status` with ah_error(). Call it with the device's mutex held. */
void ah__cuda_failure_keep(struct ah_cuda *cuda, int status);
/* Completes works that are not on the stream, once all earlier ones have completed. Call it with the device's mutex
 * held. */
void ah__cuda_skipped_finish(struct ah_cuda_stream *stream);
/* Returns the error of every call since a fault of the GPU, else success. */
cudaError_t ah__cuda_fault(const struct ah_cuda_stream *stream);

/* Functions of host/lanes.h. */
void ah__cuda_host_passed(void *context, struct ah_event event);
void ah__cuda_look(void *context);

#endif
