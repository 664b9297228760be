/* Where a device's memory lies, and what each lane may touch of it: the same table for every device. Does not
 * allocate. */
#ifndef AH_DEV_HOST_REGIONS_H
#define AH_DEV_HOST_REGIONS_H

#include <stdatomic.h>

#include "dev/dev.h"

enum { AH_REGIONS_HOST = 128 }; /* calls of host_memory between two of memory_release */

struct ah_region {
    char *base;
    int64_t bytes;
};

/* All zero is no memory. Changed by the driver's thread while no work is in flight that touches what changes; read by
 * any. */
struct ah_regions {
    int world_size; /* of collectives */
    struct ah_region device;
    struct ah_region host[AH_REGIONS_HOST];
    atomic_int host_count;
    atomic_int_least64_t high_water; /* of the device region, in bytes */
};

void ah__regions_device(struct ah_regions *regions, char *base, int64_t bytes);
/* AH_EINTERNAL after AH_REGIONS_HOST calls. */
int ah__regions_host(struct ah_regions *regions, char *base, int64_t bytes);
int64_t ah__regions_host_bytes(const struct ah_regions *regions);
void ah__regions_clear(struct ah_regions *regions); /* keeps ranks and the high water */

/* Whether all memory a task names lies where its lane may reach; records the device region's high water. AH_EINTERNAL
 * names the operand. From any thread, before the task runs. */
int ah__regions_check(struct ah_regions *regions, enum ah_lane lane, const struct ah_task *task);

#endif
