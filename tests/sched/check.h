/* An independent check of a recorded timeline: every data dependency kept, every buffer held by one owner at a time.
 * Shared by the tests of the scheduler on the simulated device and of real runs. */
#ifndef AH_TESTS_SCHED_CHECK_H
#define AH_TESTS_SCHED_CHECK_H

#include "sched/drive.h"
#include "timeline/timeline.h"

/* Fails the running test with a description of the first violation among the complete iterations of the record. */
void check_timeline(const struct ah_timeline *timeline, const struct ah_sched_config *config);

#endif
