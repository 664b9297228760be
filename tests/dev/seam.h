/* What every device does behind dev/dev.h: lanes, events, memory, failures. The same cases run on each; state is a
 * struct seam. */
#ifndef AH_TESTS_DEV_SEAM_H
#define AH_TESTS_DEV_SEAM_H

#include "test.h"

#include "dev/dev.h"

struct seam {
    int (*open)(struct ah_dev **out, const struct ah_dev_options *options);
    int threads; /* to ask for; 0: it has no threads and no throttled link */
};

void seam_memory_is_zeroed_and_given_back(void **state);
void seam_refuses_more_than_the_machine_has(void **state);
void seam_high_water_is_the_highest_byte_touched(void **state);
void seam_programs_run_and_are_measured(void **state);
void seam_programs_repeat_and_alternate(void **state);
void seam_refuses_memory_of_the_wrong_side(void **state);
void seam_a_lane_keeps_its_order(void **state);
void seam_lanes_agree_with_one_after_the_other(void **state);
void seam_a_failure_stops_everything_after_it(void **state);
void seam_refuses_malformed_work(void **state);
void seam_queues_refuse_rather_than_overflow(void **state);
void seam_submitting_allocates_nothing(void **state);
void seam_opening_survives_every_failed_allocation(void **state);

#define SEAM_CASE(name, seam) cmocka_unit_test_prestate(seam_##name, (void *)(uintptr_t)(seam))
#define SEAM_CASES(seam)                                                                                               \
    SEAM_CASE(memory_is_zeroed_and_given_back, seam), SEAM_CASE(refuses_more_than_the_machine_has, seam),              \
        SEAM_CASE(high_water_is_the_highest_byte_touched, seam), SEAM_CASE(programs_run_and_are_measured, seam),       \
        SEAM_CASE(programs_repeat_and_alternate, seam), SEAM_CASE(refuses_memory_of_the_wrong_side, seam),             \
        SEAM_CASE(a_lane_keeps_its_order, seam), SEAM_CASE(lanes_agree_with_one_after_the_other, seam),                \
        SEAM_CASE(a_failure_stops_everything_after_it, seam), SEAM_CASE(refuses_malformed_work, seam),                 \
        SEAM_CASE(queues_refuse_rather_than_overflow, seam), SEAM_CASE(submitting_allocates_nothing, seam),            \
        SEAM_CASE(opening_survives_every_failed_allocation, seam)

#endif
