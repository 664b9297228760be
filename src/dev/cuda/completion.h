/* Inside the CUDA device: works that are over, reported to the lanes, and failures that end all that follow.
 *
 * Behind each work its stream writes the work's number to pinned memory; a thread reads these numbers, spinning for a
 * moment after each change and with ever longer sleeps after that. It calls nothing of CUDA's. */
#ifndef AH_DEV_CUDA_COMPLETION_H
#define AH_DEV_CUDA_COMPLETION_H

#include "dev/cuda/state.h"

/* Lanes that are streams. */
#define AH_EACH_STREAM(stream, cuda)                                                                                   \
    for (struct ah_cuda_stream *stream = (cuda)->stream; stream < (cuda)->stream + AH_LANE_COUNT; stream++)            \
        if (stream->work)

/* The slot of a stream's work. */
struct ah_cuda_slot *ah__cuda_slot(struct ah_cuda_stream *stream, uint64_t sequence);
/* Where a lane's number is. */
uint64_t *ah__cuda_passed(const struct ah_cuda *cuda, enum ah_lane lane);

int ah__cuda_watch_start(struct ah_cuda *cuda); /* AH_ENOMEM */
void ah__cuda_watch_stop(struct ah_cuda *cuda); /* not started is fine */

/* A failure's message with lane and label in front. */
int ah__cuda_label_prefix(int status, enum ah_lane lane, const struct ah_label *label);
/* With the device's mutex held. The first failure stays; `status` with ah_error() is the one that may be kept. */
void ah__cuda_failure_keep(struct ah_cuda *cuda, int status);
/* With the device's mutex held: works that are not on the stream end when all earlier ones have. */
void ah__cuda_skipped_finish(struct ah_cuda_stream *stream);
/* What every call returns since a fault on the GPU; else success. */
cudaError_t ah__cuda_fault(const struct ah_cuda_stream *stream);

/* Functions of host/lanes.h. */
void ah__cuda_host_passed(void *context, struct ah_event event);
void ah__cuda_look(void *context);

#endif
