/* Inside the CUDA device: what it consists of. Memory, streams as lanes, libraries, ranks.
 *
 * Every lane but the host's is a stream. Work is enqueued when it is submitted and ordered by events, so that no stream
 * ever waits for a thread of the program but for the host lane's, by a number in pinned memory; numbers that streams
 * write there report completions. With the clock's there are five streams, fewer than a GPU has hardware queues; and
 * every wait is for work submitted earlier, so that streams which share one cannot wait for each other in a circle.
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
    uint64_t epoch;    /* that its times are counted from */
    uint64_t sequence; /* of the work, once it is reported */
    int waits;
    struct ah_event wait[AH_WORK_MAX_WAITS];
    int64_t over_ns; /* by the host's clock, when its number was seen; under the device's mutex */
    int64_t end_ns;  /* as reported */
    int64_t next_ns; /* when the first began, of those reported already that waited for it */
};

/* A lane as a stream. Slot s % AH_LANE_RING belongs to the lane's s-th work until it is reported. The host lane has no
 * streams. */
struct ah_cuda_stream {
    struct ah_cuda *cuda;
    enum ah_lane lane;
    cudaStream_t work;
    struct ah_cuda_slot slot[AH_LANE_RING];
    uint64_t reported; /* works given back by wait_any; the driver's */
    uint64_t jitter_count;
    int64_t last_end_ns; /* of what was reported */
    /* AH_CUDA_PARTIALS doubles of device memory, beside the region: of the compute lane, and of several ranks' comm
     * lane, where sums are squared. */
    double *partials;
    /* Under the device's mutex. Works up to `finished` are over, those up to `started` are on the stream, which will
     * write their numbers, those up to `submitted` are not on it: a failure came first, and they end as it did. */
    uint64_t finished, started, submitted;
};

/* A moment that both clocks know: a little too late by the host's, until works that cannot have ended after their
 * numbers came have corrected it. */
struct ah_cuda_epoch {
    cudaEvent_t event;
    int64_t ns;
};

/* Of several ranks: their collectives. */
struct ah_cuda_group {
    ncclComm_t nccl; /* null: one rank alone, not joined yet, or abandoned */
    char *scratch;   /* AH_CUDA_PIECE_BYTES from each rank, beside the region */
    bool broken;     /* NCCL or another rank has failed: nothing is asked of NCCL any more */
};

struct ah_cuda {
    struct ah_dev dev;
    int ordinal, count; /* of the GPU; GPUs there are */
    int host_threads;
    char name[16]; /* "cuda:0" */
    struct cudaDeviceProp properties;
    struct ah_cuda_library library;
    cublasLtHandle_t lt;
    cudnnHandle_t dnn;    /* null without cuDNN */
    bool own_attention;   /* asked for: cuDNN is not looked for */
    int64_t scores_bytes; /* or masks, of a piece of attention (attention_cudnn.c) */
    char attention[160];  /* as struct ah_dev_info has it */
    struct ah_regions regions;
    char *region; /* the device's memory; null when none is handed out */
    struct ah_pages host_pages[AH_REGIONS_HOST];
    struct ah_comm *comm;
    struct ah_cuda_group group;
    struct ah_pool *pool; /* of the host lane */
    struct ah_lanes *lanes;
    struct ah_cuda_stream stream[AH_LANE_COUNT];
    cudaStream_t clock; /* as good as always idle: epochs are recorded there */
    /* Event times are floats of milliseconds, and clocks drift: what they are counted from moves along. */
    struct ah_cuda_epoch epoch[AH_CUDA_EPOCHS];
    uint64_t epoch_last;   /* its number, epoch[number % AH_CUDA_EPOCHS] */
    int64_t epoch_next_ns; /* when the next one is due */
    /* Pinned, AH_CUDA_PASSED_APART from one lane to the next: the number of the lane's last work that is over. The host
     * lane's thread writes its own, on which streams wait; streams write theirs, which the thread `watch` reads. */
    uint64_t *passed;
    pthread_t watch;
    pthread_cond_t watch_wake;
    bool watching, watch_sleeps, watch_ends; /* the last two under the mutex */
    int64_t free_bytes;                      /* of device memory when it was opened */
    int64_t machine_bytes;
    uint64_t signature, jitter_seed;
    char arithmetic[64], link_kind[32];
    pthread_mutex_t mutex; /* of what follows and of the streams' counters */
    int failed;            /* the first failure's status, until memory_release; AH_OK */
    bool lost;             /* ... was the GPU's: nothing runs on it any more */
    char message[512];     /* of the failure, with lane and label */
};

#endif
