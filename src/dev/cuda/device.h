/* Inside the CUDA device: memory, streams as lanes, and what a stream does for a task.
 *
 * Every lane but the host's is a stream. Work is enqueued when it is submitted and ordered by events, so that no stream
 * ever waits for a thread of the program; a second stream of each lane reports completions, so that reporting does not
 * hold up the next work. All CUDA calls come from the driver's thread (struct ah_dev_ops). Must not know plans or
 * training. */
#ifndef AH_DEV_CUDA_DEVICE_H
#define AH_DEV_CUDA_DEVICE_H

#include <cuda_runtime_api.h>

#include "dev/cuda/library.h"
#include "dev/host/lanes.h"
#include "dev/host/pages.h"
#include "dev/host/regions.h"

enum { AH_CUDA_ALIGN = 256, AH_CUDA_PARTIALS = 1024 };

/* A lane as a stream. Slot s % AH_LANE_RING belongs to the lane's s-th work until it is reported. */
struct ah_cuda_stream {
    cudaStream_t work, notify;
    cudaEvent_t start[AH_LANE_RING], end[AH_LANE_RING];
    uint64_t submitted, reported;
    double *partials; /* AH_CUDA_PARTIALS doubles of device memory for sums of tasks, beside the region */
};

struct ah_cuda {
    struct ah_dev dev;
    int ordinal;           /* of the GPU */
    int host_threads;
    char name[64];         /* "cuda:0" */
    struct cudaDeviceProp properties;
    struct ah_cuda_library library;
    cublasLtHandle_t lt;
    cudnnHandle_t dnn;     /* null without cuDNN */
    struct ah_regions regions;
    struct ah_pages host_pages[AH_REGIONS_HOST]; /* registered */
    struct ah_comm *comm;
    struct ah_pool *pool;  /* of the host lane */
    struct ah_lanes *lanes;
    struct ah_cuda_stream stream[AH_LANE_COUNT];
    /* What is measured from: an event, and the host's clock when it had just passed. */
    cudaEvent_t epoch;
    int64_t epoch_ns;
    uint64_t *host_passed; /* pinned: works of the host lane that are over; streams wait on it */
    int64_t machine_bytes;
    uint64_t signature, jitter_seed;
};

extern const struct ah_dev_ops ah__dev_cuda_ops;

/* "cuda", "cuda:1". AH_EDEVICE: no driver, no such GPU, a library missing; AH_ENOMEM. */
int ah__dev_cuda_open(struct ah_dev **out, const struct ah_dev_options *options);

/* ---- error.c */

/* AH_OK for cudaSuccess; else AH_ENOMEM for memory and AH_EDEVICE for all else, with "CALL: what CUDA says" as message. */
int ah__cuda_status(const char *call, cudaError_t error);
#define AH_CUDA_TRY(call) AH_TRY(ah__cuda_status(#call, call)) /* the message is cut at the '(' */

/* ---- task.c */

/* Enqueues a task on a lane's stream, its operands checked. Allocates nothing, waits for nothing. */
int ah__cuda_task(struct ah_cuda *cuda, enum ah_lane lane, const struct ah_task *task);

#endif
