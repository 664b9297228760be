/* Addresses of an item's operands in memory that a layout cuts. Takes items of the scheduler and the bases of both
 * memories, returns the addresses that the binder needs. */
#ifndef AH_LAYOUT_ADDRESSES_H
#define AH_LAYOUT_ADDRESSES_H

#include "bind/bind.h"
#include "layout/layout.h"

/* Memory as large as the layout says, of a rank that runs under the switches. */
struct ah_memory {
    const struct ah_partition *partition;
    const struct ah_switches *switches;
    const struct ah_layout *layout;
    char *device, *host;  /* bases */
    struct ah_disk *disk; /* null: no block is on disk */
};

/* Computes the addresses of an item's operands. */
void ah__addresses(struct ah_addresses *at, const struct ah_memory *memory, const struct ah_item *item);
/* Returns the address of p of a group's states, on device or host; of a block on the host, in a set. The other states
 * follow, see ah__state_at. */
char *ah__states_of(const struct ah_memory *memory, int group, int set);
/* Returns the host memory from which an iteration's tokens are copied to the device. */
char *ah__host_tokens(const struct ah_memory *memory, int64_t iteration);
/* Returns the host memory in which an iteration's results arrive, see bind/bind.h. */
char *ah__host_results(const struct ah_memory *memory, int64_t iteration);

#endif
