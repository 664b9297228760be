/* The regions of a device's memory, and which of them each lane may touch: the same table for every device. Does not
 * allocate. */
#ifndef AH_DEV_HOST_REGIONS_H
#define AH_DEV_HOST_REGIONS_H

#include <stdatomic.h>

#include "dev/dev.h"

enum { AH_REGIONS_HOST = 128 }; /* most calls of host_memory between two of memory_release */

struct ah_region {
    char *base;
    int64_t bytes;
};

/* The regions; all zero: no memory. The driver's thread changes them while no work is in flight that touches what
 * changes; any thread reads them. */
struct ah_regions {
    int world_size; /* ranks of collectives */
    struct ah_region device;
    struct ah_region host[AH_REGIONS_HOST];
    atomic_int host_count;
    atomic_int_least64_t high_water; /* highest byte used of the device region */
};

void ah__regions_device(struct ah_regions *regions, char *base, int64_t bytes);
/* Adds a host region. AH_EINTERNAL after AH_REGIONS_HOST calls. */
int ah__regions_host(struct ah_regions *regions, char *base, int64_t bytes);
int64_t ah__regions_host_bytes(const struct ah_regions *regions);
void ah__regions_clear(struct ah_regions *regions); /* keeps world_size and high_water */

/* Checks that all memory of a task is where its lane may reach it, and records the device region's high water.
 * AH_EINTERNAL names the operand. From any thread, before the task runs. */
int ah__regions_check(struct ah_regions *regions, enum ah_lane lane, const struct ah_task *task);

#endif
