/* Inside the CPU device: memory, checks, copies and lanes. Takes submitted work, gives completions.
 *
 * One mutex guards all queues and counters; a lane holds it only between items. Each lane is a thread with a fixed ring of
 * items; a lane's event counter is the number of items it has finished. Must not know plans or training. */
#ifndef AH_DEV_CPU_DEVICE_H
#define AH_DEV_CPU_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "dev/cpu/cpu.h"

enum {
    AH_CPU_RING = 256,     /* items of one lane between submit and wait_any */
    AH_CPU_REGIONS = 128,  /* calls of host_memory between two of memory_release */
    AH_CPU_ALIGN = 256,
};

/* Bytes at `base`, with inaccessible pages before and after. */
struct ah_cpu_region {
    char *base;
    int64_t bytes;  /* as asked for */
    void *mapping;
    size_t mapped;
};

struct ah_cpu_slot {
    struct ah_work work;
    int64_t start_ns, end_ns;
    int status;
};

struct ah_cpu_lane {
    struct ah_cpu *cpu;
    enum ah_lane lane;
    bool started;
    pthread_t thread;
    struct ah_pool *pool;      /* compute and host lanes */
    int core;                  /* lanes without a pool: where to run; -1: anywhere */
    uint64_t jitter_count;     /* position in the lane's stream of delays; its thread's own */
    struct ah_cpu_slot *ring;  /* a slot belongs to the lane between submit and completion, else to the driver */
    /* guarded by the device's mutex */
    pthread_cond_t wake;
    bool asleep;               /* nothing to do, or waiting for `needs` */
    struct ah_event needs;     /* while asleep: {0,0} when it waits for a submit */
    uint64_t submitted, finished, reported;
};

struct ah_cpu {
    struct ah_dev dev;
    int threads, host_threads;
    int64_t link_bytes_per_s, machine_bytes;
    uint64_t jitter_seed, signature;
    struct ah_cpu_region device;
    struct ah_cpu_region host[AH_CPU_REGIONS];
    atomic_int host_count;
    atomic_int_least64_t high_water;
    pthread_mutex_t mutex;
    pthread_cond_t finished; /* the driver sleeps here */
    bool made, stop, driver_asleep;
    int failed;              /* the first failed item's status, else AH_OK */
    char message[512];
    unsigned char order[AH_LANE_COUNT * AH_CPU_RING]; /* lanes of finished items in order of completion */
    uint64_t order_in, order_out;
    struct ah_cpu_lane lanes[AH_LANE_COUNT];
};

/* ---- memory.c */

/* Zeroed, prefaulted memory; `what` is for the message. AH_ENOMEM, also when the machine has less than `bytes` available. */
int ah__cpu_region_new(struct ah_cpu_region *out, int64_t bytes, const char *what);
/* What the kernel says can be had without swapping; INT64_MAX when it does not say. */
int64_t ah__cpu_memory_available(void);
void ah__cpu_region_free(struct ah_cpu_region *region);

/* ---- check.c */

/* Whether all memory a task names lies where its lane may reach; records the device region's high water. AH_EINTERNAL names
 * the operand. Called on the lane's thread, before the task runs. */
int ah__cpu_check(struct ah_cpu *cpu, enum ah_lane lane, const struct ah_task *task);

/* ---- copy.c */

/* memcpy at `bytes_per_s` (0: unthrottled) by absolute deadlines, so that it takes bytes / bytes_per_s and no more. */
void ah__cpu_transfer(void *to, const void *from, int64_t bytes, int64_t bytes_per_s);
int64_t ah__cpu_now_ns(void);
/* Sleeps until the monotonic clock shows `deadline_ns`. */
void ah__cpu_sleep_until(int64_t deadline_ns);

/* ---- lane.c */

/* Starts the lane's thread; its pool must be there. AH_ENOMEM. */
int ah__cpu_lane_start(struct ah_cpu_lane *lane);
/* Waits for the thread to end; the device's `stop` must be set. */
void ah__cpu_lane_join(struct ah_cpu_lane *lane);
/* With the mutex held: wakes the lane if what it sleeps for has come. */
void ah__cpu_lane_wake(struct ah_cpu_lane *lane);

#endif
