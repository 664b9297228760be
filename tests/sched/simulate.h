/* Random machines, and plans on the simulated device: shared by the tests of the scheduler. */
#ifndef AH_TESTS_SCHED_SIMULATE_H
#define AH_TESTS_SCHED_SIMULATE_H

#include "sched/check.h"
#include "sched/costs.h"

/* From one number to another, both included. */
int draw(int from, int to);
void random_costs(struct ah_costs *costs, const struct ah_sched_config *config);

/* Without a scheduler; whoever asks closes its device. */
struct ah_drive drive_of(struct ah_costs *costs);
/* Fails the running test, and says of which plan, where driving fails. */
void drive_ok(const struct ah_drive *drive, const struct ah_sched_config *config);
/* All iterations of a plan, of which a third are clipped, into the timeline. */
void simulate(const struct ah_sched_config *config, struct ah_costs *costs, struct ah_timeline *timeline,
              int iterations, bool forward_only);

#endif
