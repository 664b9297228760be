/* Inside the CUDA device: its state. Memory, streams as lanes, libraries, ranks.
 *
 * Every lane but the host's is a stream. Work is enqueued when it is submitted and ordered by events. The only thread
 * of the program for which streams wait is the host lane's, by a number in pinned memory; numbers that streams write
 * there report completions. With the clock's there are five streams, fewer than a GPU has hardware queues; and every
 * wait is for work submitted earlier, so that streams which share a queue cannot wait for each other in a circle.
 *
 * All CUDA calls come from the driver's thread (struct ah_dev_ops). Must not know plans or training. */
#ifndef AH_DEV_CUDA_STATE_H
#define AH_DEV_CUDA_STATE_H

#include <pthread.h>

#include <cuda_runtime_api.h>

#include "dev/cuda/error.h"
#include "dev/cuda/library.h"
#include "dev/dev.h"
#include "dev/host/lanes.h"
#include "dev/host/pages.h"
#include "dev/host/regions.h"

enum {
    AH_CUDA_ALIGN = 256,
    AH_CUDA_PARTIALS = 4096,
    AH_CUDA_EPOCHS = 4,
    AH_CUDA_QUEUE_DEPTH = 4,
    AH_CUDA_PASSED_APART = 8,
    AH_CUDA_SCORES_BYTES = 128 << 20
};

/* A work between submit and wait_any. */
struct ah_cuda_slot {
    cudaEvent_t start, end;
    struct ah_label label;
    uint64_t epoch;    /* epoch from which its times are counted */
    uint64_t sequence; /* the work's number, once it is reported */
    int waits;
    struct ah_event wait[AH_WORK_MAX_WAITS];
    int64_t over_ns; /* host time when its number was seen; under the device's mutex */
    int64_t end_ns;  /* reported end */
    int64_t next_ns; /* earliest start of works already reported that waited for it */
};

/* Returns true for lanes whose works run on a thread of the host. */
static inline bool ah__cuda_on_thread(enum ah_lane lane)
{
    return lane == AH_LANE_HOST || lane == AH_LANE_DISK;
}

/* A lane as a stream. Slot s % AH_LANE_RING belongs to the lane's s-th work until it is reported. Lanes on a thread
 * have no stream. */
struct ah_cuda_stream {
    struct ah_cuda *cuda;
    enum ah_lane lane;
    cudaStream_t work;
    struct ah_cuda_slot slot[AH_LANE_RING];
    uint64_t reported; /* works that wait_any has returned; used by the driver alone */
    uint64_t jitter_count;
    int64_t last_end_ns; /* end of the last reported work */
    /* AH_CUDA_PARTIALS doubles of device memory outside the region, for sums of squares: of the compute lane, and with
     * several ranks of the comm lane. */
    double *partials;
    /* Under the device's mutex. Works up to `finished` are over; those up to `started` are on the stream, which will
     * write their numbers; those up to `submitted` are not on it, since a failure came first, and they end with it. */
    uint64_t finished, started, submitted;
};

/* A moment in the time of both clocks. The host's time is a little late, until works that cannot have ended after their
 * numbers arrived correct it. */
struct ah_cuda_epoch {
    cudaEvent_t event;
    int64_t ns;
};

/* The collectives of several ranks. */
struct ah_cuda_group {
    ncclComm_t nccl; /* null: only one rank, not joined yet, or abandoned */
    char *scratch;   /* AH_CUDA_PIECE_BYTES from each rank, outside the region */
    bool broken;     /* NCCL or another rank has failed: NCCL is not called any more */
};

struct ah_cuda {
    struct ah_dev dev;
    int ordinal, count; /* number of the GPU; number of GPUs */
    int host_threads;
    char name[16]; /* "cuda:0" */
    struct cudaDeviceProp properties;
    struct ah_cuda_library library;
    cublasLtHandle_t lt;
    cudnnHandle_t dnn;    /* null without cuDNN */
    bool own_attention;   /* requested: cuDNN is not opened */
    int64_t scores_bytes; /* most bytes of scores or masks of a piece of attention (attention_cudnn.c) */
    char attention[160];  /* text for struct ah_dev_info */
    struct ah_regions regions;
    char *region; /* the device region; null: not handed out */
    struct ah_pages host_pages[AH_REGIONS_HOST];
    struct ah_comm *comm;
    struct ah_cuda_group group;
    struct ah_pool *pool; /* pool of the host lane */
    struct ah_lanes *lanes;
    struct ah_cuda_stream stream[AH_LANE_COUNT];
    cudaStream_t clock; /* nearly always idle: epochs are recorded on it */
    /* Event times are floats of milliseconds, and clocks drift, so the epochs from which they are counted move
     * along. */
    struct ah_cuda_epoch epoch[AH_CUDA_EPOCHS];
    uint64_t epoch_last;   /* number of the last epoch, epoch[number % AH_CUDA_EPOCHS] */
    int64_t epoch_next_ns; /* time when the next epoch is due */
    /* Pinned, AH_CUDA_PASSED_APART from one lane to the next: the number of the lane's last completed work. The host
     * lane's thread writes its own, for which streams wait; streams write theirs, which the thread `watch` reads. */
    uint64_t *passed;
    pthread_t watch;
    pthread_cond_t watch_wake;
    bool watching, watch_sleeps, watch_ends; /* the last two are under the mutex */
    int64_t free_bytes;                      /* free device memory when it was opened */
    int64_t machine_bytes;
    uint64_t signature, jitter_seed;
    char arithmetic[64], link_kind[32];
    pthread_mutex_t mutex; /* protects the members below and the streams' counters */
    int failed;            /* status of the first failure, until memory_release; AH_OK: none */
    bool lost;             /* the failure is the GPU's: nothing runs on it any more */
    char message[512];     /* message of the failure, with lane and label */
};

#endif
