/* Reads how much memory the control groups of this process still allow: a container or a batch job often has less than
 * its machine. Allocates nothing. */
#ifndef AH_DEV_HOST_CGROUP_H
#define AH_DEV_HOST_CGROUP_H

#include <stdint.h>

/* Returns the least, over this process's group and the groups around it, of limit - use + file pages that can be freed
 * (cgroup v2's memory.max, memory.current and inactive_file in memory.stat, or their names in v1). Never negative;
 * INT64_MAX if there is no limit, no controller, or no readable file. `root`: "", or for tests the folder that has
 * /proc and /sys. */
int64_t ah__cgroup_memory_left(const char *root);

#endif
