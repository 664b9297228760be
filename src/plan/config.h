/* What the scheduler is told of a plan and the model that it is for. */
#ifndef AH_PLAN_CONFIG_H
#define AH_PLAN_CONFIG_H

#include "partition/partition.h"
#include "sched/sched.h"

/* Ranks and chunks that are not set are one. */
void ah__sched_config_of(struct ah_sched_config *out, const struct ah_switches *switches,
                         const struct ah_partition *partition, const struct ah_policy *policy);

#endif
