/* Inside the CPU device: its memory, and the regions that each lane may touch. Takes submitted work, returns
 * completions.
 *
 * The device region is ordinary memory that only the lanes of the device may touch; every lane is a thread of
 * host/lanes.h. Must not know plans or training. */
#ifndef AH_DEV_CPU_DEVICE_H
#define AH_DEV_CPU_DEVICE_H

#include "dev/cpu/cpu.h"
#include "dev/host/lanes.h"
#include "dev/host/pages.h"
#include "dev/host/regions.h"

enum { AH_CPU_ALIGN = 256 };

struct ah_cpu {
    struct ah_dev dev;
    char model[64]; /* the processor's name */
    int threads, host_threads;
    int64_t link_bytes_per_s, machine_bytes;
    uint64_t jitter_seed, signature;
    char arithmetic[64];                  /* ah__cpu_arithmetic */
    uint64_t jitter_count[AH_LANE_COUNT]; /* position in a lane's sequence of random delays; used by its thread alone */
    struct ah_regions regions;
    struct ah_pages device_pages, host_pages[AH_REGIONS_HOST];
    struct ah_pool *pool[AH_LANE_COUNT]; /* pools of lanes that compute; else null */
    struct ah_lanes *lanes;
    struct ah_comm *comm; /* transport of the comm lane's collectives */
};

extern const struct ah_dev_ops ah__dev_cpu_ops;

/* ---- task.c */

/* Runs one work on its lane's thread: the function of host/lanes.h. `context` is the device. */
int ah__cpu_work(void *context, const struct ah_work *work, struct ah_done *done);

#endif
