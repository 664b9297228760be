/* Makes the scheduler's configuration from a plan and its model. */
#ifndef AH_PLAN_CONFIG_H
#define AH_PLAN_CONFIG_H

#include "partition/partition.h"
#include "sched/sched.h"

/* Fills *out. World size and chunks of 0 become 1. */
void ah__sched_config_of(struct ah_sched_config *out, const struct ah_switches *switches,
                         const struct ah_partition *partition, const struct ah_policy *policy);

#endif
