/* How much memory the control groups of this process still grant it: a container or a batch job often has less than
 * its machine. Allocates nothing. */
#ifndef AH_DEV_HOST_CGROUP_H
#define AH_DEV_HOST_CGROUP_H

#include <stdint.h>

/* The least, over this process's group and the groups around it, of limit - use + file pages that can be given back
 * (cgroup v2's memory.max, memory.current and inactive_file in memory.stat, or what v1 calls them). Never negative;
 * INT64_MAX where there is no limit, no controller, or files one cannot read. `root`: "", or where /proc and /sys are
 * for tests. */
int64_t ah__cgroup_memory_left(const char *root);

#endif
